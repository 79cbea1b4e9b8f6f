"""FRR on machines behind SSH, whose logins have a shell (NM-02, NM-03, NM-06, NM-09, NM-13): facts of the machines, changes that are confirmed, forgotten, that cut their own management
link, and whose sessions and processes are killed.

The restore job runs on the device, so the device is looked at while nothing of Banyan lives. Runs in the namespaces of the lab.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from gateway import Gateway
from network import asking, lab
from network.agent import Device, until
from wire import Modern

WINDOW = 5
HOME = lab.WORK / "ops"
LOGIN = "canary-ops-login"
ADDRESS = {"r2": "10.0.98.2", "r3": "10.0.97.2"}
SECRET = "canary-hosted-secret"
CONFIG = """
[device.{name}]
backend = "frr"
address = "{address}"
user = "{user}"
password = "${{file:{home}/password}}"
host_key = "{key}"
pathspace = "{router}"
longest_window = "60s"
command_timeout = "5s"
"""


def start():
    """Gives r2 and r3 a management link each, and an `sshd` for a login with a shell and for one with `vtysh` alone."""
    HOME.mkdir()
    owner = os.stat("/run/frr/r2/zebra.vty")
    hidden = lab.sh("openssl", "passwd", "-6", LOGIN).strip()
    shell = HOME / "vtysh-shell"
    shell.write_text('#!/bin/sh\n[ "$1" = -c ] && exec vtysh -N r2 -c "$2"\nexec vtysh -N r2\n')
    shell.chmod(0o755)
    for user, program in (("ops", "/bin/sh"), ("only", shell)):
        home = HOME / user
        home.mkdir()
        # A disk of its own, which one of the checks fills.
        lab.sh("mount", "-t", "tmpfs", "-o", f"size=1m,uid={owner.st_uid},gid={owner.st_gid},mode=755", "home", str(home))
        with (lab.WORK / "passwd").open("a") as file:
            file.write(f"{user}:x:{owner.st_uid}:{owner.st_gid}::{home}:{program}\n")
        with (lab.WORK / "shadow").open("a") as file:
            file.write(f"{user}:{hidden}:19000:0:99999:7:::\n")
    (HOME / "password").write_text(LOGIN)
    for router, address in ADDRESS.items():
        near = f"mg-{router}"
        lab.sh("ip", "link", "add", near, "type", "veth", "peer", "name", "mgmt0", "netns", router)
        lab.sh("ip", "addr", "add", f"{address.rsplit('.', 1)[0]}.1/24", "dev", near)
        lab.sh("ip", "link", "set", near, "up")
        lab.sh("ip", "-n", router, "addr", "add", f"{address}/24", "dev", "mgmt0")
        lab.sh("ip", "-n", router, "link", "set", "mgmt0", "up")
        file = HOME / f"sshd-{router}.conf"
        file.write_text(f"Port 22\nListenAddress {address}\nHostKey {lab.WORK}/host\nPidFile none\nUsePAM no\nPrintMotd no\nStrictModes no\n"
                        f"AllowUsers ops only\nPasswordAuthentication yes\n")
        lab.sh("ip", "netns", "exec", router, "/usr/sbin/sshd", "-f", str(file), "-E", str(lab.LOGS / f"sshd-{router}"))


RISKY = """
[device.risky]
backend = "ssh"
address = "{address}"
user = "only"
password = "${{file:{home}/password}}"
host_key = "{key}"
accept_no_rollback = true
"""


def configuration():
    """The devices: one of them with a login that is `vtysh`, and the same once more, where the operator accepts the risk."""
    devices = (("host2", "r2", "ops"), ("host3", "r3", "ops"), ("only", "r2", "only"))
    return "".join(CONFIG.format(name=name, router=router, user=user, address=ADDRESS[router], home=HOME, key=lab.fingerprint())
                   for name, router, user in devices) + RISKY.format(address=ADDRESS["r2"], home=HOME, key=lab.fingerprint())


def jobs():
    """Directories of restore jobs on the devices, with the files in each."""
    return {path.name: sorted(file.name for file in path.iterdir()) for path in (HOME / "ops" / ".banyan").glob("*/restore-*")}


def machine(report, gateway):
    """NM-03, NM-06: load, memory, counters, the startup configuration, the log and crash reports are those of the machine behind SSH."""
    wire = Modern(gateway.url("host2"))
    listed = {one["uri"].removeprefix("network:///") for one in wire.call("resources/list").result["resources"]}
    report.check("NM-03: host2: what its machine knows is listed", {"system/cpu-utilization", "system/memory-summary", "file/startup-config", "interfaces"} <= listed and
                 "stream/syslog" not in listed, str(listed))
    memory = json.loads(asking.contents(wire, "system/memory-summary")["text"])
    held = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Mem")}
    report.equal("NM-03: host2: the memory is that of its machine", memory["total"], held["MemTotal"])
    burning = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
    try:
        busy = asking.contents(wire, "system/cpu-utilization")
    finally:
        for process in burning:
            process.kill()
            process.wait()
    report.check("NM-03: host2: the load of a machine at work is high", 80 <= json.loads(busy["text"])["utilization"] <= 100 and
                 (busy["_meta"]["unit"], busy["_meta"]["hardware-cores"]) == ("percent", Path("/proc/cpuinfo").read_text().count("processor\t")), str(busy))
    report.equal("NM-03: host2: the startup configuration is that of its disk, without secrets", asking.contents(wire, "file/startup-config")["text"],
                 Path("/etc/frr/r2/frr.conf").read_text().replace(lab.PASSWORD, "[redacted]").replace(SECRET, "[redacted]"))
    lines = (lab.LOGS / "r2.log").read_text().splitlines()
    log = asking.contents(wire, "log/syslog/last3")
    report.check("NM-03: host2: the last lines of the log are those of its file", log["text"].splitlines() == lines[-3:] and log["_meta"]["sourceTime"], str(log))
    asking.counted(report, wire, "r2", "eth0", "host2")
    before = lab.running("r2")
    report.equal("NM-03: host2: no crash is an empty array", json.loads(asking.contents(wire, "file/staticd/crashinfo")["text"]), [])
    os.kill(int(Path("/run/frr/r2/staticd.pid").read_text()), signal.SIGSEGV)
    crashes = []
    until(8, lambda: crashes.extend(json.loads(asking.contents(wire, "file/staticd/crashinfo")["text"])) or crashes)
    report.check("NM-03: host2: a daemon that crashed has its report", crashes and crashes[0]["daemon"] == "staticd" and "Received signal 11" in crashes[0]["text"], str(crashes)[:600])
    link = Path("/var/tmp/frr/staticd.999999")
    link.mkdir()
    (link / "crashlog").symlink_to("/etc/passwd")
    report.check("NM-12: host2: no link among the reports is followed", all("root:" not in one["text"] for one in json.loads(asking.contents(wire, "file/staticd/crashinfo")["text"])))
    lab.start_daemon("r2", "staticd")
    report.check("NM-03: host2: and it runs what it ran", until(5, lambda: lab.running("r2") == before) is not None)


def waiting(router="r2"):
    """Restore jobs that run on a device: id by id."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = entry.read_bytes()
        except OSError:
            continue
        if f"/.banyan/frr-{router}/".encode() in arguments and b"\0wait\0" in arguments:
            found.append(int(entry.parent.name))
    return found


