#!/usr/bin/env python3
"""Kills a gate under load, again and again, and looks whether its record lost what it had signed for, or a call that was answered.

    crashes.py [RUNS]       so many kills (default: 30); `$BANYAN_BIN` is the binary, else the debug build

After each kill the record has to be sound but for half a line at its end, to begin with the last checkpoint that was seen, and to hold every
call that was answered a moment before. Then the gate is started again in the same place. Prints what was found where something is missing.
"""
import itertools
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gateway import Gateway, binary  # noqa: E402
from trouble.beside import GOOD  # noqa: E402
from wire import Modern  # noqa: E402

RUNS = 30
CALLERS = 3
# What a call is written within, whatever the disk takes to sync: the gate says 50 ms.
WRITTEN_WITHIN = 1.0
CONFIG = f"[mount.good]\ncommand = {json.dumps(GOOD['command'])}\nargs = {json.dumps(GOOD['args'])}\n[audit]\npath = 'record'\n"


def cases():
    """(name, function) pairs."""
    yield "a killed gate loses nothing that it had signed for", lambda report, name: crash(report, name, RUNS)


class Pace(threading.Thread):
    """Appends to a file beside the record every 50 ms until it is told to end, and syncs nothing. Keeps by how much one of these came too late
    at most, in seconds: on a machine that is too busy to run a thread or to take a few bytes, nobody can beat that."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.directory, self.latest, self.ended = directory, 0.0, threading.Event()

    def run(self):
        with tempfile.TemporaryFile(dir=self.directory, buffering=0) as file:
            began = time.monotonic()
            while not self.ended.wait(0.05):
                file.write(b"x" * 4096)
                now = time.monotonic()
                self.latest, began = max(self.latest, now - began - 0.05), now

    def end(self):
        self.ended.set()
        self.join()
        return self.latest


class Load(threading.Thread):
    """Calls until the gate is gone; keeps the ids of the calls that were answered, and when."""

    def __init__(self, gateway, ids):
        super().__init__(daemon=True)
        self.gateway, self.ids, self.answered = gateway, ids, []

    def run(self):
        try:
            client = Modern(self.gateway.url(), timeout=10)
            tool = next(name for name in client.tools() if name.endswith("test_simple_text"))
            client._ids = self.ids
            while True:
                number = next(self.ids)
                client._ids = iter([number])
                if client.tool(tool).status == 200:
                    self.answered.append((str(number), time.monotonic()))
        except Exception:  # noqa: BLE001 - it was killed, which is what this is about
            return


def verify(directory, *more):
    """What `banyan audit verify` finds."""
    command = [binary(), "audit", "verify", str(directory), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout) if done.stdout else {"sound": False, "breaks": [{"what": done.stderr}], "chains": []}


def recorded(directory):
    """The ids of the requests that are in the record."""
    found = set()
    for file in sorted(Path(directory).glob("chain-*/entries/*.jsonl")):
        for line in file.read_bytes().split(b"\n")[:-1]:
            facts = json.loads(line)["facts"]
            intent = facts.get("intent", facts)
            if "request" in intent:
                found.add(intent["request"])
    return found


def crash(report, name, runs):
    """Kills and starts a gate `runs` times."""
    ids, chance = itertools.count(1), random.Random(runs)
    wrong, halves, calls = [], 0, 0
    with Gateway(name, {}, config=CONFIG) as gateway:
        directory = Path(gateway.home.dir) / "record"
        seen = Path(gateway.home.dir) / "seen"
        for run in range(runs):
            load = [Load(gateway, ids) for _ in range(CALLERS)]
            pace = Pace(gateway.home.dir)
            for thread in (pace, *load):
                thread.start()
            time.sleep(chance.uniform(0.3, 2.5))
            checkpoint = next(directory.glob("chain-*/checkpoint"), None)
            if checkpoint:
                seen.write_bytes(checkpoint.read_bytes())
            gateway.kill()
            killed = time.monotonic()
            for caller in load:
                caller.join(15)
            within = WRITTEN_WITHIN + 2 * pace.end()
            found = verify(directory, *(["--seen", str(seen)] if checkpoint else []))
            halves += any("behind the last whole line" in b["what"] for b in found["breaks"])
            wrong += [f"run {run}: {b}" for b in found["breaks"] if "behind the last whole line" not in b["what"]]
            wrong += [f"run {run}: another chain began" for _ in found["chains"][1:]]
            answered = {number for caller in load for number, at in caller.answered if at < killed - within}
            calls += len(answered)
            wrong += [f"run {run}: call {number} was answered and is not recorded" for number in sorted(answered - recorded(directory))]
            gateway.start()
            found = verify(directory)
            wrong += [f"run {run}, started again: {b}" for b in found["breaks"]]
    detail = "\n".join(wrong[:20])
    report.check(f"{name} ({runs} kills, {calls} calls answered before, {halves} half lines)", not wrong and calls > 0, detail)


if __name__ == "__main__":
    from report import Report

    outcome = Report()
    crash(outcome, "crashes", int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
    sys.exit(outcome.finish())
