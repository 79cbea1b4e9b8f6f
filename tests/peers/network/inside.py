"""What is checked in the lab, inside its namespaces: reads, and changes that are confirmed, forgotten, interrupted and refused (NM-02, NM-03,
NM-08, NM-09, NM-12, NM-14), all through the shipped binary and a gate.

The device itself is the judge: each check looks at what FRR runs, never at what was answered alone.
"""
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gateway import Gateway, binary  # noqa: E402
from network import added, asking, canaries, clients, controller, lab, netconf, page, previewed, remote, settled, shaped, undone, walk  # noqa: E402
from network.agent import Device, command_lines, kill_all, processes, until  # noqa: E402
from report import Report  # noqa: E402
from wire import Legacy  # noqa: E402

CONFIG = """
[audit]
path = "record"

[device.r1]
pathspace = "r1"
longest_window = "60s"

[device.r2]
pathspace = "r2"
read_only = true
command_timeout = "2s"
deny_commands = ["show ip ospf database"]

[device.secluded]
pathspace = "r2"
deny_commands = ["show running-config", "show ip route", "show interface"]

[device.lines]
pathspace = "r2"
allow_lines = ["interface lan0", "description"]
deny_lines = ["shutdown"]

[device.absent]
pathspace = "r9"

[device.r3]
pathspace = "r3"
confirmation = "person"
health = [{ command = "show ip ospf neighbor", expect = "Full" }]
"""
WINDOW = 4
SSH = """
[device.remote]
backend = "ssh"
address = "127.0.0.1:2222"
user = "netadm"
password = "${{file:{work}/password}}"
host_key = "{fingerprint}"
command_timeout = "3s"

[device.bykey]
backend = "ssh"
address = "127.0.0.1:2222"
user = "netadm"
key = "{work}/login"
host_key = "{fingerprint}"

[device.stranger]
backend = "ssh"
address = "127.0.0.1:2222"
user = "netadm"
password = "${{file:{work}/password}}"

[device.replaced]
backend = "ssh"
address = "127.0.0.1:2222"
user = "netadm"
password = "${{file:{work}/password}}"
host_key = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

[device.locked-out]
backend = "ssh"
address = "127.0.0.1:2222"
user = "netadm"
password = "${{file:{work}/wrong}}"
host_key = "{fingerprint}"

[device.nowhere]
backend = "ssh"
address = "203.0.113.1"
user = "netadm"
key = "{work}/login"

[device.silent]
backend = "ssh"
address = "127.0.0.1:2223"
user = "netadm"
key = "{work}/login"
"""


def reads(report, device, gateway):
    """NM-02, NM-03, NM-12: reads come from the device at that moment, and hide its secrets."""
    wanted = {"network.cli.exec", "network.cli.configure", "network.yang.get", "network.yang.edit", "network.commit", "network.rollback",
              "network.file.pull", "network.file.push"}
    report.equal("NM-02: all eight tools are listed", wanted - set(device.tools), set())
    shown = device.call("network.cli.exec", cmd="show running-config")
    report.check("NM-12: secrets of BGP are in no answer", lab.PASSWORD not in json.dumps(shown) and "neighbor 10.0.12.2 password" in json.dumps(shown),
                 json.dumps(shown)[:600])
    pulled = device.call("network.file.pull", filename="running-config")
    report.check("NM-12: nor in a file that is pulled", lab.PASSWORD not in json.dumps(pulled) and "router ospf" in json.dumps(pulled))
    report.check("NM-12: nor in the resource", lab.PASSWORD not in device.read("file/running-config"))
    routes = json.loads(device.read("routing/ipv4/route-table"))["ietf-routing:routes"]["route"]
    report.check("NM-03: the routing table is the one of FRR", routes and {r["destination-prefix"] for r in routes} == set(json.loads(lab.vtysh("r1", "show ip route json"))), str(routes)[:600])
    lan = json.loads(device.read("interface/lan0"))["openconfig-interfaces:interface"]
    report.equal("NM-03: an interface is up", lan["state"]["oper-status"], "UP")
    lab.sh("ip", "-n", "r1", "link", "set", "lan0", "down")
    down = until(5, lambda: json.loads(device.read("interface/lan0"))["openconfig-interfaces:interface"]["state"]["oper-status"] == "DOWN")
    report.check("NM-03: a read is fresh: the interface is down once it is", down is not None)
    lab.sh("ip", "-n", "r1", "link", "set", "lan0", "up")
    report.check("NM-03: lines of the log", "BGP" in device.read("log/syslog/last50") or "OSPF" in device.read("log/syslog/last50"))


