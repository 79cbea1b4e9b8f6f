"""The suite's server scenarios through Banyan, in front of the fixture: all that MCP has, in both directions (AX-06).

One gateway for each era and transport of the fixture. In front of a fixture that speaks both eras every set
must reach what the fixture reaches alone, with and without prefix; where the fixture speaks one era only,
`expected/legacy.json` and `expected/modern.json` pin what can cross, each row with its reason.
"""
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from conformance.shim import Shim
from conformance.suite import SETS, better, compare, load_expected, run_server_set
from gateway import Gateway, Process, free_port

FIXTURE = str(Path(__file__).resolve().parent / "fixture_server.py")
MOUNT = "fx"
ERAS = {"both": "both", "legacy": "legacy", "modern": "modern"}
AT_ONCE = 2


def fixture(transport, era, stack, *arguments):
    """The `mcpServers` entry for a fixture; an HTTP one is started here."""
    common = ["--era", era, *arguments]
    if transport == "stdio":
        return {"command": sys.executable, "args": [FIXTURE, "stdio", *common]}
    port = free_port()
    stack.enter_context(Process([sys.executable, FIXTURE, "http", "--port", str(port), *common], port=port))
    return {"type": "http", "url": f"http://localhost:{port}/mcp"}


def run(report):
    """Every combination, two gateways at a time."""
    cases = [(era, transport) for era in ERAS for transport in ("stdio", "http")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for case in cases:
            pool.submit(report.guard, "conformance/server/" + "/".join(case), lambda c=case: one(report, *c))


def one(report, era, transport):
    """All sets through one gateway: without prefix, and for a dual-era fixture also with."""
    name = f"conformance/server/{era}/{transport}"
    with ExitStack() as stack:
        entry = fixture(transport, era, stack)
        gateway = stack.enter_context(Gateway(name, {MOUNT: entry}))
        endpoints = {"mount": gateway.url(MOUNT)}
        if era == "both":
            endpoints["prefix"] = Shim(gateway.url(), MOUNT + "__").start()
        expected = load_expected(ERAS[era])
        for way, url in endpoints.items():
            for suite in SETS:
                outcome = run_server_set(suite, url)
                held, broken, lines = compare(outcome, expected[suite])
                if not outcome.rows:
                    lines.append(outcome.text[-1500:])
                raised = [f"{s}: better than its pin, raise it" for s in better(outcome, ERAS[era], suite)]
                report.count(f"{name}/{way}/{suite}", held, broken + len(raised), "\n".join(lines + raised))
