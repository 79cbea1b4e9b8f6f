"""This machine: its cores, its processes, and the programs that a run needs. Measures nothing but processor time and memory."""
import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
CORES = sorted(os.sched_getaffinity(0))
# A gateway has a core for itself; upstream and load share the others.
GATEWAY_CORES, OTHER_CORES = CORES[:1], CORES[1:] or CORES


class Failure(Exception):
    """What went wrong, for the person who started the run."""


def on(cores, command):
    """The command, kept to these cores."""
    return ["taskset", "-c", ",".join(map(str, cores)), *command]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port):
    """Whether somebody takes a connection there."""
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def listens(port):
    """The same without a connection, which is work for who takes it. Slow where there are many sockets."""
    wanted = f":{port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(fields[1].endswith(wanted) and fields[3] == "0A" for fields in map(str.split, lines))


class Server:
    """A process that listens, with the processor time and memory it uses."""

    def __init__(self, name, command, port, log, env=None, children=False, up=answers):
        self.name, self.port, self.children = name, port, children
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True)
        end = time.monotonic() + 30
        while not up(port):
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise Failure(f"{name} does not listen on port {port}; see {log.name}")
            time.sleep(0.001)

    def pids(self):
        """The process, and those that do its work: nginx works in a child."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split() if self.children else []
        return [self.process.pid, *map(int, children)]

    def memory(self):
        """Resident bytes, counted page by page: the figure in `statm` lags by some."""
        return sum(self._kilobytes(pid, "smaps_rollup", "Rss:") for pid in self.pids()) * 1024

    def forget_peak(self):
        """From here on `peak` is what comes."""
        for pid in self.pids():
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def peak(self):
        """The most bytes that were resident at once."""
        return sum(self._kilobytes(pid, "status", "VmHWM:") for pid in self.pids()) * 1024

    @staticmethod
    def _kilobytes(pid, file, field):
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(12)
                return
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def busy(seconds=0.5):
    """How many cores are at work; asked before anything of ours is."""
    def ticks():
        fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
        # The fourth and fifth are idle, with and without waiting for a disk.
        return sum(fields) - fields[3] - fields[4]
    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def take_precedence():
    """Ahead of other processes, where that is allowed; and with many files: a thousand streams are two thousand sockets of one gateway."""
    with contextlib.suppress(PermissionError):
        os.nice(-10)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def build(profile, *packages):
    """Builds these packages; gives the folder of the binaries."""
    command = ["cargo", "build", "--locked", "--profile", profile]
    for package in packages:
        command += ["--package", package]
    if subprocess.run(command, cwd=ROOT).returncode:
        raise Failure(f"the {profile} build failed")
    return BUILT / ("debug" if profile == "dev" else profile)


def nginx():
    """The path of nginx, installed if it has to be."""
    for _ in range(2):
        for path in (shutil.which("nginx"), "/usr/sbin/nginx"):
            if path and os.access(path, os.X_OK):
                return path
        install("nginx-light")
    raise Failure("nginx is the floor of most figures and is not there after its installation: apt-get install nginx-light")


def install(package):
    sudo = [] if os.getuid() == 0 else ["sudo"]
    for _ in range(2):
        if subprocess.run([*sudo, "apt-get", "install", "-y", "-qq", package], capture_output=True).returncode == 0:
            return
        subprocess.run([*sudo, "apt-get", "update", "-qq"], capture_output=True)
    raise Failure(f"`apt-get install {package}` failed twice; install it by hand")
