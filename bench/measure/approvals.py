"""How many approvals a gate takes in a second: signatures that `ssh-keygen` has made beforehand, one at a time and several at once, beside
what one costs at least: the check of a signature, and a row of its size on the disk."""
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .gates import Client, Gate
from .machine import Failure

SECTION = "approvals"
GATED = '[gate]\nmode = "mutable"\n'
TOOL = "u0__small"
# A hundred calls of one caller may wait.
COUNT, AT_ONCE = 90, 8
ROW = 1024


def measure(stage, options, report):
    """Approvals a second, and their ratio to the floor."""
    count = 16 if options.smoke else COUNT
    least = floor(stage, count)
    report.add(SECTION, "floor", f"one signature checked, and {ROW} bytes on the disk", f"{1 / least:,.0f}/s", 1 / least)
    for build in stage.builds:
        with contextlib.ExitStack() as stack:
            people = People(stage, stack, build)
            rounds = [(people.agree(count, 1), people.agree(count, AT_ONCE)) for _ in range(options.rounds)]
            for name, seconds in zip(("one at a time", f"{AT_ONCE} at once"), map(statistics.median, zip(*rounds))):
                rate = count / seconds
                report.add(SECTION, build, name, f"{rate:,.0f}/s, {rate * least:.2f} of the floor", rate * least)


class People:
    """A gate, a person with a key who may agree, and calls."""

    def __init__(self, stage, stack, build):
        server = stage.mounts(1)["u0"]["url"]
        self.gate = Gate(stage, stack, build, f'{GATED}[mount.u0]\nurl = "{server}"\n')
        self.home = Path(self.gate.env["HOME"])
        ran = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "anna"], [stage.builds[build], "operator", "enroll", "anna", "--key", "anna.pub"]
        for command in ran:
            subprocess.run(command, check=True, cwd=self.home, env=self.gate.env, capture_output=True)
        self.calls = 0

    def agree(self, count, at_once):
        """Seconds that it took to agree to so many calls. They go out afterwards, so that others can wait."""
        clients = [Client(self.gate.port) for _ in range(at_once)]
        calls = [{"n": self.calls + at} for at in range(count)]
        self.calls += count
        proofs = [self.signed(self.held(clients[0], arguments)) for arguments in calls]

        def confirm(at):
            for approval, proof in proofs[at::at_once]:
                told = json.loads(clients[at].ask("mcpax/confirm", id=approval, proof=proof)[0])
                if told.get("result", {}).get("standing") != "released":
                    raise Failure(f"a confirmation was not taken: {told}")

        with ThreadPoolExecutor(at_once) as pool:
            began = time.perf_counter()
            list(pool.map(confirm, range(at_once)))
            took = time.perf_counter() - began
        for arguments in calls:
            clients[0].ask("tools/call", TOOL, arguments=arguments)
        return took

    def held(self, client, arguments):
        """The id of a call that waits, and what is to be signed."""
        told = json.loads(client.ask("tools/call", TOOL, arguments=arguments)[0])
        data = told.get("result", {}).get("_meta", {}).get("io.banyan/approval")
        if not data:
            raise Failure(f"a call did not wait: {told}")
        return data["id"], data["challenge"]

    def signed(self, held):
        """The id, and a proof."""
        command = ["ssh-keygen", "-q", "-Y", "sign", "-n", "banyan-approval-v1", "-f", "anna"]
        done = subprocess.run(command, input=held[1], check=True, cwd=self.home, text=True, capture_output=True)
        return held[0], done.stdout


def floor(stage, count):
    """Seconds that one takes at least."""
    said = subprocess.run(["openssl", "speed", "-seconds", "1", "ed25519"], capture_output=True, text=True, check=True).stdout
    checked = 1 / float(said.split()[-1])
    with tempfile.NamedTemporaryFile(dir=stage.work, buffering=0) as file:
        began = time.perf_counter()
        for _ in range(count):
            file.write(bytes(ROW))
            os.fdatasync(file.fileno())
        return checked + (time.perf_counter() - began) / count
