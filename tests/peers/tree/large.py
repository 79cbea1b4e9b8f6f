"""Sixty nodes in three levels, as processes on the loopback, with official clients at the root all the while (AX-20, AX-60, AX-62).

A root, inner gates that register with it, and below each of them gates with a server of their own and one server that registers
itself. Nodes of every level are killed, stopped and let go on. Each time the root's list has to be true again: every tool that is there,
and nothing else, shown as one that can be called. How long that takes is measured and printed beside three heartbeat intervals; what
is checked is a generous bound. At the end each client calls everything.
"""
import json
import queue
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import install
from gateway import Gateway, end
from tree.links import REGISTRY, joining, until
from tree.registrants import Registrant

HERE = Path(__file__).resolve().parent
INNER = "abcde"
NODES = 60
AT_ONCE = 6
CLIENTS = (("python", "auto"), ("python", "legacy"), ("typescript", "auto"), ("typescript", "legacy"))
# Sixty processes start on whatever machine this is.
BUILT_WITHIN = 60
SAID_WITHIN = 60


def run(report):
    """All of it."""
    began = time.monotonic()
    with ExitStack() as stack:
        tree = Tree(stack)
        until(report, f"tree/large: {NODES} nodes, all listed", lambda: tree.is_true(), began, BUILT_WITHIN)
        clients = [stack.enter_context(Client(tree, language, mode)) for language, mode in CLIENTS]
        asked(report, "before", clients, tree)
        for fault in (killed_leaf, stopped_leaf, killed_registrant, stopped_inner, killed_inner, killed_many, killed_root):
            report.guard(f"tree/large/{fault.__name__}", lambda f=fault: f(report, tree, clients))
        # What was said before the root ended was said in sessions that it can't know any more.
        clients = [stack.enter_context(Client(tree, language, mode)) for language, mode in CLIENTS]
        asked(report, "after", clients, tree)


class Tree:
    """The nodes: `inner` gates and `leaves` by path, a leaf that is no gate being a registrant; and which of them are lost."""

    def __init__(self, stack):
        self.stack = stack
        self.root = stack.enter_context(Gateway("tree large root", {}, config=REGISTRY))
        self.lost = set()
        count = NODES - 1 - len(INNER)
        paths = [f"{INNER[at % len(INNER)]}.l{at:02}" for at in range(count - len(INNER))] + [f"{letter}.r" for letter in INNER]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            self.inner = dict(zip(INNER, pool.map(self._gate, INNER)))
            self.leaves = dict(zip(paths, pool.map(self._leaf, paths)))

    def _gate(self, letter):
        return self._enter(Gateway(f"tree large {letter}", {}, config=REGISTRY + joining(letter, self.root.port), wait=False))

    def _leaf(self, path):
        letter, segment = path.split(".")
        parent = self.inner[letter]
        if segment == "r":
            return self._enter(Registrant("python", parent, segment, registrant_id(letter)))
        server = f"[mount.at]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(['-S', str(HERE / 'leaf.py'), path])}\n"
        return self._enter(Gateway(f"tree large {path}", {}, config=joining(segment, parent.port) + server, wait=False))

    def _enter(self, node):
        return self.stack.enter_context(node)

    def replace(self, path):
        """Another process for the registrant with this path, which was killed."""
        self.leaves[path] = self._leaf(path)

    def wanted(self):
        """What clients are to find: how the answers of tools end by their shown names, nothing where their server is lost."""
        out = {}
        for path, leaf in self.leaves.items():
            is_lost = bool({path, path[0]} & self.lost)
            name, text = ("uptime", f"process {leaf.process.pid}") if isinstance(leaf, Registrant) else ("at.who", path)
            out[f"{path}.{name}".replace(".", "__")] = None if is_lost else text
        return out

    def is_true(self):
        """Whether the root lists every tool, and as there exactly those whose servers are."""
        code, body = self.root.get("/-/tools")
        if code != 200:
            return False
        rows = [row for row in json.loads(body)["tools"] if row["original"].rsplit(".", 1)[-1] != "notifications_dropped"]
        found = {row["shown"]: row["availability"] != "degraded" for row in rows}
        return found == {name: text is not None for name, text in self.wanted().items()}


def registrant_id(letter):
    return f"{INNER.index(letter) + 1:08}-1111-4111-8111-111111111111"


