"""Clients of MEW v0.4 in a room of MCPx v0.1: written from the text of its specification alone, on the `websockets` library. What a room promises
holds for them (MX-04, MX-12, MX-13, MX-20).

They say who they are in a first message, as its clients do, or by a header, as its specification has it.
"""
import itertools
import json

from rooms.party import PATIENCE, Party, refused
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

NUMBERS = itertools.count(1)
CALL = {"method": "tools/call", "params": {"name": "lights", "arguments": {"on": True}}}


class Mew:
    """A participant of a space, from its welcome on."""

    def __init__(self, gateway, space=None, token=None, header=False, first=None, query=None):
        query = query if query is not None else (f"?space={space}" if header else "")
        headers = {"Authorization": f"Bearer {token}-secret"} if header else {}
        self.id = token
        self.socket = connect(f"ws://127.0.0.1:{gateway.port}/ws{query}", additional_headers=headers, open_timeout=PATIENCE, max_size=None,
                              compression=None, proxy=None)
        if not header or first:
            asks = {"type": "join", "space": space, "token": f"{token}-secret", "participantId": token, "capabilities": []}
            self.socket.send(first or json.dumps(asks))
        self.welcome = self.hear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def say(self, kind, payload, **members):
        """Sends an envelope; answers its id."""
        envelope = {"protocol": "mew/v0.4", "id": f"{self.id}-{next(NUMBERS)}", "ts": "2025-11-01T10:00:00Z", "from": self.id, "kind": kind,
                    "payload": payload, **members}
        self.socket.send(json.dumps(envelope))
        return envelope["id"]

    def hear(self):
        """The next message, which is one of MEW."""
        message = json.loads(self.socket.recv(timeout=PATIENCE))
        assert message["protocol"] == "mew/v0.4" and ":" not in message["kind"], message
        assert isinstance(message.get("correlation_id", []), list), message
        return message

    def hear_of(self, wanted):
        """The next message of that id."""
        while (message := self.hear())["id"] != wanted:
            pass
        return message

    def hear_kind(self, kind):
        """The next message of that kind."""
        while (message := self.hear())["kind"] != kind:
            pass
        return message

    def until(self, last):
        """All messages before that one."""
        came = []
        while (message := self.hear())["id"] != last:
            came.append(message)
        return came


def cases():
    """Each has a room of its own, and `ann`, `bob` and `bot` with their tokens."""
    return {"mew-joining": joining, "mew-calls": calls, "mew-proposals": proposals, "mew-kinds": kinds, "mew-refusals": refusals,
            "mew-waiting": waiting}.items()


def joining(report, name, gateway, room):
    """A first message lets in, and so does a header; capabilities are objects there and patterns here."""
    with Party(gateway, room, "bot-secret") as bot, Mew(gateway, room, "ann") as ann:
        you, others = ann.welcome["payload"]["you"], ann.welcome["payload"]["participants"]
        report.equal(f"{name}/welcome", (ann.welcome["kind"], ann.welcome["to"], you["id"]), ("system/welcome", ["ann"], "ann"))
        report.equal(f"{name}/objects", you["capabilities"], [{"kind": "mcp/*"}, {"kind": "chat"}])
        report.equal(f"{name}/others", others, [{"id": "bot", "capabilities": [
            {"kind": "mcp/proposal"}, {"kind": "mcp/withdraw"}, {"kind": "mcp/response"}, {"kind": "chat"}]}])
        report.equal(f"{name}/seen by others", bot.hear()["payload"]["participant"], {"id": "ann", "capabilities": ["mcp/*", "chat"]})
        with Mew(gateway, room, "bob", header=True) as bob:
            report.equal(f"{name}/by a header", bob.welcome["payload"]["you"]["id"], "bob")
            report.equal(f"{name}/presence", ann.hear_kind("system/presence")["payload"]["participant"]["id"], "ann")
            joined = ann.hear_kind("system/presence")["payload"]
            report.equal(f"{name}/of another", (joined["event"], joined["participant"]["id"]), ("join", "bob"))
    with Mew(gateway, room, "ann", query=f"?space={room}") as ann, Mew(gateway, room, "bob", header=True, first=JOIN_AGAIN) as bob:
        ann.socket.send(JOIN_AGAIN)
        last = ann.say("chat", {"text": "there already"})
        report.check(f"{name}/joining twice is nothing", all(m["kind"] == "system/presence" for m in [*ann.until(last), *bob.until(last)]))
    for query in (f"?space={room}&routing=directed&echo=0", "?routing=directed&echo=0"):
        with Party(gateway, room, "bob-secret") as bob, Mew(gateway, room, "ann", query=query) as ann:
            own = ann.say("chat", {"text": "mine"})
            bob.hear_of(own)
            unaddressed = bob.say("chat", {"text": "for bot"}, to=["bot"])
            heard = [m["id"] for m in ann.until(bob.chat("for everybody"))]
            report.check(f"{name}/the choice of {query}", own not in heard and unaddressed not in heard, heard)


