"""Half as many calls again as a gateway can take: what it sheds, what the others wait, and how soon it is itself again."""
import contextlib
import subprocess
import sys

from .bounds import Verdict
from .machine import on
from .stage import GATEWAY_CORES, OTHER_CORES, UPSTREAMS

SECTION = "overload"
# More than have a call under way at any time, so that there is always one for the next.
CONNECTIONS = 2000
NORMAL = 64
# What a call costs grows with the connections it may come on, for nginx as well: the capacity is that of many.
MANY = 256
TIMES = 1.5


def measure(stage, options, report):
    for target in stage.few():
        build = target.name.removesuffix(f" {UPSTREAMS}")
        if build not in stage.builds:
            continue
        with company():
            out, normal, full, seconds = overload(stage, target, options)
        show(report, build, (normal, full), out, seconds)


@contextlib.contextmanager
def company():
    """Where load and upstream have one core between them, they could not bring more than a gateway takes. It then has half of its own."""
    if len(OTHER_CORES) > 1:
        yield
        return
    idler = subprocess.Popen(on(GATEWAY_CORES, [sys.executable, "-c", "while True: pass"]))
    try:
        yield
    finally:
        idler.kill()
        idler.wait()


def overload(stage, target, options):
    ask = ["--era", "modern", "--method", "call", "--tools", ",".join(target.names("small"))]
    normal, full = (stage.generator.load(target.server, [*ask, "--connections", str(c)], max(options.seconds, 0.1)) for c in (NORMAL, MANY))
    seconds = 0.2 if options.smoke else 20.0
    plan = ["--connections", str(1000 if options.smoke else CONNECTIONS), "--rate", str(full["rate"] * TIMES),
            "--seconds", str(seconds), "--after", str(NORMAL), "--capacity", str(full["rate"])]
    return stage.generator.run("overload", target.server.port, [*ask, *plan], 120), normal, full, seconds


def show(report, build, loops, out, seconds):
    normal, full = loops
    add = lambda name, shown, value, verdict=None: report.add(SECTION, build, name, shown, value, verdict)
    ended = out["calls"] + out["shed"]
    add(f"normal, {NORMAL} connections", f"{normal['rate']:,.0f} calls/s, p99 {normal['p99_us'] / 1000:.1f} ms", normal)
    add(f"capacity, {MANY} connections", f"{full['rate']:,.0f} calls/s", full)
    # Less than what was meant: the load generator, which shares its core with the upstream, was the limit.
    offered = ended / seconds / full["rate"]
    add(f"offered, of {TIMES} times the capacity", f"{offered:.2f} times", out)
    add("answered", f"{out['rate'] / full['rate']:.2f} of the capacity", out["rate"])
    add("shed", f"{out['shed'] / ended * 100:.1f} %", out["shed"] / ended)
    add("neither answered nor shed with a clear error", f"{out['errors']} connections", out["errors"],
        Verdict(out["first_error"] or "errors", out["errors"], "most", 0))
    add("p99 of what is admitted", f"{out['p99_us'] / 1000:.1f} ms", out["p99_us"],
        Verdict("times the normal p99", out["p99_us"] / normal["p99_us"], "most", 5))
    recovered = out["recovered_seconds"]
    add("recovered after", f"{recovered:.2f} s" if recovered is not None else "more than 5 s", recovered,
        Verdict("seconds", recovered if recovered is not None else 5.0, "most", 1))