def injections(report, device):
    """NM-12: what only looks like a show command is refused and reaches nothing."""
    before = lab.running("r1")
    for command in ("show version\nconfigure terminal\nhostname owned", "configure terminal", "copy /tmp/x running-config", "clear ip bgp *",
                    "show version ; write", "show run | redirect /tmp/x", "show history", "sh hist", "start-shell"):
        code, detail = device.code("network.cli.exec", cmd=command)
        report.check(f"NM-12: {command!r} is refused", code in (-32083, -32084, -32602), f"{code} {detail}")
    report.equal("NM-12: and the device runs what it ran", lab.running("r1"), before)


def rules(report, gateway):
    """NM-12: rules of a device on commands and lines hold for every spelling."""
    device = Device(gateway, "r2")
    shown = device.call("network.cli.exec", cmd="sh ip ospf nei")
    report.check("NM-12: a command that no rule forbids goes through, shortened too", "Full" in shown.get("stdout", ""), str(shown)[:400])
    for command in ("show ip ospf database", "sh ip ospf data", "show ip ospf database router"):
        code, detail = device.code("network.cli.exec", cmd=command)
        report.check(f"NM-12: {command!r} is forbidden by a rule", code == -32083 and "forbids" in detail, f"{code} {detail}")
    device = Device(gateway, "secluded")
    for read in (lambda: device.code("network.cli.exec", cmd="show running-config"), lambda: device.code("network.file.pull", filename="running-config")):
        code, detail = read()
        report.check("NM-12: what a rule forbids as a command is no file either", code == -32083 and "forbids" in detail, f"{code} {detail}")
    for path in ("file/running-config", "routing/ipv4/route-table", "interfaces", "interface/lan0"):
        told = device.wire.call("resources/read", {"uri": f"network:///{path}"}).message
        report.check(f"NM-12: nor the resource {path}", "forbids" in json.dumps(told.get("error")), str(told)[:400])
    device = Device(gateway, "lines")
    shown = device.change("interface lan0", "description allowed")
    report.check("NM-12: a line that a rule allows is taken", "+ description allowed" in shown.get("diff", ""), str(shown))
    device.call("network.rollback")
    for lines in (["router ospf", "no network 10.0.0.0/16 area 0"], ["interface lan0", "shut"], ["do clear ip bgp *"]):
        code, detail = device.code("network.cli.configure", commands=lines)
        report.check(f"NM-12: {lines[-1]!r} is refused by the rules on lines", code == -32083, f"{code} {detail}")
    code, detail = device.code("network.file.push", filename="candidate-config", content="hostname x\n")
    report.check("NM-12: nor does a whole file pass by them", code == -32083, f"{code} {detail}")


def ruled_later(report, gateway):
    """NM-12: a candidate is held against the rules that hold when it is committed."""
    device, before = Device(gateway, "lines"), lab.running("r2")
    device.change("interface lan0", "description allowed")
    file = Path(gateway.home.dir) / "banyan.toml"
    text = file.read_text()
    file.write_text(text.replace('allow_lines = ["interface lan0", "description"]', 'allow_lines = ["router ospf"]'))
    gateway.told("reload", "--config", str(file))
    code, detail = until_answered(lambda: Device(gateway, "lines").code("network.commit", confirmed=WINDOW))
    report.check("NM-12: nor is a line committed that has been forbidden meanwhile", code == -32083 and "allow" in detail and lab.running("r2") == before,
                 f"{code} {detail}")
    file.write_text(text)
    gateway.told("reload", "--config", str(file))
    until_answered(lambda: Device(gateway, "lines").call("network.rollback"))


