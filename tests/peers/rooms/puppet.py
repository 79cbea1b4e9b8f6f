"""A participant that does what it is told on standard input, and prints what it hears: a line of JSON each.

    puppet.py PORT ROOM TOKEN [owner]

A line is `{kind, payload, to?, correlation_id?, times?}`, sent as it stands; an `owner` also has a tool, `clean`, lists it, and answers whoever calls it. What it
was asked to do exactly it prints as `{"did": ARGUMENTS}`, with every digit that came.
"""
import json
import re
import sys
import threading
from types import SimpleNamespace

from rooms.party import Party
from websockets.exceptions import ConnectionClosed


CLEAN = {"name": "clean", "description": "Frees what a cache holds.", "inputSchema": {"type": "object", "required": ["path"], "properties": {
    "path": {"type": "string"}, "bytes": {"type": "integer", "description": "At most so much."}}}}


def main(port, room, token, role="agent"):
    with Party(SimpleNamespace(port=int(port)), room, token, also="mcp/reject,mcp/withdraw") as party:
        print(json.dumps(party.welcome), flush=True)
        threading.Thread(target=obey, args=(party,), daemon=True).start()
        try:
            while True:
                text = party.hear_text()
                print(text, flush=True)
                message = json.loads(text)
                if role == "owner" and message["kind"].startswith("mcp/request:tools/call") and party.id in message.get("to", []):
                    carry_out(party, message, text)
                if role == "owner" and message["kind"] == "mcp/request:tools/list" and party.id in message.get("to", []):
                    result = {"jsonrpc": "2.0", "id": message["payload"].get("id"), "result": {"tools": [CLEAN]}}
                    party.say("mcp/response:tools/list", result, to=[message["from"]], correlation_id=message["id"])
        except ConnectionClosed as closed:
            print(json.dumps({"kind": "closed", "code": closed.rcvd and closed.rcvd.code}), flush=True)


def obey(party):
    for line in sys.stdin:
        told = json.loads(line)
        for _ in range(told.pop("times", 1)):
            party.say(told["kind"], told["payload"], **{key: told[key] for key in ("to", "correlation_id") if key in told})
    party.socket.close()


def carry_out(party, message, text):
    """Does it, or fails where it is told to."""
    print(json.dumps({"kind": "did", "arguments": re.search(r'"arguments": ?(\{.*?\})', text)[1]}), flush=True)
    path = message["payload"]["params"]["arguments"].get("path", "")
    result = {"content": [{"type": "text", "text": f"3 GB freed below {path}"}]}
    if path.startswith("/etc"):
        result = {"content": [{"type": "text", "text": f"{path} is not to be cleaned"}], "isError": True}
    kind = message["kind"].replace("mcp/request", "mcp/response")
    party.say(kind, {"jsonrpc": "2.0", "id": message["payload"].get("id"), "result": result}, to=[message["from"]], correlation_id=message["id"])


if __name__ == "__main__":
    main(*sys.argv[1:])
