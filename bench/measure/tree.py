"""What a tree of gates adds to a call, and how soon it is whole again. Figures of registrations are in `namespace`."""
import contextlib
import json
import statistics
import urllib.request

from .bounds import Verdict
from .gates import REGISTRY, Chain, Client, Gate, joining, mounting, stopped, until
from .workload import rounds

DEPTH = 8
SEGMENTS = "bcdefgh"
HEARTBEAT = 0.5
WHOLE = 3 * HEARTBEAT


def hops(stage, options, report):
    """A call through one to eight gates, mounted or registered below each other, all on one core; entered at each of them."""
    upstream = stage.upstream()
    depth = 2 if options.smoke else DEPTH
    for build in stage.builds:
        for kind, make in (("mounts", by_mounts), ("links", by_links)):
            with contextlib.ExitStack() as stack:
                gates = make(stage, stack, build, upstream.port, depth)
                chains = {len(gates) - at: Chain(gates[at:], f"{len(gates) - at} {kind}", name(at, depth)) for at in range(depth)}
                for chain in chains.values():
                    until(f"{chain.tool} answers", lambda c=chain: Client(c.port).answers(c.tool))
                cases = {0: (upstream, "small"), **{n: (chain, chain.tool) for n, chain in sorted(chains.items())}}
                found = rounds(cases, options.rounds, lambda case: stage.generator.load(case[0], calling(case[1]), options.seconds))
            show_hops(report, build, kind, found)


def by_mounts(stage, stack, build, upstream, depth):
    gates = [Gate(stage, stack, build, mounting("u0", upstream))]
    for segment in reversed(SEGMENTS[:depth - 1]):
        gates.insert(0, Gate(stage, stack, build, mounting(segment, gates[0].port)))
    return gates


def by_links(stage, stack, build, upstream, depth):
    gates = [Gate(stage, stack, build, REGISTRY + (mounting("u0", upstream) if depth == 1 else ""))]
    for at, segment in enumerate(SEGMENTS[:depth - 1], 2):
        leaf = mounting("u0", upstream) if at == depth else ""
        gates.append(Gate(stage, stack, build, joining(segment, gates[-1]) + REGISTRY + leaf))
    return gates


def name(at, depth):
    """What the upstream's tool is called at the gate with this place."""
    return "__".join([*SEGMENTS[at:depth - 1], "u0", "small"])


def calling(tool):
    return ["--era", "modern", "--method", "call", "--connections", "1", "--tools", tool]


def show_hops(report, build, kind, found):
    section, depth = "tree hops", max(found)
    for n in (n for n in (1, 2, 4, 8) if n in found):
        row = found[n]
        shown = f"{row['p50_us'] / found[0]['p50_us']:.2f} of direct, {row['cpu_us'] / found[1]['cpu_us']:.2f} of one gate's CPU"
        report.add(section, build, f"a call through {n}, {kind}", shown, row)
    first = found[1]["p50_us"] - found[0]["p50_us"]
    later = (found[depth]["p50_us"] - found[1]["p50_us"]) / (depth - 1)
    report.add(section, build, f"each further gate, {kind}", f"{later / first:.2f} of the first ({later:.0f} us)", later / first)


def convergence(stage, options, report):
    """How soon the root of three gates knows, in units of three heartbeat intervals, which is the bound (AX-62)."""
    times = 1 if options.smoke else 5
    for build in stage.builds:
        for what, measure in (("killed", killed), ("hangs", hangs), ("inner gate killed", inner)):
            seen = {}
            with contextlib.ExitStack() as stack:
                tree = three(stage, stack, build)
                for _ in range(times):
                    for event, seconds in measure(*tree).items():
                        seen.setdefault(event, []).append(seconds / WHOLE)
            for event, ratios in seen.items():
                shown = f"{statistics.median(ratios):.2f} of three intervals, at most {max(ratios):.2f}"
                report.add("tree convergence", build, f"{what}: {event}", shown, ratios, Verdict("times", max(ratios), "most", 1))


def three(stage, stack, build):
    root = Gate(stage, stack, build, REGISTRY)
    middle = Gate(stage, stack, build, joining("b", root, HEARTBEAT) + REGISTRY)
    leaf = Gate(stage, stack, build, joining("c", middle, HEARTBEAT) + mounting("u0", stage.upstream().port))
    until("the leaf is at the root", lambda: there(root))
    return root, middle, leaf


def killed(root, _middle, leaf):
    leaf.kill()
    known = until("the root knows that a leaf was killed", lambda: not there(root))
    return {"known": known, "whole, once it is back": again(root, leaf.start)}


def hangs(root, _middle, leaf):
    with stopped(leaf):
        known = until("the root knows that a leaf hangs", lambda: not there(root))
    return {"known": known, "whole, once it goes on": again(root)}


def inner(root, middle, _leaf):
    middle.kill()
    known = until("the root knows that a gate was killed", lambda: not there(root))
    return {"known": known, "whole, once it is back": again(root, middle.start)}


def again(root, start=lambda: None):
    """Seconds from when it was there again until it answers through the root. Starting a process is not convergence."""
    start()
    return until("the tree is whole", lambda: there(root) and Client(root.port).answers("b__c__u0__small"))


def there(root):
    """Whether the root shows the leaf's tool, and not as degraded."""
    with urllib.request.urlopen(f"http://127.0.0.1:{root.port}/-/tools", timeout=5) as answer:
        rows = json.load(answer)["tools"]
    return any(row["dotted"] == "b.c.u0.small" and row["availability"] != "degraded" for row in rows)
