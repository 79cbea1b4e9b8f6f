#!/usr/bin/env python3
"""Runs the peer tests: real clients, real servers and the official suite, through the built binary.

    run.py [GROUP...]       groups: conformance, clients, servers, tree, audit, rooms, console, trouble, approvals, pins,
                            secret_service (default: all, in this order)

Installs the pinned peers into `.peers/` first. The binary is `$BANYAN_BIN`, else `target/debug/banyan`.
The last line is `N passed, N failed`.
"""
import importlib
import os
import sys
import time

import install

GROUPS = ("conformance", "clients", "servers", "tree", "audit", "rooms", "console", "trouble", "approvals", "pins", "secret_service")


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
    from report import Report

    if not os.access(binary(), os.X_OK):
        sys.exit(f"run.py: no binary at {binary()}; run `cargo build` first, or set BANYAN_BIN")
    report = Report()
    for group in groups:
        started = time.monotonic()
        print(f"--- peers: {group}", flush=True)
        report.guard(group, lambda: importlib.import_module(f"{group}.checks").run(report))
        print(f"--- peers: {group} took {time.monotonic() - started:.0f} s", flush=True)
    return report.finish()


if __name__ == "__main__":
    main()
