"""Arguments that look like those of a device and are none (NM-12), and a confirmation of what a device does not run any more (NM-09).

Rules of the gate judge by the declared schemas, so a device takes nothing beyond. The device is the judge of what happened.
"""
import json
import subprocess

from gateway import Gateway
from network import lab
from network.agent import Device, until
from wire import Legacy

CONFIG = """
[device.r1]
pathspace = "r1"
longest_window = "60s"

[device_group.all]

[device.r2]
pathspace = "r2"
read_only = true
groups = ["all"]
"""
WINDOW = 6
# Each with the path of the wrong argument, and words of the answer.
CALLS = (
    ("network.cli.exec", {"command": "show version"}, "command", "which takes `cmd`"),
    ("network.cli.exec", {"cmd": ["show version"]}, "cmd", "a text, and was given a list of 1"),
    ("network.cli.configure", {"lines": ["hostname x"]}, "lines", "is no argument of"),
    ("network.cli.configure", {"commands": "hostname x"}, "commands", "a list with at least one item"),
    ("network.cli.configure", {"commands": ["hostname x", 7]}, "commands[1]", "given the number 7"),
    ("network.cli.configure", {"commands": [{"a": [[[["hostname x"]]]]}]}, "commands[0]", "an object of 1"),
    ("network.cli.configure", {"commands": ["hostname x"], "x" * 100_000: 1}, "x" * 64 + "…", "is no argument of"),
    ("network.preview.configure", {"lines": ["hostname x"]}, "lines", "is no argument of"),
    ("network.commit", {"confirmed": "5"}, "confirmed", "a whole number from 1 on"),
    ("network.commit", {"confirmed": 5.5}, "confirmed", "a whole number from 1 on"),
    ("network.commit", {"confirmed": 5, "hash": 7}, "hash", "a text, and was given the number 7"),
    ("network.commit", {"confirmed": 5, "hash": None}, "hash", "given null"),
    ("network.commit", {"confirmed": 5, "confirm": True}, "confirmed", "leave one of them out"),
    ("network.commit", {"confirm": "true"}, "confirm", "true or false, and was given a text of 4 bytes"),
    ("network.preview.commit", {"hash": ["x"]}, "hash", "a list of 1"),
    ("network.rollback", {"confirmed": "true"}, "confirmed", "true or false"),
    ("network.rollback", {"confirm": True}, "confirm", "which takes `confirmed`"),
    ("network.file.push", {"filename": "candidate-config", "content": ["hostname x"]}, "content", "a list of 1"),
)
PROMPTS = (
    ({"src": "10.0.12.1", "dst": "10.0.13.3", "VRF": "red"}, "`VRF` is no argument"),
    ({"src": "10.0.12.1", "dst": "10.0.13.3", "vrf": 7}, "`vrf` is a text"),
)


def run(report):
    """Checks r1, with a candidate open all the while."""
    with Gateway("shaped", {}, config=CONFIG) as gateway:
        device = Device(gateway, "r1")
        report.guard("shaped/calls", lambda: calls(report, device))
        report.guard("shaped/others", lambda: others(report, gateway, device))
        report.guard("shaped/hash", lambda: bound(report, device))
        report.guard("shaped/drifted", lambda: drifted(report, device))
        report.guard("shaped/restarted", lambda: restarted(report, device))


def calls(report, device):
    """NM-12: one clear answer names the argument, what it takes and what was given, and nothing is done."""
    before = lab.running("r1")
    shown = device.change("interface lan0", "description waits")
    for tool, arguments, path, words in CALLS:
        about = f"{tool} {json.dumps(arguments)[:80]}"
        told = device.call(tool, **arguments).get("structuredContent") or {}
        data = told.get("data") or {}
        said = (told.get("code"), data.get("path"), words in data.get("detail", ""))
        report.check(f"NM-12: {about} is refused for its shape", said == (-32602, path, True) and len(json.dumps(told)) < 2000, json.dumps(told)[:600])
    seen = device.call("network.preview.commit", hash=shown["hash"])["structuredContent"]
    report.equal("NM-12: the candidate is what it was", seen["hash"], shown["hash"])
    report.equal("NM-12: and the device runs what it ran", lab.running("r1"), before)
    device.call("network.rollback")


