"""What a gateway keeps in memory: by itself, for a session, for a stream, and for a large result while it passes."""
import contextlib

from .bounds import Verdict
from .machine import Failure
from .stage import Target

KIB, MIB = 1 << 10, 1 << 20
SECTION = "memory"


def measure(stage, options, report):
    many, warm = (1000, 100) if options.smoke else (10_000, 500)
    streams = 100 if options.smoke else 1000
    for build in stage.builds:
        with contextlib.ExitStack() as stack:
            mounts = stage.mounts()
            target = Target(build, stage.banyan(build, mounts, stack=stack), len(mounts))
            add = lambda name, value, unit, most=None: report.add(
                SECTION, build, name, f"{value / (KIB if unit == 'KiB' else MIB):.1f} {unit}", value,
                most and Verdict(name, value / (KIB if unit == "KiB" else MIB), "most", most, unit))
            add("process without clients", target.server.memory(), "MiB", 20)
            # The first sessions also fill what the allocator held free: only those behind them show what one costs.
            stack.enter_context(sessions(stage.generator, target, warm, False))
            before = target.server.memory()
            stack.enter_context(sessions(stage.generator, target, many, False))
            add(f"a session, of {many:,}", (target.server.memory() - before) / many, "KiB", 4)
            add(f"{many:,} sessions and {streams:,} busy streams", busy(stage.generator, target, streams), "MiB", 150)
            before = target.server.memory()
            stack.enter_context(sessions(stage.generator, target, streams, True))
            add(f"a session with its stream, of {streams:,}", (target.server.memory() - before) / streams, "KiB")
            # Last, because what it leaves free would hide the sessions.
            add("more at the peak of a 50 MB result", large(stage.generator, target), "MiB", 2)


@contextlib.contextmanager
def sessions(generator, target, count, streams):
    """Sessions, open as long as this is."""
    holder = generator.begin("sessions", target.server.port, ["--count", str(count), *(["--streams"] if streams else [])])
    try:
        if holder.stdout.readline().strip() != "ready":
            raise Failure(f"{count} sessions with {target.server.name} could not be opened: {holder.stderr.read().strip()}")
        yield
    finally:
        holder.stdin.close()
        holder.wait(10)


def busy(generator, target, count):
    """Bytes at the worst moment of calls whose streams say something now and then, all under way at once."""
    target.server.forget_peak()
    out = generator.run("load", target.server.port, [
        "--era", "modern", "--method", "call", "--cold", "--tools", ",".join(target.names("busy")), "--progress", "10",
        "--connections", str(count), "--calls", str(count)])
    if out["errors"] or out["calls"] != count:
        raise Failure(f"{count} busy streams through {target.server.name}: {out['calls']} ended well; {out['first_error'] or out['shed_text']}")
    return target.server.peak()


def large(generator, target):
    """Bytes above what was resident, at the worst moment of a 50 MB result. The second one counts: caches are warm."""
    ask = ["--era", "modern", "--method", "call", "--cold", "--tools", target.names("huge")[0], "--connections", "1", "--calls", "1"]
    for _ in range(2):
        before = target.server.memory()
        target.server.forget_peak()
        out = generator.run("load", target.server.port, ask)
        if out["errors"]:
            raise Failure(f"a 50 MB result through {target.server.name}: {out['first_error']}")
    return max(target.server.peak() - before, 0)
