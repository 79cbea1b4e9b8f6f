"""How long until a gateway is ready, and how large it is."""
import contextlib
import statistics
import subprocess
import time
from pathlib import Path

from .bounds import Verdict
from .machine import GATEWAY_CORES, Failure, answers, free_port, on
from .stage import ready

SECTION = "start"
UPSTREAMS = 20
TIMES = 7


def measure(stage, options, report):
    times = 1 if options.smoke else TIMES
    floor("`true`", report, times, lambda: (on(GATEWAY_CORES, ["true"]), None, lambda process: process.wait() == 0))
    upstream = stage.upstream()

    def nginx():
        port = free_port()
        return stage.nginx_command(port, upstream.port), None, lambda _: answers(port)

    floor("nginx listens", report, times, nginx)
    for build in stage.builds:
        servers = stage.mounts(UPSTREAMS)

        def until(check):
            port, command, env = stage.banyan_command(build, servers)
            return command, env, lambda _: check(port)

        listening = took(times, lambda: until(answers))
        report.add(SECTION, build, "listens", f"{listening:.0f} ms", listening)
        name = f"ready with {UPSTREAMS} upstreams"
        milliseconds = took(times, lambda: until(ready))
        report.add(SECTION, build, name, f"{milliseconds:.0f} ms", milliseconds, Verdict(name, milliseconds, "most", 100, "ms"))
        size = Path(stage.builds[build]).stat().st_size / (1 << 20)
        report.add(SECTION, build, "binary", f"{size:.1f} MiB", size, Verdict("binary", size, "most", 25, "MiB"))


def floor(name, report, times, prepare):
    milliseconds = took(times, prepare)
    report.add(SECTION, "floor", name, f"{milliseconds:.1f} ms", milliseconds)


def took(times, prepare):
    """Milliseconds from the start of a process until its check says yes: the median."""
    return statistics.median(once(*prepare()) for _ in range(times))


def once(command, env, done):
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        while not done(process):
            if time.monotonic() - began > 20:
                raise Failure(f"`{' '.join(command[3:5])}` was not ready in 20 s")
            time.sleep(0.0005)
        return (time.monotonic() - began) * 1000
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        process.wait(15)