def confirmed(report, gateway):
    """NM-09: a change over SSH is shown, applied under a job on the device, confirmed, saved, and stays; no secret is left behind."""
    device, before = Device(gateway, "host2"), lab.running("r2")
    shown = device.call("network.cli.exec", cmd="show running-config")["stdout"]
    report.equal("NM-02: host2: a command shows over SSH what it shows there, without secrets", shown, before.replace(lab.PASSWORD, "[redacted]"))
    code, detail = device.code("network.cli.configure", commands=["interface lan0", "descriptionn x"])
    report.check("NM-08: host2: bad syntax is refused by the device's own check", code == -32084 and "line" in detail, f"{code} {detail}")
    shown = device.change("interface lan0", "description by the job", "router bgp 65002", f"neighbor 10.0.12.1 password {SECRET}")
    report.check("NM-09: host2: the diff shows the change, without secrets", "+ description by the job" in shown["diff"] and SECRET not in json.dumps(shown), shown)
    report.check("NM-09: host2: a diff applies nothing, and starts no job", lab.running("r2") == before and not waiting())
    done = device.call("network.commit", confirmed=30, hash=shown["hash"])
    report.check("NM-09: host2: it is committed, and a job waits on the device", done["structuredContent"].get("status") == "committed" and len(waiting()) == 1 and
                 "by the job" in lab.running("r2"), f"{done} {waiting()}")
    arguments = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in waiting())
    modes = {oct(path.stat().st_mode & 0o077) for path in (HOME / "ops" / ".banyan").rglob("*") if not path.is_symlink()}
    report.check("NM-12: host2: its files are the login's alone", modes == {"0o0"} and SECRET.encode() not in arguments, str(modes))
    kept = device.call("network.commit", confirm=True)["structuredContent"]
    report.equal("NM-09: host2: it is confirmed and saved", (kept.get("status"), kept.get("saved")), ("confirmed", True))
    gone = until(5, lambda: not waiting() and not any(name.endswith(".conf") for files in jobs().values() for name in files))
    report.check("NM-09: host2: the job is gone, and its configurations too", gone is not None, str(jobs()))
    report.check("NM-09: host2: what was confirmed stays", "by the job" in lab.running("r2") and "by the job" in Path("/etc/frr/r2/frr.conf").read_text())


