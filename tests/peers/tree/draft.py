"""A subserver and an aggregator written from the text of the draft alone: they register, beat, are routed to by cursor through three gates,
are refused, are lost and leave (AX-20, AX-22, AX-23, AX-30, AX-33, AX-61).

Nothing here knows our extension, but for `url`, without which a registration by plain HTTP is refused: the parent would have nowhere to call.
"""
import json
import re
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gateway import Gateway
from wire import Legacy, Modern

WITHIN = 20
# 6.1, as printed.
PRINTED = json.loads("""
   {
     "jsonrpc": "2.0",
     "method": "mcpax/register",
     "id": 1,
     "params": {
       "subserver_id": "550e8400-e29b-41d4-a716-446655440000",
       "segment": "stm32h7",
       "authority": "dns:edge01.factory.example.com",
       "capabilities": {
         "tools": true,
         "resources": false,
         "notifications": true
       },
       "heartbeat_interval_ms": 5000,
       "transport_class": "uart_cbor",
       "version": "2026-05-01"
     }
   }
""")
REGISTRATION = PRINTED["params"]
# 6.2, as printed, but for what each registration has of its own.
ANSWER = {"status": "registered", "assigned_segment": "stm32h7", "heartbeat_deadline_ms": 15000,
          "budget": {"max_calls_per_minute": 60, "max_mutable_calls_per_session": 10}}
# 7.2, as printed.
WAY = {"x-mcpax-route": ["infra", "edge", "stm32h7", "dma2d_status"], "x-mcpax-cursor": 0}
# 9.1: one value of each line.
STATED = {"latency_class": "slow", "consistency": "eventual", "mutable": False, "reversible": True, "idempotent": True,
          "auth_scope": "read", "cost_class": "metered", "availability": "scheduled", "schema_version": "1.2.0"}
# What is wrong with a registration, and how it is refused.
WRONG = (
    ({"segment": "Not.Legal"}, -31011, "segment_invalid"),
    ({"segment": None}, -32602, "params_invalid"),
    ({"heartbeat_interval_ms": 5}, -31016, "heartbeat_interval_invalid"),
    ({"version": "2020-01-01"}, -31019, "version_unsupported"),
    ({"capabilities": {"tools": "yes"}}, -32602, "params_invalid"),
    ({"url": "ftp://127.0.0.1/"}, -32602, "params_invalid"),
)
OTHER = {**REGISTRATION, "subserver_id": "550e8400-e29b-41d4-a716-446655440001"}
AGGREGATOR = {**REGISTRATION, "subserver_id": "550e8400-e29b-41d4-a716-446655440002", "segment": "plant", "heartbeat_interval_ms": 1000,
              "x-mcpax-subtree-ids": ["550e8400-e29b-41d4-a716-446655440002"]}
# 9.1.
SCHEMA = ("latency_class", "consistency", "mutable", "reversible", "idempotent", "transport", "auth_scope", "cost_class", "availability")
REGISTRY = "[registry]\nprincipals = ['local']\n"


