"""The suite's client scenarios, driven through Banyan's upstream leg (`client_command.py`).

Every scenario that a revision requires of a client, those of the first OAuth revision, and those of release 0.1.16. What is not scored in any
revision (client credentials, DPoP, workload identity, skills) is left out. `expected/clients.json` pins the
scenarios that do not pass, each with its reason.
"""
import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conformance.suite import EXPECTED, command

COMMAND = Path(__file__).resolve().parent / "client_command.py"
AT_ONCE = 3
SETS = ("0.1", "2025-03-26", "2025-11-25", "2026-07-28")
DOWN = ("legacy", "modern")


def scenarios(suite):
    """The client scenarios of a set, in the suite's order."""
    frozen = suite in ("2025-11-25", "2026-07-28")
    wanted = ["list", "--requirements", suite] if frozen else ["list", "--client"]
    listed = subprocess.run([*command(suite), *wanted], capture_output=True, text=True, check=True).stdout
    if not frozen:
        every = re.findall(r"^  - (\S+) \[(.*)\]", listed, re.M)
        return [name for name, tags in every if (tags != "extension" if suite == "0.1" else tags == suite)]
    required = listed.split("\nClient scenarios")[1].split("\n\n")[0]
    late = re.findall(r"- (json-schema-2020-12-preservation) \[client\]", listed)
    return re.findall(r"^  - (\S+)", required, re.M) + late


def run(report):
    """All scenarios of all sets: each with both eras downstream, save the `auth/` ones, which never look there."""
    pins = json.loads((EXPECTED / "clients.json").read_text())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for suite in SETS:
            for scenario in scenarios(suite):
                for down in ("legacy",) if scenario.startswith("auth/") else DOWN:
                    name = f"conformance/client/{suite}/{scenario}/{down}"
                    pool.submit(report.guard, name, lambda a=(suite, scenario, down), n=name: one(report, pins, n, *a))


def one(report, pins, name, suite, scenario, down):
    """One scenario; it counts as its checks, plus one for the suite's own verdict."""
    line = shlex.join([sys.executable, str(COMMAND), "--down", down])
    arguments = [*command(suite), "client", "--command", line, "--scenario", scenario, "--timeout", "45000"]
    if suite != "0.1":
        arguments += ["--spec-version", suite]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    found = re.search(r"Passed: (\d+)/(\d+), (\d+) failed, (\d+) warnings", text)
    passed, failed = (int(found[1]), int(found[3])) if found else (0, 1)
    fine = found is not None and done.returncode == 0
    pin = pins.get(suite, {}).get(scenario)
    if pin and not fine:
        wanted_passed, wanted_failed, why = pin
        held = passed >= wanted_passed and failed <= wanted_failed and bool(why)
        report.count(f"{name} (pinned: {why})", passed, 0 if held else 1, text[-3000:])
        return
    if pin:
        report.check(f"{name}", False, "passes although expected/clients.json pins a failure: remove the pin")
        return
    report.count(name, passed, 0 if fine else max(failed, 1), "" if fine else digest(text))


def digest(text):
    """The end of what the suite printed: its verdict, failed checks and what the client said."""
    verdict = text.find("Test Results:")
    client = text.find("Client exited with code")
    said = text[client:client + 3000] if client >= 0 else ""
    return (said + "\n" + text[verdict:])[-6000:] if verdict >= 0 else text[-3000:]
