"""What a room does with what is said in it (MX-01, MX-03, MX-04, MX-05, MX-12, MX-13, MX-14, MX-15, MX-17, MX-18, MX-19)."""
import json
import urllib.request

from rooms.examples import RESERVED, SENT
from rooms.party import FULL, PROPOSES, Party

TEXT = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "lights", "arguments": {"on": True}}}


def cases():
    """Each of them has a room of its own, and `ann`, `bob` and `bot` with their tokens."""
    return {
        "joining": joining, "bytes": same_bytes, "call": call, "proposal": proposal, "refusals": refusals, "examples": examples,
        "capabilities": capabilities, "takeover": takeover, "routing": routing, "slow": slow, "order": order,
    }.items()


def joining(report, name, gateway, room):
    """The joiner is welcomed first; then everybody hears of it, and of its leaving."""
    with Party(gateway, room, "ann-secret") as ann:
        report.equal(f"{name}/welcome first", (ann.welcome["kind"], ann.welcome["from"], ann.welcome["to"]),
                     ("system/welcome", "system:gateway", ["ann"]))
        report.equal(f"{name}/you", ann.welcome["payload"]["you"], {"id": "ann", "capabilities": FULL})
        report.equal(f"{name}/own presence", ann.joined["payload"]["participant"]["id"], "ann")
        with Party(gateway, room, "bot-secret") as bot:
            report.equal(f"{name}/others", bot.welcome["payload"]["participants"], [{"id": "ann", "capabilities": FULL}])
            report.equal(f"{name}/join", ann.hear()["payload"],
                         {"event": "join", "participant": {"id": "bot", "capabilities": PROPOSES}})
        report.equal(f"{name}/leave", ann.hear()["payload"], {"event": "leave", "participant": {"id": "bot"}})


def same_bytes(report, name, gateway, room):
    """What is passed on is what came, foreign members, spacing and numbers included."""
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bob-secret") as bob:
        ann.hear()
        for number, text in enumerate((
            '{"protocol":"mcpx/v0.1","id":"b1","from":"ann","kind":"chat","payload":{"text":"\\u00fc ü","n":1.0e+2},"extra":[1,{"a":null}]}',
            ' {\n\t"payload" : { } , "kind":"chat", "to":[], "id":"b2","from":"ann","protocol":"mcpx/v0.1" }\n',
            '{"protocol":"mcpx/v0.1","id":"b3","from":"ann","kind":"chat","payload":{"big":123456789012345678901234567890}}',
        )):
            ann.socket.send(text)
            report.equal(f"{name}/{number}", bob.hear_text(), text)


def call(report, name, gateway, room):
    """A request to one of them, and its answer: everybody sees both."""
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bob-secret") as bob, Party(gateway, room, "bot-secret") as bot:
        asked = ann.say("mcp/request:tools/call:lights", TEXT, to=["bob"])
        heard = bob.hear_of(asked)
        report.equal(f"{name}/request", heard["payload"], TEXT)
        answered = bob.say("mcp/response:tools/call:lights", {"jsonrpc": "2.0", "id": 7, "result": {}}, to=["ann"], correlation_id=asked)
        report.equal(f"{name}/response", ann.hear_of(answered)["correlation_id"], asked)
        report.equal(f"{name}/seen by others", bot.hear_of(answered)["from"], "bob")


def proposal(report, name, gateway, room):
    """Who may not call proposes; another one fulfils it; the answer reaches both."""
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bob-secret") as bob, Party(gateway, room, "bot-secret") as bot:
        refused = bot.say("mcp/request:tools/call:lights", TEXT, to=["bob"])
        report.equal(f"{name}/not itself", bot.error()["correlation_id"], refused)
        proposed = bot.say("mcp/proposal:tools/call:lights", {"method": "tools/call", "params": TEXT["params"]}, to=["bob"])
        seen = ann.hear_of(proposed)
        fulfilled = ann.say("mcp/request:tools/call:lights", {**TEXT, "params": seen["payload"]["params"]}, to=["bob"],
                            correlation_id=proposed)
        report.equal(f"{name}/fulfilment", bob.hear_of(fulfilled)["correlation_id"], proposed)
        done = bob.say("mcp/response:tools/call:lights", {"jsonrpc": "2.0", "id": 7, "result": {}}, to=["ann", "bot"],
                       correlation_id=fulfilled)
        report.equal(f"{name}/outcome", [who.hear_of(done)["correlation_id"] for who in (ann, bot)], [fulfilled] * 2)
        bot.say("mcp/proposal:tools/list", {"method": "tools/list"}, correlation_id=proposed)
        report.equal(f"{name}/a proposal refers to nothing", bot.error()["payload"]["error"], "invalid_envelope")
        bob.say("mcp/response:tools/list", {"result": {}})
        report.equal(f"{name}/a response refers", bob.error()["payload"]["error"], "invalid_envelope")