class Server(ThreadingHTTPServer):
    """An MCP server of the initialize era with these tools, which keeps the params of every call."""

    daemon_threads = True

    def __init__(self, *tools, stated=None):
        super().__init__(("127.0.0.1", 0), Answering)
        self.tools, self.stated, self.calls = tools, stated, []
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def result(self, method, params):
        """What is answered; nothing for what is not known."""
        if method == "tools/call":
            self.calls.append(params)
            return {"content": [{"type": "text", "text": "ok"}]}
        more = {"_meta": self.stated} if self.stated else {"annotations": {"readOnlyHint": True}}
        return {
            "initialize": {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                           "serverInfo": {"name": "draft", "version": "1"}},
            "ping": {},
            "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}, **more} for name in self.tools]},
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
        report.guard("tree/draft refusals", lambda: refusals(report, edge))
    report.guard("tree/draft examples", lambda: examples(report))


def refusals(report, edge):
    """Each refusal has a code and a word of its own, the same in `message` and in `data.reason`, and says what helps."""
    gate, where = Legacy(edge.url()), {"url": "http://127.0.0.1:9/mcp"}
    for more, code, word in WRONG:
        error = gate.call("mcpax/register", {**OTHER, **where, **more}).error
        data = error.get("data", {})
        report.equal(f"tree/draft refusals: {more}", (error.get("code"), error.get("message"), data.get("reason")), (code, word, word))
        report.check(f"tree/draft refusals: {more} says what helps", data.get("hint"), error)
    nobody = {"session_id": "00000000-0000-4000-8000-000000000000"}
    for method in ("mcpax/heartbeat", "mcpax/deregister"):
        error = gate.call(method, nobody).error
        report.equal(f"tree/draft refusals: {method} of nobody", (error.get("code"), error.get("message")), (-31012, "unknown_session"))
    with Gateway("tree draft strict", {}, config=REGISTRY + "proof = 'always'\n") as strict:
        alone = Legacy(strict.url())
        report.equal("tree/draft refusals: no such method", alone.call("mcpax/unheard", {}).error.get("code"), -32601)
        error = alone.call("mcpax/register", {**OTHER, **where}).error
        report.equal("tree/draft refusals: without proof", (error.get("code"), error.get("message")), (-31007, "authority_required"))
    with Gateway("tree draft shut", {}, config="") as shut:
        error = Legacy(shut.url()).call("mcpax/register", {**OTHER, **where}).error
        report.equal("tree/draft refusals: nobody may register", (error.get("code"), error.get("message")), (-31008, "not_admitted"))


def examples(report):
    """The examples of 6.1, 6.2, 7.2, 9.1 and 13.2 at three gates, named as in 7.2."""
    say = "tree/draft examples: "
    budget = "[budget.all]\nmax_calls_per_minute = 60\nmax_mutable_calls_per_session = 10\n"
    with ExitStack() as stack:
        edge = stack.enter_context(Gateway("tree draft gateway", {}, config=REGISTRY + "proof = 'never'\ngrace = '1m'\n" + budget))
        mount = "[mount.{}]\nurl = '{}'\ngate = true\n"
        infra = stack.enter_context(Gateway("tree draft regional", {}, config=mount.format("edge", edge.url())))
        root = stack.enter_context(Gateway("tree draft top", {}, config=mount.format("infra", infra.url())))
        with Server("dma2d_status", stated=STATED) as server:
            gate = Legacy(edge.url())
            reply = posted(gate, {**PRINTED, "params": {**REGISTRATION, "url": server.url}})
            answer = reply["result"]
            report.equal(say + "6.2 to the id of 6.1", (reply["id"], {key: answer.get(key) for key in ANSWER}), (1, ANSWER))
            report.check(say + "6.2 has a session", isinstance(answer["session_id"], str) and answer["session_id"], answer)
            mesh = {"io.banyan/mcpax": {"aggregator_id": OTHER["subserver_id"]}}
            above = Legacy(root.url(), capabilities={"experimental": mesh})
            name = "infra.edge.stm32h7.dma2d_status"
            until(lambda: listed(above, name))
            asked = above.call("tools/call", {"name": name, "arguments": {}, "_meta": WAY})
            report.equal(say + "7.2 through three levels", (asked.error, asked.text), ({}, "ok"))
            report.check(say + "nothing of gates reaches a plain server", "x-mcpax-route" not in server.calls[-1].get("_meta", {}), server.calls)
            shown = listed(above, name)["_meta"]
            stated = {key: shown.get("x-mcpax-" + key.replace("_", "-")) for key in STATED}
            report.equal(say + "9.1 goes up as it is stated", stated, STATED)
            report.equal(say + "9.1 has the transport of 6.1", shown.get("x-mcpax-transport"), "uart_cbor")
            report.equal(say + "9.2 counts three hops", shown.get("x-mcpax-hops"), 3)
            unknown = above.call("tools/call", {"name": "infra.edge.stm32h7.nothing", "arguments": {}}).error
            report.equal(say + "5.2 for a tool that is not there", unknown.get("code"), -32601)
        error = until(lambda: gate.tool("stm32h7__dma2d_status", {}).error)
        lost = until(lambda: (gate.tool("stm32h7__dma2d_status", {}).error or {}).get("code") == -32002 and gate.tool("stm32h7__dma2d_status", {}).error)
        data = (lost or error or {}).get("data", {})
        told = (lost or {}).get("code"), (lost or {}).get("message"), data.get("reason")
        report.equal(say + "13.2, code, message and reason", told, (-32002, "tool_degraded", "subserver_unreachable"))
        report.check(say + "13.2, since", re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(data.get("since"))), data)
        report.check(say + "13.2, retry_after_ms", isinstance(data.get("retry_after_ms"), int), data)


def posted(wire, message):
    """The answer to a message that is sent as it stands."""
    for raw in wire.open(message).events():
        got = json.loads(raw)
        if got.get("id") == message["id"]:
            return got
    return {}


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
