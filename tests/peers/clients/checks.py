"""Real clients through Banyan, in front of the fixture: each SDK in each of its modes, over HTTP and over stdio (AX-01).

Every run has a gateway and a fixture of its own, because the tours count and toggle things in the fixture.
"""
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import install
from clients import fidelity, inspector, tasks
from conformance.server_scenarios import MOUNT, fixture
from gateway import ROOT, Gateway, Home, beside, binary

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 110
HERE = Path(__file__).resolve().parent
AT_ONCE = 3
LIMIT = 240
CLIENTS = (("python 2.3", "auto"), ("python 2.3", "legacy"), ("python 2.3", "2026-07-28"), ("python 1.30", "legacy"),
           ("typescript 1.32", "legacy"), ("typescript 2.4", "auto"), ("typescript 2.4", "legacy"),
           ("typescript 2.4", "2026-07-28"), ("rmcp 3.9", "auto"), ("rmcp 3.9", "legacy"), ("rmcp 3.9", "2026-07-28"))
# What the client talks to: an upstream of each era, one of each transport.
UPSTREAMS = (("legacy", "stdio"), ("modern", "http"))
CHECKS_IN_A_TOUR = 18


def command(client, mode):
    """How to start a client; the arguments `http URL` or `stdio PREFIX COMMAND...` follow."""
    if client == "rmcp 3.9":
        return [beside("rmcp-peer"), mode]
    script, program = {
        "python 2.3": ("python_v2.py", install.venv_bin("modern")),
        "python 1.30": ("python_v1.py", install.venv_bin("legacy")),
        "typescript 1.32": ("typescript_v1.mjs", install.node()),
        "typescript 2.4": ("typescript_v2.mjs", install.node()),
    }[client]
    return [program, str(HERE / script), mode]


def run(report):
    """All combinations, some at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for work in (fidelity.run, inspector.run, tasks.run):
            pool.submit(report.guard, work.__module__, lambda w=work: w(report))
        for client, mode in CLIENTS:
            for upstream in UPSTREAMS:
                for transport in ("http", "stdio"):
                    # A pinned version only matters to the HTTP transport's headers; once is enough.
                    if transport == "stdio" and mode == "2026-07-28":
                        continue
                    case = (client, mode, upstream, transport)
                    name = f"clients/{client} {mode} over {transport}, upstream {'/'.join(upstream)}"
                    pool.submit(report.guard, name, lambda c=case, n=name: one(report, n, *c))


def one(report, name, client, mode, upstream, transport):
    """One client's tour."""
    with ExitStack() as stack:
        servers = {MOUNT: fixture(upstream[1], upstream[0], stack)}
        if transport == "http":
            gateway = stack.enter_context(Gateway(name, servers))
            home, arguments = gateway.home, ["http", gateway.url(MOUNT)]
        else:
            home = Home(name, servers)
            stack.callback(home.remove)
            arguments = ["stdio", MOUNT + "__", binary(), "stdio", "--from", home.file]
        env = {**home.env, "PEERS_NODE_MODULES": install.node_modules()}
        count(report, name, [*command(client, mode), *arguments], env)


def count(report, name, tour, env):
    """Runs a tour and counts its lines; checks that were never reached count as failed."""
    try:
        done = subprocess.run(tour, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
        out, err = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        out, err = (late.stdout or b"").decode(), f"still running after {LIMIT} s"
    lines = out.splitlines()
    passed = sum(line.startswith("ok ") for line in lines)
    wrong = [line for line in lines if line.startswith("FAIL ")]
    missing = CHECKS_IN_A_TOUR - passed - len(wrong)
    if missing:
        wrong.append(f"{missing} checks were not reached: {err[-1500:]}")
    report.count(name, passed, CHECKS_IN_A_TOUR - passed, "\n".join(wrong))
