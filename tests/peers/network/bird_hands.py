"""BIRD with somebody at `birdc` beside Banyan (NM-09, NM-12): a reconfiguration that takes its time, a timer that is forgotten, edits of the file.

A real `bird` is the device and the judge. Runs in namespaces, alone, since processes of Banyan are killed.
"""
import os
import signal
import subprocess
import time
from pathlib import Path

from gateway import Gateway
from network import lab
from network.agent import Device, processes, until

HOME = lab.WORK / "hands"
FILE, CONTROL = HOME / "bird.conf", HOME / "ctl"
WINDOW = 3
# Routes whose removal keeps BIRD busy for a while.
MANY = 200_000
BASE = f"""log "{HOME}/log" all;
router id 10.0.0.8;
protocol device {{ }}
protocol static static1 {{ ipv4; route 10.1.0.0/16 blackhole; }}
"""
ADDED = "protocol static static2 { ipv4; route 10.3.0.0/16 blackhole; }\n"
CONFIG = f"""
[device.hands]
backend = "bird"
socket = "{CONTROL}"
file = "{FILE}"
longest_window = "60s"
"""


def start():
    """Starts `bird`, which ends with the namespace."""
    HOME.mkdir()
    FILE.write_text(BASE)
    (HOME / "other.conf").write_text(BASE.replace("10.1.0.0/16", "10.7.0.0/16"))
    routes = "".join(f" route 11.{n >> 16}.{n >> 8 & 255}.{n & 255}/32 blackhole;\n" for n in range(MANY))
    (HOME / "many.conf").write_text(f"{BASE}protocol static many {{ ipv4;\n{routes}}}\nprotocol kernel {{ ipv4 {{ export all; }}; }}\n")
    lab.sh("bird", "-c", str(FILE), "-s", str(CONTROL), "-P", f"{HOME}/pid")


def birdc(*words):
    """What BIRD answers."""
    return lab.sh("birdc", "-s", str(CONTROL), *words)


def runs(prefix):
    """Has BIRD this route?"""
    return prefix in lab.sh("birdc", "-s", str(CONTROL), "show", "route", "for", prefix.split("/")[0], check=False)


def status(gateway):
    """What Banyan says of the change."""
    return gateway.told("device", "status", "hands", "--config", os.path.join(gateway.home.dir, "banyan.toml"))


def push(device, text):
    """Makes a candidate; the structure of the answer."""
    return device.call("network.file.push", filename="candidate-config", content=text).get("structuredContent", {})


def queued(report, device):
    """NM-09: a commit while BIRD is at work on another configuration waits, and tells what became of it."""
    birdc("configure", f'"{HOME}/many.conf"')
    until(60, lambda: "Daemon is up" in birdc("configure", "status") and runs("11.0.1.0/32"))
    push(device, BASE + ADDED)
    with subprocess.Popen(["birdc", "-s", str(CONTROL), "configure", f'"{FILE}"'], stdout=subprocess.PIPE, text=True) as hand:
        done = device.call("network.commit", confirmed=50).get("structuredContent", {})
        told = hand.stdout.read()
    report.check("NM-09: bird: a commit that BIRD would put in its queue waits", "Reconfiguration in progress" in told and runs("10.3.0.0/16") and
                 "unconfirmed" in birdc("configure", "status"), f"{told} {done} {birdc('configure', 'status')}")
    back = device.call("network.rollback").get("structuredContent", {})
    report.check("NM-09: bird: and taken back", back.get("status") == "rolled-back" and not runs("10.3.0.0/16") and runs("10.1.0.0/16"), str(back))


def confirmed(report, gateway, device):
    """NM-09: somebody confirms by hand: the deadline of Banyan holds, also without its server, and a confirmation of Banyan is one."""
    push(device, BASE + ADDED)
    device.call("network.commit", confirmed=WINDOW)
    birdc("configure", "confirm")
    for pid in processes("serve", gateway):
        os.kill(pid, signal.SIGKILL)
    took = until(WINDOW + 6, lambda: not runs("10.3.0.0/16"))
    report.check("NM-09: bird: a confirmation by hand ends no deadline of Banyan", took is not None and until(5, lambda: ": rolled back" in status(gateway)) is not None,
                 f"{took} {status(gateway)}")
    device = Device(gateway, "hands")
    push(device, BASE + ADDED)
    device.call("network.commit", confirmed=30)
    birdc("configure", "confirm")
    kept = device.call("network.commit", confirm=True).get("structuredContent", {})
    report.check("NM-09: bird: what runs without a timer is kept by a confirmation", kept.get("status") == "confirmed" and FILE.read_text() == BASE + ADDED, str(kept))
    back(device)


def back(device):
    """Brings BIRD and its file back to the begin."""
    device.call("network.rollback")
    FILE.write_text(BASE)
    birdc("configure")


def replaced(report, gateway, device):
    """NM-09: somebody loads another configuration: nothing is said to be rolled back or confirmed that is not."""
    push(device, BASE + ADDED)
    device.call("network.commit", confirmed=30)
    birdc("configure", f'"{HOME}/other.conf"')
    code, detail = device.code("network.rollback")
    report.check("NM-09: bird: where a configuration of somebody else runs, nothing was rolled back", code == -32085 and "somebody else" in detail and runs("10.7.0.0/16"),
                 f"{code} {detail}")
    report.check("NM-09: bird: which the record says, and is over", "overtaken" in status(gateway), status(gateway))
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: bird: and nothing is confirmed", code == -32602, f"{code} {detail}")
    back(device)


