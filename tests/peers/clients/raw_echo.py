#!/usr/bin/env python3
"""A legacy stdio server whose one tool answers with the request line exactly as it arrived."""
import json
import sys


def reply(request):
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "raw-echo", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "raw", "description": "The request as it arrived", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": line.rstrip("\n")}]}
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = reply(message)
    outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
