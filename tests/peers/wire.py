"""A bare MCP client over streamable HTTP, in both eras: what goes over the wire, with the bytes kept.

Used where an SDK would hide what the test is about: bytes, headers, statuses, hostile servers. Standard
library only, blocking; use threads for several calls at once. `Legacy` and `Modern` have the same `call`.
"""
import base64
import http.client
import itertools
import json
import queue
import socket
import threading
import time
import urllib.parse
from dataclasses import dataclass, field

LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
# Times the timeout of a call that its answer may take, while its stream shows life.
PATIENCE = 3
INFO = {"name": "banyan-peer-wire", "version": "1"}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
         "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}


@dataclass
class Reply:
    """The answer to one request: HTTP status, the message, its bytes, and what came before it."""

    status: int
    message: dict | None
    raw: bytes
    before: list = field(default_factory=list)
    headers: dict = field(default_factory=dict)

    @property
    def result(self):
        """The `result` member, or a RuntimeError that quotes what came instead."""
        if not self.message or "result" not in self.message:
            raise RuntimeError(f"no result but HTTP {self.status} {self.raw[:600]!r}")
        return self.message["result"]

    @property
    def error(self):
        """The `error` member, or an empty dict."""
        return (self.message or {}).get("error") or {}

    @property
    def text(self):
        """The text of the first content block of a tool's result, or the error as text."""
        if self.error:
            return json.dumps(self.error)
        content = self.result.get("content") or [{}]
        return content[0].get("text", "")

    @property
    def result_bytes(self):
        """The bytes of the `result` member exactly as they came."""
        return member(self.raw, "result")


def member(raw, wanted):
    """The bytes of a top-level member of a JSON object, exactly as they stand there."""
    text, decoder = raw.decode(), json.JSONDecoder()
    at = text.index("{") + 1
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        key, at = decoder.raw_decode(text, at)
        at = text.index(":", at) + 1
        while text[at] in " \t\r\n":
            at += 1
        start = at
        _, at = decoder.raw_decode(text, at)
        if key == wanted:
            return text[start:at].encode()


class Connection:
    """One HTTP exchange whose body may be a stream of events."""

    def __init__(self, url, method, body=None, headers=None, timeout=60):
        parts = urllib.parse.urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        self._connection.request(method, parts.path or "/", body=body, headers=headers or {})
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.headers = {k.lower(): v for k, v in self._answer.getheaders()}
        self.last_id, self.retry = None, 0.0

    def events(self, until=None):
        """The messages of the body as bytes: one for JSON, any number for an event stream, which fails after `until` though it lives."""
        if "event-stream" not in self.headers.get("content-type", ""):
            body = self._answer.read()
            if body:
                yield body
            return
        data = []
        while line := self._answer.readline():
            if until and time.monotonic() > until:
                self.close()
                raise TimeoutError("the stream lives, and the answer does not come")
            line = line.rstrip(b"\r\n")
            if not line:
                if any(data):
                    yield b"\n".join(data)
                data = []
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif line.startswith(b"id:"):
                self.last_id = line[3:].strip().decode()
            elif line.startswith(b"retry:"):
                self.retry = int(line[6:]) / 1000

    def close(self):
        """Ends the exchange at once, also while another thread reads from it."""
        if self._connection.sock:
            try:
                self._connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._connection.close()


class Stream:
    """Messages that come by themselves, read by a thread of its own; `serve` answers requests among them."""

    def __init__(self, connection, serve=None):
        self.connection, self.seen, self._queue, self._serve = connection, [], queue.Queue(), serve
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for data in self.connection.events():
                message = json.loads(data)
                if self._serve and "id" in message and "method" in message:
                    self._serve(message)
                self._queue.put(message)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass

    def wait(self, method, within=5.0, where=lambda message: True):
        """The next message with this method (None = any), or None when it does not come in time."""
        end = time.monotonic() + within
        while (left := end - time.monotonic()) > 0:
            try:
                message = self._queue.get(timeout=left)
            except queue.Empty:
                return None
            self.seen.append(message)
            if (method is None or message.get("method") == method) and where(message):
                return message
        return None

    def close(self):
        self.connection.close()


class Wire:
    """What both eras share. `answer(method, params)` serves the server's requests and returns a result."""

    def __init__(self, url, capabilities=None, answer=None, headers=None, info=None, timeout=60):
        self.url, self.capabilities = url, capabilities or {}
        self.answer, self.extra, self.info, self.timeout = answer, headers or {}, info or INFO, timeout
        self._ids = itertools.count(1)

    def headers(self, message):
        """The HTTP headers of a message."""
        raise NotImplementedError

    def open(self, message, timeout=None):
        """POSTs one message."""
        return Connection(self.url, "POST", json.dumps(message).encode(), self.headers(message), timeout or self.timeout)

    def tools(self):
        """All tools, by name; the schemas are remembered."""
        found = {}
        cursor = {}
        while True:
            result = self.call("tools/list", cursor).result
            found.update({tool["name"]: tool for tool in result["tools"]})
            if not result.get("nextCursor"):
                self.known = found
                return found
            cursor = {"cursor": result["nextCursor"]}

    def tool(self, name, arguments=None, **params):
        """Calls a tool."""
        return self.call("tools/call", {"name": name, "arguments": arguments or {}, **params})

    def call(self, method, params=None, timeout=None):
        """One request and its reply."""
        raise NotImplementedError