JOIN_AGAIN = '{"type":"join","space":"elsewhere","token":"x","participantId":"y"}'


def calls(report, name, gateway, room):
    """Calls go through both ways, and their answers find them."""
    with Mew(gateway, room, "ann") as ann, Party(gateway, room, "bob-secret") as bob, Mew(gateway, room, "bot") as bot:
        asked = ann.say("mcp/request", CALL, to=["bob"], context="work/1")
        heard = bob.hear_of(asked)
        report.equal(f"{name}/kind", heard["kind"], "mcp/request:tools/call:lights")
        report.equal(f"{name}/payload", heard["payload"], {"jsonrpc": "2.0", "id": asked, **CALL})
        answer = {"jsonrpc": "2.0", "id": asked, "result": {"n": 1}}
        answered = bob.say("mcp/response:tools/call:lights", answer, to=["ann"], correlation_id=asked)
        report.equal(f"{name}/answer", (ann.hear_of(answered)["correlation_id"], bot.hear_of(asked)["context"]), ([asked], "work/1"))
        asked = bob.say("mcp/request:resources/read:file:///a:b", {"jsonrpc": "2.0", "id": 1, "method": "resources/read",
                                                                    "params": {"uri": "file:///a:b"}}, to=["bot"])
        report.equal(f"{name}/to one of MEW", bot.hear_of(asked)["kind"], "mcp/request")
        # MEW's own agents write a list of one as a text.
        answered = bot.say("mcp/response", {"result": {"contents": []}}, to=["bob"], correlation_id=asked)
        told = bob.hear_of(answered)
        report.equal(f"{name}/and back", (told["kind"], told["correlation_id"]), ("mcp/response:resources/read:file:///a:b", asked))
        lie = bob.say("mcp/request:tools/list", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}, to=["bot"])
        last = bob.chat("and this")
        report.check(f"{name}/what its kind does not say is kept back", lie not in [m["id"] for m in bot.until(last)])


def proposals(report, name, gateway, room):
    """A proposal of one is fulfilled, rejected or withdrawn by another, whichever they speak."""
    with Mew(gateway, room, "bot") as bot, Party(gateway, room, "ann-secret", also="mcp/reject,mcp/withdraw") as ann:
        refused_id = bot.say("mcp/request", CALL, to=["ann"])
        told = bot.hear_kind("system/error")
        report.equal(f"{name}/not itself", (told["correlation_id"], told["payload"]["attempted_kind"]), ([refused_id], "mcp/request"))
        report.check(f"{name}/and it is told what it may", {"kind": "mcp/proposal"} in told["payload"]["your_capabilities"], told)
        proposed = bot.say("mcp/proposal", CALL, to=["ann"])
        report.equal(f"{name}/kind", ann.hear_of(proposed)["kind"], "mcp/proposal:tools/call:lights")
        fulfilled = ann.say("mcp/request:tools/call:lights", {"jsonrpc": "2.0", "id": 1, **CALL}, to=["ann"], correlation_id=proposed)
        report.equal(f"{name}/fulfilled", bot.hear_of(fulfilled)["correlation_id"], [proposed])
        proposed = bot.say("mcp/proposal", CALL, to=["ann"])
        bot.hear_of(proposed)
        withdrawn = bot.say("mcp/withdraw", {"reason": "no_longer_needed"}, correlation_id=[proposed])
        told = ann.hear_of(withdrawn)
        report.equal(f"{name}/withdrawn", (told["kind"], told["correlation_id"]), ("mcp/withdraw:tools/call:lights", proposed))
        proposed = bot.say("mcp/proposal", CALL, to=["ann"])
        ann.hear_of(proposed)
        rejected = ann.say("mcp/reject:tools/call:lights", {"reason": "unsafe"}, correlation_id=proposed)
        told = bot.hear_of(rejected)
        report.equal(f"{name}/rejected", (told["kind"], told["payload"]), ("mcp/reject", {"reason": "unsafe"}))
        with Mew(gateway, room, "bob") as bob:
            proposed = bot.say("mcp/proposal", CALL)
            bob.hear_of(proposed)
            fulfilled = bob.say("mcp/request", {"jsonrpc": "2.0", "id": 2, **CALL}, to=["ann"], correlation_id=["other", proposed])
            told = ann.hear_of(fulfilled)
            report.equal(f"{name}/several ids", (told["correlation_id"], told["correlation_ids"]), (proposed, ["other", proposed]))
            report.equal(f"{name}/all of them to one of MEW", bot.hear_of(fulfilled)["correlation_id"], ["other", proposed])


