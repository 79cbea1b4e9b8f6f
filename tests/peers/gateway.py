"""Starts and stops the Banyan binary under test, in a home directory of its own.

Black box: only the command line and the HTTP endpoints. Does not build the binary.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOGS = ROOT / ".peers" / "logs"
STARTED_WITHIN = 30
ENDED_WITHIN = 10


def binary():
    """The binary under test: `$BANYAN_BIN`, else the debug build of this checkout."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return os.environ.get("BANYAN_BIN", str(target / "debug" / "banyan"))


def beside(name):
    """Another program of the workspace: beside the binary under test, else in the debug build."""
    found = Path(binary()).with_name(name)
    return str(found if found.exists() else Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / name)


def free_port():
    """A loopback port that was free a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def end(process, within=ENDED_WITHIN, group=False):
    """Ends a process, or its whole group: SIGTERM, and SIGKILL if that is not enough. Returns the exit status, None if it had to be killed."""
    def send(number):
        if process.poll() is None:
            (os.killpg if group else os.kill)(process.pid, number)
    send(signal.SIGTERM)
    # One that was stopped hears of it when it goes on.
    send(signal.SIGCONT)
    try:
        return process.wait(within)
    except subprocess.TimeoutExpired:
        send(signal.SIGKILL)
        process.wait()
        return None


class Home:
    """A temporary home directory with one `mcpServers` file, and the environment that points there."""

    def __init__(self, name, servers, env=None):
        self.dir = tempfile.mkdtemp(prefix="banyan-peer-")
        self.file = self.write("servers.json", json.dumps({"mcpServers": servers}, indent=1))
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log = LOGS / (re.sub(r"[^\w.-]+", "-", name) + ".log")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "BANYAN_"))}
        self.env = {**inherited, "HOME": self.dir, "RUST_BACKTRACE": "1", **(env or {})}

    def write(self, name, text):
        """Makes a file in it; answers the path."""
        path = os.path.join(self.dir, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


class Gateway:
    """`banyan up` in front of some servers, or of what `config` (the text of a `banyan.toml`) says, as a context manager.

    `space` is entered around whatever starts or asks it, `token` shown wherever it is asked."""

    def __init__(self, name, servers, env=None, arguments=(), wait=True, config=None, port=None, prepare=None,
                 address="127.0.0.1", space=None, token=None):
        self.home = Home(name, servers, env)
        self.space, self.token = space or contextlib.nullcontext(), token
        self.port = port or free_port()
        if prepare:
            prepare(self)
        self._log = open(self.home.log, "wb")
        listen = f"{address}:{self.port}"
        source = ["--from", self.home.file] if config is None else ["--config", self.home.write("banyan.toml", config)]
        self._command = [binary(), "up", *source, "--listen", listen, "--yes", *arguments]
        self.start(wait)

    def start(self, wait=True):
        """Starts the process; anew, in the same home and at the same port, where it was killed."""
        with self.space:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
                env=self.home.env, cwd=self.home.dir, start_new_session=True)
        try:
            self.wait_for("/readyz" if wait else "/healthz")
        except BaseException:
            self.stop()
            raise

    def kill(self):
        """SIGKILL: nobody is told."""
        self.process.kill()
        self.process.wait()

    def url(self, mount=None):
        """The endpoint of all servers, or of one without prefix."""
        return f"http://localhost:{self.port}/mcp" + (f"/{mount}" if mount else "")

    def get(self, path):
        """Status and body of a GET."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=bearer(self.token))
        try:
            with self.space, urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def told(self, *arguments):
        """What the command line tells whoever runs the gate."""
        return self.asked(*arguments).stdout

    def asked(self, *arguments):
        """The command line's end, with all that it told whoever runs the gate."""
        with self.space:
            return subprocess.run([binary(), *arguments], env=self.home.env, cwd=self.home.dir, capture_output=True, text=True, timeout=30)

    def wait_for(self, path, within=STARTED_WITHIN):
        """Waits until `path` answers 200."""
        end, seen = time.monotonic() + within, "no answer"
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"banyan ended with {self.process.returncode}:\n{self.tail()}")
            try:
                seen = self.get(path)
                if seen[0] == 200:
                    return
            except OSError as error:
                seen = error
            time.sleep(0.02)
        raise RuntimeError(f"{path} was not 200 within {within} s, last {seen}:\n{self.tail()}")

    def tail(self, size=3000):
        """The last of what the gateway printed."""
        return self.home.log.read_text(errors="replace")[-size:]

    def memory(self):
        """Resident bytes of the gateway process (Linux)."""
        return resident(self.process.pid)

    def stop(self):
        """Ends it, and removes its home. Returns the exit status, None if it had to be killed."""
        status = end(self.process)
        self._log.close()
        self.home.remove()
        return status

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        self.stop()
        # What a gate that ends at a panic would not survive, one that only ends the task shows nowhere else.
        panic = self.tail(1 << 20).partition("panicked at")
        if panic[1] and failure is None:
            raise RuntimeError(f"the gate panicked:{panic[2][:600]}")


def bearer(token):
    """The header that shows a token; none where there is none."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def resident(pid):
    """Resident bytes of a process (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


class Process:
    """A server process of the tests, as a context manager; ends with its whole group."""

    def __init__(self, command, env=None, url=None, port=None):
        self.url, self.port = url, port
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})}, start_new_session=True)
        if port:
            self._wait_for_port()

    def _wait_for_port(self):
        end = time.monotonic() + STARTED_WITHIN
        while time.monotonic() < end and self._process.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError(f"nothing listens on port {self.port}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self._process, 5, group=True)
