"""Rules that hold for many devices (NM-12): templates, rules on YANG paths, maintenance windows and freezes, through the shipped binary and a
gate, against `netconfd`.

Starts a gate of its own; the device is the one of `netconf.py`. `ncclient` is the judge of what the device holds.
"""
import datetime
import json
import os
import signal

from gateway import Gateway
from network import lab, netconfd
from network.agent import Device, processes, until

LINK = "/ietf-interfaces:interfaces/interface[name='mgmt0']"
WINDOW = 30


def configuration():
    """Devices with one template, all the same `netconfd`, but for one that is not there."""
    login = f'address = "{netconfd.ADDRESS}"\nbackend = "netconf"\nuser = "ncadmin"\npassword = "${{file:{netconfd.HOME}/password}}"\nhost_key = "{lab.fingerprint()}"\n'
    # A weekly window that is neither today nor tomorrow, wherever midnight is.
    day = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=3)).strftime("%a")
    return (f'[device_group.edge]\n[device_group.core]\n[device_template.nc]\n{login}'
            '[device.paths]\ntemplate = "nc"\ndeny_paths = ["/nacm"]\nallow_edit_paths = ["/interfaces/interface"]\n'
            '[device.narrow]\ntemplate = "nc"\nallow_edit_paths = ["/interfaces/interface/name", "/interfaces/interface/type", "/interfaces/interface/description"]\n'
            f'[device.closed]\ntemplate = "nc"\nwindows = ["{day} 02:00-04:00"]\n'
            '[device.e1]\ntemplate = "nc"\ngroups = ["edge"]\n[device.e2]\ntemplate = "nc"\ngroups = ["edge"]\ndeny_paths = ["/nacm"]\n'
            '[device.gone]\ntemplate = "nc"\ngroups = ["edge", "core"]\naddress = "10.0.99.2:9"\n')


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
    narrow = Device(gateway, "narrow")
    typed = {"path": f"{LINK}/type", "value": "iana-if-type:ethernetCsmacd"}
    for path, refusal in ((f"{LINK}[enabled='false']/description", -32083), (f"{LINK}/description", None)):
        code, detail = narrow.code("network.preview.edit", edit=[typed, {"path": path, "value": "by the rules"}])
        report.check(f"NM-12: what else an edit would change is held against the rules: {path}", code == refusal, f"{code} {detail}")
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
    report.equal("NM-12: a freeze shows for each device of its group", {one["device"] for one in listed if one.get("frozen")}, {"e1", "e2", "gone"})
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


def groups(report, gateway):
    """One process serves all devices in groups; one call to a group answers for each device; the death of the process is overcome."""
    alone, shared = processes("serve"), processes("fleet")
    report.equal("fleet: three devices have a process each, and five servers share one", (len(alone), len(shared)), (3, 1))
    edge = Device(gateway, "edge")
    report.equal("fleet: a group only reads", set(edge.tools), {"network.cli.exec", "network.yang.get", "network.file.pull"})
    told = edge.call("network.yang.get", path="/ietf-netconf-acm:nacm")["structuredContent"]
    report.equal("fleet: it answers for each device", (set(told["devices"]), told["answered"], told["failed"]), ({"e1", "e2", "gone"}, 1, 2))
    report.check("fleet: by its data, by its own rules, or by why it was not reached",
                 "ietf-netconf-acm:nacm" in told["devices"]["e1"]["ok"]["data"] and told["devices"]["e2"]["error"]["code"] == -32083 and
                 told["devices"]["gone"]["error"]["code"] == -32082 and told["devices"]["gone"]["error"]["retryPossible"] is True, str(told)[:800])
    told = edge.call("network.file.pull", filename="running-config", devices=["e1"])["structuredContent"]
    report.equal("fleet: or for those that are named", (list(told["devices"]), told["failed"]), (["e1"], 0))
    answer = edge.wire.call("tools/call", {"name": edge.named["network.yang.get"], "arguments": {"path": "/", "devices": ["paths"]}})
    report.check("fleet: and for no others", "no device of the group" in json.dumps(answer.message), str(answer.message)[:400])
    os.kill(shared[0], signal.SIGKILL)

    def answers():
        try:
            return edge.call("network.yang.get", path="/ietf-interfaces:interfaces")["structuredContent"]["answered"] == 2
        except RuntimeError:
            return False

    back = until(20, answers)
    report.check("fleet: after the death of the process all its devices come back, from one process", back is not None and len(processes("fleet")) == 1,
                 f"{back} {processes('fleet')}")


def run(report, oracle):
    """Starts a gate in front of the device, and checks the rules."""
    with Gateway("fleet", {}, config=configuration()) as gateway:
        report.guard("fleet/paths", lambda: paths(report, gateway, oracle))
        report.guard("fleet/windows", lambda: windows(report, gateway))
        report.guard("fleet/freezes", lambda: freezes(report, gateway, oracle))
        report.guard("fleet/groups", lambda: groups(report, gateway))
