#!/usr/bin/env python3
"""Fixture MCP server for black-box gateway tests (own code, no MCP SDK inside).

Serves everything the official conformance suite's *server* scenarios ask for, over
  stdio:  fixture_server.py stdio
  HTTP :  fixture_server.py http --port N [--host 127.0.0.1]     (endpoint /mcp)
and speaks both eras on the same endpoint: `initialize` based (2024-11-05 .. 2025-11-25)
and stateless 2026-07-28.  `--era legacy|modern|both` restricts it.
`--page-size N` paginates every list, `--extra-tools N` adds N dummy tools, `--rename P` puts P in front of
all tool and prompt names (to test the test scripts).
HTTP needs `pip install starlette uvicorn`; stdio needs only the standard library.
"""
import argparse, asyncio, base64, hashlib, hmac, json, os, re, struct, sys, uuid, zlib

LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
MODERN = ["2026-07-28"]
NS = "io.modelcontextprotocol/"


def _png():
    """A 1x1 red pixel."""
    def ch(t, d): return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    return (b"\x89PNG\r\n\x1a\n" + ch(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
            + ch(b"IDAT", zlib.compress(b"\x00\xff\x00\x00")) + ch(b"IEND", b""))


def _wav():
    """Four samples of silence, 8 kHz, 8 bit, mono."""
    d = b"\x80" * 4
    return (b"RIFF" + struct.pack("<I", 36 + len(d)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
            + b"data" + struct.pack("<I", len(d)) + d)


PNG, WAV = base64.b64encode(_png()).decode(), base64.b64encode(_wav()).decode()
# A legal result that a re-serialising proxy tends to damage: member order, number
# spelling, big integers, escapes, unknown members, unknown content-block members.
FIDELITY = ('{"zeta":1,"content":[{"type":"text","text":"caf\\u00e9 \\/ \\ud83d\\ude00","x-vendor":{"b":1,"a":2}}],'
            '"structuredContent":{"z":1.0,"a":12345678901234567890123,"e":1e5,"f":0.10,"n":null},'
            '"isError":false,"vendorField":{"k":[1,2.50,3]},"_meta":{"com.example/t":"v"}%s}')
INFO = {"name": "mcp-fixture", "version": "1.0.0"}
SECRET = os.urandom(32)


class Rpc(Exception):
    def __init__(self, code, message, data=None, status=200):
        super().__init__(message)
        self.err = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self.status = status


class Raw(str):
    """A result given as JSON text, to be put on the wire verbatim."""


def text(s):
    return {"content": [{"type": "text", "text": s}]}


def obj(props=None, req=None, **kw):
    return {"type": "object", "properties": props or {}, **({"required": req} if req else {}), **kw}


def sign(d):
    body = base64.urlsafe_b64encode(json.dumps(d).encode()).decode()
    return body + "." + hmac.new(SECRET, body.encode(), hashlib.sha256).hexdigest()


def unsign(s):
    body, _, mac = (s or "").rpartition(".")
    if not hmac.compare_digest(mac, hmac.new(SECRET, body.encode(), hashlib.sha256).hexdigest()):
        raise Rpc(-32602, "requestState failed its integrity check")
    return json.loads(base64.urlsafe_b64decode(body))


def form(message, props, req=None):
    return {"method": "elicitation/create",
            "params": {"message": message, "requestedSchema": obj(props, req or list(props))}}


def ask_llm(prompt, n=100):
    return {"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}], "maxTokens": n}}


ROOTS = {"method": "roots/list", "params": {}}
CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def need(reqs, state=None):
    r = {"resultType": "input_required", "inputRequests": reqs}
    if state is not None:
        r["requestState"] = state
    return r


def field(resp, name):
    c = (resp or {}).get("content") if isinstance(resp, dict) else None
    return c.get(name) if isinstance(c, dict) else None


class Server:
    def __init__(self, a):
        self.a, self.listeners, self.sessions = a, set(), {}
        self.dynamic = set()
        self.stats = {"calls": 0, "cancelled": 0, "finished": 0}
        self.tools, self.prompts = {}, {}
        self._define()

    # ------------------------------------------------------------------ tools
    def tool(self, name, desc, schema=None, **extra):
        def deco(fn):
            self.tools[name] = ({"name": name, "description": desc, "inputSchema": schema or obj(), **extra}, fn)
            return fn
        return deco

    def _define(self):
        tool = self.tool
        img = {"type": "image", "data": PNG, "mimeType": "image/png"}

        @tool("test_simple_text", "Returns one text block")
        async def _(p, a): return text("This is a simple text response for testing.")

        @tool("test_image_content", "Returns an image")
        async def _(p, a): return {"content": [img]}

        @tool("test_audio_content", "Returns audio")
        async def _(p, a): return {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]}

        @tool("test_embedded_resource", "Returns an embedded resource")
        async def _(p, a): return {"content": [{"type": "resource", "resource": {
            "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}}]}

        @tool("test_multiple_content_types", "Returns text, image and resource")
        async def _(p, a): return {"content": [
            {"type": "text", "text": "Multiple content types test:"}, img,
            {"type": "resource", "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json",
                                              "text": '{"test":"data","value":123}'}}]}

        async def logs(p, a):
            for i, m in enumerate(("Tool execution started", "Tool processing data", "Tool execution completed")):
                if i:
                    await asyncio.sleep(0.05)
                await p.log("info", m)
            return text("logging done")
        tool("test_tool_with_logging", "Emits three log messages")(logs)
        tool("test_logging_tool", "Emits log messages if asked to")(logs)

        @tool("test_tool_with_progress", "Reports 0, 50, 100 of 100")
        async def _(p, a):
            for i in (0, 50, 100):
                await p.progress(i, 100, f"step {i}")
                await asyncio.sleep(0.05)
            return text(str(p.meta.get("progressToken")))

        @tool("test_error_handling", "Always fails")
        async def _(p, a):
            return {**text("This tool intentionally returns an error for testing"), "isError": True}

        @tool("test_sampling", "Asks the client for a completion", obj({"prompt": {"type": "string"}}, ["prompt"]))
        async def _(p, a):
            r = await p.client(ask_llm(a.get("prompt", "")), "sampling")
            c = r.get("content") or {}
            return text("LLM response: " + str(c.get("text", c)))

        async def elicit(p, message, props, req=None):
            f = form(message, props, req)
            if not req:
                f["params"]["requestedSchema"].pop("required", None)
            r = await p.client(f, "elicitation")
            return text(f"Elicitation completed: action={r.get('action')}, content={json.dumps(r.get('content') or {})}")

        @tool("test_elicitation", "Asks the client's user", obj({"message": {"type": "string"}}, ["message"]))
        async def _(p, a):
            return await elicit(p, a.get("message", "?"), {"response": {"type": "string", "description": "User's response"}}, ["response"])

        @tool("test_streaming_elicitation", "Asks the client's user, after a progress note")
        async def _(p, a):
            await p.progress(1, 2, "asking")
            return await elicit(p, "Stream?", {"response": {"type": "string"}}, ["response"])

        @tool("test_elicitation_sep1034_defaults", "Elicitation with defaults")
        async def _(p, a):
            return await elicit(p, "Please review the defaults", {
                "name": {"type": "string", "description": "User name", "default": "John Doe"},
                "age": {"type": "integer", "description": "User age", "default": 30},
                "score": {"type": "number", "description": "User score", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": True}})

        @tool("test_elicitation_sep1330_enums", "Elicitation with the five enum shapes")
        async def _(p, a):
            def titled(*n):
                return [{"const": f"value{i}", "title": f"{t}"} for i, t in enumerate(n, 1)]
            o = ["option1", "option2", "option3"]
            return await elicit(p, "Please choose", {
                "untitledSingle": {"type": "string", "enum": o},
                "titledSingle": {"type": "string", "oneOf": titled("First Option", "Second Option", "Third Option")},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                               "enumNames": ["Option One", "Option Two", "Option Three"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": o}},
                "titledMulti": {"type": "array", "items": {"anyOf": titled("First Choice", "Second Choice", "Third Choice")}}})

        @tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "$defs": {"address": {"$anchor": "addressDef", "type": "object",
                                  "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
            "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                           "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                           "phone": {"type": "string"}, "email": {"type": "string"}},
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": False})
        async def _(p, a): return text("called with " + json.dumps(a))

        @tool("test_reconnection", "Closes its SSE stream, answers later")
        async def _(p, a):
            p.drop_stream()
            await asyncio.sleep(0.1)
            return text("Reconnection test completed")

        @tool("test_x_mcp_header", "Has a mirrored parameter", obj({
            "region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer", "x-mcp-header": "Count"}}))
        async def _(p, a): return text("region=" + str(a.get("region")))

        @tool("test_missing_capability", "Needs the sampling capability")
        async def _(p, a):
            if "sampling" not in p.caps:
                raise Rpc(-32021, "client capability required", {"requiredCapabilities": {"sampling": {}}}, 400)
            return text("ok")

        @tool("test_trigger_tool_change", "Changes the tool list")
        async def _(p, a):
            self.dynamic ^= {"test_dynamic_tool"}
            await self.broadcast("notifications/tools/list_changed", {}, "toolsListChanged")
            return text("tools changed")

        @tool("test_trigger_prompt_change", "Changes the prompt list")
        async def _(p, a):
            self.dynamic ^= {"test_dynamic_prompt"}
            await self.broadcast("notifications/prompts/list_changed", {}, "promptsListChanged")
            return text("prompts changed")

        # ---- multi-round-trip tools (2026-07-28)
        name = {"name": {"type": "string"}}

        @tool("test_input_required_result_elicitation", "MRTR: elicitation")
        async def _(p, a):
            v = field(p.inputs.get("user_name"), "name")
            return text(f"Hello, {v}!") if isinstance(v, str) else need({"user_name": form("What is your name?", name)})

        @tool("test_input_required_result_sampling", "MRTR: sampling")
        async def _(p, a):
            r = p.inputs.get("capital_question")
            if not isinstance(r, dict) or "content" not in r:
                return need({"capital_question": ask_llm("What is the capital of France?")})
            return text(str((r["content"] or {}).get("text")))

        @tool("test_input_required_result_list_roots", "MRTR: roots")
        async def _(p, a):
            r = p.inputs.get("client_roots")
            if not isinstance(r, dict) or "roots" not in r:
                return need({"client_roots": ROOTS})
            return text("roots: " + ", ".join(x.get("uri", "") for x in r["roots"]))

        @tool("test_input_required_result_request_state", "MRTR: state")
        async def _(p, a):
            if not p.inputs.get("confirm"):
                return need({"confirm": form("Please confirm", {"ok": {"type": "boolean"}})}, sign({"s": "confirm"}))
            unsign(p.state)
            return text("state-ok")

        @tool("test_input_required_result_tampered_state", "MRTR: tampered state")
        async def _(p, a):
            if p.state is None and not p.inputs:
                return need({"confirm": form("Please confirm", {"ok": {"type": "boolean"}})}, sign({"s": "tamper"}))
            unsign(p.state)
            return text("state-ok")

        @tool("test_input_required_result_multiple_inputs", "MRTR: three inputs")
        async def _(p, a):
            if {"user_name", "greeting", "client_roots"} - set(p.inputs):
                return need({"user_name": form("What is your name?", name), "greeting": ask_llm("Generate a greeting", 50),
                             "client_roots": ROOTS}, sign({"s": "multi"}))
            unsign(p.state)
            return text("all inputs received")

        @tool("test_input_required_result_multi_round", "MRTR: two rounds")
        async def _(p, a):
            st = unsign(p.state) if p.state else {}
            if "step2" in p.inputs and st.get("r") == 2:
                return text(f"{st['name']} likes {field(p.inputs['step2'], 'color')}")
            if "step1" in p.inputs and st.get("r") == 1:
                return need({"step2": form("Step 2: What is your favorite color?", {"color": {"type": "string"}})},
                            sign({"r": 2, "name": field(p.inputs["step1"], "name")}))
            return need({"step1": form("Step 1: What is your name?", name)}, sign({"r": 1}))

        @tool("test_input_required_result_capabilities", "MRTR: only what the client can do")
        async def _(p, a):
            r = {}
            if "sampling" in p.caps: r["s"] = ask_llm("hi")
            if "elicitation" in p.caps: r["e"] = form("hi", name)
            if "roots" in p.caps: r["r"] = ROOTS
            return text("done") if p.inputs or not r else need(r)

        # ---- tools for the other peer tests
        @tool("fx_echo", "Echoes its text", obj({"text": {"type": "string"}}, ["text"]))
        async def _(p, a):
            self.stats["calls"] += 1
            return text(a.get("text", ""))

        @tool("fx_sleep", "Sleeps ms, with progress; notices cancellation",
              obj({"ms": {"type": "integer"}, "steps": {"type": "integer"}}, ["ms"]))
        async def _(p, a):
            n = a.get("steps", 4)
            try:
                for i in range(n):
                    await asyncio.sleep(a["ms"] / 1000 / n)
                    await p.progress(i + 1, n)
            except asyncio.CancelledError:
                self.stats["cancelled"] += 1
                raise
            self.stats["finished"] += 1
            return text("slept")

        @tool("fx_stats", "Counters of this fixture process")
        async def _(p, a): return {**text(json.dumps(self.stats)), "structuredContent": dict(self.stats)}

        @tool("fx_big", "Returns n bytes of text", obj({"n": {"type": "integer"}}, ["n"]))
        async def _(p, a): return text("x" * a["n"])

        @tool("fx_fidelity", "Returns a result whose bytes a proxy should not change", obj(),
              execution={"taskSupport": "forbidden"}, **{"x-vendor": {"keep": True}})
        async def _(p, a): return Raw(FIDELITY % (',"resultType":"complete"' if p.modern else ""))

        @tool("fx_touch", "Says that a resource was updated, to those who subscribed to it", obj({"uri": {"type": "string"}}, ["uri"]))
        async def _(p, a):
            await self.broadcast("notifications/resources/updated", {"uri": a["uri"]}, "resourceSubscriptions")
            return text("touched")

        @tool("fx_elicit_url", "Asks the client's user to visit a URL")
        async def _(p, a):
            if not p.modern and "url" not in (p.caps.get("elicitation") or {}):
                raise Rpc(-32600, "client does not support elicitation by URL")
            r = await p.client({"method": "elicitation/create", "params": {
                "mode": "url", "message": "Please sign in", "url": "https://example.com/sign-in",
                **({} if p.modern else {"elicitationId": "fx-1"})}}, "elicitation")
            return text("url elicitation: " + str(r.get("action")))

        @tool("fx_url_required", "Fails until a URL was visited (2025-11-25)")
        async def _(p, a):
            raise Rpc(-32042, "sign in first", {"elicitations": [{
                "mode": "url", "elicitationId": "fx-2", "url": "https://example.com/sign-in", "message": "Please sign in"}]})

        @tool("fx_roots", "Asks the client for its roots")
        async def _(p, a):
            r = await p.client(ROOTS, "roots")
            return text("roots: " + ", ".join(x.get("uri", "") for x in r.get("roots", [])))

        @tool("fx_caps", "Returns what this upstream was told about its client")
        async def _(p, a):
            return {**text("caps"), "structuredContent": {"capabilities": p.caps, "clientInfo": p.info, "meta": p.meta, "era": "modern" if p.modern else "legacy"}}

        for i in range(self.a.extra_tools):
            tool(f"fx_dummy_{i:04d}", f"Dummy tool {i}", obj({"v": {"type": "string", "description": "any"}}))(
                lambda p, a, i=i: self._dummy(i, a))

    async def _dummy(self, i, a):
        return text(f"dummy {i} {a.get('v', '')}")

    # ------------------------------------------------------------- prompts etc.
    def prompt_list(self):
        arg = lambda n: {"name": n, "description": n, "required": True}
        ps = [{"name": "test_simple_prompt", "description": "Simple prompt"},
              {"name": "test_prompt_with_arguments", "description": "With arguments", "arguments": [arg("arg1"), arg("arg2")]},
              {"name": "test_prompt_with_embedded_resource", "description": "With a resource", "arguments": [arg("resourceUri")]},
              {"name": "test_prompt_with_image", "description": "With an image"},
              {"name": "test_input_required_result_prompt", "description": "MRTR prompt"}]
        if "test_dynamic_prompt" in self.dynamic:
            ps.append({"name": "test_dynamic_prompt", "description": "Dynamic"})
        return ps

    def get_prompt(self, p, name, a):
        u = lambda c: {"role": "user", "content": c}
        t = lambda s: u({"type": "text", "text": s})
        if name == "test_simple_prompt" or name in self.dynamic:
            return {"messages": [t("This is a simple prompt for testing.")]}
        if name == "test_prompt_with_arguments":
            return {"messages": [t(f"Prompt with arguments: arg1='{a.get('arg1')}', arg2='{a.get('arg2')}'")]}
        if name == "test_prompt_with_embedded_resource":
            return {"messages": [u({"type": "resource", "resource": {
                "uri": a.get("resourceUri", "test://example-resource"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing."}}), t("Please process the embedded resource above.")]}
        if name == "test_prompt_with_image":
            return {"messages": [u({"type": "image", "data": PNG, "mimeType": "image/png"}), t("Please analyze the image above.")]}
        if name == "test_input_required_result_prompt":
            v = field(p.inputs.get("user_context"), "context")
            return {"messages": [t(f"context: {v}")]} if v else need(
                {"user_context": form("What context should the prompt use?", {"context": {"type": "string"}})})
        raise Rpc(-32602, f"Unknown prompt: {name}")

    RES = [("static-text", "text/plain"), ("static-binary", "image/png"), ("watched-resource", "text/plain")]

    def read(self, p, uri):
        if uri == "test://static-text":
            c = {"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}
        elif uri == "test://static-binary":
            c = {"uri": uri, "mimeType": "image/png", "blob": PNG}
        elif uri == "test://watched-resource":
            c = {"uri": uri, "mimeType": "text/plain", "text": "Watched resource content"}
        elif m := re.fullmatch(r"test://template/([^/]+)/data", uri or ""):
            c = {"uri": uri, "mimeType": "application/json", "text": json.dumps(
                {"id": m[1], "templateTest": True, "data": f"Data for ID: {m[1]}"})}
        else:
            raise Rpc(-32602 if p.modern else -32002, "Resource not found", {"uri": uri})
        return {"contents": [c]}

    def caps(self, modern):
        c = {"tools": {"listChanged": True}, "prompts": {"listChanged": True},
             "resources": {"subscribe": True, "listChanged": True}, "completions": {}, "logging": {},
             "experimental": {"fixture": {"v": 1}}}
        return c

    def find(self, name):
        return self.tools.get(name[len(self.a.rename):]) if isinstance(name, str) and name.startswith(self.a.rename) else None

    def page(self, key, items, params):
        n, start = self.a.page_size, 0
        if (cur := params.get("cursor")) is not None:
            try:
                start = int(base64.b64decode(cur).decode().removeprefix("at:"))
            except Exception:
                raise Rpc(-32602, "Invalid cursor")
        if not n:
            return {key: items}
        r = {key: items[start:start + n]}
        if start + n < len(items):
            r["nextCursor"] = base64.b64encode(f"at:{start + n}".encode()).decode()
        return r

    # ------------------------------------------------------------------ dispatch
    async def handle(self, p, method, params):
        """Result of one request, as dict or Raw; raises Rpc."""
        r = await self._handle(p, method, params)
        while not p.modern and isinstance(r, dict) and r.get("resultType") == "input_required":
            p.inputs = {k: await p.client(q, CAPABILITY[q["method"]]) for k, q in r["inputRequests"].items()}
            p.state = r.get("requestState")
            r = await self._handle(p, method, params)
        if p.modern and isinstance(r, dict):
            r.setdefault("resultType", "complete")
            if method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list",
                          "resources/read", "server/discover") and r["resultType"] == "complete":
                r.setdefault("ttlMs", 1000)
                r.setdefault("cacheScope", "public")
            r.setdefault("_meta", {}).setdefault(NS + "serverInfo", INFO)
        return r

    async def _handle(self, p, method, params):
        if method == "server/discover" and p.modern:
            return {"supportedVersions": MODERN, "capabilities": self.caps(True), "instructions": "fixture"}
        if method == "tools/list":
            ts = [t for t, _ in self.tools.values()]
            if "test_dynamic_tool" in self.dynamic:
                ts = ts + [{"name": "test_dynamic_tool", "description": "Dynamic", "inputSchema": obj()}]
            return self.page("tools", [{**t, "name": self.a.rename + t["name"]} for t in ts], params)
        if method == "tools/call":
            t = self.find(params.get("name"))
            if t is None:
                raise Rpc(-32602, f"Unknown tool: {params.get('name')}")
            return await t[1](p, params.get("arguments") or {})
        if method == "prompts/list":
            return self.page("prompts", [{**t, "name": self.a.rename + t["name"]} for t in self.prompt_list()], params)
        if method == "prompts/get":
            name = params.get("name") or ""
            if not name.startswith(self.a.rename):
                raise Rpc(-32602, f"Unknown prompt: {name}")
            return self.get_prompt(p, name[len(self.a.rename):], params.get("arguments") or {})
        if method == "resources/list":
            return self.page("resources", [{"uri": "test://" + n, "name": n, "description": n, "mimeType": m} for n, m in self.RES], params)
        if method == "resources/templates/list":
            return self.page("resourceTemplates", [{"uriTemplate": "test://template/{id}/data", "name": "template",
                                                    "description": "A template", "mimeType": "application/json"}], params)
        if method == "resources/read":
            return self.read(p, params.get("uri"))
        if method == "completion/complete":
            v = (params.get("argument") or {}).get("value", "")
            return {"completion": {"values": [w for w in ("test", "paris", "park", "party") if w.startswith(v)], "total": 4, "hasMore": False}}
        if method == "fixture/echo":     # a method no SDK knows
            return Raw('{"zeta":1,"echo":%s,"tools":[],"alpha":2.50%s}' % (
                json.dumps({k: v for k, v in params.items() if k != "_meta"}), ',"resultType":"complete"' if p.modern else ""))
        if not p.modern:
            if method == "ping":
                return {}
            if method == "logging/setLevel":
                if params.get("level") not in LEVELS:
                    raise Rpc(-32602, "bad level")
                p.set_level(params["level"])
                return {}
            if method == "resources/subscribe":
                p.s.subs.add(params.get("uri"))
                return {}
            if method == "resources/unsubscribe":
                p.s.subs.discard(params.get("uri"))
                return {}
        raise Rpc(-32601, f"Method not found: {method}", status=404 if p.modern else 200)

    async def broadcast(self, method, params, kind):
        for l in list(self.listeners):
            await l(method, dict(params), kind)


LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Peer:
    """What a handler sees of the client behind one request."""

    def __init__(self, send, params, modern, session):
        self.send, self.modern, self.s = send, modern, session
        self.meta = (params or {}).get("_meta") or {}
        self.inputs = (params or {}).get("inputResponses")
        self.inputs = self.inputs if isinstance(self.inputs, dict) else {}
        self.state = (params or {}).get("requestState")
        if modern:
            self.caps, self.info = self.meta.get(NS + "clientCapabilities") or {}, self.meta.get(NS + "clientInfo")
        else:
            self.caps, self.info = session.caps, session.info

    def set_level(self, l): self.s.level = l

    def drop_stream(self):
        if not self.modern and hasattr(self.send, "drop"):
            self.send.drop()

    async def notify(self, method, params):
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def progress(self, n, total, message=None):
        if (tok := self.meta.get("progressToken")) is not None:
            await self.notify("notifications/progress", {"progressToken": tok, "progress": n, "total": total,
                                                         **({"message": message} if message else {})})

    async def log(self, level, data):
        want = self.meta.get(NS + "logLevel") if self.modern else self.s.level
        if want and LEVELS.index(level) >= LEVELS.index(want):
            await self.notify("notifications/message", {"level": level, "logger": "fixture", "data": data})

    async def client(self, req, cap):
        """Input from the client: a server request (legacy) or one MRTR round (modern)."""
        if cap not in self.caps:
            if self.modern:
                raise Rpc(-32021, "client capability required", {"requiredCapabilities": {cap: {}}}, 400)
            raise Rpc(-32600, f"client does not support {cap}")
        if self.modern:
            if "input" in self.inputs:
                return self.inputs["input"]
            raise NeedInput(need({"input": req}))
        rid, fut = f"srv-{uuid.uuid4().hex[:8]}", asyncio.get_running_loop().create_future()
        self.s.pending[rid] = fut
        await self.send({"jsonrpc": "2.0", "id": rid, **req})
        try:
            return await asyncio.wait_for(fut, 20)
        finally:
            self.s.pending.pop(rid, None)


class NeedInput(Exception):
    def __init__(self, r): self.r = r


class Session:
    def __init__(self):
        self.id, self.caps, self.info, self.level, self.subs = uuid.uuid4().hex, {}, None, "debug", set()
        self.pending, self.tasks, self.streams, self.get = {}, {}, {}, None
        self.version = None


def wanted(want, kind, params):
    """Whether a `subscriptions/listen` filter asks for a notification."""
    v = want.get(kind)
    return params.get("uri") in v if isinstance(v, list) else bool(v)


def envelope(mid, r):
    body = str(r) if isinstance(r, Raw) else json.dumps(r, ensure_ascii=False)
    return '{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(mid), body)


def error(mid, e):
    return json.dumps({"jsonrpc": "2.0", "id": mid, "error": e})


async def answer(srv, peer, msg):
    """(json text, http status) for one request."""
    mid, method, params = msg["id"], msg["method"], msg.get("params") or {}
    try:
        return envelope(mid, await srv.handle(peer, method, params)), 200
    except NeedInput as e:
        e.r.setdefault("_meta", {})[NS + "serverInfo"] = INFO
        return envelope(mid, e.r), 200
    except Rpc as e:
        return error(mid, e.err), e.status
    except asyncio.CancelledError:
        raise
    except Exception as e:  # noqa: BLE001
        return error(mid, {"code": -32603, "message": f"{type(e).__name__}: {e}"}), 200


def meta_problem(srv, params):
    m = (params or {}).get("_meta")
    m = m if isinstance(m, dict) else {}
    v = m.get(NS + "protocolVersion")
    if not isinstance(v, str) or not isinstance(m.get(NS + "clientCapabilities"), dict):
        return Rpc(-32602, "missing required _meta fields", status=400)
    if v not in MODERN or srv.a.era == "legacy":
        return Rpc(-32022, "Unsupported protocol version", {"supported": MODERN, "requested": v}, 400)


def initialize(srv, s, params):
    if srv.a.era == "modern":
        raise Rpc(-32601, "initialize is not supported; this server speaks " + ", ".join(MODERN), status=404)
    want = params.get("protocolVersion")
    s.version = want if want in LEGACY else LEGACY[0]
    s.caps, s.info = params.get("capabilities") or {}, params.get("clientInfo")
    return {"protocolVersion": s.version, "capabilities": srv.caps(False), "serverInfo": INFO, "instructions": "fixture"}


# ---------------------------------------------------------------------- stdio
async def run_stdio(srv):
    loop, s, lock, subs = asyncio.get_running_loop(), Session(), asyncio.Lock(), {}
    rd = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(rd), sys.stdin)

    async def put(line):
        async with lock:
            sys.stdout.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
            sys.stdout.flush()

    async def listener(method, params, kind):
        if s.version and (kind != "resourceSubscriptions" or params["uri"] in s.subs):
            await put({"jsonrpc": "2.0", "method": method, "params": params})
        for sid, want in list(subs.items()):
            if wanted(want, kind, params):
                await put({"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {NS + "subscriptionId": sid}}})
    srv.listeners.add(listener)

    async def one(msg):
        mid, method, params = msg["id"], msg["method"], msg.get("params") or {}
        modern = NS + "protocolVersion" in (params.get("_meta") or {}) or method == "server/discover"
        try:
            if method == "initialize" and not modern:
                return await put(envelope(mid, initialize(srv, s, params)))
            if modern and (e := meta_problem(srv, params) if srv.a.era != "legacy" else Rpc(-32601, "Method not found")):
                return await put(error(mid, e.err))
            if modern and method == "subscriptions/listen":
                want = params.get("notifications") or {}
                subs[mid] = want
                await put({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                           "params": {"_meta": {NS + "subscriptionId": mid}, "notifications": want}})
                return
            out, _ = await answer(srv, Peer(put, params, modern, s), msg)
            await put(out)
        except Rpc as e:
            await put(error(mid, e.err))
        finally:
            s.tasks.pop(mid, None)

    while line := await rd.readline():
        if not line.strip():
            continue
        try:
            msg = json.loads(line)
        except ValueError:
            await put(error(None, {"code": -32700, "message": "Parse error"}))
            continue
        if "method" not in msg:
            if fut := s.pending.get(msg.get("id")):
                if not fut.done():
                    fut.set_result(msg["result"]) if "result" in msg else fut.set_exception(Rpc(-32603, str(msg.get("error"))))
        elif "id" in msg:
            s.tasks[msg["id"]] = asyncio.create_task(one(msg))
        elif msg["method"] == "notifications/cancelled":
            rid = (msg.get("params") or {}).get("requestId")
            subs.pop(rid, None)
            if t := s.tasks.get(rid):
                t.cancel()


# ----------------------------------------------------------------------- HTTP
class Stream:
    """One SSE stream whose events can be replayed after a disconnect (legacy only)."""

    def __init__(self):
        self.id, self.ev, self.done, self.dropped = uuid.uuid4().hex[:10], [], False, False
        self.wake = asyncio.Event()

    async def __call__(self, m):
        self.ev.append(m if isinstance(m, str) else json.dumps(m))
        self.wake.set()

    def drop(self):
        self.dropped = True
        self.wake.set()

    def end(self):
        self.done = True
        self.wake.set()

    async def sse(self, start=0, prime=False, ids=True, resumed=False):
        if prime:
            yield f"id: {self.id}:0\nretry: 200\ndata: \n\n"
        i = start
        while True:
            while i < len(self.ev):
                i += 1
                yield (f"id: {self.id}:{i}\n" if ids else "") + f"event: message\ndata: {self.ev[i - 1]}\n\n"
            if self.done or (self.dropped and not resumed):
                return
            self.wake.clear()
            try:
                await asyncio.wait_for(self.wake.wait(), 10)
            except asyncio.TimeoutError:
                yield ": keep-alive\n\n"


def make_app(srv):
    from starlette.applications import Starlette
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route
    J = "application/json"

    def js(body, status=200, **h):
        return Response(body, status, media_type=J, headers=h)

    def bad(status, code, message, mid=None, data=None):
        return js(error(mid, {"code": code, "message": message, **({"data": data} if data else {})}), status)

    def decode(v):
        if v.startswith("=?base64?") and v.endswith("?="):
            return base64.b64decode(v[9:-2], validate=True).decode()
        return v

    def header_problem(req, msg):
        h, params = req.headers, msg.get("params") or {}
        if h.get("mcp-protocol-version") != (params.get("_meta") or {}).get(NS + "protocolVersion"):
            return "MCP-Protocol-Version does not match the body"
        if h.get("mcp-method", "").strip() != msg["method"]:
            return "Mcp-Method is missing or does not match the body"
        key = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(msg["method"])
        try:
            if key:
                got = h.get("mcp-name")
                if got is None or decode(got.strip()) != params.get(key):
                    return "Mcp-Name is missing or does not match the body"
            if msg["method"] == "tools/call" and (t := srv.find(params.get("name"))):
                for prop, sch in t[0]["inputSchema"].get("properties", {}).items():
                    if (hn := sch.get("x-mcp-header")) is None:
                        continue
                    val, got = (params.get("arguments") or {}).get(prop), h.get("mcp-param-" + hn.lower())
                    if val is None:
                        continue
                    if got is None:
                        return f"Mcp-Param-{hn} is missing"
                    got = decode(got.strip())
                    same = got == (("true" if val else "false") if isinstance(val, bool) else str(val))
                    if not same and not (isinstance(val, int) and not isinstance(val, bool) and float(got) == val):
                        return f"Mcp-Param-{hn} does not match the body"
        except Exception:
            return "malformed header value"

    def local(req):
        ok = ("localhost", "127.0.0.1", "[::1]")
        if req.headers.get("host", "").rsplit(":", 1)[0] not in ok and req.headers.get("host") not in ok:
            return False
        o = req.headers.get("origin")
        return not o or any(re.fullmatch(re.escape(f"http://{x}") + r"(:\d+)?", o) for x in ok)

    async def modern(req, msg):
        mid, method, params = msg.get("id"), msg.get("method"), msg.get("params") or {}
        if mid is None:
            return Response(status_code=202)
        if (e := meta_problem(srv, params)) and e.err["code"] == -32602:
            return js(error(mid, e.err), e.status)
        if hp := header_problem(req, msg):
            return bad(400, -32020, "Header mismatch: " + hp, mid)
        if e:
            return js(error(mid, e.err), e.status)
        st = Stream()
        if method == "subscriptions/listen":
            want = params.get("notifications") or {}
            tag = {NS + "subscriptionId": mid}

            async def listener(m, p, kind):
                if wanted(want, kind, p):
                    await st({"jsonrpc": "2.0", "method": m, "params": {**p, "_meta": tag}})
            srv.listeners.add(listener)
            await st({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"_meta": tag, "notifications": want}})

            async def gen():
                try:
                    async for e in st.sse(ids=False):
                        yield e
                finally:
                    srv.listeners.discard(listener)
            return StreamingResponse(gen(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        status = 200

        async def work():
            nonlocal status
            out, status = await answer(srv, Peer(st, params, True, None), msg)
            await st(out)
            st.end()
        task = asyncio.create_task(work())
        while not st.ev and not task.done():        # JSON unless a notification comes first
            st.wake.clear()
            if st.ev or task.done():
                break
            await asyncio.wait([task, w := asyncio.create_task(st.wake.wait())], return_when=asyncio.FIRST_COMPLETED, timeout=0.2)
            w.cancel()
            if await req.is_disconnected():
                task.cancel()
                return Response(status_code=499)
        if st.done and len(st.ev) == 1:
            return js(st.ev[0], status)

        async def gen():
            try:
                async for e in st.sse(ids=False):
                    yield e
            finally:
                task.cancel()
        return StreamingResponse(gen(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def post(req):
        acc = req.headers.get("accept", "")
        if J not in acc or "text/event-stream" not in acc:
            return bad(406, -32000, "Accept must list application/json and text/event-stream")
        if not req.headers.get("content-type", "").startswith(J):
            return bad(415, -32000, "Content-Type must be application/json")
        try:
            msg = json.loads(await req.body())
            assert isinstance(msg, dict)
        except Exception:
            return bad(400, -32700, "Parse error")
        params = msg.get("params") or {}
        hv = req.headers.get("mcp-protocol-version")
        if "method" in msg and (NS + "protocolVersion" in (params.get("_meta") or {}) or (hv and hv not in LEGACY) or msg["method"] == "server/discover"):
            if srv.a.era != "legacy":
                return await modern(req, msg)
            return bad(400, -32000, "Bad Request: no session", msg.get("id"))
        if msg.get("method") == "initialize":
            s = Session()
            try:
                r = initialize(srv, s, params)
            except Rpc as e:
                return js(error(msg.get("id"), e.err), e.status)
            srv.sessions[s.id] = s

            async def listener(m, p, kind):
                if s.get and (kind != "resourceSubscriptions" or p["uri"] in s.subs):
                    await s.get({"jsonrpc": "2.0", "method": m, "params": p})
            s.listener = listener
            srv.listeners.add(listener)
            return js(envelope(msg["id"], r), 200, **{"Mcp-Session-Id": s.id})
        if srv.a.era == "modern":
            return bad(400, -32020, "missing required headers", msg.get("id"))
        sid = req.headers.get("mcp-session-id")
        if sid is None:
            return bad(400, -32000, "Bad Request: Mcp-Session-Id required", msg.get("id"))
        s = srv.sessions.get(sid)
        if s is None:
            return bad(404, -32001, "Session not found", msg.get("id"))
        if hv and hv not in LEGACY:
            return bad(400, -32000, "Bad protocol version", msg.get("id"))
        if "method" not in msg:
            if (fut := s.pending.get(msg.get("id"))) and not fut.done():
                fut.set_result(msg["result"]) if "result" in msg else fut.set_exception(Rpc(-32603, str(msg.get("error"))))
            return Response(status_code=202)
        if "id" not in msg:
            if msg["method"] == "notifications/cancelled" and (t := s.tasks.get(params.get("requestId"))):
                t[0].cancel()
            return Response(status_code=202)
        st = Stream()
        s.streams[st.id] = st

        async def work():
            try:
                out, _ = await answer(srv, Peer(st, params, False, s), msg)
                await st(out)
            finally:
                s.tasks.pop(msg["id"], None)
                st.end()
        s.tasks[msg["id"]] = (asyncio.create_task(work()), st)
        return StreamingResponse(st.sse(prime=s.version >= "2025-11-25"), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def get(req):
        s = srv.sessions.get(req.headers.get("mcp-session-id", ""))
        if srv.a.era == "modern":
            return Response(status_code=405, headers={"Allow": "POST"})
        if s is None:
            return bad(404 if req.headers.get("mcp-session-id") else 400, -32000, "no session")
        if last := req.headers.get("last-event-id"):
            sid, _, n = last.partition(":")
            if (st := s.streams.get(sid)) and n.isdigit():
                return StreamingResponse(st.sse(int(n), resumed=True), media_type="text/event-stream")
        s.get = Stream()
        return StreamingResponse(s.get.sse(), media_type="text/event-stream")

    async def delete(req):
        if srv.a.era == "modern":
            return Response(status_code=405, headers={"Allow": "POST"})
        s = srv.sessions.pop(req.headers.get("mcp-session-id", ""), None)
        if s is None:
            return Response(status_code=404)
        srv.listeners.discard(s.listener)
        if s.get:
            s.get.end()
        for t, _ in s.tasks.values():
            t.cancel()
        return Response(status_code=204)

    async def ep(req):
        if not local(req):
            return bad(403, -32000, "Forbidden Host or Origin")
        return await {"POST": post, "GET": get, "DELETE": delete}[req.method](req)

    return Starlette(routes=[Route("/mcp", ep, methods=["POST", "GET", "DELETE"])])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("transport", choices=["stdio", "http"])
    ap.add_argument("--port", type=int, default=0)
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--era", choices=["both", "legacy", "modern"], default="both")
    ap.add_argument("--page-size", type=int, default=0)
    ap.add_argument("--extra-tools", type=int, default=0)
    ap.add_argument("--rename", default="")
    a = ap.parse_args()
    srv = Server(a)
    if a.transport == "stdio":
        asyncio.run(run_stdio(srv))
    else:
        import uvicorn
        uvicorn.run(make_app(srv), host=a.host, port=a.port, log_level="warning")


if __name__ == "__main__":
    main()
