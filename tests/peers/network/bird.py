"""BIRD through its control socket (NM-02, NM-08, NM-09, NM-12): reads, and changes of the whole configuration under BIRD's own timer.

A real `bird` is the device and the judge. Runs in the namespaces of the lab.
"""
import json
from pathlib import Path

from network import lab
from network.agent import Device, until

HOME = lab.WORK / "bird"
SECRET = "canary-bird-secret"
WINDOW = 3
BASE = f"""log "{HOME}/log" all;
router id 10.0.0.9;
include "more.conf";
protocol device {{ }}
protocol static static1 {{
  ipv4;
  route 10.1.0.0/16 blackhole;
}}
protocol bgp edge {{
  local as 65001;
  neighbor 10.255.255.1 as 65002;
  password "{SECRET}";
  ipv4 {{ import all; export none; }};
}}
"""
ADDED = """protocol static static2 {
  ipv4;
  route 10.3.0.0/16 blackhole;
}
"""
CONFIG = f"""
[device.bird]
backend = "bird"
socket = "{HOME}/ctl"
file = "{HOME}/bird.conf"
longest_window = "60s"
"""


def start():
    """Starts `bird`, which ends with the namespace."""
    HOME.mkdir()
    (HOME / "more.conf").write_text("# included\n")
    (HOME / "bird.conf").write_text(BASE)
    (HOME / "bird.conf").chmod(0o640)
    lab.sh("bird", "-c", f"{HOME}/bird.conf", "-s", f"{HOME}/ctl", "-P", f"{HOME}/pid")


def routes():
    """The routes that BIRD has."""
    return lab.sh("birdc", "-s", f"{HOME}/ctl", "show", "route")


