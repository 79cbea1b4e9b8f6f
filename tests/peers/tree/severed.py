"""Eight gates by links, four in one network namespace and four in another, and the wire between them cut (AX-22, AX-62).

Nobody on either side is told: packets go nowhere. The root has to say by itself that what stands below the cut is not there, and the tree
has to be whole by itself when the wire is. Gates on both sides keep their own links all the while.
"""
import hashlib
import json
import os
import shutil
import subprocess
from contextlib import ExitStack

from conformance.server_scenarios import fixture
from gateway import binary, free_port
from tree.deep import DEPTH, LETTERS, TOOL
from tree.links import REGISTRY, WHOLE, Inside, joining, mount, until

SECRET = "secret-of-the-lower-half"
# Every gate on the way to the root has to hear of it; the bound of one link is that of `links`.
WITHIN = WHOLE + 20


def run(report):
    """The chain, cut in the middle and made whole again."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("        severed: SKIPPED, network namespaces take root and `ip`", flush=True)
        return
    with ExitStack() as stack:
        wire = Wire(stack)
        if not wire.is_there:
            print("        severed: SKIPPED, this machine lets nobody make network namespaces", flush=True)
            return
        gates = chain(report, stack, wire)
        top = gates[0]
        until(report, f"severed: {DEPTH} gates in two networks are one tree", lambda: call(top, "whole") == "whole", within=60)
        wire.set("down")
        until(report, "severed: the root says that the tool is not there", lambda: "-32002" in call(top, "cut"), within=WITHIN)
        lost = [gate.says("parent", "lost") for gate in gates]
        report.equal("severed: one gate alone has lost its parent", lost, [letter == LETTERS[DEPTH // 2] for letter in LETTERS])
        wire.set("up")
        until(report, "severed: the tree is whole again", lambda: call(top, "again") == "again", within=WITHIN)


class Wire:
    """Two network namespaces and what joins them."""

    def __init__(self, stack):
        self.spaces = [f"banyan-{os.getpid()}-{side}" for side in "ab"]
        self.addresses = ["10.77.41.1", "10.77.41.2"]
        self.is_there = all(self._made(stack, space) for space in self.spaces)
        if not self.is_there:
            return
        one, two = self.spaces
        ip("link", "add", "wire", "netns", one, "type", "veth", "peer", "name", "wire", "netns", two)
        for space, address in zip(self.spaces, self.addresses):
            ip("-n", space, "address", "add", f"{address}/24", "dev", "wire")
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", "wire", "up")

    @staticmethod
    def _made(stack, space):
        is_made = not subprocess.run(["ip", "netns", "add", space], capture_output=True, check=False).returncode
        if is_made:
            stack.callback(lambda: subprocess.run(["ip", "netns", "delete", space], check=False))
        return is_made

    def set(self, state):
        """Cuts it (`down`), or joins it again (`up`)."""
        ip("-n", self.spaces[1], "link", "set", "wire", state)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def chain(report, stack, wire):
    """The gates, the topmost first. The one above the cut listens on the wire, to whoever has its token."""
    gates, half = [], DEPTH // 2
    for at, letter in enumerate(LETTERS):
        config = mount("fx", fixture("stdio", "legacy", stack)) if at == DEPTH - 1 else REGISTRY
        address = "127.0.0.1"
        if at == half - 1:
            address, digest = wire.addresses[0], hashlib.sha256(SECRET.encode()).hexdigest()
            config = f'{REGISTRY}insecure = true\n[[token]]\nname = "lower"\nsha256 = "{digest}"\n'
        if at:
            config = joining(letter, gates[-1].port) + config
        if at == half:
            config = config.replace("http://127.0.0.1", f"http://{wire.addresses[0]}").replace("[[parent]]\n", f'[[parent]]\ntoken = "{SECRET}"\ninsecure = true\n')
        gate = stack.enter_context(Inside(wire.spaces[at >= half], f"severed {letter}", config, free_port(), address))
        until(report, f"severed: {letter} listens", lambda: gate.says("listening", None))
        gates.append(gate)
    return gates


def call(gate, text):
    """What the tool at the bottom answers to somebody at the root, or why it does not."""
    command = ["ip", "netns", "exec", gate.space, binary(), "call", TOOL, json.dumps({"text": text})]
    ran = subprocess.run(command, env=gate.home.env, cwd=gate.home.dir, capture_output=True, text=True, timeout=30, check=False)
    return ran.stdout.strip() + ran.stderr.strip()
