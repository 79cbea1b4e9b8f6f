"""What the record costs: calls with it and without it, by turns, and how fast it is written and checked."""
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from .machine import GATEWAY_CORES, Failure, free_port, on
from .stage import ready

ASK = ["--era", "modern", "--method", "call", "--tools", "u0__small", "--connections", "8"]
WAYS = {"without": "enabled = false", "hash": "arguments = \"hash\"", "shape": "arguments = \"shape\""}


def measure(stage, options, report):
    """Ratios to a gate that records nothing, and entries a second."""
    for build in stage.builds:
        with contextlib.ExitStack() as stack:
            gates = {way: begin(stage, build, text, stack) for way, text in WAYS.items()}
            rounds = [{way: stage.generator.load(server, ASK, options.seconds) for way, (server, _) in gates.items()}
                      for _ in range(options.rounds)]
            median = {way: {key: statistics.median(one[way][key] for one in rounds) for key in ("rate", "cpu_us")} for way in WAYS}
            for way in ("hash", "shape"):
                for key, word in (("rate", "calls/s"), ("cpu_us", "CPU of a call")):
                    ratio = median[way][key] / median["without"][key]
                    report.add("record", build, f"{word} with arguments = \"{way}\", to none", f"{ratio:.3f}", ratio)
            directory = gates["shape"][1]
        rate, entries = checked(stage.builds[build], directory)
        report.add("record", build, f"verify, of {entries:,} entries", f"{rate:,.0f} entries/s", rate)


def begin(stage, build, text, stack):
    """A gate on one core that records like this; where it records."""
    port, home = free_port(), tempfile.mkdtemp(dir=stage.work)
    directory, config = Path(home) / "record", Path(home) / "banyan.toml"
    mounts = "".join(f"[mount.{name}]\nurl = \"{mount['url']}\"\n" for name, mount in stage.mounts(1).items())
    config.write_text(f"{mounts}[audit]\npath = '{directory}'\n{text}\n")
    env = {**{k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "BANYAN_"))}, "HOME": home}
    command = on(GATEWAY_CORES, [stage.builds[build], "up", "--config", str(config), "--listen", f"127.0.0.1:{port}"])
    server = stage.start(stack, f"{build}, {text}", command, port, env=env)
    end = time.monotonic() + 60
    while not ready(port):
        if time.monotonic() > end:
            raise Failure(f"{build} is not ready; see {stage.log.name}")
        time.sleep(0.02)
    return server, directory


def checked(binary, directory):
    """Entries a second that `verify` reads, and how many there were."""
    began = time.monotonic()
    done = subprocess.run([binary, "audit", "verify", str(directory), "--json"], capture_output=True, text=True, timeout=600)
    took = time.monotonic() - began
    report = json.loads(done.stdout)
    if not report["sound"]:
        raise Failure(f"the record is not sound: {report['breaks']}")
    entries = sum(chain["size"] - chain["first"] for chain in report["chains"])
    return entries / took, entries