def until_answered(ask):
    """The answer of a device whose process may just be starting anew."""
    end = time.monotonic() + 15
    while True:
        try:
            return ask()
        except (RuntimeError, KeyError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def recorded(gateway):
    """Entries of the gate's record, as text."""
    return [line for file in Path(gateway.home.dir).glob("record/chain-*/entries/*.jsonl") for line in file.read_bytes().splitlines()]


def record(report, device, gateway):
    """NM-12: the record of the gate holds the calls, and no secret of a device; nor does any file that others can read."""
    before = len(recorded(gateway))
    secret = "canary-typed-secret"
    shown = device.change("router bgp 65001", f"neighbor 10.0.12.2 password {secret}")
    report.check("NM-12: a secret that is typed is in no diff", secret not in json.dumps(shown) and "+ neighbor 10.0.12.2 password [redacted]" in shown["diff"],
                 json.dumps(shown))
    device.call("network.commit", confirmed=30)
    report.check("NM-12: and the device has it", secret in lab.running("r1"))
    device.call("network.rollback")
    report.check("NM-12: and has it no more", secret not in lab.running("r1"))
    entries = recorded(gateway)
    text = b"\n".join(entries)
    shown = device.change("interface lan0", "description -----BEGIN X-----", "router bgp 65001", "neighbor 10.0.12.9 remote-as 666")
    report.check("NM-12: no line hides the lines behind it from who decides", "+ neighbor 10.0.12.9 remote-as 666" in shown["diff"], shown["diff"])
    device.call("network.rollback")
    report.check("NM-12: the record holds an entry of each of these calls", len(entries) >= before + 3 and
                 all(text.count(name) >= 1 for name in (b"cli.configure", b"network.commit", b"network.rollback")), text[-2000:])
    report.check("NM-12: the record holds no secret", secret.encode() not in text and lab.PASSWORD.encode() not in text)
    places = (gateway.home.dir, "/run/frr", "/run/netlab", "/etc/frr", "/var/log/frr")
    files = [file for place in places for file in Path(place).rglob("*") if file.is_file()]
    readable = [str(file) for file in files if file.stat().st_mode & 0o044 and secret.encode() in file.read_bytes()]
    report.check("NM-12: no file that others can read holds it", files and not readable, str(readable))
    report.check("NM-12: nor does a history of vtysh", not any(secret in file.read_text(errors="replace") for file in histories()))


def histories():
    """Commands that vtysh kept, for the user of the environment and for the one who runs this."""
    homes = {Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir)}
    return [file for file in (home / ".history_frr" for home in homes) if file.exists()]


def timed_out(report, gateway):
    """NM-08: a command that does not end is ended, with what it had printed."""
    device = Device(gateway, "r2")
    began = time.monotonic()
    code, detail = device.code("network.cli.exec", cmd="ping 127.0.0.1")
    report.check("NM-08: a command that hangs is ended", code == -32081 and "icmp_seq=1" in detail and time.monotonic() - began < 10, f"{code} {detail}")
    left = [line for line in command_lines() if b"ping\0" in line]
    report.equal("NM-08: and leaves no process behind", left, [])
    code, detail = Device(gateway, "absent").code("network.cli.exec", cmd="show version")
    report.check("NM-08: a router that does not run is unreachable", code == -32082, f"{code} {detail}")


def over_ssh(report, gateway):
    """NM-02, NM-03, NM-12, NM-13: a router behind SSH is read as on its own machine, and not changed."""
    before = lab.running("r1")
    for name in ("remote", "bykey"):
        shown = Device(gateway, name).call("network.cli.exec", cmd="show running-config")["stdout"]
        wanted = before.replace(lab.PASSWORD, "[redacted]")
        report.equal(f"NM-02: {name}: what a command shows over SSH is what it shows there, without secrets",
                     [line.rstrip() for line in shown.splitlines() if line.strip()], [line.rstrip() for line in wanted.splitlines() if line.strip()])
    device = Device(gateway, "remote")
    routes = json.loads(device.read("routing/ipv4/route-table"))["ietf-routing:routes"]["route"]
    report.check("NM-03: the routing table over SSH is the one of FRR",
                 routes and {r["destination-prefix"] for r in routes} == set(json.loads(lab.vtysh("r1", "show ip route json"))), str(routes)[:600])
    uris = {one["uri"] for one in device.wire.call("resources/list", {}).result["resources"]}
    report.check("NM-03: what is of this machine is not listed as of the device", any("routing/ipv4" in uri for uri in uris) and
                 not any("system/" in uri for uri in uris), str(uris))
    for tool, arguments in (("network.cli.configure", {"commands": ["hostname x"]}), ("network.commit", {"confirmed": 5}), ("network.rollback", {}),
                            ("network.file.push", {"filename": "candidate-config", "content": "hostname x\n"})):
        code, detail = device.code(tool, **arguments)
        report.check(f"NM-13: {tool} over a shell that can't undo is not supported", code == -32087 and "nothing was sent" in detail, f"{code} {detail}")
        report.check(f"NM-13: and {tool} is listed as not available", device.tools[tool]["_meta"]["available"] is False)
    code, detail = device.code("network.cli.exec", cmd="configure terminal")
    report.check("NM-12: nor does a command change it", code == -32083, f"{code} {detail}")
    report.equal("NM-13: the device runs what it ran", lab.running("r1"), before)
    code, detail = device.code("network.cli.exec", cmd="show bogus")
    report.check("NM-08: what the device does not understand is told", code == -32084 and "Unknown command" in detail, f"{code} {detail}")
    began = time.monotonic()
    code, detail = device.code("network.cli.exec", cmd="ping 127.0.0.1")
    report.check("NM-08: a command that hangs over SSH is given up", code == -32081 and time.monotonic() - began < 10, f"{code} {detail}")
    gone = until(5, lambda: not any(b"ping\0" in line for line in command_lines()))
    report.check("NM-08: and does not go on there", gone is not None)


