"""The load generator, on its cores. Does not know what is worth asking for."""
import json
import subprocess

from .machine import OTHER_CORES, Failure, on


class Generator:
    """Runs the bench tool at this path."""

    def __init__(self, tool):
        self.tool = tool
        # Whether a call that was shed counts as answered: where figures mean nothing, others may have the machine.
        self.is_smoke = False

    def command(self, mode, port, arguments):
        return on(OTHER_CORES, [self.tool, mode, "--address", f"127.0.0.1:{port}", *arguments])

    def run(self, mode, port, arguments, timeout=60):
        """What it said when it was done."""
        done = subprocess.run(self.command(mode, port, arguments), capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise Failure(f"`bench {mode} {' '.join(arguments[:4])}` failed: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def begin(self, mode, port, arguments):
        """Lets it run."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(self.command(mode, port, arguments), text=True, **streams)

    def load(self, server, arguments, seconds):
        """Sends calls for some seconds; every one of them has to be answered, and none shed, but in a smoke test."""
        watched = ",".join(map(str, server.pids()))
        out = self.run("load", server.port, ["--watch", watched, "--seconds", str(seconds), *arguments], seconds + 60)
        if out["errors"] or out["shed"] and not self.is_smoke or not out["calls"]:
            why = out["first_error"] or out["shed_text"]
            raise Failure(f"{server.name}: {out['calls']} calls answered, {out['errors']} failed, {out['shed']} shed; the first: {why}")
        out["cpu_us"] = out["user_us"] + out["system_us"]
        return out