def refusals(report, name, gateway, room):
    """What goes nowhere is told to its sender in an envelope, and reaches nobody."""
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bot-secret") as bot:
        ann.hear()
        cases = {
            "spoofed from": (json.dumps(bot.envelope("chat", {"text": "x"}, **{"from": "ann"})), "auth_violation"),
            "duplicate key": ('{"protocol":"mcpx/v0.1","id":"d","from":"bot","from":"ann","kind":"chat","payload":{}}', "invalid_envelope"),
            "escaped duplicate": ('{"protocol":"mcpx/v0.1","id":"e","from":"bot","fr\\u006fm":"ann","kind":"chat","payload":{}}',
                                  "invalid_envelope"),
            "no capability": (json.dumps(bot.envelope("mcp/request:tools/list", {"method": "tools/list"})), "capability_violation"),
            "bare mcp": (json.dumps(bot.envelope("mcp", {})), "capability_violation"),
            "presence": (json.dumps(bot.envelope("presence", {})), "capability_violation"),
            "system": (json.dumps(bot.envelope("system", {})), "capability_violation"),
            "version": (json.dumps(bot.envelope("chat", {}, protocol="mcpx/v0.2")), "unsupported_protocol"),
            "payload": (json.dumps(bot.envelope("chat", "text")), "invalid_envelope"),
            "to": (json.dumps(bot.envelope("chat", {}, to="ann")), "invalid_envelope"),
            "ts": (json.dumps(bot.envelope("chat", {}, ts="yesterday")), "invalid_envelope"),
            "list": ("[]", "invalid_envelope"),
            "no json": ("hello", "invalid_envelope"),
        }
        for what, (text, code) in cases.items():
            bot.socket.send(text)
            error = bot.error()
            report.equal(f"{name}/{what}", (error["from"], error["to"], error["payload"]["error"]), ("system:gateway", ["bot"], code))
        for number, example in enumerate(RESERVED):
            bot.socket.send(json.dumps({**example, "from": "bot"}))
            report.equal(f"{name}/reserved {number}", bot.error()["payload"]["error"], "capability_violation")
        said = bot.chat("after all that")
        report.equal(f"{name}/reaches nobody", ann.hear()["id"], said)


def examples(report, name, gateway, room):
    """Every example of the specification that a participant sends, with a time and without, arrives as it was sent."""
    with Party(gateway, room, "ann-secret") as watcher:
        for example in SENT:
            with Party(gateway, "spec", "spec-secret") as sender:
                for stamped in (example, {**example, "ts": "2025-08-26T14:00:00Z"}):
                    text = json.dumps({**stamped, "from": sender.id})
                    sender.socket.send(text)
                    report.equal(f"{name}/{example['id']} {'with' if 'ts' in stamped else 'without'} ts", sender.hear_text(), text)
        report.equal(f"{name}/another room hears nothing", watcher.hear_of(watcher.chat("quiet here"))["from"], "ann")


def change(gateway, room, who, body):
    """Asks for other capabilities of somebody; what is answered."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{gateway.port}/admin/participants/{who}/capabilities?topic={room}", data=json.dumps(body).encode(),
        headers={"Authorization": "Bearer ann-secret", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def capabilities(report, name, gateway, room):
    """A changed capability holds from the next message on, with a fresh welcome; and back."""
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bot-secret") as bot:
        changed = change(gateway, room, "bot", {"add": ["mcp/request:tools/*"], "remove": []})
        more = [*PROPOSES, "mcp/request:tools/*"]
        report.equal(f"{name}/answer", (changed["participantId"], changed["oldCapabilities"], changed["newCapabilities"],
                                        changed["modifiedBy"]), ("bot", PROPOSES, more, "ann"))
        fresh = bot.hear()
        report.equal(f"{name}/fresh welcome", (fresh["kind"], fresh["payload"]["you"]["capabilities"]), ("system/welcome", more))
        asked = bot.say("mcp/request:tools/call:lights", TEXT, to=["ann"])
        report.equal(f"{name}/granted", ann.hear_of(asked)["from"], "bot")
        change(gateway, room, "bot", {"add": [], "remove": ["mcp/request:tools/*"]})
        asked = bot.say("mcp/request:tools/call:lights", TEXT, to=["ann"])
        report.equal(f"{name}/revoked", bot.error()["correlation_id"], asked)


def takeover(report, name, gateway, room):
    """The same participant anew: the old connection is closed, nobody hears of a leave, and the new one gets all."""
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bot-secret") as old, Party(gateway, room, "bot-secret") as new:
        report.equal(f"{name}/the old one", old.closed(), 4009)
        said = ann.chat("still there?")
        before = []
        while (message := ann.hear())["id"] != said:
            before.append(message["payload"]["event"])
        report.equal(f"{name}/nobody left", before, ["join", "join"])
        report.equal(f"{name}/the new one", new.hear()["id"], said)


def routing(report, name, gateway, room):
    """Who asks for what is directed gets that and what is for everybody."""
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bot-secret", routing="directed", echo="0") as bot:
        ann.chat("not for bot", to=["bob"])
        wanted = [ann.chat("for all"), ann.chat("for bot", to=["bob", "bot"]), ann.chat("for all again", to=[])]
        report.equal(f"{name}/directed", [bot.hear()["id"] for _ in wanted], wanted)


def slow(report, name, gateway, _room):
    """Who does not read is cut off with a reason, and those who do have everything in order."""
    with Party(gateway, "flood", "ann-secret") as ann, Party(gateway, "flood", "bob-secret") as bob:
        text, gone = "x" * 200_000, False
        ann.hear()
        # The library reads a little ahead of whoever asks it, and the system buffers: at some time both are full.
        while not gone:
            said = ann.chat(text)
            message = ann.hear()
            gone = message["kind"] == "system/presence"
            if not gone and message["id"] != said:
                break
        report.check(f"{name}/everything came, and then the leave", gone)
        report.equal(f"{name}/the reason", bob.closed(), 1013)


def order(report, name, gateway, room):
    """Two that talk at once: everybody has what each said in its order."""
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bob-secret") as bob, Party(gateway, room, "bot-secret") as bot:
        said = {"ann": [], "bob": []}
        for _ in range(100):
            for who in (ann, bob):
                said[who.id].append(who.chat("one of many"))
        for who in (ann, bob, bot):
            heard = {"ann": [], "bob": []}
            while len(heard["ann"]) + len(heard["bob"]) < 200:
                message = who.hear()
                if message["kind"] == "chat":
                    heard[message["from"]].append(message["id"])
            report.equal(f"{name}/{who.id}", heard, said)