class Client:
    """An official client that stays connected to the root and says, when it is asked, whether it finds what there is."""

    def __init__(self, tree, language, mode):
        self.name = f"{language} {mode}"
        program = {"python": [install.venv_bin("modern"), str(HERE / "python_root.py")],
                   "typescript": [install.node(), str(HERE / "typescript_root.mjs")]}[language]
        env = {**tree.root.home.env, "PEERS_NODE_MODULES": install.node_modules()}
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([*program, mode, tree.root.url()], env=env, text=True, **streams)
        self.said, self.errors = queue.Queue(), []
        for work in (self._read, self._complain):
            threading.Thread(target=work, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.said.put(line.strip())

    def _complain(self):
        self.errors += self.process.stderr

    def ask(self, wanted):
        """Whether it finds this; what it says, or its last words."""
        try:
            print(json.dumps(wanted), file=self.process.stdin, flush=True)
            return self.said.get(timeout=SAID_WITHIN)
        except (OSError, queue.Empty):
            return "FAIL " + "".join(self.errors)[-800:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)


def asked(report, when, clients, tree):
    """Every client lists and calls all there is."""
    wanted = tree.wanted()
    with ThreadPoolExecutor(len(clients)) as pool:
        for client, said in zip(clients, pool.map(lambda c: c.ask(wanted), clients)):
            report.equal(f"tree/large: {client.name} lists and calls {len(wanted)} tools, {when}", said, "ok")


def lost(report, tree, what, *paths):
    """The root finds out that these are lost, and that nothing else is."""
    tree.lost |= set(paths)
    until(report, f"tree/large: {what} is known", tree.is_true)


def back(report, tree, what, *paths):
    """These are back."""
    tree.lost -= set(paths)
    until(report, f"tree/large: whole after {what}", tree.is_true)


def killed_leaf(report, tree, clients):
    """A leaf is killed, and starts again."""
    tree.leaves["b.l01"].kill()
    lost(report, tree, "a killed leaf", "b.l01")
    asked(report, "a leaf being killed", clients[:1], tree)
    tree.leaves["b.l01"].start(wait=False)
    back(report, tree, "a killed leaf", "b.l01")


def stopped_leaf(report, tree, _clients):
    """A leaf hangs, and goes on."""
    hang(report, tree, "a leaf that hangs", tree.leaves["c.l02"], "c.l02")


def killed_registrant(report, tree, _clients):
    """A server that registered itself is killed, and starts again."""
    tree.leaves["a.r"].send(signal.SIGKILL)
    lost(report, tree, "a killed server", "a.r")
    tree.replace("a.r")
    back(report, tree, "a killed server, its start included", "a.r")


def stopped_inner(report, tree, clients):
    """A gate that others are registered with hangs, and goes on."""
    hang(report, tree, "an inner gate that hangs", tree.inner["d"], "d", lambda: asked(report, "an inner gate hanging", clients[2:3], tree))


def killed_inner(report, tree, _clients):
    """Such a gate is killed, and starts again: what was below it brings everything again."""
    tree.inner["e"].kill()
    lost(report, tree, "a killed inner gate", "e")
    tree.inner["e"].start(wait=False)
    back(report, tree, "a killed inner gate", "e")


def killed_many(report, tree, clients):
    """Two inner gates and leaves below the others are killed at once, and start again at once."""
    gone = {**{letter: tree.inner[letter] for letter in "ab"}, **{path: tree.leaves[path] for path in list(tree.leaves)[2:40:4]}}
    for gate in gone.values():
        gate.kill()
    lost(report, tree, f"that {len(gone)} gates were killed", *gone)
    asked(report, f"{len(gone)} gates being killed", clients[1:2], tree)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda gate: gate.start(wait=False), gone.values()))
    back(report, tree, f"{len(gone)} killed gates", *gone)


def killed_root(report, tree, _clients):
    """The root is killed, and starts again."""
    tree.root.kill()
    tree.root.start(wait=False)
    back(report, tree, "a killed root")


def hang(report, tree, what, gate, path, meanwhile=lambda: None):
    """A gate is stopped for as long as it takes to find that out, and longer."""
    gate.process.send_signal(signal.SIGSTOP)
    try:
        lost(report, tree, what, path)
        meanwhile()
    finally:
        gate.process.send_signal(signal.SIGCONT)
    back(report, tree, what, path)
