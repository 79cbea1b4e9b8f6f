"""Rooms in the tree: the official Python SDK, in either era, calls what a participant offers that was written from the text of MCPx v0.1 alone, on
Python's `websockets` (MX-21)."""
import contextlib
import json
import threading

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.subscriptions import ToolsListChanged

from gateway import Gateway
from rooms.party import FULL, PATIENCE, Party

OFFERS = ["mcp/response:*", "mcp/request:notifications/*", "chat"]
CONFIG = """
[room.ops]
mount = true
tree = "tools"
[participant.ann]
token = "${{env:ANN}}"
rooms = ["ops"]
capabilities = {full}
[participant.bot]
token = "${{env:BOT}}"
rooms = ["ops"]
capabilities = {offers}
"""
WIPE = {"name": "wipe", "description": "Wipes a disk \u2713", "inputSchema": {"type": "object", "properties": {"disk": {"type": "string"}}},
        "annotations": {"destructiveHint": True}}
SHOWN = "room__ops__bot__wipe"
LISTS = {
    "prompts/list": {"prompts": [{"name": "sum", "description": "Sums up"}]},
    "resources/list": {"resources": [{"uri": "file:///log", "name": "log"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "file:///day/{day}", "name": "day"}]},
}
ASKED = {
    "prompts/get:sum": {"messages": [{"role": "user", "content": {"type": "text", "text": "sum up"}}]},
    "resources/read:file:///log": {"contents": [{"uri": "file:///log", "text": "all is well"}]},
    "resources/read:file:///day/3": {"contents": [{"uri": "file:///day/3", "text": "the third"}]},
}
MODES = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


def cases():
    """One for each era."""
    return {f"mounted, {mode}": lambda report, name, _place, m=mode: mounted(report, name, m) for mode in MODES}.items()


class Offerer(threading.Thread):
    """Comes in as `bot`, and serves what it is asked for until it is told to leave, or to leave under a call."""

    def __init__(self, gateway):
        super().__init__(daemon=True)
        self.party = Party(gateway, "ops", "bot-secret", routing="directed")
        self.asked, self.cancelled, self.going = [], threading.Event(), threading.Event()
        self.start()

    def run(self):
        with contextlib.suppress(Exception):
            while True:
                self.serve(self.party.hear())

    def serve(self, message):
        """One message: what is not for it is passed over."""
        kind = message["kind"]
        if message.get("to") != ["bot"] or not kind.startswith("mcp/request:"):
            return
        payload = message["payload"]
        params = payload.get("params", {})
        if kind == "mcp/request:tools/list":
            self.answer(message, {"tools": [WIPE]})
        elif result := (LISTS | ASKED).get(kind.removeprefix("mcp/request:")):
            self.answer(message, result)
        elif kind == "mcp/request:notifications/cancelled":
            if params["requestId"] == self.asked[-1]["payload"]["id"]:
                self.cancelled.set()
        elif kind == "mcp/request:tools/call:wipe":
            self.asked.append(message)
            disk = params["arguments"]["disk"]
            if disk == "leave":
                self.party.socket.close()
            elif disk != "wait":
                for done in (1, 2):
                    told = {"progressToken": params["_meta"]["progressToken"], "progress": done, "total": 2}
                    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": told}
                    self.party.say("mcp/request:notifications/progress", note, to=["gate"])
                self.answer(message, {"content": [{"type": "text", "text": f"wiped {disk} \u2713"}], "_meta": {"own": [1.5, None]}})

    def answer(self, message, result):
        """As the reference's client has it: the id of JSON-RPC says nothing."""
        payload = {"jsonrpc": "2.0", "id": 0, "result": result}
        kind = message["kind"].replace("request", "response", 1)
        self.party.say(kind, payload, to=[message["from"]], correlation_id=message["id"])


def mounted(report, name, mode):
    """A client that is there first, and a participant that comes, serves, and goes."""
    lists = {"full": json.dumps(FULL), "offers": json.dumps(OFFERS)}
    env = {"ANN": "ann-secret", "BOT": "bot-secret"}
    with Gateway(name, {}, env=env, config=CONFIG.format(**lists)) as gateway, Party(gateway, "ops", "ann-secret") as ann:
        anyio.run(toured, report, name, gateway, mode, ann)


