"""What the adapters of both Python SDKs have in common: answers to what servers ask, and the calls that both spell alike.

Knows no SDK: a subclass brings its types, and says what its SDK does in another way.
"""
import contextlib
import json

import anyio


class Peer:
    """The adapter of `python_tour`. `types` is the SDK's module of that kind, `client` what requests are made with."""

    # How the SDK wants a URI.
    uri = str

    def __init__(self, types):
        self.types, self.client, self.logs, self.waiting = types, None, [], None

    def callbacks(self):
        """The arguments that both SDKs take for what servers ask and tell."""
        return {"sampling_callback": self.on_sampling, "elicitation_callback": self.on_elicitation,
                "list_roots_callback": self.on_roots, "logging_callback": self.on_log, "message_handler": self.on_message}

    async def on_sampling(self, context, params):
        text = f"sampled: {params.messages[0].content.text}"
        return self.types.CreateMessageResult(role="assistant", model="peer", content=self.types.TextContent(type="text", text=text))

    async def on_elicitation(self, context, params):
        if params.mode == "url":
            return self.types.ElicitResult(action="accept")
        return self.types.ElicitResult(action="accept", content={"response": f"answered: {params.message}"})

    async def on_roots(self, context):
        return self.types.ListRootsResult(roots=[self.types.Root(uri="file:///peer/root")])

    async def on_log(self, params):
        self.logs.append(params.data)

    async def on_message(self, message):
        """Takes a notification, which stands in a wrapper in one of the SDKs."""
        message = getattr(message, "root", message)
        if self.waiting and isinstance(message, self.types.ToolListChangedNotification):
            await self.waiting.send(("tools", None))
        if self.waiting and isinstance(message, self.types.ResourceUpdatedNotification):
            await self.waiting.send(("updated", str(message.params.uri)))

    async def call(self, name, arguments=None, progress=None):
        result = await self.client.call_tool(name, arguments or {}, progress_callback=progress)
        return result.content[0].text, self.failed(result)

    async def stats(self, prefix):
        return json.loads((await self.call(prefix + "fx_stats"))[0])

    async def resources(self):
        return [str(r.uri) for r in (await self.client.list_resources()).resources]

    async def read(self, uri):
        return (await self.client.read_resource(self.uri(uri))).contents[0].text

    async def prompts(self):
        return [p.name for p in (await self.client.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt, argument, value):
        ref = self.types.PromptReference(type="ref/prompt", name=prompt)
        return (await self.client.complete(ref, {"name": argument, "value": value})).completion.values

    async def logs_of(self, name):
        self.logs.clear()
        await self.ask_for_logs()
        await self.call(name)
        await anyio.sleep(0.1)
        return list(self.logs)

    async def ask_for_logs(self):
        await self.client.set_logging_level("info")

    @contextlib.asynccontextmanager
    async def watching(self, uri=None):
        """Yields `wait(kind)`: the next event of that kind, told to the session as a whole."""
        self.waiting, receive = anyio.create_memory_object_stream(100)
        if uri:
            await self.client.subscribe_resource(self.uri(uri))

        async def wait(kind):
            async for got, what in receive:
                if got == kind:
                    return what
        yield wait
        if uri:
            await self.client.unsubscribe_resource(self.uri(uri))