def pages_over_ssh(report, gateway):
    """NM-04: a large table behind SSH is read in blocks, page by page, and whole."""
    words = [f"route {{}} blackhole 10.80.{number // 250}.{number % 250}/32" for number in range(2500)]
    change = lambda what: subprocess.run(["ip", "-n", "r1", "-batch", "-"], input="\n".join(words).replace("{}", what), text=True, check=True)
    change("add")
    try:
        until(5, lambda: '"10.80.9.249/32"' in lab.vtysh("r1", "show ip route 10.80.9.249/32 json"))
        found, sizes, uri = [], [], "network:///routing/ipv4/route-table"
        for _ in range(9):
            result = Device(gateway, "remote").wire.call("resources/read", {"uri": uri}).result
            page = json.loads(result["contents"][0]["text"])["ietf-routing:routes"]["route"]
            found, sizes = found + [route["destination-prefix"] for route in page], [*sizes, len({route["destination-prefix"] for route in page})]
            cursor = result.get("_meta", {}).get("nextCursor")
            if cursor is None:
                break
            uri = f"network:///routing/ipv4/route-table?cursor={cursor}"
        report.check("NM-04: over SSH the pages hold every route once", set(found) == set(json.loads(lab.vtysh("r1", "show ip route json"))) and
                     len(set(found)) == sum(sizes), f"{len(set(found))} {sizes}")
        report.check("NM-04: and no page is larger than allowed", len(sizes) == 3 and max(sizes) <= 1000, str(sizes))
    finally:
        change("del")


def no_login(report, gateway):
    """NM-08: why a device behind SSH is not reached, and what to do."""
    accept = f'host_key = "{lab.fingerprint()}"'
    for name, words in (("stranger", ("never accepted", accept)), ("replaced", ("somebody is in between", accept)),
                        ("locked-out", ("refused the login of `netadm`",)), ("nowhere", ("203.0.113.1:22", "unreachable")), ("silent", ("refused",))):
        result = Device(gateway, name).call("network.cli.exec", cmd="show version")
        told = result.get("structuredContent") or {}
        detail = (told.get("data") or {}).get("detail", str(result)[:400])
        report.check(f"NM-08: {name}: {words[0]}", told.get("code") == -32082 and all(word in detail for word in words), f"{told}")
        report.equal(f"NM-08: {name}: a retry is offered where it may help", told["data"]["retryPossible"], name in ("nowhere", "silent"))
        report.check(f"NM-12: {name}: no password is told", "canary" not in json.dumps(result))
    arguments = b"".join(command_lines())
    report.check("NM-12: no password is an argument of a process", b"device\0serve" in arguments and lab.LOGIN.encode() not in arguments)


