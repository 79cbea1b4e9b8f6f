"""A small server for the console's tests: it says who it is on its standard error, calls by a form, and fails when asked to.

Speaks the initialize era over standard input and output; writes its process id into the file that it is given. Where another file of that name
and `.description` lies beside it, that is what its tool says of itself; one of `.away` keeps it from answering for as long as it is there.
"""
import json
import os
import sys
import time
from pathlib import Path

ADD = {"type": "object", "required": ["a", "b"], "properties": {
    "a": {"type": "integer", "description": "The first number."}, "b": {"type": "integer", "default": 2},
    "sign": {"enum": ["plus", "minus"], "default": "plus"}, "notes": {"type": "array", "items": {"type": "string"}},
    "deep": {"type": "object", "properties": {"loud": {"type": "boolean"}}}}}
TOOLS = [
    {"name": "add", "title": "Add", "description": "Adds two numbers.", "inputSchema": ADD, "annotations": {"readOnlyHint": True}},
    {"name": "fail", "description": "Says that it failed.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}},
]


# The second is written as no server should, and as the gate passes it on.
PROMPTS = [
    {"name": "review", "description": "Reviews a change.", "arguments": [{"name": "diff", "required": True, "description": "The change."}]},
    {"name": "odd", "description": 7, "arguments": [None]},
]


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}}, "serverInfo": {"name": "lab", "version": "1"}}
    if method == "tools/list":
        other = Path(sys.argv[1] + ".description")
        return {"tools": [{**TOOLS[0], "description": other.read_text()}, *TOOLS[1:]] if other.exists() else TOOLS}
    if method == "prompts/list":
        return {"prompts": PROMPTS}
    if method == "tools/call" and params["name"] == "add":
        given = params["arguments"]
        total = given["a"] + given["b"] * (-1 if given.get("sign") == "minus" else 1)
        text = f"the sum is {total}" + "".join(f", {note}" for note in given.get("notes", []))
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"sum": total, "given": given}}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "it broke on purpose"}], "isError": True}
    return {}


def main():
    with open(sys.argv[1], "w") as file:
        file.write(str(os.getpid()))
    print(f"lab starts as process {os.getpid()}", file=sys.stderr, flush=True)
    while Path(sys.argv[1] + ".away").exists():
        time.sleep(0.02)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params", {}))
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


main()
