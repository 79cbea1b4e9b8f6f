"""The Python SDK 2.3 as a client of Banyan.

    python_v2.py MODE http URL              MODE: auto, legacy or 2026-07-28
    python_v2.py MODE stdio PREFIX COMMAND ARGUMENT...

Over HTTP the names begin with `$PEERS_PREFIX`, where it is set.
"""
import contextlib
import os
import sys
import warnings

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

import python_peer
from python_tour import say, tour

warnings.simplefilter("ignore")


class Peer(python_peer.Peer):
    """What this SDK does in its own way."""

    @property
    def modern(self):
        return self.client.protocol_version >= "2026"

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools(cache_mode="refresh")).tools]

    def failed(self, result):
        return bool(result.is_error)

    async def call_and_cancel(self, name, arguments, after):
        with anyio.move_on_after(after):
            await self.client.call_tool(name, arguments)

    async def ask_for_logs(self):
        if not self.modern:
            await super().ask_for_logs()

    @contextlib.asynccontextmanager
    async def watching(self, uri=None):
        """Yields `wait(kind)`: the next event of that kind, by whichever way the era has."""
        if not self.modern:
            async with super().watching(uri) as wait:
                yield wait
            return
        wanted = {"resource_subscriptions": [uri]} if uri else {"tools_list_changed": True}
        async with self.client.listen(**wanted) as stream:
            async def wait(kind):
                async for event in stream:
                    if kind == "tools" and isinstance(event, ToolsListChanged):
                        return None
                    if kind == "updated" and isinstance(event, ResourceUpdated):
                        return event.uri
            yield wait


async def main():
    mode, transport, target = sys.argv[1], sys.argv[2], sys.argv[3]
    prefix = target if transport == "stdio" else os.environ.get("PEERS_PREFIX", "")
    if transport == "stdio":
        target = StdioServerParameters(command=sys.argv[4], args=sys.argv[5:], env=dict(os.environ))
    peer = Peer(types)
    async with Client(target, mode=mode, log_level="info", **peer.callbacks()) as client:
        peer.client = client
        wanted = {"legacy": "2025-11-25"}.get(mode, "2026-07-28")
        say("connect", client.protocol_version == wanted, client.protocol_version)
        await tour(peer, prefix)

anyio.run(main)
