"""A confirmed change that is undone by another one (NM-09): by an agent, by a person at the command line, and not over what came later.

The device is the judge, as everywhere here.
"""
import json
import os
import re
from pathlib import Path

from gateway import Gateway
from network import lab
from network.agent import Device, until

CONFIG = """
[device.r1]
pathspace = "r1"
longest_window = "60s"
confirm_within = "40s"
"""
WINDOW = 5
NEW_SECRET = "canary-second-secret"


def run(report):
    """The way back behind a confirmation, from nothing kept to a freeze."""
    with Gateway("undone", {}, config=CONFIG) as gateway:
        device = Device(gateway, "r1")
        before = lab.running("r1")
        code, detail = device.code("network.rollback", confirmed=True)
        report.check("NM-09: where no confirmed change is kept, an undo says so", code == -32084 and "no confirmed change is kept" in detail, f"{code} {detail}")
        device.change("interface lan0", "description confirmed by mistake", "router bgp 65001", f"neighbor 10.0.12.2 password {NEW_SECRET}")
        device.call("network.commit", confirmed=30)
        code, detail = device.code("network.rollback", confirmed=True)
        report.check("NM-09: nothing is undone while a change waits", code == -32083 and "waits for its confirmation" in detail, f"{code} {detail}")
        kept = device.call("network.commit", confirm=True)["structuredContent"]
        after = lab.running("r1")
        report.check("NM-09: the mistake is confirmed and runs", kept["status"] == "confirmed" and NEW_SECRET in after and "by mistake" in after, str(kept))
        agent(report, device, before, after)
        drift(report, device)
        person(report, gateway, device, before, after)


def agent(report, device, before, after):
    """An agent undoes it: shown, taken back without a confirmation, and with one there to stay, secrets included."""
    seen = device.call("network.preview.rollback", confirmed=True)["structuredContent"]
    code, detail = device.code("network.commit", confirmed=WINDOW)
    report.check("NM-09: the preview of an undo keeps no candidate", code == -32084 and "no candidate" in detail, f"{code} {detail}")
    shown = device.call("network.rollback", confirmed=True)
    made = shown["structuredContent"]
    report.equal("NM-09: the preview was of that very undo", (seen["hash"], seen["base"]), (made["hash"], made["base"]))
    was = re.search(r"(?m)^interface lan0\n(?: .*\n)*? (description .*)$", before).group(1)
    report.check("NM-09: an undo shows its diff", f"- description confirmed by mistake\n+ {was}" in made["diff"], made["diff"])
    report.check("NM-12: and no secret", lab.PASSWORD not in json.dumps(shown) and NEW_SECRET not in json.dumps(shown))
    report.equal("NM-09: an undo applies nothing by itself", lab.running("r1"), after)
    device.call("network.commit", confirmed=WINDOW, hash=made["hash"])
    report.equal("NM-09: a committed undo brings the old configuration, byte for byte", lab.running("r1"), before)
    report.check("NM-09: an undo that nobody confirms is taken back", until(WINDOW + 20, lambda: lab.running("r1") == after) is not None, lab.running("r1"))
    # The old lines run a little before the record says that the change is over.
    again = until(20, lambda: "diff" in device.call("network.rollback", confirmed=True)["structuredContent"])
    report.check("NM-09: and can be made again", again is not None)
    device.call("network.commit", confirmed=30)
    kept = device.call("network.commit", confirm=True)["structuredContent"]
    report.equal("NM-09: an undo is confirmed like every change", (kept["status"], kept["saved"]), ("confirmed", True))
    report.equal("NM-09: and what ran before runs, secrets included", lab.running("r1"), before)
    starts_with = Path("/etc/frr/r1/frr.conf").read_text()
    report.check("NM-09: FRR starts with it", "by mistake" not in starts_with and lab.PASSWORD in starts_with and NEW_SECRET not in starts_with)


def drift(report, device):
    """What was changed by hand since is not lost."""
    lab.vtysh("r1", "configure terminal", "ip route 10.66.0.0/16 blackhole")
    drifted = lab.running("r1")
    code, detail = device.code("network.rollback", confirmed=True)
    report.check("NM-09: what came later stands in the way of an undo, and is named", code == -32084 and "+ ip route 10.66.0.0/16 blackhole" in detail, f"{code} {detail}")
    lab.vtysh("r1", "configure terminal", "router bgp 65001", "neighbor 10.0.12.2 password canary-by-hand")
    code, detail = device.code("network.rollback", confirmed=True)
    report.check("NM-12: without the secrets of others", code == -32084 and "canary" not in detail, f"{code} {detail}")
    lab.vtysh("r1", "configure terminal", "router bgp 65001", f"neighbor 10.0.12.2 password {lab.PASSWORD}")
    report.equal("NM-09: and stays", lab.running("r1"), drifted)
    lab.vtysh("r1", "configure terminal", "no ip route 10.66.0.0/16 blackhole")


def person(report, gateway, device, before, after):
    """A person undoes the undo at the command line, for some time; a freeze holds for that as well."""
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    gateway.told("device", "freeze", "r1", *config)
    refused = gateway.asked("device", "rollback", "r1", "--confirmed", *config)
    report.check("NM-12: a freeze refuses an undo too", refused.returncode and "froze" in refused.stderr and lab.running("r1") == before, refused.stderr)
    gateway.told("device", "unfreeze", "r1", *config)
    told = gateway.told("device", "rollback", "r1", "--confirmed", *config)
    report.check("NM-09: a person sees the diff of an undo and its end", "+ description confirmed by mistake" in told and "banyan device confirm r1" in told
                 and NEW_SECRET not in told, told)
    report.equal("NM-09: the undo of an undo is the change again", lab.running("r1"), after)
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: the undo belongs to the person", code == -32083 and "only its owner" in detail, f"{code} {detail}")
    report.check("NM-09: and is rolled back like every change", "rolled back" in gateway.told("device", "rollback", "r1", *config) and lab.running("r1") == before,
                 lab.running("r1"))
