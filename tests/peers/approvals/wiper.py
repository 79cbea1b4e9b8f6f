"""A server whose one tool changes something for good: each call adds a line to the file that is named; a disk called `slow…` takes a while,
and one called `held…` until the file `FILE.go` is there, 20 seconds at most.
Standard library only.

    wiper.py FILE
"""
import json
import os
import sys
import time

TOOL = {
    "name": "wipe",
    "description": "Wipes a disk.",
    "inputSchema": {"type": "object", "properties": {"disk": {"type": "string"}}, "required": ["disk"]},
    "annotations": {"readOnlyHint": False, "destructiveHint": True},
}


def answer(request, path):
    """The result of a request; None: it is not served."""
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "wiper", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        with open(path, "a") as file:
            file.write(json.dumps(params["arguments"]) + "\n")
        if params["arguments"]["disk"].startswith("slow"):
            time.sleep(0.2)
        until = time.monotonic() + 20
        while params["arguments"]["disk"].startswith("held") and not os.path.exists(f"{path}.go") and time.monotonic() < until:
            time.sleep(0.02)
        return {"content": [{"type": "text", "text": f"wiped {params['arguments']['disk']}"}]}
    return {} if method == "ping" else None


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request, sys.argv[1])
        told = {"result": result} if result is not None else {"error": {"code": -32601, "message": "not served"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **told}), flush=True)


if __name__ == "__main__":
    main()
