#!/usr/bin/env python3
"""An MCP server on standard input and output whose one tool says who it is: the cheapest leaf that can't be taken for another.

    leaf.py NAME [once]         once: what the tool does is not to be done twice

With the argument `hold`, the path of a file, the tool adds a line to it, and answers when there is one beside it that ends in `.go`.
"""
import json
import os
import sys
import time

NAME, IS_ONCE = sys.argv[1], "once" in sys.argv[2:]
TOOL = {"name": "who", "description": "Who answers", "inputSchema": {"type": "object", "properties": {"hold": {"type": "string"}}},
        "annotations": {"readOnlyHint": not IS_ONCE, "destructiveHint": False}}


def who(hold=None):
    """The tool."""
    if hold:
        with open(hold, "a") as file:
            file.write("called\n")
        while not os.path.exists(os.path.splitext(hold)[0] + ".go"):
            time.sleep(0.02)
    return {"content": [{"type": "text", "text": NAME}]}


def reply(method, params):
    """The result for a request; nothing for what is not known."""
    if method == "tools/call":
        return who(**(params.get("arguments") or {}))
    return {
        "initialize": {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                       "serverInfo": {"name": "leaf", "version": "1"}},
        "ping": {},
        "tools/list": {"tools": [TOOL]},
    }.get(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = reply(message["method"], message.get("params") or {})
    outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