def reads(report, device):
    """NM-02, NM-12: reads come from BIRD, and nothing but reads is taken."""
    shown = device.call("network.cli.exec", cmd="show protocols all")
    report.check("NM-02: bird: commands are answered", "static1" in shown.get("stdout", "") and "Route change stats" in shown["stdout"], str(shown)[:600])
    report.check("NM-02: bird: routes are shown", "10.1.0.0/16" in device.call("network.cli.exec", cmd="show route for 10.1.2.3").get("stdout", ""))
    for command in ("configure", "down", "disable all", "show route; down", "eval 1", "debug all all", f"show status -s {HOME}/other.ctl"):
        code, detail = device.code("network.cli.exec", cmd=command)
        report.check(f"NM-12: bird: {command!r} is refused", code == -32083, f"{code} {detail}")
    pulled = device.call("network.file.pull", filename="running-config")
    report.check("NM-12: bird: the configuration is shown without its password", SECRET not in json.dumps(pulled) and "static1" in json.dumps(pulled), str(pulled)[:800])
    memory = json.loads(device.read("system/memory-summary"))
    held = next(int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    report.equal("NM-03: bird: memory and load are those of this machine", (memory["total"], 0 <= json.loads(device.read("system/cpu-utilization"))["utilization"] <= 100), (held, True))
    report.equal("NM-03: bird: it shows what it starts with, without its password", device.read("file/startup-config"), BASE.replace(SECRET, "[redacted]"))
    told = json.loads(device.read("capabilities"))
    report.equal("NM-01: bird: its dialect and its way back are told", (told["cliDialect"], told["supportsRollback"]), ("bird-birdc", True))


def changes(report, device):
    """NM-08, NM-09: a configuration is checked by BIRD, applied under its timer, confirmed and kept, or taken back."""
    code, detail = device.code("network.file.push", filename="candidate-config", content=BASE + "nonsense {\n")
    report.check("NM-08: bird: what BIRD does not understand is told with the line", code == -32084 and "line 15:1" in detail, f"{code} {detail}")
    code, detail = device.code("network.cli.configure", commands=["router id 1.2.3.4"])
    report.check("NM-02: bird: single lines are no changes", code == -32084 and "network.file.push" in detail, f"{code} {detail}")
    shown = device.call("network.file.push", filename="candidate-config", content=BASE + ADDED)["structuredContent"]
    report.check("NM-09: bird: the diff shows the change and no secret", "+  route 10.3.0.0/16 blackhole;" in shown.get("diff", "") and SECRET not in json.dumps(shown), str(shown))
    report.check("NM-09: bird: a diff applies nothing", "10.3.0.0/16" not in routes())
    done = device.call("network.commit", confirmed=30, hash=shown.get("hash"))
    status = lab.sh("birdc", "-s", f"{HOME}/ctl", "configure", "status")
    report.check("NM-09: bird: it runs, and BIRD's own timer would take it back", "10.3.0.0/16" in routes() and "unconfirmed, undo in" in status, f"{done} {status}")
    report.equal("NM-09: bird: it starts with what it started with", (HOME / "bird.conf").read_text(), BASE)
    back = device.call("network.rollback").get("structuredContent", {})
    report.check("NM-09: bird: it is taken back at once", back.get("status") == "rolled-back" and "10.3.0.0/16" not in routes(), str(back))
    device.call("network.file.push", filename="candidate-config", content=BASE + ADDED)
    device.call("network.commit", confirmed=30)
    kept = device.call("network.commit", confirm=True).get("structuredContent", {})
    file = HOME / "bird.conf"
    report.equal("NM-09: bird: it is confirmed, and what BIRD starts with", (kept.get("status"), kept.get("saved"), file.read_text()), ("confirmed", True, BASE + ADDED))
    report.equal("NM-12: bird: the file is readable for whom it was", oct(file.stat().st_mode & 0o777), "0o640")
    status = lab.sh("birdc", "-s", f"{HOME}/ctl", "configure", "status")
    report.check("NM-09: bird: and nothing waits any more", "unconfirmed" not in status and "10.3.0.0/16" in routes(), status)
    again = device.call("network.file.pull", filename="running-config")["structuredContent"]["content"]
    report.check("NM-09: bird: it runs what was confirmed", "static2" in again and "BANYAN" not in again, again)


def foreign(report, device):
    """NM-09: a configuration that somebody else applied under BIRD's timer is neither replaced nor confirmed."""
    def birdc(*words):
        return lab.sh("birdc", "-s", f"{HOME}/ctl", "configure", *words)

    other, before = HOME / "other.conf", (HOME / "bird.conf").read_text()
    other.write_text(BASE.replace("10.1.0.0/16", "10.7.0.0/16"))
    birdc(f'"{other}"', "timeout", "60")
    device.call("network.file.push", filename="candidate-config", content=BASE)
    code, detail = device.code("network.commit", confirmed=30)
    report.check("NM-09: bird: somebody else's timer locks", code == -32083 and "locked" in detail, f"{code} {detail}")
    report.check("NM-09: bird: and still runs", "10.7.0.0/16" in routes() and "unconfirmed" in birdc("status"), routes())
    birdc("undo")
    device.call("network.file.push", filename="candidate-config", content=BASE)
    device.call("network.commit", confirmed=30)
    birdc(f'"{other}"', "timeout", "60")
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: bird: a confirmation of another configuration is refused", code in (-32086, -32602), f"{code} {detail}")
    report.check("NM-09: bird: and that still waits", "10.7.0.0/16" in routes() and "unconfirmed" in birdc("status"), routes())
    birdc(f'"{HOME}/bird.conf"')
    code, detail = device.code("network.rollback")
    report.check("NM-09: bird: what somebody else has loaded for good is told", code == -32085 and "somebody else" in detail, f"{code} {detail}")
    report.equal("NM-09: bird: its file was never another", (HOME / "bird.conf").read_text(), before)


def forget(report, gateway):
    """NM-09: a change that nobody confirms; the configuration file before."""
    device, before = Device(gateway, "bird"), (HOME / "bird.conf").read_text()
    device.call("network.file.push", filename="candidate-config", content=BASE)
    device.call("network.commit", confirmed=WINDOW)
    report.check("NM-09: bird: the forgotten change runs", "10.3.0.0/16" not in routes())
    return before


def forgotten(report, before):
    """NM-09: with nothing of Banyan alive, BIRD takes back what nobody confirmed."""
    took = until(WINDOW + 4, lambda: "10.3.0.0/16" in routes())
    report.check("NM-09: bird: is back by itself, and its file was never another", took is not None and (HOME / "bird.conf").read_text() == before, routes())


def away(report, gateway):
    """NM-08: a BIRD that does not run is unreachable."""
    lab.sh("birdc", "-s", f"{HOME}/ctl", "down")
    until(3, lambda: not Path(f"{HOME}/ctl").exists())
    code, detail = Device(gateway, "bird").code("network.cli.exec", cmd="show status")
    report.check("NM-08: bird: that is down is told as such", code == -32082, f"{code} {detail}")


def run(report, gateway):
    """Checks what BIRD answers and takes."""
    device = Device(gateway, "bird")
    report.guard("bird/reads", lambda: reads(report, device))
    report.guard("bird/changes", lambda: changes(report, device))
    report.guard("bird/foreign", lambda: foreign(report, device))