def confirmed(report, device):
    """NM-09: a change is shown, applied for some seconds, confirmed, and stays, also in what the device starts with."""
    before = lab.running("r1")
    shown = device.change("interface lan0", "description changed by hand of an agent", "ip route 10.77.0.0/16 blackhole")
    report.check("NM-09: the diff shows the change", re.search(r"- description .+\n\+ description changed by hand of an agent\n", shown["diff"]) and "+ip route 10.77.0.0/16 blackhole" in shown["diff"], shown["diff"])
    report.equal("NM-09: a diff applies nothing", lab.running("r1"), before)
    done = device.call("network.commit", confirmed=30, hash=shown["hash"])
    status, left = done["structuredContent"]["status"], done["structuredContent"]["rollbackTimeout"]
    report.check("NM-09: it is committed for the time asked for", status == "committed" and 20 < left <= 30, f"{status} {left}")
    report.check("NM-09: the device runs it", "description changed by hand of an agent" in lab.running("r1") and
                 "ip route 10.77.0.0/16 blackhole" in lab.running("r1"))
    code, detail = device.code("network.cli.configure", commands=["hostname x"])
    report.check("NM-09: while it waits, nobody else changes the device", code == -32083 and "waits for its confirmation" in detail, f"{code} {detail}")
    kept = device.call("network.commit", confirm=True)["structuredContent"]
    report.equal("NM-09: it is confirmed and saved", (kept["status"], kept["saved"]), ("confirmed", True))
    report.check("NM-09: FRR starts with it", "changed by hand of an agent" in Path("/etc/frr/r1/frr.conf").read_text())
    report.check("NM-09: the guard ends by itself", until(5, lambda: not processes("guard")) is not None)


def forgotten(report, device):
    """NM-09: a change that nobody confirms is gone when its time is over, byte for byte."""
    before, starts_with = lab.running("r1"), Path("/etc/frr/r1/frr.conf").read_text()
    device.change("router bgp 65001", "neighbor 10.0.13.3 timers 2 6", "no neighbor 10.0.12.2 timers")
    device.call("network.commit", confirmed=WINDOW)
    report.check("NM-09: the forgotten change runs", "timers 2 6" in lab.running("r1"))
    report.equal("NM-09: what nobody confirmed is not what FRR starts with", Path("/etc/frr/r1/frr.conf").read_text(), starts_with)
    took = until(WINDOW + 20, lambda: lab.running("r1") == before)
    report.check("NM-09: the forgotten change is gone, byte for byte", took is not None, lab.running("r1"))
    report.equal("NM-09: nor is anything else once it is gone", Path("/etc/frr/r1/frr.conf").read_text(), starts_with)
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: who confirms too late is told so", code == -32086, f"{code} {detail}")


def killed(report, gateway):
    """NM-09: gate and device process die by SIGKILL, and the device returns to its old configuration by itself."""
    device = Device(gateway, "r1")
    before = lab.running("r1")
    device.change("router ospf", "no network 10.0.0.0/16 area 0", "interface lan0", "no description", "description dead man")
    device.call("network.commit", confirmed=WINDOW + 2)
    report.check("NM-09: the change runs before the kill", "dead man" in lab.running("r1"))
    servers = processes("serve")
    gateway.kill()
    for pid in servers:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    report.check("NM-09: no server of a device lives any more", until(5, lambda: not processes("serve")) is not None, str(processes("serve")))
    took = until(WINDOW + 25, lambda: lab.running("r1") == before)
    report.check("NM-09: after the kills the old configuration is back, byte for byte", took is not None, lab.running("r1"))
    gateway.start()


def all_killed(report, gateway):
    """NM-09: the guard dies too; whoever starts next restores the device from the record on the disk."""
    device = Device(gateway, "r1")
    before = lab.running("r1")
    device.change("interface lan0", "description nobody left")
    device.call("network.commit", confirmed=WINDOW)
    kill_all(gateway)
    time.sleep(WINDOW + 1)
    report.check("NM-09: with all dead the change is still there", "nobody left" in lab.running("r1"))
    gateway.start()
    took = until(20, lambda: lab.running("r1") == before)
    report.check("NM-09: the next process restores the device, byte for byte", took is not None, lab.running("r1"))


