"""Devices behind NETCONF that lie, are slow or fall over (NM-01, NM-08, NM-09): each has the right code, nothing is claimed that is not so, and at
every moment the old configuration runs or a deadline on the disk, or on the device, will bring it back.

`liar.py` plays the devices and shows what each of them runs, which is what is judged here.
"""
import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import install
from gateway import Gateway
from network import lab
from network.agent import Device, until
from wire import Legacy

HOME = lab.WORK / "liars"
LOGIN = "canary-liar-login"
PORTS = {"honest": 2831, "yes": 2832, "late": 2833, "garbled": 2834, "falling": 2835, "slow": 2836, "deaf": 2837}
EDIT = [{"path": "/x:top", "value": {"name": "new"}}]
WINDOW = 3


def start():
    """Starts the scripts, which end with this process."""
    HOME.mkdir()
    (HOME / "password").write_text(LOGIN)
    lab.sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(HOME / "host"))
    script = str(Path(__file__).with_name("liar.py"))
    with (HOME / "errors").open("wb") as errors:
        playing = subprocess.Popen([install.venv_bin("network"), script, str(HOME), str(HOME / "host"), LOGIN], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=errors)
    if playing.stdout.readline() != b"listening\n":
        raise RuntimeError((HOME / "errors").read_text()[-2000:])
    return playing


def configuration():
    """All of them as devices of a gate."""
    key = lab.sh("ssh-keygen", "-l", "-f", str(HOME / "host.pub")).split()[1]
    return "".join(f'[device.{name}]\nbackend = "netconf"\naddress = "127.0.0.1:{port}"\nuser = "netadm"\npassword = "${{file:{HOME}/password}}"\n'
                   f'host_key = "{key}"\ncommand_timeout = "{"10s" if name == "slow" else "2s"}"\n' for name, port in PORTS.items())


def runs(name):
    """What a device runs."""
    return (HOME / f"{name}.running").read_text()


def status(gateway, name):
    """What `banyan device status` says."""
    return json.loads(gateway.told("device", "status", name, "--json", "--config", os.path.join(gateway.home.dir, "banyan.toml")))


def committed(gateway, name):
    """A change of a device: code and detail of its commit, None where it went through."""
    device = Device(gateway, name)
    device.call("network.yang.edit", edit=EDIT)
    return device.code("network.commit", confirmed=WINDOW)


def back(gateway, name, within=12):
    """Waits until the old configuration runs and the record says so; answers the phase."""
    until(within, lambda: status(gateway, name)["phase"] == "rolled_back" and runs(name) == "old")
    return status(gateway, name)["phase"]


def honest(report, gateway):
    """One that does as it says, so that the others are told from it."""
    device = Device(gateway, "honest")
    code, _ = committed(gateway, "honest")
    report.check("NM-09: honest: a change is applied", code is None and runs("honest") == "new", f"{code} {runs('honest')}")
    kept = device.call("network.commit", confirm=True).get("structuredContent", {})
    report.check("NM-09: honest: and confirmed", kept.get("status") == "confirmed", str(kept))


def yes(report, gateway):
    """`<ok/>`, and nothing is done."""
    code, detail = committed(gateway, "yes")
    report.check("NM-09: a device that says <ok/> and does nothing is found out", code == -32084 and "does not hold what it was told" in detail, f"{code} {detail}")
    report.equal("NM-09: and its old configuration runs, as the record says", (runs("yes"), back(gateway, "yes")), ("old", "rolled_back"))


def late(report, gateway):
    """No answer, a refused cancel, and then it does what it was asked all the same."""
    code, detail = committed(gateway, "late")
    report.check("NM-08: a commit that nobody answers may have run, and is said to", code == -32081 and "may" in detail, f"{code} {detail}")
    code, detail = Device(gateway, "late").code("network.yang.edit", edit=EDIT)
    report.check("NM-09: nobody makes another change meanwhile", code == -32083, f"{code} {detail}")
    # The record first: what runs after it says that all is over is what counts.
    seen, end = [], time.monotonic() + 20
    while time.monotonic() < end and seen[-1:] != [("rolled_back", "old")]:
        now = status(gateway, "late")["phase"], runs("late")
        seen += [now] if seen[-1:] != [now] else []
    ran = (HOME / "late.history").read_text().split()
    report.equal("NM-09: the device carried it out after it refused the cancel, and runs the old configuration in the end", ran, ["old", "new", "old"])
    report.check("NM-09: the record says that it is over no sooner", all(phase == "rolling_back" for phase, _ in seen[:-1]) and
                 seen[-1] == ("rolled_back", "old"), str(seen))


def deaf(report, gateway):
    """The commit runs, and its answer gets lost: reading back tells."""
    code, detail = committed(gateway, "deaf")
    report.check("NM-09: a commit whose answer got lost is never kept without a confirmation", code in (None, -32081, -32086), f"{code} {detail}")
    report.equal("NM-09: and comes back", back(gateway, "deaf"), "rolled_back")


def garbled(report, gateway):
    """An answer that is no XML."""
    code, detail = committed(gateway, "garbled")
    report.check("NM-08: an answer that is no XML is told", code == -32082 and "does not speak as it should" in detail, f"{code} {detail}")
    report.equal("NM-09: and the old configuration runs", (runs("garbled"), back(gateway, "garbled")), ("old", "rolled_back"))


def falling(report, gateway):
    """A reboot amid the commit."""
    code, detail = committed(gateway, "falling")
    now = status(gateway, "falling")
    report.check("NM-08: a reboot amid a commit is told", code in (-32082, -32085) and "session" in detail, f"{code} {detail}")
    report.check("NM-09: while the device is away, the record says that it is being brought back", now["phase"] == "rolling_back", str(now))
    report.equal("NM-09: and it is back once the device is there", (back(gateway, "falling"), runs("falling")), ("rolled_back", "old"))


def slow(report, gateway):
    """NM-01: a hello that takes three seconds is waited for, and one that never comes is not."""
    network = Legacy(gateway.url("slow")).welcome["capabilities"]["experimental"]["network"]
    report.equal("NM-01: capabilities are those of a device whose hello takes its time", (network["yangModules"], network["supportsRollback"]), (["x"], True))


def run(report):
    """Starts the devices and a gate before them, and asks all at the same time."""
    start()
    with Gateway("liars", {}, config=configuration()) as gateway:
        cases = (honest, yes, late, deaf, garbled, falling, slow)
        with ThreadPoolExecutor(len(cases)) as pool:
            list(pool.map(lambda case: report.guard(f"lies/{case.__name__}", lambda: case(report, gateway)), cases))
