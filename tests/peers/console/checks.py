"""The console: what is built into the binary is what its sources make, and it does in a real browser what docs/console.md says.

Drives Chromium over playwright-core (`tour.mjs`), in front of a gate with a server that can be killed. With `CONSOLE_SHOTS=DIR` it also
leaves pictures of every view in both themes there, for people to look at; with `CONSOLE_SLOW=N` the browser takes N times as long. `agreeing.mjs` is the way of one dangerous call, from a program to the record;
`two.mjs` is where two people have to agree to it.
"""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import install
from approvals.checks import Held
from gateway import ROOT, Gateway, binary

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 270
HERE = Path(__file__).resolve().parent
DIST = ROOT / "console" / "dist"
# 90 KiB of it are two fonts.
LARGEST = 224 << 10
LIMIT = 1200
RULES = """
@id("everybody-may")
permit (principal, action, resource);

@id("no-z")
@description("Nobody wipes z.")
@remedy("ask in #disks")
forbid (principal, action == Action::"call", resource) when { context.arguments has disk && context.arguments.disk == "z" };

@id("no-b-soon")
@mode("shadow")
forbid (principal, action == Action::"call", resource) when { context.arguments has disk && context.arguments.disk == "b" };
"""
MORE = """
[policy]
file = "{rules}"

[mount.next]
url = "{next}"

[budget.disks]
principals = ["*"]
max_mutable_calls_per_session = 5
"""


ROOMS = """
[audit]
[rooms.limits]
messages_at_once = 10000
[room.ops]
[room.lab]
access = "private"
[room.lab.limits]
history = 20
[participant.bot]
token = "${env:BOT}"
rooms = ["ops"]
[participant.files]
token = "${env:FILES}"
rooms = ["ops"]
"""


def run(report):
    """All of it, one after the other: a browser wants the machine for itself."""
    tool = report.guard("console/install", install.console)
    if tool:
        report.guard("console/built", lambda: built(report, tool))
        report.guard("console/units", lambda: units(report, tool))
    browser = install.chromium()
    if report.check("console/browser", browser, "no Chromium: install it (apt-get install chromium)"):
        report.guard("console/tour", lambda: tour(report, browser))
        report.guard("console/agreeing", lambda: agreeing(report, browser))
        report.guard("console/two", lambda: two(report, browser))
        report.guard("console/meeting", lambda: meeting(report, browser))


def built(report, tool):
    """The sources type-check, and make the files that are built in, byte for byte."""
    checked = node(tool("typescript", "bin", "tsc"), "--noEmit", "-p", ".")
    report.check("console/built: the sources type-check", checked.returncode == 0, checked.stdout[-2000:])
    with tempfile.TemporaryDirectory(prefix="banyan-console-") as made:
        done = node(tool("vite", "bin", "vite.js"), "build", "--logLevel", "error", env={"CONSOLE_OUT": made})
        report.check("console/built: the sources are built", done.returncode == 0, (done.stdout + done.stderr)[-2000:])
        report.equal("console/built: the same files", names(Path(made)), names(DIST))
        for name in names(DIST):
            # Compressors differ between machines, what they hold must not.
            same = held(Path(made, name)) == held(DIST / name)
            report.check(f"console/built: {name} is what its sources make", same, "run `npm ci && npm run build` in console/ and commit dist/")
    size = sum(file.stat().st_size for file in DIST.iterdir())
    report.check("console/built: it is small", size < LARGEST, f"{size} bytes")


def names(directory):
    return sorted(file.name for file in directory.iterdir())


def held(file):
    raw = file.read_bytes()
    return gzip.decompress(raw) if file.suffix == ".gz" else raw


def units(report, tool):
    """The tests of what the console decides by itself."""
    with tempfile.TemporaryDirectory(prefix="banyan-console-") as made:
        file = Path(made, "result.json")
        done = node(tool("vitest", "vitest.mjs"), "run", "--config", "vite.config.js", "--reporter=json", f"--outputFile={file}")
        result = json.loads(file.read_text()) if file.exists() else {"testResults": [], "numPassedTests": 0, "numFailedTests": 1}
    wrong = [f"{t['fullName']}: {t['failureMessages']}" for f in result["testResults"] for t in f["assertionResults"] if t["status"] != "passed"]
    wrong += [f["message"] for f in result["testResults"] if f["message"]]
    report.count("console/units", result["numPassedTests"], max(len(wrong), result["numFailedTests"]), "\n".join(wrong) or done.stderr[-2000:])


