"""An MCP server that puts itself into the tree of a Banyan gate, with the official Python SDK (mcp >= 2).

    registrant.py GATE SEGMENT [ID]       e.g. registrant.py http://127.0.0.1:7411/mcp plant

The gate needs a section [registry] whose `principals` name the caller: ["local"] where it asks for no token. The server itself is an
ordinary one; all that MCP-AX adds are three requests to the gate:
mcpax/register at the start, mcpax/heartbeat while it lives, mcpax/deregister at the end. A token for the gate may stand in
`$BANYAN_TOKEN`. Whoever sends the same ID after a restart is known for the same server.
"""
import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
import uuid

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

INTERVAL = 1.0  # seconds between heartbeats; three missed ones end the registration
VERSION = "2026-07-28"  # the revision of MCP that the gate is asked in: no handshake, each request stands alone

server = MCPServer("registrant", log_level="WARNING")


# Without a proof of authority a gate shows only what changes nothing.
@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def uptime() -> str:
    """For how long this server has been running."""
    return f"{time.monotonic() - BEGAN:.1f} s in Python, process {os.getpid()}"


class Refused(Exception):
    """The gate said no; `data` says why and what to do."""

    def __init__(self, error):
        super().__init__(f"{error['message']} ({error['code']}): {error.get('data', {}).get('hint', '')}")
        self.data = error.get("data", {})


def ask(gate, method, params, number=itertools.count(1)):
    """One request to the gate; its result."""
    meta = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": next(number), "method": method, "params": {**params, "_meta": meta}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
               "MCP-Protocol-Version": VERSION, "Mcp-Method": method}
    if token := os.environ.get("BANYAN_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(gate, json.dumps(message).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            answer = json.load(reply)
    except urllib.error.HTTPError as error:
        answer = json.load(error)
    if "error" in answer:
        raise Refused(answer["error"])
    return answer["result"]


async def belong(gate, registration):
    """Registers, and again whenever the gate has forgotten us, until cancelled; then says good-bye."""
    session = None
    try:
        while True:
            pause = INTERVAL / 2
            try:
                if session:
                    await asyncio.to_thread(ask, gate, "mcpax/heartbeat", {"session_id": session})
                else:
                    session = (await asyncio.to_thread(ask, gate, "mcpax/register", registration))["session_id"]
                    print(f"registered as {registration['segment']}", flush=True)
            except Refused as refused:
                print(refused, file=sys.stderr, flush=True)
                # A gate that has forgotten a session takes the next registration at once.
                pause = refused.data.get("retry_after_ms", 0 if session else 1000) / 1000
                session = None
            except OSError as error:
                print(f"the gate can't be reached: {error}", file=sys.stderr, flush=True)
            await asyncio.sleep(pause)
    finally:
        if session:
            with contextlib.suppress(OSError, Refused):
                ask(gate, "mcpax/deregister", {"session_id": session})


async def main(gate, segment, subserver_id):
    """Serves on a free port, and belongs to the gate, until SIGTERM."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    web = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning"))
    web.capture_signals = contextlib.nullcontext
    registration = {"subserver_id": subserver_id, "segment": segment, "url": url, "capabilities": {"tools": True},
                    "heartbeat_interval_ms": int(INTERVAL * 1000), "transport_class": "http", "auth_scope": "read"}
    serving = asyncio.create_task(web.serve(sockets=[listener]))
    belonging = asyncio.create_task(belong(gate, registration))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, belonging.cancel)
    await asyncio.wait([belonging])
    web.should_exit = True
    await serving


if __name__ == "__main__":
    BEGAN = time.monotonic()
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else str(uuid.uuid4())))