def kinds(report, name, gateway, room):
    """What both know goes through; what MEW does not have stays out, and nobody of v0.1 gets what it did not ask for."""
    from rooms.talk import change
    patterns = {"add": ["chat/*", {"kind": "participant/*"}, {"kind": "reasoning/*"}, "stream/*", "own/*"], "remove": []}
    with Party(gateway, room, "ann-secret", also="participant") as ann, Mew(gateway, room, "bob") as bob, Mew(gateway, room, "bot") as bot:
        for who in ("ann", "bob"):
            change(gateway, room, who, patterns)
        told = bob.hear_kind("system/welcome")["payload"]["you"]["capabilities"]
        report.check(f"{name}/told of what changed", {"kind": "reasoning/*"} in told, told)
        same = [bob.say(kind, {"message": "m"}, correlation_id=["a"]) for kind in
                ("chat/acknowledge", "chat/cancel", "participant/pause", "participant/status", "reasoning/start", "reasoning/thought")]
        last = bob.say("chat", {"text": "so far", "format": "plain"})
        heard = [m["id"] for m in bot.until(last)]
        report.equal(f"{name}/to others of MEW", [i for i in heard if i in same], same)
        heard = []
        while (message := ann.hear())["id"] != last:
            heard.append(message["id"])
        report.equal(f"{name}/to whoever asked", [i for i in heard if i in same], same[3:4])
        for kind in ("own/kind", "chat/other", "stream/data"):
            ann.say(kind, {"text": "x"}, to=["bob"])
        bare = ann.say("participant/resume", {"reason": "done"})
        last = ann.chat("the end")
        heard = [m["id"] for m in bot.until(last)]
        report.equal(f"{name}/what MEW has not stays out", heard, [bare])
        report.equal(f"{name}/a stream goes to whom it names", [m["kind"] for m in bob.until(last)][-2:], ["stream/data", "participant/resume"])