def others(report, gateway, device):
    """NM-12: prompts, groups, cursors and arguments that are no object are held to their shape as well, in both eras."""
    for wire in (device.wire, Legacy(gateway.url("r1"))):
        era = type(wire).__name__
        prompt = next(one["name"] for one in wire.call("prompts/list").result["prompts"] if one["name"].endswith("ping-fail"))
        for arguments, words in PROMPTS:
            error = wire.call("prompts/get", {"name": prompt, "arguments": arguments}).error
            report.check(f"NM-12: {era}: a prompt with {words}", error.get("code") == -32602 and words in json.dumps(error), str(error))
        error = wire.call("resources/read", {"uri": "network:///routing/ipv4/route-table", "cursor": 7}).error
        report.check(f"NM-12: {era}: a cursor that is no text is not the first page", error.get("code") == -32602, str(error))
        error = wire.call("resources/write", {"uri": "network:///file/candidate-config", "text": "hostname x\n"}).error
        report.check(f"NM-12: {era}: a resource is written in one spelling", error.get("code") == -32602 and "contents" in json.dumps(error), str(error))
    # The client of the stateless era repeats arguments in headers, and can't say this.
    error = Legacy(gateway.url("r1")).call("tools/call", {"name": device.named["network.rollback"], "arguments": ["confirmed"]}).error
    report.check("NM-12: arguments that are no object are not none", error.get("code") == -32602, str(error))
    group = Device(gateway, "all")
    message = group.wire.tool(group.named["network.cli.exec"], {"cmd": "show version", "device": ["r2"]})
    report.check("NM-12: a group asks nobody for a misspelt argument", message.error.get("code") == -32602 and "`device`" in json.dumps(message.error), str(message.message)[:400])


def bound(report, device):
    """NM-09: a hash beside a confirmation binds it."""
    before = lab.running("r1")
    shown = device.change("interface lan0", "description bound")
    device.call("network.commit", confirmed=30, hash=shown["hash"])
    code, detail = device.code("network.commit", confirm=True, hash="0" * 64)
    report.check("NM-09: another hash confirms nothing", code == -32084 and "not the one of the hash" in detail, f"{code} {detail}")
    kept = device.call("network.commit", confirm=True, hash=shown["hash"])["structuredContent"]
    report.check("NM-09: its own hash does", kept["status"] == "confirmed" and "description bound" in lab.running("r1"), str(kept))
    device.call("network.rollback", confirmed=True)
    device.call("network.commit", confirmed=30)
    device.call("network.commit", confirm=True)
    report.equal("NM-09: and the undo is confirmed", lab.running("r1"), before)


def drifted(report, device):
    """NM-09: what drifted since the commit is not confirmed, and the deadline brings the old configuration back."""
    before = lab.running("r1")
    device.change("interface lan0", "description drifting")
    device.call("network.commit", confirmed=WINDOW)
    lab.vtysh("r1", "configure terminal", "interface lan0", "description by another hand")
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: drift is named and not confirmed", code == -32084 and detail.startswith("drift") and "by another hand" in detail, f"{code} {detail}")
    took = until(WINDOW + 20, lambda: lab.running("r1") == before)
    report.check("NM-09: the deadline restores the device, byte for byte", took is not None, lab.running("r1"))
    until(10, lambda: device.code("network.commit", confirm=True)[0] == -32086)


def restarted(report, device):
    """NM-09: an FRR that restarted within the window runs the old configuration, so nothing is confirmed."""
    device.change("interface lan0", "description lost in a restart")
    before = lab.running("r1")
    device.call("network.commit", confirmed=50)
    for daemon in lab.DAEMONS:
        try:
            lab.kill_daemon("r1", daemon)
        except (FileNotFoundError, ProcessLookupError):
            continue
    for daemon in lab.DAEMONS:
        lab.start_daemon("r1", daemon)
    subprocess.run(["ip", "netns", "exec", "r1", "vtysh", "-N", "r1", "-b"], capture_output=True, check=False)
    back = until(20, lambda: lab.running("r1") == before)
    report.check("NM-09: after a restart FRR runs what it started with", back is not None, lab.running("r1"))
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: and the change is not confirmed", code == -32086 and "nothing is left to take back" in detail, f"{code} {detail}")
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: nor does it wait any more", code == -32602 and "no change waits" in detail and lab.running("r1") == before, f"{code} {detail}")
    shown = device.change("interface lan0", "description made again")
    report.check("NM-09: the change is made again", "+ description made again" in shown["diff"], str(shown))
    device.call("network.rollback")
    lab.converge()
