"""What the record, rules and budgets cost a call that nobody has to agree to: calls with each and without any, by turns; and how fast the
record is checked."""
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
RULES = """@id("all") permit (principal, action, resource);
@id("no-mallory") forbid (principal == Principal::"mallory", action, resource);
@id("ops-only") forbid (principal, action == Action::"call", resource in Mount::"plant") unless { principal in Group::"ops" };
"""
READING = RULES + """@id("no-etc") forbid (principal, action == Action::"call", resource)
when { context.arguments has path && context.arguments.path like "/etc/*" };
"""
SILENT = "[audit]\nenabled = false\n"
# Calls a minute can be limited to 100,000 at most, which is too few here.
BUDGET = "[budget.all]\nmax_mutable_calls_per_session = 1000000000\nmax_cost_units_per_session = 1000000000\n"
# What stands in the configuration of each, and the rules that it names.
WAYS = {
    "none": (SILENT, ""),
    "a record (arguments = \"hash\")": ("[audit]\npath = 'record'\narguments = \"hash\"\n", ""),
    "a record (arguments = \"shape\")": ("[audit]\npath = 'record'\narguments = \"shape\"\n", ""),
    "rules": (SILENT + "[policy]\nfile = 'policy.cedar'\n", RULES),
    "rules that read arguments": (SILENT + "[policy]\nfile = 'policy.cedar'\n", READING),
    "a budget": (SILENT + BUDGET, ""),
    "all of them": ("[audit]\npath = 'record'\n[policy]\nfile = 'policy.cedar'\n" + BUDGET, READING),
}
WHOLE = "all of them"


def measure(stage, options, report):
    """Ratios to a gate with none of it, and entries a second."""
    for build in stage.builds:
        with contextlib.ExitStack() as stack:
            gates = {way: begin(stage, build, way, stack) for way in WAYS}
            rounds = [{way: stage.generator.load(server, ASK, options.seconds) for way, (server, _) in gates.items()}
                      for _ in range(options.rounds)]
            median = {way: {key: statistics.median(one[way][key] for one in rounds) for key in ("rate", "cpu_us")} for way in WAYS}
            for way in list(WAYS)[1:]:
                for key, word in (("rate", "calls/s"), ("cpu_us", "CPU of a call")):
                    ratio = median[way][key] / median["none"][key]
                    report.add("record", build, f"{word} with {way}, to none", f"{ratio:.3f}", ratio)
            home = gates[WHOLE][1]
        rate, entries = checked(stage.builds[build], home / "record")
        report.add("record", build, f"verify, of {entries:,} entries", f"{rate:,.0f} entries/s", rate)


def begin(stage, build, way, stack):
    """A gate on one core that is configured like this; where it lives."""
    port, home = free_port(), Path(tempfile.mkdtemp(dir=stage.work))
    text, rules = WAYS[way]
    mounts = "".join(f"[mount.{name}]\nurl = \"{mount['url']}\"\n" for name, mount in stage.mounts(1).items())
    (home / "banyan.toml").write_text(mounts + text)
    (home / "policy.cedar").write_text(rules)
    env = {**{k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "BANYAN_"))}, "HOME": str(home)}
    command = on(GATEWAY_CORES, [stage.builds[build], "up", "--config", str(home / "banyan.toml"), "--listen", f"127.0.0.1:{port}"])
    server = stage.start(stack, f"{build}, {way}", command, port, env=env)
    end = time.monotonic() + 60
    while not ready(port):
        if time.monotonic() > end:
            raise Failure(f"{build} is not ready; see {stage.log.name}")
        time.sleep(0.02)
    return server, home


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
