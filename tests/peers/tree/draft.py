"""A subserver and an aggregator written from the text of the draft alone: they register, beat, are routed to by cursor through three gates,
are refused, are lost and leave (AX-20, AX-22, AX-23, AX-30, AX-33, AX-61).

Nothing here knows our extension, but for `url`, without which a registration by plain HTTP is refused: the parent would have nowhere to call.
"""
import json
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gateway import Gateway
from wire import Legacy, Modern

WITHIN = 20
# 6.1, as printed.
REGISTRATION = {
    "subserver_id": "550e8400-e29b-41d4-a716-446655440000",
    "segment": "stm32h7",
    "authority": "dns:edge01.factory.example.com",
    "capabilities": {"tools": True, "resources": False, "notifications": True},
    "heartbeat_interval_ms": 5000,
    "transport_class": "uart_cbor",
    "version": "2026-05-01",
}
OTHER = {**REGISTRATION, "subserver_id": "550e8400-e29b-41d4-a716-446655440001"}
AGGREGATOR = {**REGISTRATION, "subserver_id": "550e8400-e29b-41d4-a716-446655440002", "segment": "plant", "heartbeat_interval_ms": 1000,
              "x-mcpax-subtree-ids": ["550e8400-e29b-41d4-a716-446655440002"]}
# 9.1.
SCHEMA = ("latency_class", "consistency", "mutable", "reversible", "idempotent", "transport", "auth_scope", "cost_class", "availability")
REGISTRY = "[registry]\nprincipals = ['local']\n"


