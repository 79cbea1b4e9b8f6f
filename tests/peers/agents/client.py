"""A client made with the official A2A SDK: one operation, and what came of it as a line of JSON.

    client.py URL BINDING OPERATION [--token TOKEN] [--skill ID] [--arguments JSON] [--task ID] [--text TEXT] [--input WORD] [--at-once] [--filter JSON]
              [--push JSON]

The operations are `card`, `send`, `stream`, `subscribe`, `get`, `list`, `cancel`, and `push-` with `create`, `get`, `list` or `delete`; `stream` and `subscribe` print all events. A refusal is `{"refused": CLASS, "message": TEXT}`.
"""
import argparse
import asyncio
import json
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict


def message(asked):
    """The message that calls a skill, or goes on with a task."""
    parts = [{"text": asked.text}] if asked.text else [{"data": json.loads(asked.arguments)}]
    made = {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": parts}
    named = {"io.banyan/skill": asked.skill, "io.banyan/input": asked.input}
    made |= {"metadata": {key: word for key, word in named.items() if word}} if any(named.values()) else {}
    made |= {"taskId": asked.task} if asked.task else {}
    chosen = {"returnImmediately": True} if asked.at_once else {}
    chosen |= {"taskPushNotificationConfig": json.loads(asked.push)} if asked.push else {}
    whole = {"message": made} | ({"configuration": chosen} if chosen else {})
    return ParseDict(whole, a2a_pb2.SendMessageRequest())


async def operate(asked, http):
    """Does what is asked, by the card of the agent."""
    card = await A2ACardResolver(http, asked.url).get_agent_card()
    if asked.operation == "card":
        return MessageToDict(card)
    client = ClientFactory(ClientConfig(streaming=asked.operation in ("stream", "subscribe"), httpx_client=http, supported_protocol_bindings=[asked.binding])).create(card)
    if asked.operation == "get":
        return MessageToDict(await client.get_task(a2a_pb2.GetTaskRequest(id=asked.task)))
    if asked.operation == "list":
        return MessageToDict(await client.list_tasks(ParseDict(json.loads(asked.filter), a2a_pb2.ListTasksRequest())))
    if asked.operation == "cancel":
        return MessageToDict(await client.cancel_task(a2a_pb2.CancelTaskRequest(id=asked.task)))
    if asked.operation.startswith("push-"):
        return await push(asked, client)
    if asked.operation == "subscribe":
        return [MessageToDict(event) async for event in client.subscribe(a2a_pb2.SubscribeToTaskRequest(id=asked.task))]
    events = [MessageToDict(event) async for event in client.send_message(message(asked))]
    return events if asked.operation == "stream" else events[-1]


async def push(asked, client):
    """Makes, reads, lists or ends a wish to be notified of a task."""
    wish = {"taskId": asked.task, **json.loads(asked.push or "{}")}
    if asked.operation == "push-create":
        return MessageToDict(await client.create_task_push_notification_config(ParseDict(wish, a2a_pb2.TaskPushNotificationConfig())))
    if asked.operation == "push-get":
        return MessageToDict(await client.get_task_push_notification_config(ParseDict(wish, a2a_pb2.GetTaskPushNotificationConfigRequest())))
    if asked.operation == "push-list":
        named = a2a_pb2.ListTaskPushNotificationConfigsRequest(task_id=asked.task)
        return MessageToDict(await client.list_task_push_notification_configs(named))
    return {"deleted": await client.delete_task_push_notification_config(ParseDict(wish, a2a_pb2.DeleteTaskPushNotificationConfigRequest()))}


async def main():
    parser = argparse.ArgumentParser()
    for name in ("url", "binding", "operation"):
        parser.add_argument(name)
    for name in ("token", "skill", "task", "text", "input", "push"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--arguments", default="{}")
    parser.add_argument("--filter", default="{}")
    parser.add_argument("--at-once", action="store_true")
    asked = parser.parse_args()
    headers = {"Authorization": f"Bearer {asked.token}"} if asked.token else {}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        try:
            print(json.dumps(await operate(asked, http)))
        except Exception as error:  # noqa: BLE001
            print(json.dumps({"refused": type(error).__name__, "message": str(error)}))


asyncio.run(main())
