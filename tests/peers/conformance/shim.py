"""A proxy between the suite and a gateway that puts a prefix before tool and prompt names.

The official suite asks for fixed names; a gateway's root endpoint shows them prefixed. The shim adds the
prefix in requests (and in `Mcp-Name`), removes it from lists, and hides what belongs to other servers.
Resource URIs stay as they are: a gateway must not change them.
"""
import base64
import contextlib
import json
import re
import socket
import threading

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

HOP = ("content-length", "transfer-encoding", "connection", "accept-encoding", "content-encoding", "date", "server")


class Shim:
    """Rewrites names for the endpoint `url`; `start` gives the endpoint to hand to the suite."""

    def __init__(self, url, prefix):
        self.url, self.prefix = url, prefix
        parts = re.match(r"https?://([^/]+)(/.*)?$", url)
        self.host, self.path = parts[1], parts[2] or "/"
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]

    def start(self):
        """Serves in a thread of its own until the process ends."""
        config = uvicorn.Config(self.app(), host="127.0.0.1", port=self.port, log_level="error")
        server = uvicorn.Server(config)
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            threading.Event().wait(0.02)
        return f"http://localhost:{self.port}{self.path}"

    def request(self, message):
        """A message on its way to the gateway, with the prefix added."""
        params = message.get("params")
        if not isinstance(params, dict) or "method" not in message:
            return message
        if message["method"] in ("tools/call", "prompts/get") and isinstance(params.get("name"), str):
            params["name"] = self.prefix + params["name"]
        ref = params.get("ref")
        if isinstance(ref, dict) and ref.get("type") == "ref/prompt":
            ref["name"] = self.prefix + ref["name"]
        return message

    def response(self, message):
        """A message on its way back, with the prefix removed and other servers' entries hidden."""
        result = message.get("result")
        for key in ("tools", "prompts"):
            if isinstance(result, dict) and isinstance(result.get(key), list):
                mine = [e for e in result[key] if str(e.get("name", "")).startswith(self.prefix)]
                result[key] = [{**e, "name": e["name"][len(self.prefix):]} for e in mine]
        return message

    def headers(self, incoming):
        """The request headers to send on."""
        out = {k: v for k, v in incoming.items() if k not in HOP}
        mine = f":{self.port}"
        if incoming["host"].endswith(mine):
            out["host"] = self.host
        if out.get("origin", "").endswith(mine):
            out["origin"] = "http://" + self.host
        if "mcp-name" in out and not out.get("mcp-method", "").strip().startswith(("resources/", "tasks/")):
            out["mcp-name"] = self._prefixed(out["mcp-name"].strip())
        return out

    def _prefixed(self, name):
        if not name.startswith("=?base64?"):
            return self.prefix + name
        with contextlib.suppress(ValueError):
            plain = base64.b64decode(name[9:-2]).decode()
            return "=?base64?" + base64.b64encode((self.prefix + plain).encode()).decode() + "?="
        return name

    def app(self):
        """The proxy as a web application."""
        client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(60, read=None), limits=httpx2.Limits(max_connections=None))

        async def events(answer):
            try:
                async for line in answer.aiter_lines():
                    if line.startswith("data:") and line[5:].strip():
                        line = "data: " + rewritten(line[5:], self.response)
                    yield line + "\n"
            finally:
                await answer.aclose()

        async def endpoint(request):
            body = (await request.body()).decode("utf-8", "replace")
            out = client.build_request(
                request.method, self.url, headers=self.headers(request.headers),
                content=(rewritten(body, self.request) if body else "").encode())
            answer = await client.send(out, stream=True)
            kept = {k: v for k, v in answer.headers.items() if k not in HOP}
            if "event-stream" in answer.headers.get("content-type", ""):
                return StreamingResponse(events(answer), answer.status_code, headers=kept)
            data = (await answer.aread()).decode("utf-8", "replace")
            await answer.aclose()
            return Response(rewritten(data, self.response) if data else data, answer.status_code, headers=kept)

        return Starlette(routes=[Route(self.path, endpoint, methods=["POST", "GET", "DELETE"])])


def rewritten(text, change):
    """JSON text with `change` applied; what is not a JSON object stays as it is."""
    try:
        message = json.loads(text)
    except ValueError:
        return text
    return json.dumps(change(message)) if isinstance(message, dict) else text