def amid(report, gateway):
    """NM-09: the server dies while the device is being changed."""
    before = lab.running("r1")
    survived = []
    for delay in (0.05, 0.2, 0.4, 0.6):
        device = Device(gateway, "r1")
        device.change("interface lan0", f"description amid {delay}", "ip route 10.78.0.0/16 blackhole")
        caller = subprocess.Popen([sys.executable, "-c", f"""
import sys; sys.path.insert(0, {str(Path(__file__).resolve().parent.parent)!r})
from wire import Modern
Modern({gateway.url('r1')!r}, timeout=20).tool({device.named['network.commit']!r}, {{"confirmed": {WINDOW}}})"""], stderr=subprocess.DEVNULL)
        time.sleep(0.3 + delay)
        for pid in processes("serve"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        caller.wait(30)
        took = until(WINDOW + 25, lambda: lab.running("r1") == before and not processes("guard"))
        if took is None:
            survived.append((delay, lab.running("r1")))
        reset(gateway)
    report.check("NM-09: a kill amid a commit leaves nothing", not survived, str(survived)[:2000])


def reset(gateway):
    """Waits for the server of a device to be back, and lets go of a candidate that the killed one left open."""
    def is_back():
        device = Device(gateway, "r1")
        return device.named and "result" in device.wire.tool(device.named["network.rollback"], {}).message
    until(20, is_back)


def drift(report, device):
    """NM-09: what somebody changed by hand since the diff was shown makes the commit void."""
    shown = device.change("interface lan0", "description late")
    lab.vtysh("r1", "configure terminal", "interface lan0", "ip address 192.168.101.1/24")
    before = lab.running("r1")
    code, detail = device.code("network.commit", confirmed=WINDOW, hash=shown["hash"])
    report.check("NM-09: a commit after a drift is refused", code == -32084 and "changed since the diff" in detail, f"{code} {detail}")
    report.equal("NM-09: and nothing of it was applied", lab.running("r1"), before)
    again = device.change("interface lan0", "description late")
    code, detail = device.code("network.commit", confirmed=WINDOW, hash=shown["hash"])
    report.check("NM-09: nor is a candidate committed by the hash of another", again["hash"] != shown["hash"] and code == -32084, f"{code} {detail}")
    device.call("network.rollback")
    lab.vtysh("r1", "configure terminal", "interface lan0", "no ip address 192.168.101.1/24")


def refused(report, gateway, device):
    """NM-08, NM-12, NM-13: what the device or its configuration refuses, with its code, and nothing half applied."""
    before = lab.running("r1")
    code, detail = device.code("network.cli.configure", commands=["interface lan0", "descriptionn x"])
    report.check("NM-08: bad syntax is refused by the device's own check", code == -32084 and "line" in detail, f"{code} {detail}")
    device.change("router bgp 65099", "bgp router-id 9.9.9.9")
    code, detail = device.code("network.commit", confirmed=WINDOW)
    report.check("NM-08: what FRR applies by half is taken back", code in (-32084, -32085), f"{code} {detail}")
    report.equal("NM-08: the device runs what it ran", lab.running("r1"), before)
    code, detail = Device(gateway, "r2").code("network.cli.configure", commands=["hostname x"])
    report.check("NM-12: a device that is read-only stays so", code == -32083 and "read-only" in detail, f"{code} {detail}")
    code, detail = device.code("network.commit", confirmed=9999)
    report.check("NM-08: a window beyond the longest is refused", code == -32602, f"{code} {detail}")
    code, detail = device.code("network.cli.configure", commands=[f"ip route 10.99.{n // 256}.{n % 256}/32 blackhole" for n in range(1001)])
    report.check("NM-13: more edits than allowed are refused", code == -32084 and "1000 are allowed" in detail, f"{code} {detail}")
    shown = device.call("network.cli.configure", commands=[f"ip route 10.99.{n // 256}.{n % 256}/32 blackhole" for n in range(1001)], chunked=True)
    report.check("NM-13: and are one change where the caller asks for parts", "+ip route 10.99.3.232/32 blackhole" in shown.get("diff", ""), str(shown)[:600])
    device.call("network.rollback")
    code, detail = device.code("network.yang.get", path="/openconfig-interfaces:interfaces")
    report.check("NM-02: YANG tools say that there is no YANG", code == -32084 and device.tools["network.yang.get"]["_meta"]["available"] is False,
                 f"{code} {detail}")
    client = Legacy(gateway.url("r1"))
    error = client.tool(device.named["network.yang.get"], {"path": "/x"})
    told = error.error.get("code") or (error.message or {}).get("result", {}).get("structuredContent", {}).get("code")
    report.equal("NM-08: a client of the initialize era is told the same code", told, -32084)


def person(report, gateway):
    """NM-09: where a person confirms, the agent can not; health is looked at before a change counts."""
    device = Device(gateway, "r3")
    before = lab.running("r3")
    device.change("interface lan0", "description by a person")
    device.call("network.commit", confirmed=40)
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: an agent does not confirm where a person does", code == -32083 and "banyan device confirm r3" in detail, f"{code} {detail}")
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    listed = json.loads(gateway.told("device", "list", "--json", *config))["devices"]
    r3 = next(one for one in listed if one["device"] == "r3")
    report.check("NM-09: the list shows what waits and how long", r3["phase"] == "applied" and 0 < r3["seconds_left"] <= 40 and r3["owner"] == "mcp", str(listed))
    report.check("NM-09: a person confirms", "confirmed" in gateway.told("device", "confirm", "r3", *config) and "by a person" in lab.running("r3"))
    device.change("router ospf", "no network 10.0.0.0/16 area 0")
    after = lab.running("r3")
    code, detail = device.code("network.commit", confirmed=40)
    report.check("NM-09: a change that cuts the neighbours is taken back at once", code == -32084 and "show ip ospf neighbor" in detail, f"{code} {detail}")
    report.check("NM-09: and OSPF runs as before", lab.running("r3") == after and after != before, lab.running("r3"))


def command_line(report, gateway):
    """NM-09: `banyan device` shows a change, brings the old configuration back, takes over, and adds only what it reached."""
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    device = Device(gateway, "r1")
    before = lab.running("r1")
    device.change("interface lan0", "description by the agent")
    device.call("network.commit", confirmed=40)
    told = gateway.told("device", "status", "r1", *config)
    report.check("NM-09: the status names the change, its owner and its end", "of mcp: applied" in told and "banyan device confirm r1" in told, told)
    report.check("NM-09: a person brings the old configuration back", "rolled back" in gateway.told("device", "rollback", "r1", *config) and
                 lab.running("r1") == before, lab.running("r1"))
    report.check("NM-09: and the status says why", "asked for the rollback" in gateway.told("device", "status", "r1", *config))
    device.change("interface lan0", "description by the agent")
    gateway.told("device", "take-over", "r1", *config)
    code, detail = device.code("network.commit", confirmed=40)
    report.check("NM-09: what a person took over, the agent does not commit", code == -32083 and "is being made by" in detail, f"{code} {detail}")
    report.check("NM-09: and the person lets go of it", "rolled back" in gateway.told("device", "rollback", "r1", *config))
    fresh = ["--config", gateway.home.write("fresh.toml", "")]
    report.check("NM-14: a device that does not answer is not added", not gateway.told("device", "add", "gone", "--pathspace", "r9", *fresh) and
                 "gone" not in Path(fresh[1]).read_text())
    for about, arguments, words in (("no FRR in a path space", ("--pathspace", "r9"), ("vtysh -N r9` found no daemon of FRR at /run/frr/r9", "check the name")),
                                    ("no FRR without one", (), ("found no daemon of FRR at /run/frr", "systemctl start frr"))):
        said = gateway.asked("device", "add", "gone", *arguments, *fresh).stderr
        report.check(f"NM-08: {about}: what was tried and what to do is told", all(word in said for word in words) and "Exiting" not in said, said)
    report.check("NM-14: a device is added once it answered", "FRRouting" in gateway.told("device", "add", "r2", "--pathspace", "r2", *fresh) and
                 "[device.r2]" in Path(fresh[1]).read_text())


def without_reload(report):
    """NM-01, NM-13: an FRR without the program that would bring its old configuration back offers no change, and is sent none."""
    program, before = "/usr/lib/frr/frr-reload.py", lab.running("r1")
    lab.sh("mount", "--bind", "/dev/null", program)
    try:
        with Gateway("without-reload", {}, config='[device.r1]\npathspace = "r1"\n') as gateway:
            device = Device(gateway, "r1")
            told = json.loads(device.read("capabilities"))
            report.equal("NM-01: without frr-reload.py there is no rollback", (told["supportsRollback"], told["configDatastore"]), (False, ["running", "operational"]))
            uris = {one["uri"]: one for one in device.wire.call("resources/list").result["resources"]}
            report.check("NM-01: and nothing to write", "network:///file/candidate-config" not in uris and uris["network:///file/startup-config"]["_meta"]["readOnly"], str(uris))
            for tool, arguments in (("network.cli.configure", {"commands": ["hostname x"]}), ("network.commit", {"confirmed": 5})):
                code, detail = device.code(tool, **arguments)
                report.check(f"NM-13: {tool} says what is missing", code == -32087 and "frr-pythontools" in detail and device.tools[tool]["_meta"]["available"] is False, f"{code} {detail}")
            report.equal("NM-13: and it runs what it ran", lab.running("r1"), before)
            lab.sh("umount", "--lazy", program)
            told = json.loads(device.read("capabilities"))
            report.check("NM-01: once it is there, there is one", told["supportsRollback"] is True and "candidate" in told["configDatastore"], str(told))
    finally:
        lab.sh("umount", "--lazy", program, check=False)


def unrestorable(report, device):
    """NM-08: where a daemon dies within the window, its part of the old configuration can't come back; once it lives again, it does."""
    before = lab.running("r1")
    device.change("interface lan0", "description of a doomed change")
    device.call("network.commit", confirmed=40)
    lab.kill_daemon("r1", "bgpd")
    code, detail = device.code("network.rollback")
    report.check("NM-08: a rollback that can't be applied is told", code == -32085 and "is not the old one" in detail, f"{code} {detail}")
    lab.start_daemon("r1", "bgpd")
    back = device.call("network.rollback").get("structuredContent", {})
    report.check("NM-09: and goes through once the device can hold it, byte for byte", until(10, lambda: lab.running("r1") == before) is not None,
                 f"{back} {lab.running('r1')}")


def unreachable(report, device):
    """NM-08: a router whose daemons are gone is unreachable, and may be tried again."""
    pids = [int(Path(f"/run/frr/r1/{daemon}.pid").read_text()) for daemon in ("zebra", "staticd", "ospfd", "bgpd", "mgmtd")
            if Path(f"/run/frr/r1/{daemon}.pid").exists()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    code, detail = device.code("network.cli.exec", cmd="show version")
    report.check("NM-08: a router that is down is told as such", code == -32082, f"{code} {detail}")


def main():
    report = Report()
    lab.start()
    report.guard("network/walk", lambda: walk.run(report, binary()))
    report.guard("network/previewed", lambda: previewed.run(report))
    report.guard("network/undone", lambda: undone.run(report))
    report.guard("network/shaped", lambda: shaped.run(report))
    report.guard("network/settled", lambda: settled.run(report))
    report.guard("network/page", lambda: page.run(report))
    ssh = SSH.format(work=lab.WORK, fingerprint=lab.fingerprint())
    with Gateway("network", {}, config=CONFIG + ssh) as gateway:
        device = Device(gateway, "r1")
        report.guard("network/reads", lambda: reads(report, device, gateway))
        report.guard("network/injections", lambda: injections(report, device))
        report.guard("network/rules", lambda: rules(report, gateway))
        report.guard("network/ruled_later", lambda: ruled_later(report, gateway))
        report.guard("network/record", lambda: record(report, device, gateway))
        report.guard("network/timed_out", lambda: timed_out(report, gateway))
        report.guard("network/canaries", lambda: canaries.routed(report, gateway))
        report.guard("network/over_ssh", lambda: over_ssh(report, gateway))
        report.guard("network/no_login", lambda: no_login(report, gateway))
        paging = threading.Thread(target=lambda: report.guard("network/pages_over_ssh", lambda: pages_over_ssh(report, gateway)))
        paging.start()
        report.guard("network/confirmed", lambda: confirmed(report, device))
        report.guard("network/forgotten", lambda: forgotten(report, device))
        paging.join()
        report.guard("network/drift", lambda: drift(report, device))
        report.guard("network/refused", lambda: refused(report, gateway, device))
        report.guard("network/person", lambda: person(report, gateway))
        report.guard("network/without_reload", lambda: without_reload(report))
        report.guard("network/command_line", lambda: command_line(report, gateway))
        report.guard("network/killed", lambda: killed(report, gateway))
        report.guard("network/all_killed", lambda: all_killed(report, gateway))
        report.guard("network/amid", lambda: amid(report, gateway))
        for work in (asking.prompts, asking.diagnoses, asking.repairs, asking.dialects, asking.sdk, asking.subscriptions, asking.pushed, asking.watching, asking.resources, asking.writes):
            report.guard(f"network/{work.__name__}", lambda work=work: work(report, gateway))
        report.guard("network/clients", lambda: clients.run(report, gateway))
        report.guard("network/controller", lambda: controller.run(report, gateway, device))
        # FRR is slow for a while with a thousand interfaces that come and go.
        report.guard("network/pages", lambda: asking.pages(report, gateway))
        report.guard("network/added", lambda: added.run(report))
        report.guard("network/unrestorable", lambda: unrestorable(report, Device(gateway, "r1")))
        report.guard("network/unreachable", lambda: unreachable(report, Device(gateway, "r1")))
    report.guard("remote", lambda: remote.run(report))
    report.guard("netconf", lambda: netconf.run(report))
    sys.exit(report.finish())


if __name__ == "__main__":
    main()