async def toured(report, name, gateway, mode, ann):
    """All that the client does."""
    changed = anyio.Event()

    async def on_message(message):
        if isinstance(getattr(message, "root", message), types.ToolListChangedNotification):
            changed.set()

    async def tools(client):
        return {tool.name: tool for tool in (await client.list_tools(cache_mode="refresh")).tools}

    async with Client(gateway.url(), mode=mode, message_handler=on_message) as client:
        report.equal(f"{name}: the era", client.protocol_version, MODES[mode])
        report.equal(f"{name}: nobody is there", await tools(client), {})
        with anyio.fail_after(PATIENCE):
            async with watching(client, mode, changed) as wait:
                offerer = await anyio.to_thread.run_sync(Offerer, gateway)
                await wait()
            listed = (await tools(client))[SHOWN]
        shown = json.loads(listed.model_dump_json(by_alias=True, exclude_none=True))
        report.equal(f"{name}: the definition", {key: shown.get(key) for key in WIPE}, {**WIPE, "name": SHOWN})
        seen = []

        async def on_progress(done, total, _message):
            seen.append((done, total))
        result = await client.call_tool(SHOWN, {"disk": "a"}, progress_callback=on_progress)
        report.equal(f"{name}: the result", (result.content[0].text, result.meta), ("wiped a \u2713", {"own": [1.5, None]}))
        report.equal(f"{name}: progress", seen, [(1, 2), (2, 2)])
        asked = await anyio.to_thread.run_sync(lambda: heard(ann, "mcp/request:tools/call:wipe"))
        report.equal(f"{name}: all see who asks whom", (asked["from"], asked["to"]), ("gate", ["bot"]))
        await others(report, name, client)
        with anyio.move_on_after(0.5):
            await client.call_tool(SHOWN, {"disk": "wait"})
        told = await anyio.to_thread.run_sync(lambda: offerer.cancelled.wait(PATIENCE))
        report.check(f"{name}: cancelled", told)
        report.check(f"{name}: it leaves under a call", "outcome_unknown" in await refused(client, {"disk": "leave"}))
        with anyio.fail_after(PATIENCE):
            while await tools(client):
                await anyio.sleep(0.01)
        report.check(f"{name}: nobody offers it", "unknown tool" in await refused(client, {"disk": "b"}))


async def others(report, name, client):
    """Prompts and resources of the participant."""
    with anyio.fail_after(PATIENCE):
        while not (resources := (await client.list_resources(cache_mode="refresh")).resources):
            await anyio.sleep(0.01)
        while not (prompts := (await client.list_prompts(cache_mode="refresh")).prompts):
            await anyio.sleep(0.01)
    report.equal(f"{name}: prompts", [(one.name, one.description) for one in prompts], [("room__ops__bot__sum", "Sums up")])
    report.equal(f"{name}: resources", [str(one.uri) for one in resources], ["room:ops.bot/file:///log"])
    prompt = await client.get_prompt("room__ops__bot__sum")
    report.equal(f"{name}: a prompt", prompt.messages[0].content.text, "sum up")
    for uri, text in (("room:ops.bot/file:///log", "all is well"), ("room:ops.bot/file:///day/3", "the third")):
        read = await client.read_resource(uri)
        report.equal(f"{name}: {uri}", read.contents[0].text, text)


@contextlib.asynccontextmanager
async def watching(client, mode, changed):
    """Yields what waits for a changed list, in the way of the era."""
    if mode == "legacy":
        yield changed.wait
        return
    async with client.listen(tools_list_changed=True) as stream:
        async def wait():
            async for event in stream:
                if isinstance(event, ToolsListChanged):
                    return
        yield wait


async def refused(client, arguments):
    """Why a call is refused."""
    try:
        result = await client.call_tool(SHOWN, arguments)
        return f"not at all: {result}"
    except Exception as error:  # noqa: BLE001 - the SDK's own errors are what is looked for
        return f"{error} {getattr(getattr(error, 'error', None), 'data', '')}"


def heard(party, kind):
    """The next message of a kind."""
    while (message := party.hear())["kind"] != kind:
        pass
    return message
