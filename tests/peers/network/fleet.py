"""Rules that hold for many devices (NM-12): templates, rules on YANG paths, maintenance windows and freezes, through the shipped binary and a
gate, against `netconfd`.

Starts a gate of its own; the device is the one of `netconf.py`. `ncclient` is the judge of what the device holds.
"""
import datetime
import json
import os

from gateway import Gateway
from network import lab, netconfd
from network.agent import Device

LINK = "/ietf-interfaces:interfaces/interface[name='mgmt0']"
WINDOW = 30


def configuration():
    """Four devices with one template: all are the same `netconfd`."""
    login = f'address = "{netconfd.ADDRESS}"\nbackend = "netconf"\nuser = "ncadmin"\npassword = "${{file:{netconfd.HOME}/password}}"\nhost_key = "{lab.fingerprint()}"\n'
    # A weekly window that is neither today nor tomorrow, wherever midnight is.
    day = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=3)).strftime("%a")
    return (f'[device_group.edge]\n[device_group.core]\n[device_template.nc]\n{login}'
            '[device.paths]\ntemplate = "nc"\ndeny_paths = ["/nacm"]\nallow_edit_paths = ["/interfaces/interface"]\n'
            f'[device.closed]\ntemplate = "nc"\nwindows = ["{day} 02:00-04:00"]\n'
            '[device.e1]\ntemplate = "nc"\ngroups = ["edge"]\n[device.e2]\ntemplate = "nc"\ngroups = ["edge"]\n')


def link(description):
    """Edits that describe an interface."""
    return [{"path": LINK, "value": {"type": "iana-if-type:ethernetCsmacd", "description": description}}]


def paths(report, gateway, oracle):
    """Rules on paths hold for reads, edits, and whole configurations."""
    device, before = Device(gateway, "paths"), oracle.running()
    read = device.call("network.yang.get", path="/ietf-interfaces:interfaces")
    report.check("NM-12: a path that no rule denies is read", "interfaces" in json.dumps(read.get("structuredContent")), str(read)[:400])
    for path in ("/ietf-netconf-acm:nacm", "/ietf-netconf-acm:nacm/rule-list", "/"):
        code, detail = device.code("network.yang.get", path=path)
        report.check(f"NM-12: {path!r} is not read", code == -32083 and "forbids this path" in detail, f"{code} {detail}")
    code, detail = device.code("network.file.pull", filename="running-config")
    report.check("NM-12: nor is a whole configuration, which holds what is denied", code == -32083, f"{code} {detail}")
    shown = device.call("network.yang.edit", edit=link("by the rules"))
    report.check("NM-12: a path that a rule allows is edited", "by the rules" in json.dumps(shown.get("structuredContent", {}).get("diff", "")), str(shown)[:400])
    device.call("network.rollback")
    for edit in ([{"path": "/ietf-system:system/hostname", "value": "x"}], [{"path": "/ietf-interfaces:interfaces", "operation": "delete"}],
                 link("one") + [{"path": "/ietf-netconf-acm:nacm/enable-nacm", "value": False}]):
        code, detail = device.code("network.yang.edit", edit=edit)
        report.check(f"NM-12: {edit[-1]['path']} is not edited", code == -32083, f"{code} {detail}")
    report.equal("NM-12: and the device holds what it held", oracle.running(), before)


def windows(report, gateway):
    """Outside of a window changes are refused, with the next one; reads are not."""
    device = Device(gateway, "closed")
    code, detail = device.code("network.yang.edit", edit=link("too early"))
    report.check("NM-12: outside of a window no change begins, and the next window is told", code == -32083 and "T02:00:00Z" in detail, f"{code} {detail}")
    report.check("NM-12: reads need no window", "structuredContent" in device.call("network.yang.get", path="/ietf-interfaces:interfaces"))


def freezes(report, gateway, oracle):
    """A freeze holds at once for processes that run; what waits is confirmed or rolled back all the same."""
    config = ("--config", os.path.join(gateway.home.dir, "banyan.toml"))
    first, second, before = Device(gateway, "e1"), Device(gateway, "e2"), oracle.running()
    shown = first.call("network.yang.edit", edit=link("before the freeze"))["structuredContent"]
    first.call("network.commit", confirmed=WINDOW, hash=shown["hash"])
    gateway.told("device", "freeze", "--group", "edge", "--reason", "audit", *config)
    listed = json.loads(gateway.told("device", "list", "--json", *config))["devices"]
    report.equal("NM-12: a freeze shows for each device of its group", {one["device"] for one in listed if one.get("frozen")}, {"e1", "e2"})
    code, detail = second.code("network.yang.edit", edit=link("frozen"))
    report.check("NM-12: a new change is refused at once, with the reason", code == -32083 and "audit" in detail, f"{code} {detail}")
    first.call("network.rollback")
    report.equal("NM-12: a freeze does not hinder a rollback", oracle.running(), before)
    code, detail = first.code("network.yang.edit", edit=link("frozen"))
    report.check("NM-12: nor does a rollback end a freeze", code == -32083 and "froze" in detail, f"{code} {detail}")
    gateway.told("device", "unfreeze", "--group", "edge", *config)
    shown = first.call("network.yang.edit", edit=link("after the freeze"))["structuredContent"]
    gateway.told("device", "freeze", "e1", *config)
    code, detail = first.code("network.commit", confirmed=WINDOW, hash=shown["hash"])
    report.check("NM-12: a candidate from before a freeze is not committed", code == -32083 and oracle.running() == before, f"{code} {detail}")
    first.call("network.rollback")
    gateway.told("device", "unfreeze", "e1", *config)


def run(report, oracle):
    """Starts a gate in front of the device, and checks the rules."""
    with Gateway("fleet", {}, config=configuration()) as gateway:
        report.guard("fleet/paths", lambda: paths(report, gateway, oracle))
        report.guard("fleet/windows", lambda: windows(report, gateway))
        report.guard("fleet/freezes", lambda: freezes(report, gateway, oracle))