class Legacy(Wire):
    """The era of `initialize` and sessions."""

    def __init__(self, url, version=LEGACY, **more):
        super().__init__(url, **more)
        self.version, self.session = None, None
        hello = {"protocolVersion": version, "capabilities": self.capabilities, "clientInfo": self.info}
        reply = self.call("initialize", hello)
        self.welcome = reply.result
        self.session = reply.headers.get("mcp-session-id")
        self.version = self.welcome["protocolVersion"]
        self.notify("notifications/initialized")

    def headers(self, message):
        out = {"content-type": "application/json", "accept": "application/json, text/event-stream", **self.extra}
        if self.version:
            out["mcp-protocol-version"] = self.version
        if self.session:
            out["mcp-session-id"] = self.session
        return out

    def notify(self, method, params=None):
        """Sends a notification; returns the HTTP status."""
        connection = self.open({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})
        list(connection.events())
        return connection.status

    def call(self, method, params=None, timeout=None, on_open=None):
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params or {}}
        connection = self.open(message, timeout)
        if on_open:
            on_open(message["id"])
        before, until = [], time.monotonic() + PATIENCE * (timeout or self.timeout)
        while True:
            for raw in connection.events(until):
                got = json.loads(raw)
                if "method" not in got:
                    return Reply(connection.status, got, raw, before, connection.headers)
                before.append(got)
                if "id" in got:
                    self._serve(got)
            if connection.last_id is None:
                return Reply(connection.status, None, b"", before, connection.headers)
            if time.monotonic() > until:
                raise TimeoutError(f"{method} is not answered, however often its stream is taken up again")
            time.sleep(connection.retry)
            connection = Connection(
                self.url, "GET", headers={**self.headers(None), "last-event-id": connection.last_id}, timeout=timeout or self.timeout)

    def _serve(self, request):
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = self.answer(request["method"], request.get("params") or {})
        except (LookupError, TypeError) as refused:
            reply["error"] = {"code": -32601, "message": f"not served by this client: {refused}"}
        list(self.open(reply).events())

    def stream(self):
        """The session's GET stream; what the server asks there is served."""
        connection = Connection(self.url, "GET", headers={**self.headers(None), "accept": "text/event-stream"}, timeout=None)
        return Stream(connection, self._serve)

    def close(self):
        """Ends the session."""
        if self.session:
            Connection(self.url, "DELETE", headers=self.headers(None))


class Modern(Wire):
    """The stateless era (2026-07-28)."""

    def __init__(self, url, version=MODERN, log_level=None, **more):
        super().__init__(url, **more)
        self.version, self.log_level, self.known = version, log_level, {}
        self.welcome = self.call("server/discover").result

    def meta(self, given=None):
        """The `_meta` that every request carries."""
        level = {META + "logLevel": self.log_level} if self.log_level else {}
        return {META + "protocolVersion": self.version, META + "clientCapabilities": self.capabilities,
                META + "clientInfo": self.info, **level, **(given or {})}

    def headers(self, message):
        out = {"content-type": "application/json", "accept": "application/json, text/event-stream",
               "mcp-protocol-version": self.version, "mcp-method": message["method"], **self.extra}
        params = message["params"]
        if key := NAMED.get(message["method"]):
            out["mcp-name"] = encoded(str(params.get(key, "")))
        if message["method"] == "tools/call":
            schema = self.known.get(params.get("name"), {}).get("inputSchema", {})
            for name, about in schema.get("properties", {}).items():
                value = (params.get("arguments") or {}).get(name)
                if value is not None and about.get("x-mcp-header"):
                    out["mcp-param-" + about["x-mcp-header"].lower()] = encoded(value if isinstance(value, str) else json.dumps(value))
        return out

    def call(self, method, params=None, timeout=None, on_open=None, rounds=10):
        params = dict(params or {})
        given, before = params.pop("_meta", None), []
        for _ in range(rounds):
            message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": {**params, "_meta": self.meta(given)}}
            connection = self.open(message, timeout)
            if on_open:
                on_open(connection)
            reply = Reply(connection.status, None, b"", before, connection.headers)
            for raw in connection.events(time.monotonic() + PATIENCE * (timeout or self.timeout)):
                got = json.loads(raw)
                if "method" in got:
                    before.append(got)
                else:
                    reply.message, reply.raw = got, raw
                    break
            result = (reply.message or {}).get("result")
            if not self.answer or not isinstance(result, dict) or result.get("resultType") != "input_required":
                return reply
            asked = result.get("inputRequests") or {}
            params["inputResponses"] = {k: self.answer(r["method"], r.get("params") or {}) for k, r in asked.items()}
            params.pop("requestState", None)
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise RuntimeError(f"{method} still asks for input after {rounds} rounds")

    def listen(self, **notifications):
        """A `subscriptions/listen` stream, after its acknowledgement."""
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": "subscriptions/listen",
                   "params": {"notifications": notifications, "_meta": self.meta()}}
        stream = Stream(self.open(message, timeout=None))
        stream.id = message["id"]
        stream.acknowledged = stream.wait("notifications/subscriptions/acknowledged")
        return stream


def encoded(value):
    """A header value: plain where that is safe, else the base64 form."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return "=?base64?" + base64.b64encode(value.encode()).decode() + "?="