def taken_back(report, gateway):
    """NM-08, NM-09: what the device applies by half, and what somebody takes back."""
    device, before = Device(gateway, "host2"), lab.running("r2")
    device.change("router bgp 65099", "bgp router-id 9.9.9.9")
    code, detail = device.code("network.commit", confirmed=30)
    report.check("NM-08: host2: what FRR applies by half is taken back", code in (-32084, -32085) and lab.running("r2") == before, f"{code} {detail}")
    device.change("interface lan0", "description not for long")
    device.call("network.commit", confirmed=40)
    ran = "not for long" in lab.running("r2")
    back = device.call("network.rollback")["structuredContent"]
    report.check("NM-09: host2: a change is taken back before its time, byte for byte", ran and back.get("status") == "rolled-back" and lab.running("r2") == before, back)
    device.change("interface lan0", "description late")
    lab.vtysh("r2", "configure terminal", "interface lan0", "ip address 192.168.102.1/24")
    code, detail = device.code("network.commit", confirmed=WINDOW)
    report.check("NM-09: host2: a commit after a drift is refused", code == -32084 and "changed since the diff" in detail and not waiting(), f"{code} {detail}")
    device.call("network.rollback")
    lab.vtysh("r2", "configure terminal", "interface lan0", "no ip address 192.168.102.1/24")


def full(report, gateway):
    """NM-08: a device whose disk is full can keep no old configuration, so nothing is applied."""
    device, before, filled = Device(gateway, "host2"), lab.running("r2"), HOME / "ops" / "filled"
    device.change("interface lan0", "description without a way back")
    lab.sh("dd", "if=/dev/zero", f"of={filled}", "bs=4k", check=False)
    try:
        code, detail = device.code("network.commit", confirmed=WINDOW)
        report.check("NM-08: a device whose disk is full is told as such", code == -32089 and "no space left" in detail, f"{code} {detail}")
        is_over = until(5, lambda: not waiting()) is not None
        report.check("NM-09: and nothing is applied there, and no job waits", lab.running("r2") == before and is_over, f"{waiting()}")
    finally:
        filled.unlink()
    device.call("network.rollback")


def orphaned(report, gateway):
    """NM-09: a job that died amid a change leaves the only copy of the old configuration: nothing goes over it until somebody has decided."""
    device, before = Device(gateway, "host2"), lab.running("r2")
    place = HOME / "ops" / ".banyan" / "frr-r2" / "restore-orphan"
    lab.sh("install", "-d", "-o", "ops", str(place))
    old = before.replace("description", "description older", 1)
    (place / "old.conf").write_text(old)
    (place / "begun").touch()
    device.change("interface lan0", "description over an orphan")
    code, detail = device.code("network.commit", confirmed=WINDOW)
    report.check("NM-09: host2: an old configuration that nobody restored stops a change", code == -32083 and str(place) in detail and "job now" in detail, f"{code} {detail}")
    report.check("NM-09: host2: and is still there, and nothing was applied", (place / "old.conf").read_text() == old and lab.running("r2") == before, lab.running("r2"))
    (place / "old.conf").write_text(lab.vtysh("r2", "show running-config no-header"))
    done = device.call("network.commit", confirmed=WINDOW)
    report.check("NM-09: host2: one that runs already is cleared away", done.get("status") == "committed" or
                 (done.get("structuredContent") or {}).get("status") == "committed", str(done)[:600])
    device.call("network.rollback")
    report.check("NM-09: host2: and a change goes on as ever", not place.exists() and lab.running("r2") == before, lab.running("r2"))