class Server(ThreadingHTTPServer):
    """An MCP server of the initialize era with these tools, which keeps the params of every call."""

    daemon_threads = True

    def __init__(self, *tools):
        super().__init__(("127.0.0.1", 0), Answering)
        self.tools, self.calls = tools, []
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def result(self, method, params):
        """What is answered; nothing for what is not known."""
        if method == "tools/call":
            self.calls.append(params)
            return {"content": [{"type": "text", "text": "ok"}]}
        hints = {"readOnlyHint": True}
        return {
            "initialize": {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                           "serverInfo": {"name": "draft", "version": "1"}},
            "ping": {},
            "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}, "annotations": hints} for name in self.tools]},
        }.get(method)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Answering(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):  # noqa: N802
        """A message, answered in one piece."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            return self.send(202, b"")
        result = self.server.result(message["method"], message.get("params") or {})
        outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "Method not found"}}
        return self.send(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode())

    def do_GET(self):  # noqa: N802
        """There is no stream."""
        self.send(405, b"")

    def send(self, status, body):
        """An answer."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        # A server that ends leaves no connection on which it could still be called.
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing is written."""


def run(report):
    """A client above a gate above a gate, and below them who knows the draft."""
    with ExitStack() as stack:
        edge = stack.enter_context(Gateway("tree draft edge", {}, config=REGISTRY + "proof = 'never'\ngrace = '2s'\n"))
        root = stack.enter_context(Gateway("tree draft root", {}, config=f"[mount.edge]\nurl = '{edge.url()}'\ngate = true\n"))
        report.guard("tree/draft subserver", lambda: subserver(report, edge))
        report.guard("tree/draft aggregator", lambda: aggregator(report, edge, root))


def subserver(report, edge):
    """The registration of 6.1, its answer, its refusals, and its end."""
    say, gate = "tree/draft subserver: ", Legacy(edge.url())
    with Server("dma2d_status") as server:
        bare = gate.call("mcpax/register", REGISTRATION).error
        report.check(say + "6.1 as printed has nowhere to be called, and is told so", "url" in bare["data"]["hint"] + json.dumps(bare), bare)
        answer = gate.call("mcpax/register", {**REGISTRATION, "url": server.url}).result
        kept = (answer["status"], answer["assigned_segment"], answer["heartbeat_deadline_ms"], isinstance(answer["budget"], dict))
        report.equal(say + "the answer of 6.2", kept, ("registered", "stm32h7", 15000, True))
        report.equal(say + "a heartbeat", gate.call("mcpax/heartbeat", {"session_id": answer["session_id"]}).error, {})
        report.check(say + "it is called", until(lambda: not gate.tool("stm32h7__dma2d_status", {}).error), edge.tail())
        tool = until(lambda: listed(gate, "stm32h7__dma2d_status"))
        lacking = [name for name in SCHEMA if "x-mcpax-" + name.replace("_", "-") not in tool.get("_meta", {})]
        report.check(say + "the annotations of 9.1", not lacking and tool["_meta"]["x-mcpax-transport"] == "uart_cbor", tool)
        refused = gate.call("mcpax/register", {**OTHER, "url": server.url}).error
        report.equal(say + "a second one", refused["data"]["reason"], "namespace_conflict")
        circle = {**OTHER, "segment": "other", "url": server.url, "x-mcpax-subtree-ids": [answer["aggregator_id"]]}
        report.equal(say + "a circle", gate.call("mcpax/register", circle).error["data"]["reason"], "registration_cycle")
        gate.call("mcpax/deregister", {"session_id": answer["session_id"]})
        report.check(say + "it leaves", until(lambda: not listed(gate, "stm32h7__dma2d_status")), edge.tail())


def aggregator(report, edge, root):
    """An aggregator below two gates: the way of its calls, and its loss."""
    say, gate, client = "tree/draft aggregator: ", Legacy(edge.url()), Modern(root.url())
    name = "edge__plant__stm32h7__dma2d_status"
    with Server("stm32h7.dma2d_status") as server:
        answer = gate.call("mcpax/register", {**AGGREGATOR, "url": server.url}).result
        beat(edge, answer["session_id"])
        report.check(say + "it is called through two gates", until(lambda: not client.tool(name, {}).error), edge.tail())
        meta = server.calls[-1]["_meta"]
        route, cursor = meta["x-mcpax-route"], meta["x-mcpax-cursor"]
        report.equal(say + "the route", route, ["edge", "plant", "stm32h7", "dma2d_status"])
        report.equal(say + "the cursor is at its own server", (cursor, route[cursor]), (2, "stm32h7"))
        report.equal(say + "nothing else of gates", [key for key in meta if key.startswith("x-mcpax-")], ["x-mcpax-route", "x-mcpax-cursor"])
        above = Legacy(edge.url(), capabilities={"experimental": {"io.banyan/mcpax": {"aggregator_id": OTHER["subserver_id"]}}})
        way = {"x-mcpax-route": ["infra", "plant", "stm32h7", "dma2d_status"], "x-mcpax-cursor": 1}
        asked = above.call("tools/call", {"name": "infra.plant.stm32h7.dma2d_status", "arguments": {}, "_meta": way})
        report.equal(say + "a gate goes by the cursor, whatever the name", (asked.error, server.calls[-1]["_meta"]["x-mcpax-cursor"]), ({}, 2))
        report.equal(say + "two hops", listed(client, name)["_meta"]["x-mcpax-hops"], 2)
    error = until(lambda: client.tool(name, {}).error)
    data = error.get("data", {})
    report.equal(say + "lost, its calls are refused", (error.get("code"), data.get("reason")), (-32002, "subserver_unreachable"))
    report.check(say + "since when, and when to retry", str(data.get("since", "")).endswith("Z") and data.get("retry_after_ms"), error)
    report.check(say + "it goes after the grace, though it beats", until(lambda: not listed(client, name)), edge.tail())


def beat(gate, session):
    """Heartbeats from now on, from a thread that ends with this process."""
    def beats():
        wire = Legacy(gate.url())
        while not wire.call("mcpax/heartbeat", {"session_id": session}).error:
            time.sleep(0.3)
    threading.Thread(target=lambda: quietly(beats), daemon=True).start()


def quietly(work):
    """Does it until the gate is gone."""
    try:
        work()
    except (OSError, StopIteration, ValueError):
        pass


def listed(wire, name):
    """A tool as it is listed; nothing where it is not."""
    tools = wire.call("tools/list").result["tools"]
    return next((tool for tool in tools if tool["name"] == name), {})


def until(look):
    """What `look` finds, once it finds something; what it found last, when that takes too long."""
    end, found = time.monotonic() + WITHIN, look()
    while not found and time.monotonic() < end:
        time.sleep(0.1)
        found = look()
    return found
