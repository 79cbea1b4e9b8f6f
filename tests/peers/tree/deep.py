"""Eight gates, each of which dials the one above it, as processes: no gate but the topmost is reached by anybody (AX-02, AX-62).

Calls of both eras go from the root to the leaf, each gate shows the way, one in the middle is killed, the root says so at once, and the
whole chain heals by itself when it is back.
"""
import json
import subprocess
import time
from contextlib import ExitStack

from conformance.server_scenarios import fixture
from gateway import Gateway, binary
from tree.beats import converges
from tree.links import REGISTRY, joining, mount, until
from wire import Legacy, Modern

DEPTH = 8
LETTERS = "abcdefgh"[:DEPTH]
KILLED = DEPTH // 2
TOOL = "__".join([*LETTERS[1:], "fx", "fx_echo"])


def run(report):
    """The chain from its first registration to the last."""
    with ExitStack() as stack:
        gates = chain(stack)
        top = gates[0]
        began = time.monotonic()
        until(report, f"deep: {DEPTH} gates are one tree", lambda: answers(top, "first"), began)
        calls(report, top)
        way(report, top)
        gates[KILLED].kill()
        converges(report, "deep: the root says that the tool is not there", lambda: refused(top, report), top)
        listed = Modern(top.url()).tools()
        report.check("deep: its tools stay listed meanwhile", TOOL in listed, sorted(listed)[:3])
        gates[KILLED].start()
        converges(report, "deep: the chain heals", lambda: answers(top, "again"), top)
        calls(report, top)


def chain(stack):
    """The gates, the topmost first. Each is started when the one above is there to be dialled, and waits for nobody."""
    gates = []
    for letter in LETTERS:
        above = joining(letter, gates[-1].port) if gates else ""
        below = mount("fx", fixture("stdio", "legacy", stack)) if letter == LETTERS[-1] else REGISTRY
        gates.append(stack.enter_context(Gateway(f"deep {letter}", {}, config=below + above, wait=letter == LETTERS[-1])))
    return gates


def calls(report, top):
    """Whatever a client may be, what it asks comes to the leaf, and what the leaf tells meanwhile comes back."""
    for client in (Legacy, Modern):
        name = f"deep: {client.__name__}"
        peer = client(top.url())
        report.equal(f"{name}: a call", peer.tool(TOOL, {"text": "deep"}).text, "deep")
        slept = peer.tool(TOOL.replace("fx_echo", "fx_sleep"), {"ms": 30, "steps": 3}, _meta={"progressToken": "mine"})
        told = [m for m in slept.before if m.get("params", {}).get("progressToken") == "mine"]
        report.check(f"{name}: progress comes up", len(told) == 3, slept.raw[:300])
        nothing = peer.tool(TOOL.replace("fx_echo", "nothing"))
        report.check(f"{name}: what is not there is refused at the top", nothing.error.get("code") == -32602, nothing.raw[:300])


def way(report, top):
    """The steps of a call, as `banyan trace` tells them; every one but the last goes over a link."""
    ran = subprocess.run([binary(), "trace", TOOL, "--json"], env=top.home.env, cwd=top.home.dir, capture_output=True, timeout=30, check=False)
    hops = json.loads(ran.stdout or b"{}").get("hops", [])
    report.equal("deep: the way of a call", [(hop["mount"], hop["transport"]) for hop in hops], [*((l, "link") for l in LETTERS[1:]), ("fx", "stdio")])
    # What a step takes holds all after it.
    times = [hop["ms"] for hop in hops]
    report.check("deep: each step takes longer than those after it", times == sorted(times, reverse=True), times)
    print(f"        deep: {times[0] / len(times) if times else 0:.2f} ms a hop, there and back", flush=True)


def answers(gate, text):
    """Whether the leaf answers."""
    try:
        return Modern(gate.url()).tool(TOOL, {"text": text}).text == text
    except (OSError, RuntimeError, ValueError):
        return False


def refused(gate, report):
    """Whether a call is refused as one of a tool that is not there at present, with when to try again."""
    error = Modern(gate.url()).tool(TOOL, {"text": "x"}).error
    if error.get("code") != -32002:
        return False
    data = error.get("data", {})
    report.check("deep: with a reason and when to try again", data.get("reason") and data.get("retry_after_ms"), error)
    return True
