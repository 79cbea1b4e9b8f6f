"""Gates that register with a parent over links that they dial, as processes (AX-22, AX-23, AX-62).

Three nodes with official clients at the root; parent and child are killed, stopped, and cut off in a network namespace. The tree is true
again within fewer than three heartbeats of a parent (`beats.py`), and is looked at until then.
"""
import hashlib
import json
import queue
import signal
import subprocess
import threading
import time
from contextlib import ExitStack

import install
from clients.checks import command, count
from conformance.server_scenarios import fixture
from gateway import Gateway, Home, binary, end, free_port
from tree.beats import BOUND, HEARTBEAT, converges
from tree.spaces import Space, missing
from trouble.tap import Tap
from wire import Modern

CLIENTS = (("python 2.3", "auto"), ("python 2.3", "legacy"))
LEAF = "fx"
# Tools that change something are taken without proof of who offers them, and gates without proof that they are some.
REGISTRY = '[registry]\nprincipals = ["*"]\nproof = "never"\ntrust_gates = true\n'
# Time for processes to start; nothing that a tree promises.
WITHIN = 60
# A child looks for its preferred parent again after six intervals.
RETURN = 6 + BOUND


def run(report, pool):
    """All of it."""
    for work in (killed_child, killed_parent, stopped, backup, left, dialled, cut):
        pool.submit(report.guard, f"links/{work.__name__}", lambda w=work: w(report))
    for client, mode in CLIENTS:
        name = f"links/{client} {mode} above two links"
        pool.submit(report.guard, name, lambda c=client, m=mode, n=name: tour(report, n, c, m))


def joining(segment, *ports, more="", at="127.0.0.1", secret=None):
    """The part of a configuration that registers with parents at these ports; `more` is said of the node, `secret` to the parents."""
    way = f'token = "{secret}"\ninsecure = true\n' if secret else ""
    parents = "".join(f'[[parent]]\nurl = "http://{at}:{port}"\n{way}' for port in ports)
    return f'[node]\nsegment = "{segment}"\nheartbeat = "{int(HEARTBEAT * 1000)}ms"\n{more}{parents}'


def guarded(secret):
    """A registry on a network, for those who have the token."""
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return f'{REGISTRY}insecure = true\n[[token]]\nname = "known"\nsha256 = "{digest}"\n'


def mount(name, server):
    """A table that mounts a process."""
    return f'[mount.{name}]\ncommand = {json.dumps(server["command"])}\nargs = {json.dumps(server["args"])}\n'


def leaf(name, stack, *ports, port=None):
    """A gate with the fixture behind it that registers as `leaf`."""
    config = joining("leaf", *ports) + mount(LEAF, fixture("stdio", "legacy", stack))
    return stack.enter_context(Gateway(f"links {name} leaf", {}, config=config, port=port))


def root(name, stack, port=None):
    """A gate that takes registrations."""
    return stack.enter_context(Gateway(f"links {name}", {}, config=REGISTRY, port=port))


def until(report, name, what, since=None, within=WITHIN):
    """Waits until `what()` holds, and says how long that took."""
    since = since or time.monotonic()
    while time.monotonic() < since + within:
        if what():
            took = time.monotonic() - since
            print(f"        {name}: {took:.2f} s", flush=True)
            return report.check(name, True)
        time.sleep(0.02)
    return report.check(name, False, f"not within {within} s")


def listed(gate, name="leaf__fx__fx_echo"):
    """Whether a gate shows a tool to its clients."""
    try:
        return name in Modern(gate.url()).tools()
    except (OSError, RuntimeError, ValueError):
        return False


def answers(gate, text):
    """Whether the fixture answers through a gate."""
    try:
        return Modern(gate.url()).tool("leaf__fx__fx_echo", {"text": text}).text == text
    except (OSError, RuntimeError, ValueError):
        return False


def refused(gate):
    """Whether a call through a gate is refused because its server is not there."""
    return Modern(gate.url()).tool("leaf__fx__fx_echo", {"text": "x"}).error.get("code") == -32002


def tour(report, name, client, mode):
    """The whole tour of an official client at the root of three nodes."""
    with ExitStack() as stack:
        top = root(name, stack)
        middle = stack.enter_context(Gateway(f"{name} middle", {}, config=REGISTRY + joining("mid", top.port)))
        leaf(name, stack, middle.port)
        until(report, f"{name}: listed at the root", lambda: listed(top, "mid__leaf__fx__fx_echo"))
        env = {**top.home.env, "PEERS_NODE_MODULES": install.node_modules(), "PEERS_PREFIX": f"mid__leaf__{LEAF}__"}
        count(report, name, [*command(client, mode), "http", top.url()], env)


def killed_child(report):
    """A child is killed: its tools are degraded and come back with it, under its old name."""
    with ExitStack() as stack:
        top = root("killed child", stack)
        child = leaf("killed child", stack, top.port)
        until(report, "links/killed child: listed", lambda: answers(top, "1"))
        child.kill()
        converges(report, "links/killed child: calls say so", lambda: refused(top), top)
        child.start()
        converges(report, "links/killed child: back", lambda: answers(top, "2"), top)


def killed_parent(report):
    """A parent is killed and started anew: its children bring everything again."""
    with ExitStack() as stack:
        top = root("killed parent", stack)
        leaf("killed parent", stack, top.port)
        until(report, "links/killed parent: listed", lambda: answers(top, "1"))
        top.kill()
        top.start()
        converges(report, "links/killed parent: whole again", lambda: answers(top, "2"), top)


