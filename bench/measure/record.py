"""What the record, rules and budgets cost a call that nobody has to agree to: calls with each and without any, by turns; and how fast the
record is written and checked, beside what its bytes cost at least."""
import contextlib
import hashlib
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
WHOLE, HASHED = "all of them", "a record (arguments = \"hash\")"
# Lines of one write, and writes before the disk has to have them: some second's worth.
LINES, WRITES = 256, 64


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
            records = {way: home / "record" for way, (_, home) in gates.items()}
            cost = median[HASHED]["cpu_us"] - median["none"]["cpu_us"]
        rate, entries = checked(stage.builds[build], records[WHOLE])
        (_, written), (hashed, _) = floor(records[HASHED]), floor(records[WHOLE])
        report.add("record", build, "an entry's CPU, to SHA-256 and a bare write of its bytes", f"{cost:.2f} us, {cost / written:.1f} times", cost / written)
        report.add("record", build, f"verify, of {entries:,} entries", f"{rate:,.0f} entries/s, {rate * hashed / 1e6:.2f} of SHA-256 alone", rate)


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


def floor(directory):
    """Microseconds of processor time that an entry takes at least: to be hashed once, and to be hashed and written."""
    lines = [line for file in sorted(directory.glob("chain-*/entries/*.jsonl")) for line in file.read_bytes().splitlines(keepends=True)]
    parts = [b"".join(lines[at:at + LINES]) for at in range(0, len(lines), LINES)]
    began = time.process_time()
    for part in parts:
        hashlib.sha256(part)
    hashed = time.process_time()
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for at, part in enumerate(parts):
            file.write(part)
            if at % WRITES == 0:
                os.fdatasync(file.fileno())
        os.fdatasync(file.fileno())
    written = time.process_time()
    return (hashed - began) * 1e6 / len(lines), (written - began) * 1e6 / len(lines)


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
