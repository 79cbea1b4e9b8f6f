"""Eight gates by links, four in one network namespace and four in another, and the wire between them cut (AX-22, AX-62).

Nobody on either side is told: packets go nowhere. The root has to say by itself that what stands below the cut is not there, and the tree
has to be whole by itself when the wire is. Gates on both sides keep their own links all the while.
"""
import json
import subprocess
from contextlib import ExitStack

from conformance.server_scenarios import fixture
from gateway import binary, free_port
from tree.deep import DEPTH, LETTERS, TOOL
from tree.beats import converges
from tree.links import REGISTRY, Inside, guarded, joining, mount, until
from tree.spaces import Space, Wire, missing

SECRET = "secret-of-the-lower-half"


def run(report):
    """The chain, cut in the middle and made whole again."""
    if why := missing():
        return print(f"        severed: SKIPPED, {why}", flush=True)
    with ExitStack() as stack:
        wire = Wire(Space(stack), Space(stack))
        gates = chain(report, stack, wire)
        top = gates[0]
        until(report, f"severed: {DEPTH} gates in two networks are one tree", lambda: call(top, "whole") == "whole", within=60)
        wire.cut()
        converges(report, "severed: the root says that the tool is not there", lambda: "-32002" in call(top, "cut"), top)
        below = gates[DEPTH // 2]
        converges(report, "severed: the gate below the cut says that its parent is lost", lambda: below.says("parent", "lost"), top, most=1)
        lost = [letter for letter, gate in zip(LETTERS, gates) if gate is not below and gate.says("parent", "lost")]
        report.equal("severed: no other gate has lost its parent", lost, [])
        wire.mend()
        converges(report, "severed: the tree is whole again", lambda: call(top, "again") == "again", top)


def chain(report, stack, wire):
    """The gates, the topmost first. The one above the cut listens on the wire, to whoever has its token."""
    gates, half = [], DEPTH // 2
    for at, letter in enumerate(LETTERS):
        config = mount("fx", fixture("stdio", "legacy", stack)) if at == DEPTH - 1 else REGISTRY
        address = "127.0.0.1"
        if at == half - 1:
            address, config = wire.addresses[0], guarded(SECRET)
        if at:
            way = {"at": wire.addresses[0], "secret": SECRET} if at == half else {}
            config = joining(letter, gates[-1].port, **way) + config
        gate = stack.enter_context(Inside(wire.spaces[at >= half], f"severed {letter}", config, free_port(), address))
        until(report, f"severed: {letter} listens", lambda: gate.says("listening", None))
        gates.append(gate)
    return gates


def call(gate, text):
    """What the tool at the bottom answers to somebody at the root, or why it does not."""
    command = [binary(), "call", TOOL, json.dumps({"text": text})]
    with gate.space:
        ran = subprocess.run(command, env=gate.home.env, cwd=gate.home.dir, capture_output=True, text=True, timeout=30, check=False)
    return ran.stdout.strip() + ran.stderr.strip()
