"""Half as many calls again as a gateway can take: what it sheds, what the others wait, and how soon it is itself again."""
from .bounds import Verdict
from .stage import UPSTREAMS

SECTION = "overload"
# More than a gateway admits, so that some are left to come.
CONNECTIONS = 5000
NORMAL = 64
TIMES = 1.5


def measure(stage, options, report):
    for target in stage.few():
        build = target.name.removesuffix(f" {UPSTREAMS}")
        if build not in stage.builds:
            continue
        ask = ["--era", "modern", "--method", "call", "--tools", ",".join(target.names("small"))]
        normal = stage.generator.load(target.server, [*ask, "--connections", str(NORMAL)], max(options.seconds, 0.1))
        seconds = 0.2 if options.smoke else 2.0
        plan = ["--connections", str(1000 if options.smoke else CONNECTIONS), "--rate", str(normal["rate"] * TIMES),
                "--seconds", str(seconds), "--after", str(NORMAL), "--capacity", str(normal["rate"])]
        out = stage.generator.run("overload", target.server.port, [*ask, *plan], 120)
        show(report, build, normal, out, seconds)


def show(report, build, normal, out, seconds):
    add = lambda name, shown, value, verdict=None: report.add(SECTION, build, name, shown, value, verdict)
    ended = out["calls"] + out["shed"]
    add("capacity", f"{normal['rate']:,.0f} calls/s, p99 {normal['p99_us'] / 1000:.1f} ms", normal)
    # Less than what was meant: the load generator, which shares its core with the upstream, was the limit.
    offered = ended / seconds / normal["rate"]
    add(f"offered, of {TIMES} times the capacity", f"{offered:.2f} times", out)
    add("answered", f"{out['rate'] / normal['rate']:.2f} of the capacity", out["rate"])
    add("shed", f"{out['shed'] / ended * 100:.1f} %", out["shed"] / ended)
    add("neither answered nor shed with a clear error", f"{out['errors']} connections", out["errors"],
        Verdict(out["first_error"] or "errors", out["errors"], "most", 0))
    add("p99 of what is admitted", f"{out['p99_us'] / 1000:.1f} ms", out["p99_us"],
        Verdict("times the normal p99", out["p99_us"] / normal["p99_us"], "most", 5))
    recovered = out["recovered_seconds"]
    add("recovered after", f"{recovered:.2f} s" if recovered is not None else "more than 5 s", recovered,
        Verdict("seconds", recovered if recovered is not None else 5.0, "most", 1))
