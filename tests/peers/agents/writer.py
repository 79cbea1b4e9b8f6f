"""An A2A agent made with the official SDK, for the gate to call.

    writer.py PORT BINDING [--streams] [--token TOKEN] [--marks FILE]

Serves JSON-RPC at `/rpc` and HTTP+JSON at `/rest`; its card names BINDING alone. Its skills: `echo` answers with a message, `draft` makes
an artifact in pieces, `ask` wants a word from its caller, `fail` fails, `wait` works until it is told to stop, and `files` answers with
parts of every kind. What it is told to stop is written to FILE.
"""
import argparse
import asyncio

import uvicorn
from a2a.helpers import new_data_part, new_raw_part, new_task_from_user_message, new_text_message, new_text_part, new_url_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.responses import JSONResponse

SKILLS = ("echo", "draft", "ask", "fail", "wait", "files")


class Writer(AgentExecutor):
    def __init__(self, marks):
        self.marks = marks

    async def execute(self, context, queue):
        message = context.message
        skill = MessageToDict(message.metadata).get("io.banyan/skill")
        if context.current_task is None and skill == "echo":
            data = [MessageToDict(part.data) for part in message.parts if part.HasField("data")]
            await queue.enqueue_event(new_text_message(f"{context.get_user_input()}|{data}", context_id=context.context_id))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(message)
            await queue.enqueue_event(task)
        await getattr(self, skill)(TaskUpdater(queue, task.id, task.context_id), context)

    async def draft(self, updater, context):
        await updater.start_work(message=new_text_message("thinking"))
        await updater.add_artifact([new_text_part("one ")], artifact_id="a", name="poem")
        await asyncio.sleep(0.2)
        await updater.add_artifact([new_text_part("two")], artifact_id="a", append=True, last_chunk=True)
        await updater.complete(message=new_text_message("done"))

    async def ask(self, updater, context):
        if context.get_user_input() == "begin":
            await updater.requires_input(message=new_text_message("which colour?"))
        else:
            await updater.add_artifact([new_text_part(f"it is {context.get_user_input()}")], artifact_id="a")
            await updater.complete()

    async def fail(self, updater, context):
        await updater.failed(message=new_text_message("no ink"))

    async def wait(self, updater, context):
        await updater.start_work(message=new_text_message("waiting"))
        await asyncio.sleep(60)

    async def files(self, updater, context):
        parts = [new_text_part("hi"), new_data_part({"n": 1}), new_raw_part(b"\0\1", media_type="image/png"),
                 new_url_part("https://a.example/b", filename="b")]
        await updater.add_artifact(parts, artifact_id="f")
        await updater.complete()

    async def cancel(self, context, queue):
        with open(self.marks, "a", encoding="utf-8") as marks:
            marks.write("cancelled\n")
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def card(port, binding, streams):
    base = f"http://127.0.0.1:{port}"
    interface = a2a_pb2.AgentInterface(
        url=base + ("/rpc" if binding == "JSONRPC" else "/rest"), protocol_binding=binding, protocol_version="1.0"
    )
    skills = [a2a_pb2.AgentSkill(id=skill, name=skill.title(), description=f"Does {skill}.", tags=["test"]) for skill in SKILLS]
    return a2a_pb2.AgentCard(
        name="Writer", description="Writes.", version="1.2.3", supported_interfaces=[interface],
        capabilities=a2a_pb2.AgentCapabilities(streaming=streams), default_input_modes=["text/plain"],
        default_output_modes=["text/plain"], skills=skills,
    )


def guarded(app, token):
    """Lets in who has the token, and who only reads the card."""
    async def asgi(scope, receive, send):
        headers = dict(scope.get("headers") or [])
        is_open = scope["type"] != "http" or scope["path"].endswith("agent-card.json")
        if token and not is_open and headers.get(b"authorization") != f"Bearer {token}".encode():
            return await JSONResponse({"error": "no"}, status_code=401)(scope, receive, send)
        return await app(scope, receive, send)
    return asgi


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("port", type=int)
    arguments.add_argument("binding")
    arguments.add_argument("--streams", action="store_true")
    arguments.add_argument("--token")
    arguments.add_argument("--marks", default="/dev/null")
    chosen = arguments.parse_args()
    described = card(chosen.port, chosen.binding, chosen.streams)
    handler = DefaultRequestHandler(Writer(chosen.marks), InMemoryTaskStore(), described)
    routes = create_agent_card_routes(described) + create_jsonrpc_routes(handler, "/rpc") + create_rest_routes(handler, path_prefix="/rest")
    uvicorn.run(guarded(Starlette(routes=routes), chosen.token), host="127.0.0.1", port=chosen.port, log_level="warning")


if __name__ == "__main__":
    main()
