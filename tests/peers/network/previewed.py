"""A change that waits for a person, who sees its diff (NM-09, AX-46): the gate asks the device for a preview, shows it, binds what is agreed to
to it, and asks for it again right before the change goes out.

The device is the judge, as everywhere here.
"""
import json
import os
import re
import subprocess

from gateway import Gateway
from network import lab
from network.agent import Device

CONFIG = """
[gate]
mode = "irreversible"
expires = "1m"
previews = { r1 = "required" }

[device.r1]
pathspace = "r1"
longest_window = "60s"
"""


def run(report):
    """An agent's commit is held, shown, voided by a change beneath it, and goes out once when nothing changed."""
    with Gateway("previewed", {}, config=CONFIG) as gateway:
        config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
        key = os.path.join(gateway.home.dir, "anna")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=30)
        gateway.told("operator", "enroll", "anna", "--key", f"{key}.pub", *config)
        device = Device(gateway, "r1")

        def waiting():
            return [one for one in json.loads(gateway.told("approvals", "--json", *config))["approvals"] if one["standing"] == "pending"]

        def approve(one):
            return gateway.told("approve", one["id"], "--key", key, "--yes", *config)

        before = lab.running("r1")
        shown = device.change("interface lan0", "description seen by a person")
        commit = {"confirmed": 30, "hash": shown["hash"]}
        for about, arguments in (("that leaves out the hash", {"confirmed": 30}), ("with arguments of another tool", {**commit, "commands": ["hostname r1"]})):
            refused = device.wire.tool(device.named["network.commit"], arguments).error
            report.equal(f"AX-46: a commit {about} has no preview, so it waits for nobody", (refused or {}).get("data", {}).get("reason"), "no_preview")
        held = device.call("network.commit", **commit)
        report.check("AX-46: a commit waits for a person", held.get("isError") and "was not called" in json.dumps(held), str(held)[:400])
        [one] = waiting()
        report.check("NM-09: whoever may agree sees the diff", re.search(r"^- description .*\n\+ description seen by a person$", one["preview"], re.M)
                     and shown["hash"] in one["preview"] and "preview_sha256" in one["challenge"], str(one.get("preview")))
        report.check("NM-12: without secrets", lab.PASSWORD not in json.dumps(one))
        approve(one)
        lab.vtysh("r1", "configure terminal", "interface lan0", "ip address 192.168.101.1/24")
        drifted = lab.running("r1")
        refused = device.wire.tool(device.named["network.commit"], commit).error
        report.equal("NM-09: what somebody changed on the router since voids what was agreed to", (refused or {}).get("data", {}).get("reason"), "preview_changed")
        report.equal("NM-09: and the router runs what it ran", lab.running("r1"), drifted)
        lab.vtysh("r1", "configure terminal", "interface lan0", "no ip address 192.168.101.1/24")
        report.equal("NM-09: the router is as before", lab.running("r1"), before)

        device.call("network.commit", **commit)
        [one] = waiting()
        approve(one)
        done = device.call("network.commit", **commit)
        report.equal("NM-09: where nothing changed, the commit goes out", (done.get("structuredContent") or {}).get("status"), "committed")
        report.check("NM-09: and the router runs it", "description seen by a person" in lab.running("r1"))
        again = device.call("network.commit", **commit)
        report.check("NM-09: once: there is no candidate to preview for another", "no_preview" in json.dumps(again) or "was not called" in json.dumps(again),
                     str(again)[:400])
        back = device.call("network.rollback")
        report.check("NM-09: a rollback waits as well", "was not called" in json.dumps(back), str(back)[:400])
        rollback = [one for one in waiting() if one["tool"].endswith("rollback")]
        report.check("NM-09: and shows what it takes away", len(rollback) == 1 and "Brings the old configuration back" in rollback[0]["preview"]
                     and "+ description seen by a person" in rollback[0]["preview"], str(rollback))
        approve(rollback[0])
        device.call("network.rollback")
        report.equal("NM-09: and brings the old configuration back", lab.running("r1"), before)
