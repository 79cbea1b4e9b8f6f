"""The Python SDK 1.30 as a client of Banyan (2025-11-25 at most).

    python_v1.py legacy http URL
    python_v1.py legacy stdio PREFIX COMMAND ARGUMENT...
"""
import contextlib
import os
import sys

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl

import python_peer
from python_tour import say, tour


class Peer(python_peer.Peer):
    """What this SDK does in its own way."""

    uri = AnyUrl

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    def failed(self, result):
        return bool(result.isError)

    async def call_and_cancel(self, name, arguments, after):
        request = self.client._request_id  # this SDK does not tell the server by itself
        with anyio.move_on_after(after):
            await self.client.call_tool(name, arguments)
        params = types.CancelledNotificationParams(requestId=request, reason="peer test")
        note = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.client.send_notification(types.ClientNotification(note))


@contextlib.asynccontextmanager
async def streams(transport, arguments):
    if transport == "http":
        async with streamablehttp_client(arguments[0]) as (read, write, _):
            yield read, write
        return
    parameters = StdioServerParameters(command=arguments[1], args=arguments[2:], env=dict(os.environ))
    async with stdio_client(parameters) as (read, write):
        yield read, write


async def main():
    transport, arguments = sys.argv[2], sys.argv[3:]
    peer = Peer(types)
    async with streams(transport, arguments) as (read, write), ClientSession(read, write, **peer.callbacks()) as session:
        peer.client = session
        welcome = await session.initialize()
        say("connect", welcome.protocolVersion == "2025-11-25", welcome.protocolVersion)
        await anyio.sleep(0.2)  # the session's GET stream opens beside the first requests
        await tour(peer, arguments[0] if transport == "stdio" else "")

anyio.run(main)
