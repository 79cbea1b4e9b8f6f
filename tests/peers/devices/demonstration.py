"""MCP-AX from end to end: an official client at the root of a tree of three gates asks for an actuator on a part with real firmware, a person signs with
a passkey, the part moves once, and the record and the trace show it (AX-45, AX-46, AX-74)."""
import json
import tempfile
import time
from contextlib import ExitStack

import install
from console.checks import relay
from gateway import Gateway
from tree.links import REGISTRY, joining
from wire import Modern

from devices import bed

TOOL = "edge__line__lamp__turn"
RULES = '[gate]\nmode = "mutable"\nexpires = "300s"\n[audit]\n'


def run(report, name, config):
    """`config` is the text of a gate with the part."""
    browser = install.chromium()
    if not browser:
        return print("--- devices: no demonstration, not installed: chromium")
    with ExitStack() as stack:
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="banyan-demonstration-"))
        part = stack.enter_context(bed.Part("lamp.elf", 11))
        root = stack.enter_context(Gateway(f"{name} root", {}, config=RULES + REGISTRY))
        edge = stack.enter_context(Gateway(f"{name} edge", {}, config=joining("edge", root.port) + REGISTRY + "[audit]\n"))
        line = stack.enter_context(Gateway(f"{name} line", {}, config=joining("line", edge.port) + config(part)))
        report.check(f"{name}: the tool is at the root", is_listed(root), sorted(Modern(root.url()).tools()))
        relay(report, "demonstration", root, browser, {"PROFILE": work, "PYTHON": install.venv_bin("modern"), "TOOL": TOOL}, script=__file__.replace(".py", ".mjs"))
        counted = Modern(line.url()).call("tools/call", {"name": "lamp__calls", "arguments": {}}).result["structuredContent"]
        report.equal(f"{name}: the part moved once", counted, {"lamp": 0, "motor": 1})
        report.equal(f"{name}: its frame left once", part.down.seen(b"\x01\xa3\x01\x03\x02"), 1)
        record(report, name, root)
        traced = json.loads(root.told("--json", "trace", TOOL))
        ways = [hop["mount"] for hop in traced["hops"]]
        report.check(f"{name}: the trace shows the way to the part", ways[-1:] == ["lamp"] and len(ways) >= 3, traced)


def record(report, name, root):
    """What the record of the root says, and that nobody changed it."""
    done = root.asked("audit", "verify")
    report.check(f"{name}: the record is whole", done.returncode == 0, done.stdout + done.stderr)
    entries = [json.loads(line) for line in root.asked("audit", "export").stdout.splitlines()]

    def facts(event, **wanted):
        return [entry["facts"] for entry in entries if entry["event"] == event and wanted.items() <= entry["facts"].items()]
    asked, released = facts("approval_asked", tool=TOOL.replace("__", ".")), facts("approval_decided", decision="released")
    report.equal(f"{name}: one approval was asked for, and one released", [len(asked), len(released)], [1, 1])
    report.check(f"{name}: a passkey of Anna released it", "Anna" in released[0].get("by", "") and released[0].get("proof"), released)
    report.equal(f"{name}: it is the approval that was asked for", [released[0][key] for key in ("approval", "challenge")], [asked[0][key] for key in ("approval", "challenge")])
    intended = facts("intended", approval=asked[0]["approval"])
    report.equal(f"{name}: one call left by it", [call["gated"] for call in intended], [True])
    report.equal(f"{name}: and ended", [end["outcome"]["ending"] for end in facts("ended", call=intended[0]["call"])], ["done"])


def is_listed(root):
    """Waits until the tool of the part has come up the tree."""
    for _ in range(300):
        if TOOL in Modern(root.url()).tools():
            return True
        time.sleep(0.1)
    return False
