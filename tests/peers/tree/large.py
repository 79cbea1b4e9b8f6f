"""Sixty nodes in three levels, as processes, with official clients at the root all the while (AX-20, AX-22, AX-60, AX-62).

A root, inner gates that register with it, and below each of them gates with a server of their own and one server that registers
itself. Nodes of every level are killed, stopped and let go on. Where the machine lets us make network namespaces, the tree lies in three of
them, and the wires between those are cut: one above an inner gate, one between an inner gate and its leaves. Each time the
root's list has to be true again within three heartbeats of the root (`beats.py`): every tool that is there, and nothing else, shown as one that
can be called; processes that start are given the time for that. At the end each client calls everything.
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
from gateway import Gateway, bearer, end
from tree.beats import BOUND, SILENT, converges
from tree.links import guarded, joining, until
from tree.registrants import Registrant
from tree.spaces import Space, Wire, missing
from wire import Modern

HERE = Path(__file__).resolve().parent
INNER = "abcde"
NODES = 60
AT_ONCE = 6
CLIENTS = (("python", "auto"), ("python", "legacy"), ("typescript", "auto"), ("typescript", "legacy"))
SECRET = "secret-of-the-tree"
# What lies elsewhere, where there are namespaces: this inner gate with all below it, and the leaves of this other one.
FAR, EDGE = "d", "e"
# One leaf behind each wire; what their tools do may not be done twice.
ONCE = ("d.l03", "e.l04")
# Sixty processes start on whatever machine this is.
BUILT_WITHIN = 180
SAID_WITHIN = 180
FOUND_WITHIN = 120


def run(report):
    """All of it."""
    began = time.monotonic()
    with ExitStack() as stack:
        country = Country(stack)
        tree = Tree(stack, country)
        cuts = (cut_above_gate, cut_above_leaves) if country.wires else ()
        if not cuts:
            print(f"        tree/large: NO WIRE IS CUT, {country.lacks}", flush=True)
        until(report, f"tree/large: {NODES} nodes, all listed", tree.is_true, began, BUILT_WITHIN)
        clients = [stack.enter_context(Client(tree, language, mode)) for language, mode in CLIENTS]
        asked(report, "before", clients, tree)
        for fault in (killed_leaf, stopped_leaf, killed_registrant, stopped_inner, killed_inner, *cuts, killed_many, killed_root):
            report.guard(f"tree/large/{fault.__name__}", lambda f=fault: f(report, tree, clients))
        # What was said before the root ended was said in sessions that it can't know any more.
        clients = [stack.enter_context(Client(tree, language, mode)) for language, mode in CLIENTS]
        asked(report, "after", clients, tree)


class Country:
    """Three networks and the two wires between them, and everything in one network where this machine makes no others.

    Whoever makes it is in the first from then on, until the stack is unwound."""

    def __init__(self, stack):
        self.wires, self.address, self.lacks = {}, "127.0.0.1", missing()
        if self.lacks:
            return
        near = Space(stack)
        self.wires, self.address = {letter: Wire(near, Space(stack)) for letter in (FAR, EDGE)}, "0.0.0.0"
        stack.enter_context(near)

    def is_beyond(self, path):
        """Whether a node lives behind a wire."""
        letter, _, leaf = path.partition(".")
        return letter in self.wires and (letter == FAR or leaf not in ("", "r"))

    def place(self, path):
        """Where a node lives: its namespace, nothing for the first; and the address at which its parent is."""
        if not self.is_beyond(path):
            return None, "127.0.0.1"
        wire, is_at_wire = self.wires[path[0]], path == FAR or path[0] == EDGE
        return wire.spaces[1], wire.addresses[0] if is_at_wire else "127.0.0.1"


class Tree:
    """The nodes: `inner` gates and `leaves` by path, a leaf that is no gate being a registrant; and which of them are lost."""

    def __init__(self, stack, country):
        self.stack, self.country = stack, country
        self.root = self._gate("root", guarded(SECRET), country.address)
        self.lost = set()
        count = NODES - 1 - len(INNER)
        paths = [f"{INNER[at % len(INNER)]}.l{at:02}" for at in range(count - len(INNER))] + [f"{letter}.r" for letter in INNER]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            self.inner = dict(zip(INNER, pool.map(self._inner, INNER)))
            self.leaves = dict(zip(paths, pool.map(self._leaf, paths)))

    def _gate(self, path, config, address="127.0.0.1", parent=None):
        """A gate, registered with its parent; others may register with one that has an address."""
        space, at = self.country.place(path)
        if parent:
            config = joining(path.split(".")[-1], parent.port, at=at, secret=SECRET) + config
        return self._enter(Gateway(f"tree large {path}", {}, config=config, wait=not parent, address=address, space=space, token=SECRET))

    def _inner(self, letter):
        return self._gate(letter, guarded(SECRET), self.country.address, self.root)

    def _leaf(self, path):
        letter, segment = path.split(".")
        parent = self.inner[letter]
        if segment == "r":
            return self._enter(Registrant("python", parent, segment, registrant_id(letter)))
        arguments = ["-S", str(HERE / "leaf.py"), path, *(["once"] if path in ONCE else [])]
        server = f"[mount.at]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(arguments)}\n"
        return self._gate(path, server, parent=parent)

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

    def listed(self, gate):
        """Which tools a gate lists, by their shown names, and whether they can be called; nothing where it says nothing."""
        code, body = gate.get("/-/tools")
        rows = json.loads(body)["tools"] if code == 200 else []
        return {row["shown"]: row["availability"] != "degraded" for row in rows if row["original"].rsplit(".", 1)[-1] != "notifications_dropped"}

    def is_true(self):
        """Whether the root lists every tool, and as there exactly those whose servers are."""
        return self.listed(self.root) == {name: text is not None for name, text in self.wanted().items()}


def registrant_id(letter):
    return f"{INNER.index(letter) + 1:08}-1111-4111-8111-111111111111"


class Client:
    """An official client that stays connected to the root and says, when it is asked, whether it finds what there is."""

    def __init__(self, tree, language, mode):
        self.name = f"{language} {mode}"
        program = {"python": [install.venv_bin("modern"), str(HERE / "python_root.py")],
                   "typescript": [install.node(), str(HERE / "typescript_root.mjs")]}[language]
        env = {**tree.root.home.env, "PEERS_NODE_MODULES": install.node_modules(), "BANYAN_TOKEN": SECRET}
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
    """Every client lists and calls all there is. One that finds something else asks again: a node may have been too busy to be heard."""
    wanted, last = tree.wanted(), time.monotonic() + FOUND_WITHIN

    def ask(client):
        while (said := client.ask(wanted)) != "ok" and time.monotonic() < last:
            pass
        return said

    with ThreadPoolExecutor(len(clients)) as pool:
        for client, said in zip(clients, pool.map(ask, clients)):
            report.equal(f"tree/large: {client.name} lists and calls {len(wanted)} tools, {when}", said, "ok")


def lost(report, tree, what, *paths, most=BOUND):
    """The root finds out that these are lost, and that nothing else is."""
    tree.lost |= set(paths)
    converges(report, f"tree/large: {what} is known", tree.is_true, tree.root, most)


def back(report, tree, what, *paths):
    """These start, and are back."""
    tree.lost -= set(paths)
    until(report, f"tree/large: whole after {what}", tree.is_true, within=FOUND_WITHIN)


def whole(report, tree, what, *paths):
    """These are heard of again."""
    tree.lost -= set(paths)
    converges(report, f"tree/large: whole after {what}", tree.is_true, tree.root)


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
    lost(report, tree, "a killed server", "a.r", most=SILENT)
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


def cut_above_gate(report, tree, clients):
    """The wire between the root and an inner gate is cut: all below is lost to the root and nothing to that gate. What changes there
    meanwhile shows when the wire is mended."""
    gone = f"{FAR}.l08"

    def meanwhile():
        asked(report, "a wire above an inner gate being cut", clients[3:], tree)
        below = tree.listed(tree.inner[FAR])
        report.check("tree/large: nothing below the cut was lost to the inner gate", below and all(below.values()), below)
        tree.leaves[gone].kill()
        tree.lost.add(gone)

    cut(report, tree, "the wire above an inner gate", FAR, [FAR], meanwhile)
    tree.leaves[gone].start(wait=False)
    back(report, tree, "a leaf killed behind a cut", gone)


def cut_above_leaves(report, tree, clients):
    """The wire between an inner gate and its leaves is cut: they are lost, and the gate is not, nor the server beside it."""
    leaves = [path for path in tree.leaves if path[0] == EDGE and tree.country.is_beyond(path)]
    cut(report, tree, f"the wire above {len(leaves)} leaves", EDGE, leaves,
        lambda: asked(report, "a wire above leaves being cut", clients[:1], tree))


def cut(report, tree, what, letter, paths, meanwhile):
    """Cuts a wire under two calls, for as long as it takes to find that out and to tell the calls, and longer."""
    wire, once = tree.country.wires[letter], next(path for path in ONCE if path[0] == letter)
    reading = next(path for path in tree.leaves if path[0] == letter and path not in ONCE)
    with ThreadPoolExecutor(2) as pool:
        calls = {kind: Held(tree, path, pool) for kind, path in (("changes", once), ("reads", reading))}
        try:
            until(report, f"tree/large: calls are under way over {what}", lambda: all(call.runs() for call in calls.values()), within=FOUND_WITHIN)
            wire.cut()
            lost(report, tree, what, *paths)
            for kind, call in calls.items():
                error = call.reply.result(FOUND_WITHIN).error
                told = error.get("code"), error.get("data", {}).get("reason")
                report.equal(f"tree/large: a call that {kind} over {what} is told its outcome", told, (-32004, "outcome_unknown"))
            meanwhile()
        finally:
            wire.mend()
            for call in calls.values():
                call.let_go()
    whole(report, tree, what, *paths)
    report.equal(f"tree/large: what changes was done once over {what}", calls["changes"].runs(), 1)


class Held:
    """A call of a leaf's tool, from the root, which the leaf answers when it is let go."""

    def __init__(self, tree, path, pool):
        self.file = Path(tree.root.home.dir, f"{path}.held")
        client = Modern(tree.root.url(), headers=bearer(SECRET), timeout=2 * FOUND_WITHIN)
        self.reply = pool.submit(client.tool, f"{path}.at.who".replace(".", "__"), {"hold": str(self.file)})

    def runs(self):
        """How often it reached the leaf."""
        return self.file.read_text().count("\n") if self.file.exists() else 0

    def let_go(self):
        """The leaf may answer."""
        self.file.with_suffix(".go").touch()


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
    whole(report, tree, what, path)