def without_shell(report, gateway):
    """NM-13: a login that is `vtysh` alone can start no job, so nothing is sent."""
    before = lab.running("r2")
    code, detail = Device(gateway, "only").code("network.cli.configure", commands=["hostname x"])
    report.check("NM-13: a login without a shell takes no change", code == -32087 and "nothing was sent" in detail and lab.running("r2") == before, f"{code} {detail}")


def looked_at(report, gateway):
    """NM-01, NM-13: a machine is looked at before a change is offered: one without a shell or without frr-reload.py offers none, until it has it."""
    program = "/usr/lib/frr/frr-reload.py"

    def announced(gateway, name):
        told = json.loads(Device(gateway, name).read("capabilities"))
        return told["supportsRollback"], "candidate" in told["configDatastore"]
    until(10, lambda: announced(gateway, "host2") == (True, True) and announced(gateway, "only") == (False, False))
    report.equal("NM-01: a machine that can hold a restore job announces a rollback, and no other", [announced(gateway, name) for name in ("host2", "only")], [(True, True), (False, False)])
    without = Device(gateway, "only").tools["network.commit"]
    report.check("NM-13: nor does it offer a change", without.get("_meta", {}).get("available") is False, str(without)[:400])
    # The shell of the login sees the mounts of its `sshd`.
    there = ["nsenter", "--mount", "--target", next(entry.name for entry in Path("/proc").glob("[0-9]*") if b"sshd-r2.conf" in cmdline(entry))]
    lab.sh(*there, "mount", "--bind", "/dev/null", program)
    try:
        with Gateway("hosted-without-reload", {}, config=configuration()) as other:
            until(10, lambda: announced(other, "host2") == (False, False))
            device = Device(other, "host2")
            code, detail = device.code("network.cli.configure", commands=["interface lan0", "description x"])
            report.check("NM-13: without frr-reload.py there, no change is offered", code == -32087 and "frr-reload.py" in detail and
                         device.tools["network.commit"]["_meta"]["available"] is False, f"{code} {detail}")
            lab.sh(*there, "umount", "--lazy", program)
            shown = device.change("interface lan0", "description once it is there")
            report.check("NM-13: once it is there, a change goes through", "+ description once it is there" in shown.get("diff", ""), str(shown)[:400])
            report.equal("NM-01: and a rollback is announced", announced(other, "host2"), (True, True))
            device.call("network.rollback")
    finally:
        lab.sh(*there, "umount", "--lazy", program, check=False)


def cmdline(entry):
    """The arguments of a process; none where it is gone."""
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""


def risky(report, gateway):
    """NM-13: where the operator accepts the risk, Banyan alone brings the old configuration back."""
    device, before = Device(gateway, "risky"), lab.running("r2")
    shown = device.change("interface lan0", "no description", "ip ospf cost 7", "exit", "ip route 10.80.0.0/16 blackhole")
    report.check("NM-13: risky: the diff shows the change", "+ ip ospf cost 7" in shown.get("diff", ""), str(shown))
    done = device.call("network.commit", confirmed=2)
    report.check("NM-13: risky: the device runs it", "10.80.0.0/16" in lab.running("r2") and "cost 7" in lab.running("r2"), str(done)[:800])
    took = until(12, lambda: lab.running("r2") == before)
    report.check("NM-13: risky: what nobody confirmed is gone, byte for byte", took is not None, lab.running("r2"))


def cut_and_forget(report, gateway):
    """NM-09: one change cuts its own management link, another is forgotten; what the devices ran before."""
    before = {router: lab.running(router) for router in ADDRESS}
    cutting, forgotten = Device(gateway, "host2"), Device(gateway, "host3")
    cutting.change("interface mgmt0", "shutdown")
    forgotten.change("interface lan0", "description nobody is left")
    forgotten.call("network.commit", confirmed=WINDOW)
    caller = threading.Thread(target=lambda: attempt(cutting, confirmed=WINDOW), daemon=True)
    caller.start()
    is_cut = until(WINDOW, lambda: "shutdown" in lab.running("r2"))
    report.check("NM-09: a change cuts the management link of its device", is_cut is not None and not is_reached(ADDRESS["r2"]), lab.running("r2"))
    return before