def stopped(report):
    """A child hangs: it is found out by its silence, and is back when it goes on."""
    with ExitStack() as stack:
        top = root("stopped", stack)
        child = leaf("stopped", stack, top.port)
        until(report, "links/stopped: listed", lambda: answers(top, "1"))
        child.process.send_signal(signal.SIGSTOP)
        try:
            converges(report, "links/stopped: found out", lambda: refused(top), top)
        finally:
            child.process.send_signal(signal.SIGCONT)
        converges(report, "links/stopped: back", lambda: answers(top, "2"), top)


def backup(report):
    """The preferred parent is killed: the backup takes over. It is back: so is the child, and not at both."""
    with ExitStack() as stack:
        first, second = root("backup first", stack), root("backup second", stack)
        leaf("backup", stack, first.port, second.port)
        until(report, "links/backup: listed at the preferred parent", lambda: answers(first, "1"))
        report.check("links/backup: not at the other", not listed(second))
        first.kill()
        converges(report, "links/backup: whole at the backup", lambda: answers(second, "2"), second)
        first.start()
        converges(report, "links/backup: back at the preferred parent", lambda: answers(first, "3"), second, RETURN)
        converges(report, "links/backup: gone from the other", lambda: not listed(second), second)


def left(report):
    """A child that is told to stop says so: its tools go at once, within an interval (AX-23)."""
    with ExitStack() as stack:
        top = root("left", stack)
        child = leaf("left", stack, top.port)
        until(report, "links/left: listed", lambda: answers(top, "1"))
        child.process.send_signal(signal.SIGTERM)
        converges(report, "links/left: gone within an interval", lambda: not listed(top), top, most=1)


def dialled(report):
    """A child that can be reached says where: it is dialled there, by whoever it registered with over its link (AX-20, AX-22)."""
    with ExitStack() as stack:
        top, port = root("dialled", stack), free_port()
        tap = stack.enter_context(Tap(port))
        config = joining("leaf", top.port, more=f'public_url = "{tap.url()}"\n') + mount(LEAF, fixture("stdio", "legacy", stack))
        child = stack.enter_context(Gateway("links dialled leaf", {}, config=config, port=port))
        until(report, "links/dialled: listed", lambda: answers(top, "by its address"))
        report.check("links/dialled: the call came by its address", "by its address" in tap.text(), tap.text()[-600:])
        code, body = top.get("/-/status")
        shown = [(m["transport"], m["gate"], m["state"]) for m in json.loads(body)["mounts"] if m["name"] == "leaf"] if code == 200 else code
        report.equal("links/dialled: it is shown as one that is dialled", shown, [("http", True, "ready")])
        child.kill()
        converges(report, "links/dialled: calls say that it is not there", lambda: refused(top), top)
        child.start()
        converges(report, "links/dialled: back", lambda: answers(top, "again"), top)
        child.process.send_signal(signal.SIGTERM)
        converges(report, "links/dialled: gone within an interval", lambda: not listed(top), top, most=1)


class Inside:
    """A gate in a network namespace, where nobody reaches it; what it prints says how it stands."""

    def __init__(self, space, name, config, port, address="127.0.0.1"):
        self.space, self.port, self.token = space, port, None
        self.address = address
        self.home = Home(name, {})
        self.told = queue.Queue()
        path = self.home.write("banyan.toml", config)
        with space:
            self.process = subprocess.Popen(
                [binary(), "up", "--json", "--config", path, "--listen", f"{address}:{port}"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.home.env, cwd=self.home.dir, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.told.put(json.loads(line))

    def says(self, event, state):
        """Whether it has said so since this was last asked."""
        while not self.told.empty():
            told = self.told.get()
            if told["event"] == event and told.get("state", state) == state:
                return True
        return False

    def url(self):
        """The endpoint, from within its namespace."""
        return f"http://{self.address}:{self.port}/mcp"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process, 15)
        self.home.remove()


def cut(report):
    """Nothing arrives any more, and nobody is told: both find out by silence, and are whole when the network is."""
    if why := missing():
        return print(f"        links/cut: SKIPPED, {why}", flush=True)
    with ExitStack() as stack:
        space, port = Space(stack), free_port()
        top = stack.enter_context(Inside(space, "links cut root", REGISTRY, port))
        until(report, "links/cut: listens", lambda: top.says("listening", None))
        config = joining("leaf", port) + mount(LEAF, fixture("stdio", "legacy", stack))
        child = stack.enter_context(Inside(space, "links cut leaf", config, free_port()))
        until(report, "links/cut: registered", lambda: child.says("parent", "registered"))
        until(report, "links/cut: ready at the root", lambda: top.says("server", "ready"))
        # Nobody hears of heartbeats over a wire that is cut: those of a gate beside are counted.
        clock = root("cut clock", stack)
        space.loopback("down")
        found = Both(lambda: top.says("server", "degraded"), lambda: child.says("parent", "lost"))
        converges(report, "links/cut: parent and child find out", found, clock)
        space.loopback("up")
        whole = Both(lambda: child.says("parent", "registered"), lambda: top.says("server", "ready"))
        converges(report, "links/cut: registered and whole again", whole, clock)


class Both:
    """Whether two things that are told once have both been told by now."""

    def __init__(self, *told):
        self.waited_for = list(told)

    def __call__(self):
        self.waited_for = [told for told in self.waited_for if not told()]
        return not self.waited_for
