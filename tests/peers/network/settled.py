"""A change is judged by the health of its device, after it was applied and before it is kept; what could not be saved is saved later."""

import os
import threading
import time
from pathlib import Path

from gateway import Gateway
from network import lab
from network.agent import Device, until

CONFIG = """
[device.slow]
pathspace = "r3"
health = [{ command = "show interface lan0", matches = '^Interface lan0 is up,.*up\\s*$', absent = "lan0 is down", within = 20 }]

[device.hasty]
pathspace = "r3"
health = [{ command = "show interface lan0", absent = "lan0 is down" }]
"""
FILE = Path("/etc/frr/r3/frr.conf")


def link(state):
    """Sets an interface of the router up or down, from outside of FRR."""
    lab.sh("ip", "-n", "r3", "link", "set", "lan0", state)
    word = f"Interface lan0 is {state}"
    if until(10, lambda: word in lab.vtysh("r3", "show interface lan0")) is None:
        raise RuntimeError(lab.vtysh("r3", "show interface lan0"))


def healthy(report, gateway):
    """NM-09: a device gets the time that its settings say, and is looked at again before a change is kept."""
    slow, hasty, before = Device(gateway, "slow"), Device(gateway, "hasty"), lab.running("r3")
    link("down")
    hasty.change("interface lan0", "description of an ill device")
    code, detail = hasty.code("network.commit", confirmed=30)
    report.check("NM-09: a change of a device that is ill at once is taken back", code == -32084 and "lan0 is down" in detail and "taken back" in detail and
                 lab.running("r3") == before, f"{code} {detail}")
    slow.change("interface lan0", "description of a slow device")
    recovery = threading.Thread(target=lambda: (until(15, lambda: "slow device" in lab.running("r3")), time.sleep(1.5), link("up")))
    recovery.start()
    done = slow.call("network.commit", confirmed=60)
    recovery.join()
    report.check("NM-09: a device that recovers in its time keeps the change", done["structuredContent"].get("status") == "committed" and "slow device" in lab.running("r3"), str(done)[:600])
    link("down")
    code, detail = slow.code("network.commit", confirm=True)
    report.check("NM-09: a device that fell ill is not confirmed, and the deadline stays", code == -32084 and "nothing was confirmed" in detail and
                 ": applied" in gateway.told("device", "status", "slow", *config(gateway)), f"{code} {detail}")
    link("up")
    kept = slow.call("network.commit", confirm=True)["structuredContent"]
    report.equal("NM-09: and is once it is well", (kept.get("status"), kept.get("saved")), ("confirmed", True))


def impatient(report, gateway):
    """NM-09: a rollback by hand waits for no health checks."""
    device, before, told = Device(gateway, "slow"), lab.running("r3"), []
    link("down")
    device.change("interface lan0", "description nobody waits for")
    committing = threading.Thread(target=lambda: told.append(device.code("network.commit", confirmed=60)))
    committing.start()
    ran = until(15, lambda: "nobody waits for" in lab.running("r3"))
    said = gateway.told("device", "rollback", "slow", *config(gateway))
    report.check("NM-09: a rollback while the checks run ends them", ran is not None and lab.running("r3") == before, f"{said} {lab.running('r3')}")
    committing.join(30)
    report.check("NM-09: and whoever committed hears of it", len(told) == 1 and told[0][0] == -32084 and "asked for a rollback" in told[0][1], str(told))
    link("up")


def unsaved(report, gateway):
    """NM-09: a confirmed change that the device could not save is told, and saved once the device can."""
    device, starts_with = Device(gateway, "slow"), FILE.read_text()
    device.change("interface lan0", "description saved late")
    device.call("network.commit", confirmed=60)
    place = str(FILE.parent)
    lab.sh("mount", "--bind", place, place)
    lab.sh("mount", "-o", "remount,bind,ro", place)
    try:
        kept = device.call("network.commit", confirm=True)["structuredContent"]
        report.check("NM-09: a change that could not be saved is kept, and not said to be saved", (kept.get("status"), kept.get("saved")) == ("confirmed", False) and
                     FILE.read_text() == starts_with, str(kept))
        told = gateway.told("device", "status", "slow", *config(gateway))
        report.check("NM-09: which the status says", ": confirmed" in told and "not saved on the device" in told, told)
        listed = gateway.told("device", "list", *config(gateway))
        report.check("NM-09: and the list", "confirmed, not saved" in listed, listed)
    finally:
        lab.sh("umount", "--lazy", place)  # The device may be trying to save just now.
    took = until(75, lambda: "saved late" in FILE.read_text())
    told = gateway.told("device", "status", "slow", *config(gateway))
    report.check("NM-09: it is saved once that is possible", took is not None and until(5, lambda: "not saved" not in gateway.told("device", "status", "slow", *config(gateway))) is not None, told)


def config(gateway):
    """Arguments that name the configuration of a gate."""
    return ["--config", os.path.join(gateway.home.dir, "banyan.toml")]


def run(report):
    """Checks both on a router."""
    with Gateway("settled", {}, config=CONFIG) as gateway:
        report.guard("settled/healthy", lambda: healthy(report, gateway))
        report.guard("settled/impatient", lambda: impatient(report, gateway))
        report.guard("settled/unsaved", lambda: unsaved(report, gateway))
