#!/usr/bin/env python3
"""Runs the peer tests: real clients, real servers and the official suite, through the built binary.

    run.py [GROUP...]       groups: conformance, clients, servers, tree, audit, rooms, console, trouble, approvals, pins,
                            secret_service, network (default: all)

Installs the pinned peers into `.peers/` first. The binary is `$BANYAN_BIN`, else `target/debug/banyan`. Several groups run in two lanes, each
group in a process of its own, and what a group printed is shown when it ends. A group's `checks.py` states how many seconds it may
take (`BUDGET`); one that takes longer is named at the end, and fails nothing. The last line is `N passed, N failed`.
"""
import importlib
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import install

LANES = 2

GROUPS = ("conformance", "clients", "servers", "tree", "audit", "rooms", "console", "trouble", "approvals", "pins", "secret_service",
          "network", "agents")


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
        child = subprocess.run([sys.executable, os.path.abspath(__file__), group], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        counted = re.search(r"(\d+) passed, (\d+) failed\s*\Z", child.stdout)
        passed, failed = map(int, counted.groups()) if counted else (0, 1)
        with printing:
            print(child.stdout, end="", flush=True)
        return group, passed, max(failed, int(child.returncode != 0)), "OVER ITS BUDGET" in child.stdout

    longest_first = sorted(groups, key=lambda group: -importlib.import_module(f"{group}.checks").BUDGET)
    with ThreadPoolExecutor(LANES) as lanes:
        ended = list(lanes.map(one, longest_first))
    for group, _, failed, is_over in ended:
        if failed or is_over:
            print(f"--- peers: {group}: {failed} failed{', over its budget' if is_over else ''}")
    print(f"--- peers: all took {time.monotonic() - started:.0f} s in {LANES} lanes", flush=True)
    failed = sum(failed for _, _, failed, _ in ended)
    print(f"{sum(passed for _, passed, _, _ in ended)} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    main()
