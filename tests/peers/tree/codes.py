"""Each refusal of a registration (AX-27), one by one, by its code and its name, as a subserver hears it that was written from the draft alone.

The codes are those of docs/configuration.md; a code that nothing here brings about is a failure.
"""
import json
import sqlite3
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

from gateway import Gateway, free_port
from rooms.entering import KEYS, RESOURCE, keys, token
from trouble.tap import Tap
from tree.draft import AGGREGATOR, REGISTRY, Server, until
from wire import Legacy

NOWHERE = "http://127.0.0.1:9/mcp"
PLANT = "dns:press.plant.example"
LONG = "a" * 63


class Asked(Server):
    """A subserver that answers `mcpax/parent`; with `holds`, the first question only once there is a second."""

    def __init__(self, *tools, parent=None, holds=False):
        self.parent, self.holds = parent, holds
        self.first, self.second = threading.Event(), threading.Event()
        super().__init__(*tools)

    def result(self, method, params):
        """What is answered."""
        if method != "mcpax/parent":
            return super().result(method, params)
        if self.holds and not self.first.is_set():
            self.first.set()
            self.second.wait(1)
        self.second.set()
        return {"parent_id": self.parent}


def plain(number, segment, **more):
    """A registration of the draft, of a subserver of its own."""
    return {"subserver_id": f"550e8400-e29b-41d4-a716-{number:012}", "segment": segment, "capabilities": {"tools": True},
            "heartbeat_interval_ms": 5000, "version": "2026-05-01", "url": NOWHERE, **more}


def run(report):
    """All of them: which code came with which word."""
    heard = {}
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        known = Path(place, "keys.json")
        known.write_text(keys())
        plant = f"resource = '{RESOURCE}'\n[authority.plant]\nkeys = '{known}'\nnames = ['*.plant.example']\n"
        gate = stack.enter_context(Gateway("tree codes", {}, config=plant + REGISTRY + "proof = 'never'\n"))
        for work in (asked_back, of_segments, of_sessions, of_messages, of_authorities, of_settings, of_claims, of_names, of_links):
            report.guard(f"tree/codes {work.__name__}", lambda w=work: heard.update(w(report, gate)))
    report.equal("tree/codes: every code, with its word", heard, WORDS)


WORDS = {
    -31001: "namespace_conflict", -31002: "registration_cycle", -31003: "split_brain", -31004: "duplicate_subserver",
    -31005: "subserver_silent", -31006: "authority_mismatch", -31007: "authority_required", -31008: "not_admitted",
    -31009: "dotted_name", -31010: "name_too_long", -31011: "segment_invalid", -31012: "unknown_session", -31013: "aggregator_full",
    -31014: "claims_unavailable", -31015: "registration_rate_limited", -31016: "heartbeat_interval_invalid",
    -31017: "subtree_out_of_step", -31018: "subtree_too_large", -31019: "version_unsupported",
}


def word(report, what, error):
    """The code of a refusal with its word, which `message` and `data.reason` have alike, beside a hint."""
    data = error.get("data", {})
    report.check(f"tree/codes: {what}", error.get("message") == data.get("reason") and data.get("hint"), error)
    return {error.get("code"): error.get("message")}


def refused(report, gate, what, params, method="mcpax/register"):
    """The same, of a request that is refused."""
    return word(report, what, Legacy(gate.url()).call(method, params).error)


def asked_back(report, gate):
    """What the answer to a question to the subserver, or to the holder of its id, brings about."""
    wire = Legacy(gate.url())
    with Asked("a", parent="550e8400-e29b-41d4-a716-00000000ffff") as elsewhere, Asked("b") as here, Asked("c", holds=True) as slow:
        heard = refused(report, gate, "registered elsewhere", plain(1, "elsewhere", url=elsewhere.url))
        here.parent = wire.call("mcpax/register", plain(2, "here", url=here.url)).result["aggregator_id"]
        with Asked("d") as twin:
            heard |= refused(report, gate, "a live twin", plain(2, "twin", url=twin.url))
        # A second application takes the place of the first, which waits for the answer of its server.
        first = []
        earlier = threading.Thread(target=lambda: first.append(Legacy(gate.url()).call("mcpax/register", plain(3, "slow", url=slow.url)).error))
        earlier.start()
        slow.first.wait(10)
        later = wire.call("mcpax/register", plain(3, "slow", url=slow.url))
        earlier.join(10)
        report.equal("tree/codes: the later of two applications", later.error, {})
        return heard | word(report, "the earlier of two applications", first[0] if first else {})


def of_segments(report, gate):
    """Taken segments, illegal ones, circles."""
    wire = Legacy(gate.url())
    with Asked("a") as server:
        own = wire.call("mcpax/register", plain(11, "taken", url=server.url)).result["aggregator_id"]
        circle = plain(12, "circle", **{"x-mcpax-subtree-ids": [own]})
        return (refused(report, gate, "a taken segment", plain(13, "taken", url=server.url)) | refused(report, gate, "a circle", circle)
                | refused(report, gate, "an illegal segment", plain(14, "Not.Legal")))


