"""Whether the cost of a call grows with what is mounted, and what a second core brings."""
import contextlib

from .bounds import Verdict
from .machine import CORES, GATEWAY_CORES
from .stage import Target
from .workload import rounds

CONNECTIONS = 16
# More names than these would measure the load generator, which keeps a request ready for each.
CALLED = 10


def mounts(stage, options, report):
    """Calls a second with 1 to 1,000 mounts."""
    counts = (1, 10) if options.smoke else (1, 10, 100, 1000)
    grow(stage, options, report, "mounts", {n: (stage.mounts(n), names_of_mounts(n)) for n in counts})


def tools(stage, options, report):
    """Calls a second with 10 to 100,000 tools."""
    counts = (10, 1000) if options.smoke else (10, 1000, 100_000)
    grow(stage, options, report, "tools in the table", {n: (stage.mounts(1, n), names_of_tools(n)) for n in counts})


def names_of_mounts(count):
    """Tools of some mounts, from the first to the last."""
    return [f"u{i}__small" for i in spread(count)]


def names_of_tools(count):
    """Some tools, from the first to the last. The upstream has seven with names of their own."""
    return ["u0__small", *(f"u0__tool_{i:05}" for i in spread(count - 7))][:CALLED]


def spread(count):
    """Up to `CALLED` numbers below `count`, evenly."""
    return sorted({i * (count - 1) // (CALLED - 1) for i in range(CALLED)})


def grow(stage, options, report, section, cases):
    for build in stage.builds:
        with contextlib.ExitStack() as stack:
            running = {n: (stage.banyan(build, servers, stack=stack), names) for n, (servers, names) in cases.items()}
            measure = lambda case: stage.generator.load(case[0], calling(case[1]), options.seconds)
            found = rounds(running, options.rounds, measure)
        least = found[min(found)]
        for n, figures in found.items():
            # The gateway's core is what limits calls a second, and its time is what others on the machine disturb least.
            ratio = least["cpu_us"] / figures["cpu_us"]
            shown = f"{figures['rate']:,.0f} calls/s, {figures['cpu_us']:.1f} us CPU, {ratio:.2f}"
            verdict = Verdict(f"calls in the CPU time of those with {min(found)}", ratio, "least", 0.9) if n > min(found) else None
            report.add(section, build, f"{n:,}", shown, figures, verdict)


def calling(names):
    return ["--era", "modern", "--method", "call", "--connections", str(CONNECTIONS), "--tools", ",".join(names)]


def workers(stage, options, report):
    """Two cores beside one: in calls a second, or where there are too few cores, in CPU time for each call with the same load for each."""
    for build in stage.builds:
        with contextlib.ExitStack() as stack:
            servers = stage.mounts()
            one = Target(build, stage.banyan(build, servers, GATEWAY_CORES, stack), len(servers))
            two = Target(build, stage.banyan(build, servers, CORES[:2], stack), len(servers))
            arguments = calling(one.names("small"))
            alone = rounds({1: one}, options.rounds, lambda t: stage.generator.load(t.server, arguments, options.seconds))[1]["rate"]
            spare = len(CORES) >= 4
            # A worker that has less to do sleeps more often, and each waking costs: that is no price of a second one.
            rate = lambda target: [] if spare else ["--rate", str(alone * (0.4 if target is two else 0.2))]
            found = rounds({1: one, 2: two}, options.rounds, lambda t: stage.generator.load(t.server, [*arguments, *rate(t)], options.seconds))
        gain = found[2]["rate"] / found[1]["rate"] if spare else 2 * found[1]["cpu_us"] / found[2]["cpu_us"]
        cpu = " and ".join(f"{found[n]['cpu_us']:.1f}" for n in (1, 2))
        name = "two cores do so many times the work of one" if spare else "two cores would do, by their CPU time"
        report.add("workers", build, name, f"{gain:.2f} ({cpu} us CPU)", {"gain": gain, "one": found[1], "two": found[2]},
                   Verdict("times", gain, "least", 1.8))
