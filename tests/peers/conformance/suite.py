#!/usr/bin/env python3
"""Runs the official MCP conformance suite and reads its summary.

By hand, against any streamable-HTTP endpoint (name it `localhost`: one scenario insists):

    suite.py URL [--prefix P] [--sets 0.1,2025-11-25,2026-07-28] [--scenario NAME] [--out DIR]

Sets: `0.1` is release 0.1.16's default suite; the others are the frozen requirements of that revision in
0.2.0-alpha.12. Decides nothing: `checks.py` compares with `expected/`.
"""
import argparse
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import install

SETS = ("0.1", "2025-11-25", "2026-07-28")
EXPECTED = Path(__file__).resolve().parent / "expected"


@dataclass
class Outcome:
    """Checks passed and failed for each scenario, which scenarios are not scored, and what was printed."""

    rows: dict
    unscored: set = field(default_factory=set)
    text: str = ""


def command(name):
    """The suite's program for a set."""
    package = "conformance-0.1" if name == "0.1" else "conformance-0.2"
    return [install.node(), install.node_modules(package, "dist", "index.js")]


def run_server_set(name, url, scenario=None, out=None):
    """One set of server scenarios against an endpoint."""
    arguments = [*command(name), "server", "--url", url]
    if scenario:
        arguments += ["--scenario", scenario] + (["--spec-version", name] if name != "0.1" else [])
    elif name != "0.1":
        arguments += ["--requirements", name]
    if out:
        arguments += ["-o", str(Path(out) / name)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    text = done.stdout + done.stderr
    rows = {m[1]: (int(m[2]), int(m[3]))
            for m in re.finditer(r"^[✓✗] ([\w/.-]+): (\d+) passed, (\d+) failed", text, re.M)}
    if scenario and not rows and (m := re.search(r"Passed: (\d+)/(\d+), (\d+) failed", text)):
        rows[scenario] = (int(m[1]), int(m[3]))
    return Outcome(rows, set(re.findall(r"^  [✓✗] ([\w/.-]+) \(", text, re.M)), text)


def load_expected(name):
    """The pinned rows of `expected/NAME.json`, laid over those of the fixture itself.

    A row below the fixture's own must give its reason: `"scenario": [passed, failed, "why"]`.
    """
    bar = json.loads((EXPECTED / "fixture.json").read_text())
    if name == "fixture":
        return bar
    for suite, rows in json.loads((EXPECTED / f"{name}.json").read_text()).items():
        for scenario, (passed, failed, why) in rows.items():
            if not why or scenario not in bar.get(suite, {}):
                raise ValueError(f"expected/{name}.json: {suite}/{scenario} needs a reason and a known name")
            bar[suite][scenario] = [passed, failed]
    return bar


def compare(outcome, expected):
    """(checks that hold, checks that do not, one line for each scenario below its row)."""
    held = broken = 0
    lines = []
    for scenario, (passed, failed) in expected.items():
        got = outcome.rows.get(scenario)
        if got is None:
            broken += passed
            lines.append(f"{scenario}: did not run")
            continue
        short = max(passed - got[0], got[1] - failed, 0)
        held += got[0]
        broken += short
        if short:
            lines.append(f"{scenario}: {got[0]} passed, {got[1]} failed; expected {passed} and {failed}")
    return held, broken, lines


def better(outcome, name, suite):
    """Scenarios that do better than their pin in `expected/NAME.json`, which should then be raised."""
    pins = {} if name == "fixture" else json.loads((EXPECTED / f"{name}.json").read_text()).get(suite, {})
    return [s for s, (p, f, _) in pins.items() if s in outcome.rows and (outcome.rows[s][0] > p or outcome.rows[s][1] < f)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--scenario")
    parser.add_argument("--out")
    options = parser.parse_args()
    url = options.url
    if options.prefix:
        from conformance.shim import Shim
        url = Shim(options.url, options.prefix).start()
    failed = 0
    for name in options.sets.split(","):
        outcome = run_server_set(name, url, options.scenario, options.out)
        if options.scenario or not outcome.rows:
            print(outcome.text)
        for scenario, (passed, wrong) in outcome.rows.items():
            note = "   (not scored)" if scenario in outcome.unscored else ""
            print(f"{scenario}: {passed} passed, {wrong} failed{note}")
        scored = [row for scenario, row in outcome.rows.items() if scenario not in outcome.unscored]
        failed += sum(row[1] for row in scored) + (not scored)
        print(f"set {name}: {sum(row[0] for row in scored)} passed, {sum(row[1] for row in scored)} failed\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
