"""The workloads: what is sent, to which targets, and the bounds of it. Rounds are interleaved: targets take turns."""
import statistics
from dataclasses import dataclass, field

from .bounds import Bound, judge
from .machine import Failure
from .stage import MANY_TOOLS, UPSTREAMS

KEYS = ("rate", "p50_us", "p99_us", "p999_us", "first_byte_us", "user_us", "system_us", "cpu_us")
SMALL = (Bound("rate", "least", 0.85), Bound("cpu_us", "most", 1.3), Bound("p99_us", "most", 1.3))
BYTES = (Bound("rate", "least", 0.9),)


@dataclass(frozen=True)
class Workload:
    name: str
    connections: int
    bounds: tuple = ()
    method: str = "call"
    tool: str = "small"
    rate: int | None = None
    argument_bytes: int = 0
    progress: int | None = None
    # Which targets of the stage, and with how many upstreams a build has to keep the bounds.
    targets: str = "few"
    judged: int = UPSTREAMS
    eras: tuple = ("modern",)

    def arguments(self, target, era):
        out = ["--era", era, "--method", self.method, "--connections", str(self.connections)]
        if self.method == "call":
            out += ["--tools", ",".join(target.names(self.tool)), "--argument-bytes", str(self.argument_bytes)]
        out += ["--progress", str(self.progress)] if self.progress is not None else []
        return out + (["--rate", str(self.rate)] if self.rate else [])


WORKLOADS = (
    Workload("small, 16 connections", 16, SMALL, eras=("modern", "legacy")),
    Workload("small, 64 connections", 64, SMALL),
    Workload("small, 128 connections", 128, SMALL),
    Workload("small, one call at a time", 1, (Bound("p50_us", "most", 1.2),)),
    Workload("small, 2,000/s open loop", 64, SMALL[1:], rate=2000),
    Workload("4 KB arguments and result", 16, BYTES, tool="medium", argument_bytes=4096),
    Workload("64 KB result", 16, BYTES, tool="large"),
    Workload("tools/list", 16, (Bound("rate", "least", 1.0),), method="list"),
    Workload(f"tools/list of {MANY_TOOLS:,}", 1, (Bound("first_byte_us", "most", 1.0, to="direct"),), method="list", targets="many", judged=1),
    Workload("new session", 16, (Bound("rate", "least", 0.8),), method="initialize", eras=("legacy",)),
    Workload("event stream of one message", 16, tool="event", targets="events"),
    Workload("10 notifications, then the result", 16, tool="progress", progress=10, targets="events"),
    Workload("stdio upstream", 16, (Bound("cpu_us", "most more", 25.0),), targets="processes"),
)


@dataclass
class Row:
    """What one target did under a workload: medians of its rounds."""
    workload: Workload
    era: str
    target: str
    figures: dict
    verdicts: list = field(default_factory=list)

    def json(self):
        verdicts = [verdict.json() for verdict in self.verdicts]
        return {"workload": self.workload.name, "era": self.era, "target": self.target, **self.figures, "verdicts": verdicts}


def rounds(cases, count, measure):
    """Lets the cases take turns; gives the median of each figure for each case."""
    found = {key: [] for key in cases}
    for _ in range(count):
        for key, case in cases.items():
            found[key].append(measure(case))
    return {key: {k: statistics.median(run[k] for run in runs) for k in KEYS} for key, runs in found.items()}


def measure(stage, workload, era, options):
    """The rows of a workload: direct first, then the floor, then the builds."""
    targets = {target.name: target for target in getattr(stage, workload.targets)()}
    try:
        figures = rounds(targets, options.rounds, lambda t: stage.generator.load(t.server, workload.arguments(t, era), options.seconds))
    except Failure as failure:
        raise Failure(f"{workload.name}, {era}: {failure}") from failure
    rows = [Row(workload, era, name, figures[name]) for name in targets]
    for row in rows:
        if row.target in {f"{build} {workload.judged}" for build in stage.builds}:
            row.verdicts = judge(workload.bounds, row.figures, {"floor": floor(rows).figures, "direct": rows[0].figures})
    return rows


def floor(rows):
    """The least that can stand there: nginx, or the bare pipe."""
    return next(row for row in rows if row.target in ("nginx", "bare pipe"))
