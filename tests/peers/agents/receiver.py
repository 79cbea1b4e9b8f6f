"""A receiver of push notifications that reads them with the official A2A SDK.

    receiver.py PORT FILE

Each notification is a line of FILE: its path, what it showed of itself, and what the SDK read. Below `/busy` the first is answered with 503,
below `/never` each, below `/moved` each with an address elsewhere, and below `/gone` each with 410.
"""
import json
import sys

import uvicorn
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

FIELDS = ("authorization", "content-type", "x-a2a-notification-token")


def application(path):
    """Takes notifications, and writes them down."""
    seen = set()

    async def take(request):
        event = MessageToDict(ParseDict(await request.json(), a2a_pb2.StreamResponse()))
        line = {"path": request.url.path, "fields": {name: request.headers.get(name) for name in FIELDS}, "event": event}
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if request.url.path.startswith("/moved"):
            return RedirectResponse("/elsewhere", status_code=307)
        if request.url.path.startswith("/gone"):
            return Response(status_code=410)
        is_first = request.url.path not in seen
        seen.add(request.url.path)
        is_busy = is_first and request.url.path.startswith("/busy") or request.url.path.startswith("/never")
        return Response(status_code=503 if is_busy else 204)

    return Starlette(routes=[Route("/{rest:path}", take, methods=["POST"])])


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