def timed(report, gateway, device):
    """NM-09: somebody loads another configuration for a time, after which BIRD returns to the change: the deadline of Banyan still holds."""
    push(device, BASE + ADDED)
    device.call("network.commit", confirmed=WINDOW)
    birdc("configure", f'"{HOME}/other.conf"', "timeout", str(2 * WINDOW))
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: bird: what does not run is not confirmed", code == -32602, f"{code} {detail}")
    until(WINDOW + 2, lambda: ": rolling back" in status(gateway))
    report.check("NM-09: bird: while another's timer waits, nothing was rolled back", ": rolled back" not in status(gateway) and runs("10.7.0.0/16"), status(gateway))
    took = until(4 * WINDOW + 10, lambda: ": rolled back" in status(gateway))
    report.check("NM-09: bird: the change that BIRD returned to is taken back", took is not None and not runs("10.3.0.0/16") and runs("10.1.0.0/16"), status(gateway))
    back(device)


def edited(report, device):
    """NM-09: what somebody has written into the file is not overwritten; a change that could not be saved is what a rollback leads to."""
    hand = BASE + "# by hand\n"
    push(device, BASE + ADDED)
    device.call("network.commit", confirmed=30)
    FILE.write_text(hand)
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: bird: a file that was edited by hand is not overwritten", code == -32083 and "by hand" in detail and FILE.read_text() == hand, f"{code} {detail}")
    FILE.write_text(BASE)
    kept = device.call("network.commit", confirm=True).get("structuredContent", {})
    report.check("NM-09: bird: and the change is kept once the file is back", kept.get("status") == "confirmed" and kept.get("saved") is True, str(kept))
    FILE.write_text(BASE + "# another hand\n")
    code, detail = device.code("network.file.push", filename="candidate-config", content=BASE)
    report.check("NM-09: bird: nor is one that was edited before", code == -32083 and "birdc configure" in detail, f"{code} {detail}")
    back(device)
    # Times of files are those of the kernel's tick: what is written within the same one as BIRD read the file looks older.
    time.sleep(0.05)
    FILE.write_text(hand)
    code, detail = device.code("network.file.push", filename="candidate-config", content=BASE + ADDED)
    report.check("NM-09: bird: a file that BIRD has not read yet is not taken for what runs", code == -32083 and "birdc configure" in detail, f"{code} {detail}")
    birdc("configure")
    report.check("NM-09: bird: but once BIRD has", "hash" in push(device, hand + ADDED))
    back(device)


def unsaved(report, device):
    """NM-09: a confirmed change that could not be saved runs on after the rollback of the next."""
    push(device, BASE + ADDED)
    device.call("network.commit", confirmed=30)
    # A file that something is mounted on can be read, and not replaced.
    lab.sh("mount", "--bind", str(FILE), str(FILE))
    kept = device.call("network.commit", confirm=True).get("structuredContent", {})
    lab.sh("umount", "--lazy", str(FILE))
    report.check("NM-09: bird: a change that could not be saved is kept until BIRD restarts", kept.get("saved") is False and FILE.read_text() == BASE, str(kept))
    third = ADDED.replace("static2", "static3").replace("10.3.", "10.4.")
    push(device, BASE + ADDED + third)
    device.call("network.commit", confirmed=30)
    birdc("configure", "confirm")
    told = device.call("network.rollback").get("structuredContent", {})
    report.check("NM-09: bird: a rollback leads to what ran, saved or not", told.get("status") == "rolled-back" and runs("10.3.0.0/16") and not runs("10.4.0.0/16"), str(told))
    pulled = device.call("network.file.pull", filename="running-config")["structuredContent"]["content"]
    report.equal("NM-09: bird: which is what is read", pulled, BASE + ADDED)
    late = until(20, lambda: FILE.read_text() == BASE + ADDED)
    report.check("NM-09: bird: which is saved once it can be", late is not None, FILE.read_text())
    back(device)


def left(report):
    """NM-12: of all changes the files of the last two lie there at most."""
    names = sorted(path.name for path in HOME.glob("bird.conf.*"))
    report.check("NM-12: bird: files of earlier changes are gone", len(names) <= 3 and not Path(f"{FILE}.check").exists(), str(names))


def run(report):
    """Checks BIRD behind a gate, with somebody at `birdc`."""
    with Gateway("hands", {}, config=CONFIG) as gateway:
        for name, check in (("queued", lambda: queued(report, Device(gateway, "hands"))), ("confirmed", lambda: confirmed(report, gateway, Device(gateway, "hands"))),
                            ("replaced", lambda: replaced(report, gateway, Device(gateway, "hands"))), ("timed", lambda: timed(report, gateway, Device(gateway, "hands"))),
                            ("edited", lambda: edited(report, Device(gateway, "hands"))), ("unsaved", lambda: unsaved(report, Device(gateway, "hands"))),
                            ("left", lambda: left(report))):
            report.guard(f"bird/{name}", check)
