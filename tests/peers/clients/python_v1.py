"""The Python SDK 1.30 as a client of Banyan (2025-11-25 at most).

    python_v1.py legacy http URL
    python_v1.py legacy stdio PREFIX COMMAND ARGUMENT...
"""
import contextlib
import json
import os
import sys

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl

from python_tour import say, tour


async def on_sampling(context, params):
    asked = params.messages[0].content.text
    return types.CreateMessageResult(role="assistant", model="peer", content=types.TextContent(type="text", text=f"sampled: {asked}"))


async def on_elicitation(context, params):
    if params.mode == "url":
        return types.ElicitResult(action="accept")
    return types.ElicitResult(action="accept", content={"response": f"answered: {params.message}"})


async def on_roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///peer/root")])


class Peer:
    """The adapter of `python_tour`."""

    def __init__(self):
        self.session, self.logs, self.waiting = None, [], None

    async def on_log(self, params):
        self.logs.append(params.data)

    async def on_message(self, message):
        if not isinstance(message, types.ServerNotification) or not self.waiting:
            return
        root = message.root
        if isinstance(root, types.ToolListChangedNotification):
            await self.waiting.send(("tools", None))
        if isinstance(root, types.ResourceUpdatedNotification):
            await self.waiting.send(("updated", str(root.params.uri)))

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments=None, progress=None):
        result = await self.session.call_tool(name, arguments or {}, progress_callback=progress)
        return result.content[0].text, bool(result.isError)

    async def stats(self, prefix):
        return json.loads((await self.call(prefix + "fx_stats"))[0])

    async def call_and_cancel(self, name, arguments, after):
        request = self.session._request_id  # this SDK does not tell the server by itself
        with anyio.move_on_after(after):
            await self.session.call_tool(name, arguments)
        params = types.CancelledNotificationParams(requestId=request, reason="peer test")
        note = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(types.ClientNotification(note))

    async def resources(self):
        return [str(r.uri) for r in (await self.session.list_resources()).resources]

    async def read(self, uri):
        return (await self.session.read_resource(AnyUrl(uri))).contents[0].text

    async def prompts(self):
        return [p.name for p in (await self.session.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt, argument, value):
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        return (await self.session.complete(ref, {"name": argument, "value": value})).completion.values

    async def logs_of(self, name):
        self.logs.clear()
        await self.session.set_logging_level("info")
        await self.call(name)
        await anyio.sleep(0.1)
        return list(self.logs)

    @contextlib.asynccontextmanager
    async def watching(self, uri=None):
        """Yields `wait(kind)`: the next event of that kind."""
        self.waiting, receive = anyio.create_memory_object_stream(100)
        if uri:
            await self.session.subscribe_resource(AnyUrl(uri))

        async def wait(kind):
            async for got, what in receive:
                if got == kind:
                    return what
        yield wait
        if uri:
            await self.session.unsubscribe_resource(AnyUrl(uri))


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
    peer = Peer()
    async with streams(transport, arguments) as (read, write), ClientSession(
        read, write, sampling_callback=on_sampling, elicitation_callback=on_elicitation,
        list_roots_callback=on_roots, logging_callback=peer.on_log, message_handler=peer.on_message,
    ) as session:
        peer.session = session
        welcome = await session.initialize()
        say("connect", welcome.protocolVersion == "2025-11-25", welcome.protocolVersion)
        await anyio.sleep(0.2)  # the session's GET stream opens beside the first requests
        await tour(peer, arguments[0] if transport == "stdio" else "")

anyio.run(main)
