"""What the programs of the reference of MCPx v0.1 send, replayed, as its sources have it at 9ecec2d (it is there as source alone): they fetch a token,
begin with `initialize` at each peer, answer whatever they hear, and announce tools with a bare kind (MX-10, MX-15, MX-21)."""
import contextlib
import json
import queue
import random
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

from gateway import Gateway
from rooms.party import PATIENCE, Party
from wire import Legacy

LEAF = Path(__file__).parent.parent / "tree" / "leaf.py"
SECRET = "a secret of thirty-two bytes or more, for the reference"
CONFIG = """
[rooms]
secret = "${{env:ROOM_SECRET}}"
dev_tokens = true
[room.ops]
mount = true
seats = ["files"]
routing = "directed"
echo = false
capabilities = ["mcp/*", "chat"]
[mount.files]
command = {python}
args = [{leaf}, "files"]
"""
VERSION = "2024-11-05"


def cases():
    """One, against a gate of its own."""
    return {"reference": reference}.items()


class Agent(threading.Thread):
    """The class `MCPxAgent` upon `MCPxClient`: it answers every request that it hears, whoever that is for."""

    def __init__(self, gateway, name, path):
        super().__init__(daemon=True)
        self.name, self.errors, self.waiting = name, queue.Queue(), {}
        self.party = Party(gateway, "ops", fetched(gateway, path, name))
        self.start()

    def run(self):
        with contextlib.suppress(Exception):
            while True:
                self.handle(self.party.hear())

    def handle(self, envelope):
        """`handleEnvelope`: the first response with its id settles a request."""
        payload, of = envelope["payload"], envelope.get("correlation_id")
        if envelope["kind"] == "system/error":
            self.errors.put(envelope)
        elif envelope["kind"].startswith("mcp/") and of in self.waiting:
            self.waiting.pop(of).put(payload)
        elif envelope["kind"].startswith("mcp/") and "method" in payload and "id" in payload:
            answer = {"jsonrpc": "2.0", "id": payload["id"], **self.served(payload["method"], payload.get("params") or {})}
            self.send(f"mcp/response:{payload['method']}", answer, to=[envelope["from"]], correlation_id=envelope["id"])

    def served(self, method, params):
        """`handleMCPRequest`."""
        results = {
            "initialize": {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": {"name": self.name, "version": "0.1.0"}},
            "tools/list": {"tools": [{"name": "add", "description": "Adds", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": f"{self.name}: {params.get('arguments')}"}]},
            "resources/list": {"resources": []},
            "prompts/list": {"prompts": []},
        }
        known = results.get(method)
        return {"result": known} if known else {"error": {"code": -32603, "message": f"Method not found: {method}"}}

    def send(self, kind, payload, **members):
        """`send`."""
        envelope = {"protocol": "mcpx/v0.1", "id": str(uuid.uuid4()), "ts": "2025-08-30T12:00:00.000Z", "from": self.name, **members,
                    "kind": kind, "payload": payload}
        self.party.socket.send(json.dumps(envelope))
        return envelope["id"]

    def request(self, to, method, params):
        """`request`: the result, or the text of the error."""
        came = queue.Queue()
        context = f":{params['name']}" if method == "tools/call" else ""
        envelope = {"protocol": "mcpx/v0.1", "id": str(uuid.uuid4()), "ts": "2025-08-30T12:00:00.000Z", "from": self.name, "to": [to],
                    "kind": f"mcp/request:{method}{context}",
                    "payload": {"jsonrpc": "2.0", "id": random.randrange(1000000), "method": method, "params": params}}
        self.waiting[envelope["id"]] = came
        self.party.socket.send(json.dumps(envelope))
        payload = came.get(timeout=PATIENCE)
        return payload.get("result") or payload["error"]["message"]

    def initialize(self, peer):
        """`initializePeer`."""
        own = {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "clientInfo": {"name": self.name, "version": "0.1.0"}}
        result = self.request(peer, "initialize", own)
        self.send("mcp/request:notifications/initialized", {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}, to=[peer])
        return result


def fetched(gateway, path, name):
    """`getToken` of the examples."""
    body = json.dumps({"participantId": name, "topic": "ops"}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{gateway.port}{path}", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())["token"]


def reference(report, name, _place):
    """A coordinator and two agents that answer everything, at a table with a server, and a client of the gate that calls one of them."""
    config = CONFIG.format(python=json.dumps(sys.executable), leaf=json.dumps(str(LEAF)))
    with Gateway(name, {}, env={"ROOM_SECRET": SECRET}, config=config) as gateway:
        agents = [Agent(gateway, one, path) for one, path in (("calculator", "/v0/auth/token"), ("echo-bot", "/v0.1/auth/token"))]
        coordinator = Agent(gateway, "coordinator", "/v0.1/auth/token")
        report.check(f"{name}: a seat is initialized", coordinator.initialize("files")["serverInfo"]["name"], gateway.tail())
        tools = coordinator.request("files", "tools/list", {})
        report.equal(f"{name}: its tools", [tool["name"] for tool in tools["tools"]], ["who"])
        called = coordinator.request("files", "tools/call", {"name": "who", "arguments": {}})
        report.equal(f"{name}: its call", called["content"][0]["text"], "files")
        report.check(f"{name}: the gate itself", "protocolVersion" in coordinator.initialize("gate"))
        answers = {coordinator.request("calculator", "tools/call", {"name": "add", "arguments": {"n": 1}})["content"][0]["text"]
                   for _ in range(50)}
        report.equal(f"{name}: nobody answers for another", answers, {"calculator: {'n': 1}"})
        said = agents[0].send("mcp", {"jsonrpc": "2.0", "method": "notifications/tools/available", "params": {"tools": []}})
        error = agents[0].errors.get(timeout=PATIENCE)
        report.equal(f"{name}: a bare kind", (error["correlation_id"], error["payload"]["error"]), (said, "capability_violation"))
        client, tool = Legacy(gateway.url()), "room__ops__calculator__add"
        until = time.monotonic() + PATIENCE
        while tool not in [one["name"] for one in client.call("tools/list").result["tools"]] and time.monotonic() < until:
            time.sleep(0.1)
        report.equal(f"{name}: called from outside", client.tool(tool, {"n": 2}).text, "calculator: {'n': 2}")
        try:
            refusal = fetched(gateway, "/v0.1/auth/token", "files")
        except urllib.error.HTTPError as error:
            refusal = error.code
        report.check(f"{name}: nobody gets the token of a seat", refusal == 409, refusal)
