#!/usr/bin/env python3
"""An MCP server on standard input and output whose one tool says who it is: the cheapest leaf that can't be taken for another.

    leaf.py NAME
"""
import json
import sys

TOOL = {"name": "who", "description": "Who answers", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def reply(method, params):
    """The result for a request; nothing for what is not known."""
    return {
        "initialize": {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                       "serverInfo": {"name": "leaf", "version": "1"}},
        "ping": {},
        "tools/list": {"tools": [TOOL]},
        "tools/call": {"content": [{"type": "text", "text": sys.argv[1]}]},
    }.get(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = reply(message["method"], message.get("params") or {})
    outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
