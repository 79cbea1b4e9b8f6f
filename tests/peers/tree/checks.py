"""Eight gates, one below the other, as processes on the loopback, with official clients at the top (AX-02, AX-06).

Each gate mounts the next by its URL. At the bottom stands the fixture, whose tours `clients` has, or a file server. The other
checks close a circle of mounts, end and restart a gate in the middle, run the examples that register themselves, and grow a large tree.
"""
import json
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import install
from clients.checks import command, count
from conformance.server_scenarios import fixture
from gateway import Gateway, free_port
from servers.checks import node_server
from tree import codes, deep, draft, joining, large, links, registrants, severed
from wire import Legacy, Modern

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 170
DEPTH = 8
AT_ONCE = 2
CLIENTS = (("python 2.3", "auto"), ("python 2.3", "legacy"), ("typescript 2.4", "auto"), ("typescript 2.4", "legacy"))
LEAVES = (("legacy", "stdio"), ("modern", "http"))
LEAF = "fx"
SETTLED_WITHIN = 20


def run(report):
    """All of it, some at a time; what wants the machine for itself last."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for work in (files, circle, restarted):
            pool.submit(report.guard, f"tree/{work.__name__}", lambda w=work: w(report))
        for part in (codes, deep, draft, joining, registrants, severed):
            pool.submit(report.guard, f"tree/{part.__name__}", lambda p=part: p.run(report))
        links.run(report, pool)
        for client, mode in CLIENTS:
            for leaf in LEAVES:
                name = f"tree/{client} {mode} above {DEPTH} gates, leaf {'/'.join(leaf)}"
                pool.submit(report.guard, name, lambda c=client, m=mode, f=leaf, n=name: tour(report, n, c, m, *f))
    report.guard("tree/large", lambda: large.run(report))


def chain(name, leaf, stack):
    """Eight gates with `leaf`, an `mcpServers` entry, below the last: the topmost first, and the prefix its tools have there."""
    below, segment, gates = leaf, LEAF, []
    for level in reversed(range(DEPTH)):
        gates.insert(0, stack.enter_context(Gateway(f"{name} {level}", {segment: below})))
        below, segment = {"type": "http", "url": gates[0].url()}, "bcdefghi"[level - 1]
    return gates, "".join(f"{letter}__" for letter in "bcdefghi"[:DEPTH - 1]) + f"{LEAF}__"


def tour(report, name, client, mode, era, transport):
    """The whole tour of an official client, through eight gates."""
    with ExitStack() as stack:
        gates, prefix = chain(name, fixture(transport, era, stack), stack)
        env = {**gates[0].home.env, "PEERS_NODE_MODULES": install.node_modules(), "PEERS_PREFIX": prefix}
        count(report, name, [*command(client, mode), "http", gates[0].url()], env)


def files(report):
    """The file server at the bottom; its tools keep their definitions, and no name is longer than clients take."""
    with ExitStack() as stack:
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="banyan-tree-"))
        Path(work, "note.txt").write_text("roots in the air\n")
        leaf = {"command": install.node(), "args": [node_server("filesystem"), work]}
        gates, prefix = chain("tree files", leaf, stack)
        for era, client in (("legacy", Legacy), ("modern", Modern)):
            top, bottom = client(gates[0].url()), client(gates[-1].url())
            shown, own = top.tools(), bottom.tools()
            report.check(f"tree/files, {era}: every name is one that clients take", all(len(n) <= 64 and "." not in n for n in shown), sorted(shown))
            report.equal(f"tree/files, {era}: as many tools at the top as at the bottom", len(shown), len(own))
            reply = top.tool(f"{prefix}read_text_file", {"path": os.path.join(work, "note.txt")})
            report.check(f"tree/files, {era}: a call", "roots in the air" in reply.text, reply.raw[:600])


def circle(report):
    """Two gates that mount each other: one of them says so, both stay up, and no name grows."""
    ports = free_port(), free_port()
    with ExitStack() as stack:
        own = fixture("stdio", "legacy", stack)
        gates = []
        for mine, other in (ports, ports[::-1]):
            config = (f'[mount.other]\nurl = "http://127.0.0.1:{other}/mcp"\n'
                      f'[mount.fx]\ncommand = {own["command"]!r}\nargs = {own["args"]!r}\n').replace("'", '"')
            gates.append(stack.enter_context(Gateway(f"tree circle {mine}", {}, config=config, port=mine, wait=False)))
        end, said = time.monotonic() + SETTLED_WITHIN, []
        while time.monotonic() < end and not said:
            said = [m["error"] for g in gates for m in status(g) if "this very gate" in (m["error"] or "")]
            time.sleep(0.1)
        report.check("tree/circle: a gate says so", said, [status(g) for g in gates])
        time.sleep(2)
        names = [n for g in gates for n in Modern(g.url()).tools()]
        report.check("tree/circle: no name goes around", all(n.count("__") <= 2 for n in names), sorted(names, key=len)[-3:])
        report.check("tree/circle: both serve", all(g.process.poll() is None for g in gates) and "fx__fx_echo" in names, names[:5])


def restarted(report):
    """A gate in the middle ends: its subtree is degraded and says so; when it is back, so are its tools (AX-62)."""
    with ExitStack() as stack:
        leaf = fixture("stdio", "legacy", stack)
        bottom = stack.enter_context(Gateway("tree restarted bottom", {LEAF: leaf}))
        port = free_port()
        middle = Gateway("tree restarted middle", {"c": {"type": "http", "url": bottom.url()}}, port=port)
        try:
            top = stack.enter_context(Gateway("tree restarted top", {"b": {"type": "http", "url": middle.url()}}))
            client, name = Modern(top.url()), "b__c__fx__fx_echo"
            report.equal("tree/restarted: before", client.tool(name, {"text": "1"}).text, "1")
        finally:
            middle.stop()
        refused = client.tool(name, {"text": "2"})
        report.check("tree/restarted: a call meanwhile is refused with a reason", refused.error.get("data", {}).get("reason"), refused.raw[:600])
        stack.enter_context(Gateway("tree restarted middle", {"c": {"type": "http", "url": bottom.url()}}, port=port))
        end, reply = time.monotonic() + SETTLED_WITHIN, refused
        while time.monotonic() < end and reply.error:
            time.sleep(0.1)
            reply = client.tool(name, {"text": "3"})
        report.equal("tree/restarted: after", reply.text, "3")


def status(gate):
    """The mounts of a gate, as it tells whoever runs it."""
    told = gate.told("status", "--json")
    return json.loads(told)["mounts"] if told else []
