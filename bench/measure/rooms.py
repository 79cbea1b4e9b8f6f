"""What a room delivers, and what somebody in it costs: beside the least that a room can be, a server on tokio-tungstenite that sends every
text to everybody and does nothing else, in the same run. Both have a core for themselves; all participants are one process on the others."""
import contextlib
import json
import statistics
import subprocess
from pathlib import Path

from .gates import Gate
from .machine import GATEWAY_CORES, ROOT, Failure, free_port, on

SECTION = "rooms"
# A room of every default but how much one may say, and how many may be there.
CONFIG = """
[room.bench]
[room.bench.limits]
participants = 20000
messages_per_second = 10000000
messages_at_once = 10000000
bytes_per_second = "4GiB"
bytes_at_once = "4GiB"
"""
SIZES = (10, 100, 500, 1000)
IDLE, WARM = 1000, 100
# Of what the slower of both delivers: the pace at which lateness is measured.
PACE = 0.5
KIB = 1 << 10


def measure(stage, options, report):
    with contextlib.ExitStack() as stack:
        places = {"fan-out": fanout(stage, stack), **{build: room(stage, stack, build) for build in stage.builds}}
        # First, because what comes next leaves much free, and that would hide them.
        for build in stage.builds:
            idle(stage, options, report, places[build], build)
        for size in SIZES[:2] if options.smoke else SIZES:
            deliveries(stage, options, report, places, size)
    told = check(options.profile)
    report.add(SECTION, "machine alone", "may this be sent? of four patterns", f"{told['check_ns']:.0f} ns, {told['check_ns'] / told['floor_ns']:.1f} of a look at "
               "beginnings", told["check_ns"])


class Place:
    """Where participants meet."""

    def __init__(self, server, port, asking=()):
        self.server, self.port, self.asking = server, port, asking

    def meet(self, stage, size, seconds, rate=None):
        pace = [] if rate is None else ["--rate", str(rate)]
        watch = ["--watch", ",".join(map(str, self.server.pids()))]
        return stage.generator.run("room", self.port, [*self.asking, "--count", str(size), "--seconds", str(seconds), *pace, *watch], 300)


def fanout(stage, stack):
    port = free_port()
    command = on(GATEWAY_CORES, [stage.generator.tool, "fanout", "--listen", f"127.0.0.1:{port}"])
    return Place(stage.start(stack, "bare fan-out", command, port), port)


def room(stage, stack, build):
    gate = Gate(stage, stack, build, f'{CONFIG}[mount.u0]\nurl = "{stage.mounts(1)["u0"]["url"]}"\n')
    found = list(Path(gate.env["HOME"]).rglob("run/*.json"))
    if len(found) != 1:
        raise Failure(f"{gate.name} says in {len(found)} files where it is")
    token = json.loads(found[0].read_text())["token"]
    return Place(gate.server, gate.port, ["--path", "/ws?topic=bench&participant={}", "--token", token])


def deliveries(stage, options, report, places, size):
    """As many as arrive, then how late at half of it."""
    fast = {name: [] for name in places}
    for _ in range(options.rounds):
        for name, place in places.items():
            fast[name].append(place.meet(stage, size, options.seconds))
    of = lambda rounds, key: statistics.median(told[key] for told in rounds)
    rate = PACE * min(of(rounds, "messages") for rounds in fast.values())
    paced = {name: [] for name in places}
    for _ in range(options.rounds):
        for name, place in places.items():
            paced[name].append(place.meet(stage, size, options.seconds, rate))
    floor = {key: of(fast["fan-out"], key) for key in ("deliveries", "cpu_us")} | {key: of(paced["fan-out"], key) for key in ("p50_us", "p99_us")}
    for name in places:
        said = f"{of(fast[name], 'deliveries'):,.0f}/s, {of(fast[name], 'cpu_us'):.2f} us CPU each"
        ratios = of(fast[name], "deliveries") / floor["deliveries"], of(fast[name], "cpu_us") / floor["cpu_us"]
        report.add(SECTION, name, f"{size} participants, deliveries", f"{said}; {ratios[0]:.2f}, {ratios[1]:.2f} of the floor", ratios[0])
        late = {key: of(paced[name], key) for key in ("p50_us", "p99_us")}
        ratios = {key: late[key] / floor[key] for key in late}
        report.add(SECTION, name, f"{size} participants, late at {rate * size:,.0f}/s", f"p50 {late['p50_us']:,.0f} us, p99 {late['p99_us']:,.0f} us; "
                   f"{ratios['p50_us']:.2f}, {ratios['p99_us']:.2f} of the floor", ratios["p99_us"])
        joins = [told["join"] for told in paced[name]]
        report.add(SECTION, name, f"{size} participants, joining", f"p50 {of(joins, 'p50_us'):,.0f} us, p99 {of(joins, 'p99_us'):,.0f} us", of(joins, "p99_us"))


def idle(stage, options, report, place, build):
    """Bytes for somebody who only listens. The first also fill what the allocator held free."""
    many, warm = (100, 20) if options.smoke else (IDLE, WARM)
    with held(stage, place, warm, "w"):
        before = place.server.memory()
        with held(stage, place, many, "i"):
            each = (place.server.memory() - before) / many
            report.add(SECTION, build, f"an idle participant, of {many:,}", f"{each / KIB:.1f} KiB", each)


def check(profile):
    """Nanoseconds to see whether somebody may send a kind: the machine alone, in a program of its own."""
    done = subprocess.run(["cargo", "bench", "--locked", "--quiet", "--profile", profile, "--package", "room-proto", "--bench", "capabilities"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"the checks of capabilities could not be measured: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def held(stage, place, count, prefix):
    """Participants, there as long as this is."""
    holder = stage.generator.begin("room", place.port, [*place.asking, "--count", str(count), "--prefix", prefix])
    try:
        if holder.stdout.readline().strip() != "ready":
            raise Failure(f"{count} participants could not join: {holder.stderr.read().strip()}")
        yield
    finally:
        holder.stdin.close()
        holder.wait(10)