def of_sessions(report, gate):
    """Sessions that are not there, and one that ended by a dotted name: its server hears the reason with its next heartbeat, people at once."""
    wire = Legacy(gate.url())
    heard = refused(report, gate, "a heartbeat of nobody", {"session_id": "00000000-0000-4000-8000-000000000000"}, "mcpax/heartbeat")
    with Asked("a.b") as dotted:
        session = wire.call("mcpax/register", plain(21, "dotted", url=dotted.url)).result["session_id"]
        error = until(lambda: wire.call("mcpax/heartbeat", {"session_id": session}).error)
    report.equal("tree/codes: a dotted name is told", (error["code"], error["data"].get("ended")), (-31012, "dotted_name"))
    # No request is refused by it: the list comes after the registration.
    told = json.loads(gate.told("explain", "dotted", "--json"))["refused"]
    report.check("tree/codes: and shown to whoever runs the gate", told and told[0]["hint"], told)
    return heard | {told[0]["code"]: told[0]["reason"]}


def of_messages(report, gate):
    """Members that can't be, and changes of a subtree."""
    many = [f"550e8400-e29b-41d4-a716-{number:012x}" for number in range(1 << 20, (1 << 20) + 4200)]
    heard = (refused(report, gate, "a short interval", plain(31, "beats", heartbeat_interval_ms=5))
             | refused(report, gate, "another version", plain(32, "old", version="2020-01-01"))
             | refused(report, gate, "a large subtree", plain(33, "large", **{"x-mcpax-subtree-ids": many})))
    with Asked("a") as server:
        above = {**AGGREGATOR, "segment": "stepping", "heartbeat_interval_ms": 5000, "url": server.url}
        session = Legacy(gate.url()).call("mcpax/register", above).result["session_id"]
        step = {"session_id": session, "version": 7, "joined": many[:1], "left": []}
        return heard | refused(report, gate, "a change out of step", step, "mcpax/subtree")


def of_authorities(report, gate):
    """An authority claimed beside the proof of another, and none where one is demanded."""
    proof = token("EdDSA", KEYS["EdDSA"], sub="mill.plant.example")
    heard = refused(report, gate, "another authority", plain(41, "press", authority=PLANT, authority_proof=proof))
    with Gateway("tree codes strict", {}, config=REGISTRY + "proof = 'always'\n") as strict:
        return heard | refused(report, strict, "no proof", plain(42, "press"))


def of_settings(report, _gate):
    """A gate that takes nobody, and one that is full."""
    with Gateway("tree codes shut", {}, config="") as shut:
        heard = refused(report, shut, "nobody may register", plain(51, "any"))
    with Gateway("tree codes full", {}, config=REGISTRY + "proof = 'never'\nregistrations = 1\n") as full, Asked("a") as server:
        report.equal("tree/codes: room for one", Legacy(full.url()).call("mcpax/register", plain(52, "one", url=server.url)).error, {})
        return heard | refused(report, full, "no room for two", plain(53, "two", url=server.url))


def of_claims(report, _gate):
    """Owners of segments that can't be kept."""
    with Gateway("tree codes claims", {}, config=REGISTRY + "proof = 'never'\nsticky = 'always'\n") as gate, Asked("a") as server:
        with sqlite3.connect(Path(gate.home.dir, ".local/state/banyan/banyan.db")) as store:
            store.execute("ALTER TABLE claims RENAME TO away")
        return refused(report, gate, "no place for claims", plain(61, "kept", authority=PLANT, url=server.url))


def of_names(report, _gate):
    """A segment that is too long below three gates with the longest ones."""
    registry = REGISTRY + "proof = 'never'\ntrust_gates = true\n"
    with ExitStack() as stack:
        gates = [stack.enter_context(Gateway("tree codes top", {}, config=registry))]
        for level in "abc":
            node = f"[node]\nsegment = '{level * 63}'\n[[parent]]\nurl = 'http://127.0.0.1:{gates[-1].port}'\n"
            gates.append(stack.enter_context(Gateway(f"tree codes {level}", {}, config=registry + node)))
        wire, asked = Legacy(gates[-1].url()), plain(71, LONG)
        return word(report, "a long name", until(lambda: too_long(wire.call("mcpax/register", asked).error)))


def too_long(error):
    """The refusal, once the gate knows how long the names above it are."""
    return error if error.get("code") == -31010 else None


def of_links(report, _gate):
    """A gate whose link falls silent behind its registration, so that it does not answer the question for its parent."""
    with Gateway("tree codes parent", {}, config=REGISTRY + "proof = 'never'\ntrust_gates = true\n") as parent, Silencing(parent.port) as tap:
        node = f"[node]\nsegment = 'mute'\nheartbeat = '4s'\n[[parent]]\nurl = 'http://127.0.0.1:{tap.port}'\n"
        with Gateway("tree codes mute", {}, config=REGISTRY + node, port=free_port()):
            error = until(tap.error)
            return word(report, "a silent link", error or {})


class Silencing(Tap):
    """A tap that lets nothing more through to the parent behind a registration."""

    def _pass(self, source, sink):
        is_child = source.getsockname()[1] == self.port
        try:
            while data := source.recv(1 << 16):
                self.seen += data
                sink.sendall(data)
                while is_child and b"mcpax/register" in self.seen and source.recv(1 << 16):
                    pass
        except OSError:
            pass

    def error(self):
        """The error that passed to the child, if any."""
        _, found, rest = self.text().partition('"error":')
        try:
            return json.JSONDecoder().raw_decode(rest)[0] if found else None
        except ValueError:
            return None
