#!/usr/bin/env python3
"""Runs the peer tests: real clients, real servers and the official suite, through the built binary.

    run.py [GROUP...]       groups: conformance, clients, servers, tree, audit, rooms, console, trouble, approvals, pins,
                            secret_service, network, agents, devices, context (default: all)

Installs the pinned peers into `.peers/` first. The binary is `$BANYAN_BIN`, else `target/debug/banyan`. Several groups run in two lanes, each
group in a process of its own, and what a group printed is shown when it ends. A group's `checks.py` states how many seconds it may
take (`BUDGET`); one that takes longer is named at the end, and fails nothing. A group in a lane that takes `PATIENCE` times as long hangs:
it fails, with the stacks of its threads in its text, and the others go on. The last line is `N passed, N failed`.
"""
import faulthandler
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import install

LANES = 2
PATIENCE = 4

GROUPS = ("conformance", "clients", "servers", "tree", "audit", "rooms", "console", "trouble", "approvals", "pins", "secret_service",
          "network", "agents", "devices", "context")


def main():
    groups = sys.argv[1:] or GROUPS
    unknown = [g for g in groups if g not in GROUPS]
    if unknown:
        sys.exit(f"unknown group {unknown[0]}; there are {', '.join(GROUPS)}")
    python = install.venv_bin("modern")
    if os.path.realpath(sys.prefix) != os.path.realpath(install.PEERS / "modern"):
        try:
            install.install()
        except install.InstallError as error:
            sys.exit(f"run.py: {error}")
        os.execv(python, [python, os.path.abspath(__file__), *groups])
    sys.exit(run(groups))


def run(groups):
    from gateway import binary

    if not os.access(binary(), os.X_OK):
        sys.exit(f"run.py: no binary at {binary()}; run `cargo build` first, or set BANYAN_BIN")
    return alone(groups[0]) if len(groups) == 1 else in_lanes(groups)


def alone(group):
    """Runs one group in this process."""
    from report import Report

    faulthandler.register(signal.SIGUSR1, sys.stdout, all_threads=True)
    report = Report()
    started = time.monotonic()
    checks = importlib.import_module(f"{group}.checks")
    report.guard(group, lambda: checks.run(report))
    took = time.monotonic() - started
    print(f"--- peers: {group} took {took:.0f} s of {checks.BUDGET} s{': OVER ITS BUDGET' if took > checks.BUDGET else ''}", flush=True)
    return report.finish()


def in_lanes(groups):
    """Runs every group in a process of its own, the longest first."""
    printing, started = threading.Lock(), time.monotonic()

    def one(group):
        with printing:
            print(f"--- peers: {group} begins ({time.monotonic() - started:.0f} s)", flush=True)
        status, text = apart(group, PATIENCE * budget(group))
        counted = re.search(r"(\d+) passed, (\d+) failed\s*\Z", text)
        passed, failed = map(int, counted.groups()) if counted else (len(re.findall(r"^ *[0-9.]+s ok ", text, re.M)), 1)
        with printing:
            print(text, end="", flush=True)
        return group, passed, max(failed, int(status != 0)), "OVER ITS BUDGET" in text

    longest_first = sorted(groups, key=lambda group: -budget(group))
    with ThreadPoolExecutor(LANES) as lanes:
        ended = list(lanes.map(one, longest_first))
    for group, _, failed, is_over in ended:
        if failed or is_over:
            print(f"--- peers: {group}: {failed} failed{', over its budget' if is_over else ''}")
    print(f"--- peers: all took {time.monotonic() - started:.0f} s in {LANES} lanes", flush=True)
    failed = sum(failed for _, _, failed, _ in ended)
    print(f"{sum(passed for _, passed, _, _ in ended)} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def budget(group):
    return importlib.import_module(f"{group}.checks").BUDGET


def apart(group, limit):
    """Runs a group in a process of its own for `limit` seconds at most. Returns its status and its text."""
    with tempfile.TemporaryFile("w+", errors="replace") as kept:
        child = subprocess.Popen([sys.executable, os.path.abspath(__file__), group], stdout=kept, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGUSR1)
            time.sleep(2)
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            kept.seek(0, os.SEEK_END)
            kept.write(f"\nFAILED {group}: ended after {limit} s, in which it did not; above are the stacks of its threads\n")
            kept.flush()
        kept.seek(0)
        return child.returncode, kept.read()


if __name__ == "__main__":
    main()