def refusals(report, name, gateway, room):
    """What goes nowhere is told to its sender in an envelope of MEW, and reaches nobody."""
    with Mew(gateway, room, "ann") as ann, Party(gateway, room, "bob-secret") as bob:
        text = {"text": "x"}
        wrong = {
            "spoofed": ({"from": "bob", "kind": "chat", "payload": text}, "auth_violation"),
            "system": ({"from": "ann", "kind": "system/welcome", "payload": {}}, "capability_violation"),
            "method": ({"from": "ann", "kind": "mcp/request", "payload": {}}, "invalid_envelope"),
            "mcpx kind": ({"from": "ann", "kind": "mcp/request:tools/list", "payload": {"method": "tools/call"}}, "invalid_envelope"),
            "nobody asked": ({"from": "ann", "kind": "mcp/response", "correlation_id": ["?"], "payload": {"result": {}}}, "invalid_envelope"),
            "a number for ids": ({"from": "ann", "kind": "chat", "correlation_id": 1, "payload": text}, "invalid_envelope"),
            "grant": ({"from": "ann", "kind": "capability/grant", "payload": {"recipient": "ann", "capabilities": [{"kind": "*"}]}},
                      "invalid_envelope"),
            "stream": ({"from": "ann", "kind": "stream/request", "payload": {"direction": "upload"}}, "invalid_envelope"),
            "protocol": ({"protocol": "mcpx/v0.1", "from": "ann", "kind": "chat", "payload": text}, "unsupported_protocol"),
        }
        for what, (members, error) in wrong.items():
            ann.socket.send(json.dumps({"protocol": "mew/v0.4", "id": what, **members}))
            told = ann.hear_kind("system/error")
            report.equal(f"{name}/{what}", (told["payload"]["error"], told["correlation_id"], told["to"]), (error, [what], ["ann"]))
        for what, raw in {
            "twice": '{"protocol":"mew/v0.4","id":"1","from":"ann","kind":"chat","fro\\u006d":"bob","payload":{"text":"x"}}',
            "two methods": '{"protocol":"mew/v0.4","id":"1","from":"ann","kind":"mcp/request","payload":{"method":"a","method":"b"}}',
            "frame": "#stream-1#data",
            "no JSON": "{",
        }.items():
            ann.socket.send(raw)
            report.equal(f"{name}/{what}", ann.hear_kind("system/error")["payload"]["error"], "invalid_envelope")
        last = ann.say("chat", text)
        seen = []
        while (message := bob.hear())["id"] != last:
            seen.append(message)
        report.check(f"{name}/nobody hears of it", all(m["kind"] == "system/presence" for m in seen), seen)
        ann.socket.send(json.dumps({"protocol": "mew/v0.3", "id": "older", "from": "ann", "kind": "chat", "payload": text}))
        report.equal(f"{name}/v0.3 is read", bob.hear_of("older")["protocol"], "mcpx/v0.1")


def waiting(report, name, gateway, room):
    """Whoever is not let in by its first message hears why, and is closed."""
    join = {"type": "join", "space": room, "token": "ann-secret", "participantId": "ann"}
    for what, first, said in (
        ("no token", {**join, "token": None}, "bearer token"),
        ("wrong token", {**join, "token": "guess"}, "not known"),
        ("another's name", {**join, "participantId": "bob"}, "participantId"),
        ("a room that is not for it", {**join, "space": "vault"}, "no such room"),
        ("no space", {**join, "space": None}, "names no space"),
        ("no join", {"protocol": "mew/v0.4", "id": "1", "from": "ann", "kind": "chat", "payload": {"text": "x"}}, "asks to join"),
    ):
        with connect(f"ws://127.0.0.1:{gateway.port}/ws", open_timeout=PATIENCE, proxy=None) as socket:
            socket.send(json.dumps({key: value for key, value in first.items() if value is not None}))
            told = json.loads(socket.recv(timeout=PATIENCE))
            report.check(f"{name}/{what}", told["kind"] == "system/error" and said in told["payload"]["message"], told)
            report.equal(f"{name}/{what}, closed", code(socket), 1008)
    two = Mew(gateway, room, "ann", query=f"?space={room}")
    with two:
        report.equal(f"{name}/the space in both", two.welcome["kind"], "system/welcome")
    with connect(f"ws://127.0.0.1:{gateway.port}/ws", open_timeout=PATIENCE, proxy=None) as socket:
        socket.send(b"bytes")
        report.check(f"{name}/bytes", "text" in json.loads(socket.recv(timeout=PATIENCE))["payload"]["message"])
    with connect(f"ws://127.0.0.1:{gateway.port}/ws", open_timeout=PATIENCE, proxy=None) as socket:
        socket.send("x" * (17 << 10))
        report.equal(f"{name}/a long first message", json.loads(socket.recv(timeout=PATIENCE))["kind"], "system/error")
    report.equal(f"{name}/a wrong header", refused(gateway, room, "guess"), 401)
    try:
        with connect(f"ws://127.0.0.1:{gateway.port}/ws?space={room}", additional_headers={"Authorization": "Bearer guess"}, proxy=None):
            report.check(f"{name}/a wrong header for a space", False)
    except InvalidStatus as answer:
        report.equal(f"{name}/a wrong header for a space", answer.response.status_code, 401)


def code(socket):
    """With which code the gateway closes."""
    try:
        while True:
            socket.recv(timeout=PATIENCE)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None