def node(*command, env=None):
    return subprocess.run([install.node(), *command], cwd=ROOT / "console", env={**os.environ, **(env or {})},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)


def tour(report, browser):
    """What a person does in it, and what it must not do."""
    with tempfile.TemporaryDirectory(prefix="banyan-console-") as work:
        process = os.path.join(work, "lab.pid")
        lab = [{"command": install.venv_bin("modern"), "args": [str(HERE / "lab.py"), file]} for file in (process, os.path.join(work, "calm.pid"))]
        servers = {"calm": lab[1], "lab": lab[0], "missing": {"command": "there-is-no-such-program"}}
        closed = '[[token]]\nname = "ci"\nsha256 = "' + "0" * 64 + '"\n'
        with Gateway("console", servers) as gate, Gateway("console closed", {}, config=closed) as shut:
            given = {"LAB_PID": process, "CLOSED": f"http://localhost:{shut.port}", "CLOSED_HOME": shut.home.dir}
            relay(report, "tour", gate, browser, {"PROFILE": work, **given})


def agreeing(report, browser):
    """A program calls, a person agrees with a passkey, and it goes out once (AX-45, AX-46).

    Nothing of it is played, but for the finger on the key.
    """
    with tempfile.TemporaryDirectory(prefix="banyan-console-") as work:
        rules = Path(work, "rules.cedar")
        rules.write_text(RULES)
        lab = {"lab": {"command": install.venv_bin("modern"), "args": [str(HERE / "lab.py"), str(Path(work, "next.pid"))]}}
        with Gateway("console next", lab) as below, Held("console agreeing", expires="300s", more=MORE.format(rules=rules, next=below.url())) as held:
            key = held.enroll("bert")
            held.banyan("grants", "add", "disk.wipe", "--caller", "local", "--arg", "disk=tmp-*", "--uses", "2", "--key", str(key), "--yes")
            relay(report, "agreeing", held.gateway, browser, {"PROFILE": work, "PYTHON": sys.executable, "WIPED": held.log,
                                                                 "NEXT": str(below.process.pid), "NEXT_HOME": below.home.dir})


def two(report, browser):
    """Where two people have to agree, each signs in a browser of its own: for one call, and for a grant (AX-46)."""
    with tempfile.TemporaryDirectory(prefix="banyan-console-") as work, Held("console two", expires="300s", approvals=2) as held:
        relay(report, "two", held.gateway, browser, {"PROFILE": work, "PYTHON": sys.executable, "WIPED": held.log})


def meeting(report, browser):
    """Two people, an agent and the owner of a tool in one room (MX-17, MX-22, MX-23, MX-24)."""
    with tempfile.TemporaryDirectory(prefix="banyan-console-") as work:
        env = {"BOT": "bot-secret", "FILES": "files-secret"}
        with Gateway("console meeting", {}, env=env, config=ROOMS) as gate:
            puppet = {"PYTHON": install.venv_bin("modern"), "PUPPET": str(HERE.parent / "rooms" / "puppet.py"), "PYTHONPATH": str(HERE.parent)}
            relay(report, "meeting", gate, browser, {"PROFILE": work, **puppet})


def relay(report, name, gate, browser, given, script=None):
    """Takes a tour of a gate, and passes on what it prints: `ok NAME`, `FAIL NAME: WHY`, and at last `N checks`."""
    command = [install.node(), str(script or HERE / f"{name}.mjs")]
    known = {"PEERS_NODE_MODULES": install.node_modules(), "CHROMIUM": browser, "BANYAN": binary(), "GATE": str(gate.process.pid)}
    env = {**gate.home.env, **known, **given}
    try:
        done = subprocess.run(command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
        out, err = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        out, err = (late.stdout or b"").decode(), f"still running after {LIMIT} s"
    for line in out.splitlines():
        found = re.match(r"(ok) (.+)$|(FAIL) (.+?): (.*)$", line)
        if found:
            report.check(f"console/{found[2] or found[4]}", found[1], found[5] or "")
    reached = sum(line.startswith(("ok ", "FAIL ")) for line in out.splitlines())
    report.check(f"console/{name}: it reached its end", out.rstrip().endswith(f"{reached} checks"), err[-3000:])
