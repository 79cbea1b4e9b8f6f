"""Rooms (MCPx v0.1), with clients that were written from the specification's text: Python's `websockets`, bare sockets, and Node's WebSocket."""
import os
import subprocess
import tempfile
from pathlib import Path

import install
from gateway import Gateway
from rooms import beyond, entering, frames, mew, mounted, reference, seats, silence, talk, terminal
from rooms.party import FULL, PATIENCE, Party

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 120
CONFIG = """
resource = "{resource}"
[issuer.login]
issuer = "{issuer}"
keys = "{keys}"
[rooms]
issuers = ["login"]
secret = "${{env:ROOM_SECRET}}"
query_token = true
mew = true
[rooms.limits]
messages_at_once = 100000
refusals = 1000
[room.ops]
[room.flood.limits]
queue_messages = 16
messages_at_once = 1000000
bytes_at_once = "4GiB"
[room.quiet]
[room.of-history.limits]
history = 5
[room.spec]
[room.club]
access = "restricted"
members = ["ann"]
[room.vault]
access = "private"
[participant.ann]
token = "${{env:ANN}}"
rooms = ["*"]
capabilities = {full}
[participant.bob]
token = "${{env:BOB}}"
rooms = ["*"]
capabilities = {full}
[participant.bot]
token = "${{env:BOT}}"
rooms = ["of-*"]
[participant.spec]
token = "${{env:SPEC}}"
rooms = ["spec"]
capabilities = {full}
[participant.zoe]
token = "${{env:ZOE}}"
rooms = ["vault"]
"""


def run(report):
    """All cases against one gate, each in its turn, and those of rooms that servers sit in, or that stand in the tree, each against one of its own."""
    for name, case in (*seats.cases(), *mounted.cases(), *reference.cases()):
        with tempfile.TemporaryDirectory() as place:
            report.guard(f"rooms/{name}", lambda n=name, c=case, p=place: c(report, f"rooms/{n}", Path(p)))
    with tempfile.TemporaryDirectory() as place:
        keys = os.path.join(place, "keys.json")
        with open(keys, "w") as file:
            file.write(entering.keys())
        own = "".join(f"[room.of-{name}]\nadmins = [\"ann\"]\n" for name, _ in own_cases())
        config = CONFIG.format(resource=entering.RESOURCE, issuer=entering.ISSUER, keys=keys, full=str(FULL).replace("'", '"')) + own
        env = {name.upper(): f"{name}-secret" for name in ("ann", "bob", "bot", "spec", "zoe")} | {"ROOM_SECRET": entering.SHARED}
        with Gateway("rooms", {}, env=env, config=config) as gateway:
            quiet = silence.Silence(report, "rooms/silence", gateway)
            for name, case in own_cases():
                # What the case before left behind is no business of the next.
                report.guard(f"rooms/{name}", lambda n=name, c=case: c(report, f"rooms/{n}", gateway, f"of-{n}"))
            for module in (entering, frames):
                for name, case in module.cases():
                    report.guard(f"rooms/{name}", lambda n=name, c=case: c(report, f"rooms/{n}", gateway))
            report.guard("rooms/node", lambda: node(report, "rooms/node", gateway))
            report.guard("rooms/ws", lambda: with_ws(report, "rooms/ws", gateway))
            quiet.end()
            report.guard("rooms/end", lambda: end(report, "rooms/end", gateway))


def own_cases():
    """Those that have a room of their own."""
    return (*talk.cases(), *beyond.cases(), *mew.cases(), *terminal.cases())


def node(report, name, gateway):
    """A participant in Node, by the WebSocket of browsers."""
    with Party(gateway, "ops", "ann-secret") as ann:
        address = f"ws://127.0.0.1:{gateway.port}/ws?topic=ops&token=bob-secret"
        script = os.path.join(os.path.dirname(__file__), "browser.mjs")
        with subprocess.Popen([install.node(), script, address, "bob"], stdout=subprocess.PIPE, text=True) as other:
            report.equal(f"{name}/welcome", other.stdout.readline().strip(), "here as bob")
            asked = ann.say("mcp/request:tools/list", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, to=["bob"])
            while (message := ann.hear()).get("correlation_id") != asked:
                pass
            report.equal(f"{name}/answer", message["payload"]["result"]["tools"][0]["name"], "lights")
            ann.chat("go")
            report.equal(f"{name}/closed in order", other.wait(PATIENCE), 0)


def with_ws(report, name, gateway):
    """A participant by Node's `ws`: refused without a good token, it proposes where it may not call."""
    script = os.path.join(os.path.dirname(__file__), "ws.mjs")
    env = os.environ | {"PEERS_NODE_MODULES": install.node_modules()}

    def other(token):
        address = f"ws://127.0.0.1:{gateway.port}/ws?topic=of-call"
        return subprocess.Popen([install.node(), script, address, token, "bot", "ann"], stdout=subprocess.PIPE, text=True, env=env)

    with other("guess") as stranger:
        report.equal(f"{name}/refused", stranger.communicate(timeout=PATIENCE)[0].strip(), "refused 401")
    with Party(gateway, "of-call", "ann-secret") as ann, other("bot-secret") as bot:
        report.equal(f"{name}/welcome", bot.stdout.readline().strip(), "here as bot")
        report.equal(f"{name}/not itself", bot.stdout.readline().split()[0], "capability_violation")
        while (proposal := ann.hear())["kind"] != "mcp/proposal:tools/call:lights":
            pass
        payload = {"jsonrpc": "2.0", "id": 1, **proposal["payload"]}
        request = ann.say("mcp/request:tools/call:lights", payload, to=["ann"], correlation_id=proposal["id"])
        ann.say("mcp/response:tools/call:lights", {"jsonrpc": "2.0", "id": 1, "result": {"n": 7}}, to=["ann", "bot"], correlation_id=request)
        report.equal(f"{name}/done", bot.stdout.readline().strip(), "done 7")
        report.equal(f"{name}/closed in order", bot.wait(PATIENCE), 0)


def end(report, name, gateway):
    """A gate that ends says so."""
    with Party(gateway, "ops", "ann-secret") as ann:
        gateway.process.terminate()
        report.equal(name, ann.closed(), 1001)
