"""Gates that register with each other or take registrations, and a client that asks one thing at a time. Measures nothing but time."""
import contextlib
import http.client
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .machine import GATEWAY_CORES, OTHER_CORES, Failure, free_port, on
from .stage import ready

# Tools that change something are taken without proof of who offers them.
REGISTRY = '[registry]\nprincipals = ["*"]\nproof = "never"\ntrust_gates = true\n'
WITHIN = 60


class Gate:
    """`banyan up` with a configuration of its own. May be killed and started anew, at the same port and in the same home."""

    def __init__(self, stage, stack, build, config, cores=GATEWAY_CORES):
        self.stage, self.stack, self.port = stage, stack, free_port()
        home = tempfile.mkdtemp(dir=stage.work)
        file = Path(home) / "banyan.toml"
        file.write_text(config)
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "BANYAN_"))}, "HOME": home}
        self.command = on(cores, [stage.builds[build], "up", "--config", str(file), "--listen", f"127.0.0.1:{self.port}", "--yes"])
        self.name = f"{build} at {self.port}"
        self.start()

    def start(self):
        self.server = self.stage.start(self.stack, self.name, self.command, self.port, env=self.env)
        until(f"{self.name} is ready", lambda: ready(self.port))

    def kill(self):
        self.server.process.kill()
        self.server.process.wait()

    def send(self, number):
        self.server.process.send_signal(number)

    def pids(self):
        return self.server.pids()

    def memory(self):
        return self.server.memory()

    def cpu(self):
        """Seconds of processor time so far."""
        threads = Path(f"/proc/{self.server.process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


class Chain:
    """Gates one below the other, entered at the first: as one thing that can be called and whose processor time counts."""

    def __init__(self, gates, name, tool):
        self.gates, self.name, self.tool, self.port = gates, name, tool, gates[0].port

    def pids(self):
        return [pid for gate in self.gates for pid in gate.pids()]


class Client:
    """Requests of the stateless era over one connection."""

    def __init__(self, port, timeout=30):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, method, name=None, **params):
        """The body of the answer, and the seconds until its first byte was there."""
        key = "io.modelcontextprotocol"
        meta = {f"{key}/protocolVersion": "2026-07-28", f"{key}/clientCapabilities": {}}
        params = {**({"name": name, "arguments": {}} if name else {}), **params, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, **({"Mcp-Name": name} if name else {})}
        began = time.perf_counter()
        try:
            self.connection.request("POST", "/mcp", body, headers)
            answer = self.connection.getresponse()
            answered = time.perf_counter() - began
            return answer.read(), answered
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Failure(f"{method} {name or ''} was not answered after {time.perf_counter() - began:.0f} s: {error!r}") from error

    def answers(self, tool):
        """Whether a tool of the bench upstream answers."""
        return b'"result"' in self.ask("tools/call", tool)[0]

    def count(self):
        """How many tools are listed, on how many pages."""
        tools, pages, cursor = 0, 0, {}
        while True:
            body, _ = self.ask("tools/list", **cursor)
            tools, pages = tools + body.count(b'"inputSchema"'), pages + 1
            # It stands behind the list, which is long.
            _, more, rest = body[-600:].partition(b'"nextCursor":"')
            if not more:
                return tools, pages
            cursor = {"cursor": rest.split(b'"')[0].decode()}


class Registrants:
    """Servers in one process that register themselves with a gate."""

    def __init__(self, stage, stack, gate, tools):
        port = free_port()
        command = [stage.generator.tool, "registrants", "--address", f"127.0.0.1:{gate.port}", "--listen", f"127.0.0.1:{port}",
                   "--tools", str(tools)]
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stage.log}
        self.process = subprocess.Popen(on(OTHER_CORES, command), text=True, **streams)
        stack.callback(self.stop)

    def say(self, line):
        """What it answered when that was done."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        if not said:
            raise Failure(f"the registrants ended at `{line}`")
        return json.loads(said)

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def until(what, done, within=WITHIN, pause=0.005):
    """Waits until `done()` holds; gives the seconds that took."""
    began = time.perf_counter()
    while not done():
        if time.perf_counter() - began > within:
            raise Failure(f"not within {within} s: {what}")
        time.sleep(pause)
    return time.perf_counter() - began


def joining(segment, parent, heartbeat=None):
    """The part of a configuration that registers with a gate."""
    interval = f'heartbeat = "{int(heartbeat * 1000)}ms"\n' if heartbeat else ""
    return f'[node]\nsegment = "{segment}"\n{interval}[[parent]]\nurl = "http://127.0.0.1:{parent.port}"\n'


def mounting(segment, port, path="/mcp"):
    """The part of a configuration that mounts what listens there."""
    return f'[mount.{segment}]\nurl = "http://127.0.0.1:{port}{path}"\n'


@contextlib.contextmanager
def stopped(gate):
    """While this lasts, a gate hangs."""
    gate.send(signal.SIGSTOP)
    try:
        yield
    finally:
        gate.send(signal.SIGCONT)
