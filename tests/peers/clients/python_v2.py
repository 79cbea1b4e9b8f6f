"""The Python SDK 2.3 as a client of Banyan.

    python_v2.py MODE http URL              MODE: auto, legacy or 2026-07-28
    python_v2.py MODE stdio PREFIX COMMAND ARGUMENT...
"""
import contextlib
import json
import os
import sys
import warnings

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

from python_tour import say, tour

warnings.simplefilter("ignore")


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
        self.client, self.logs, self.waiting = None, [], None

    async def on_log(self, params):
        self.logs.append(params.data)

    async def on_message(self, message):
        kind = {types.ToolListChangedNotification: "tools", types.ResourceUpdatedNotification: "updated"}.get(type(message))
        if kind and self.waiting:
            await self.waiting.send((kind, getattr(message.params, "uri", None) if kind == "updated" else None))

    @property
    def modern(self):
        return self.client.protocol_version >= "2026"

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools(cache_mode="refresh")).tools]

    async def call(self, name, arguments=None, progress=None):
        result = await self.client.call_tool(name, arguments or {}, progress_callback=progress)
        return result.content[0].text, bool(result.is_error)

    async def stats(self, prefix):
        return json.loads((await self.call(prefix + "fx_stats"))[0])

    async def call_and_cancel(self, name, arguments, after):
        with anyio.move_on_after(after):
            await self.client.call_tool(name, arguments)

    async def resources(self):
        return [str(r.uri) for r in (await self.client.list_resources()).resources]

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text

    async def prompts(self):
        return [p.name for p in (await self.client.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt, argument, value):
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        return (await self.client.complete(ref, {"name": argument, "value": value})).completion.values

    async def logs_of(self, name):
        self.logs.clear()
        if not self.modern:
            await self.client.set_logging_level("info")
        await self.call(name)
        await anyio.sleep(0.1)
        return list(self.logs)

    @contextlib.asynccontextmanager
    async def watching(self, uri=None):
        """Yields `wait(kind)`: the next event of that kind, by whichever way the era has."""
        if self.modern:
            wanted = {"resource_subscriptions": [uri]} if uri else {"tools_list_changed": True}
            async with self.client.listen(**wanted) as stream:
                async def wait(kind):
                    async for event in stream:
                        if kind == "tools" and isinstance(event, ToolsListChanged):
                            return None
                        if kind == "updated" and isinstance(event, ResourceUpdated):
                            return event.uri
                yield wait
            return
        self.waiting, receive = anyio.create_memory_object_stream(100)
        if uri:
            await self.client.subscribe_resource(uri)

        async def wait(kind):
            async for got, what in receive:
                if got == kind:
                    return str(what) if what else None
        yield wait
        if uri:
            await self.client.unsubscribe_resource(uri)


async def main():
    mode, transport, target = sys.argv[1], sys.argv[2], sys.argv[3]
    prefix = target if transport == "stdio" else ""
    if transport == "stdio":
        target = StdioServerParameters(command=sys.argv[4], args=sys.argv[5:], env=dict(os.environ))
    peer = Peer()
    async with Client(
        target, mode=mode, sampling_callback=on_sampling, elicitation_callback=on_elicitation,
        list_roots_callback=on_roots, logging_callback=peer.on_log, message_handler=peer.on_message,
        log_level="info",
    ) as client:
        peer.client = client
        wanted = {"legacy": "2025-11-25"}.get(mode, "2026-07-28")
        say("connect", client.protocol_version == wanted, client.protocol_version)
        await tour(peer, prefix)

anyio.run(main)