def forgotten(report, before):
    """NM-09: with nothing of Banyan alive, the restore jobs bring both devices back."""
    for router, text in before.items():
        took = until(WINDOW + 10, lambda: lab.running(router) == text)
        report.check(f"NM-09: {router} is back by itself, byte for byte", took is not None, lab.running(router))


def cut(report, gateway):
    """NM-09: a change cuts its own link while Banyan lives: the caller is told, and the device is back."""
    device, before = Device(gateway, "host3"), lab.running("r3")
    device.change("interface mgmt0", "shutdown")
    began = time.monotonic()
    code, detail = device.code("network.commit", confirmed=3)
    report.check("NM-09: who cuts the link is told so, and the device is back", code in (-32081, -32082, -32084, -32086) and
                 until(5, lambda: lab.running("r3") == before) is not None, f"{time.monotonic() - began:.1f} s {code} {detail} {lab.running('r3')}")


def is_reached(address):
    """Does anybody take connections there?"""
    try:
        socket.create_connection((address, 22), timeout=1).close()
    except OSError:
        return False
    return True


def attempt(device, **arguments):
    """Commits, whatever becomes of it."""
    try:
        device.call("network.commit", **arguments)
    except Exception:  # noqa: BLE001, S110: the gate is killed meanwhile
        pass


def sessions_killed(report, gateway):
    """NM-09: the sessions of SSH die amid a commit; the device holds the change until its time, or the old configuration, and is back in the end."""
    device, before = Device(gateway, "host3"), lab.running("r3")
    device.change("interface lan0", "description amid", "ip route 10.79.0.0/16 blackhole")
    caller = threading.Thread(target=lambda: attempt(device, confirmed=WINDOW - 1), daemon=True)
    caller.start()
    until(5, lambda: waiting("r3"))
    end = time.monotonic() + 1.5
    killed = 0
    while time.monotonic() < end:
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if entry.read_bytes().startswith((b"sshd: ops", b"sshd-session: ops")):
                    os.kill(int(entry.parent.name), signal.SIGKILL)
                    killed += 1
            except OSError:
                continue
        time.sleep(0.03)
    caller.join(60)
    took = until(WINDOW + 10, lambda: lab.running("r3") == before and not waiting("r3"))
    report.check("NM-09: after the death of the sessions the device is back, byte for byte", killed and took is not None, f"{killed} {lab.running('r3')} {jobs()}")


def passwords(report, gateway):
    """NM-09: passwords of the command line, which no reload of FRR takes away, are gone after a rollback."""
    device, before = Device(gateway, "host2"), lab.running("r2")
    device.change("password canary-hosted-line", "enable password canary-hosted-enable")
    device.call("network.commit", confirmed=30)
    held, back = lab.running("r2"), device.call("network.rollback").get("structuredContent", {})
    report.check("NM-09: host2: passwords of the command line are taken back", held.count("canary-hosted-") >= 2 + before.count("canary-hosted-") and
                 back.get("status") == "rolled-back" and lab.running("r2") == before, f"{back} {held}"[:1500])
    device.change("password canary-hosted-line")
    device.call("network.commit", confirmed=30)
    device.call("network.commit", confirm=True)
    device.change("no password canary-hosted-line")
    done = device.call("network.commit", confirmed=30).get("structuredContent", {})
    report.check("NM-09: host2: and one is removed by a change", done.get("status") == "committed" and lab.running("r2") == before, f"{done} {lab.running('r2')}"[:1500])
    device.call("network.commit", confirm=True)


def run(report, gateway):
    """Checks both hosts."""
    beside = threading.Thread(target=lambda: report.guard("hosted/cut", lambda: cut(report, gateway)))
    beside.start()
    for work in (machine, confirmed, taken_back, passwords, orphaned, full, without_shell, looked_at, risky):
        report.guard(f"hosted/{work.__name__}", lambda work=work: work(report, gateway))
    beside.join()
    report.guard("hosted/sessions_killed", lambda: sessions_killed(report, gateway))
