#!/usr/bin/env python3
"""Stdio servers that misbehave, one a mode: `hostile.py MODE`.

Each answers `initialize` and lists a tool `act` unless its mode is about just that; `act` sets the trouble off.
Standard library only.
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

MODE = sys.argv[1]
MEGABYTE = 1 << 20
WRITING = threading.Lock()


def put(text):
    with WRITING:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def send(message):
    put(json.dumps({"jsonrpc": "2.0", **message}))


def result(request, value):
    send({"id": request["id"], "result": value})


def text(request, words):
    result(request, {"content": [{"type": "text", "text": words}]})


def complain(words):
    print(words, file=sys.stderr, flush=True)


# ---- what `act` does in each mode

def dies(request):
    complain("the disk is on fire")
    os._exit(3)


def malformed(request):
    put('{"jsonrpc":"2.0","id":%s,"result":{"content":[' % json.dumps(request["id"]))


def duplicates(request):
    put('{"jsonrpc":"2.0","id":%s,"result":{"content":[]},"result":{"content":[{"type":"text","text":"two"}]}}' % json.dumps(request["id"]))


def huge(request):
    text(request, "x" * (50 * MEGABYTE))


def mute(request):
    complain("still thinking")


def chatters(request):
    def flood():
        while True:
            send({"method": "notifications/message", "params": {"level": "error", "data": "n" * 2000}})
            send({"method": "notifications/progress", "params": {"progressToken": "nobody's", "progress": 1}})
            send({"method": "notifications/tools/list_changed"})
    threading.Thread(target=flood, daemon=True).start()
    text(request, "flooding")


def shouts(request):
    def flood():
        while True:
            sys.stderr.write("e" * 500 + "\n")
    threading.Thread(target=flood, daemon=True).start()
    text(request, "shouting")


def endless_line(request):
    """A line that never ends: a message whose end does not come."""
    with WRITING:
        while True:
            sys.stdout.write("x" * MEGABYTE)


def wrong_id(request):
    send({"id": "nobody asked this", "result": {}})
    send({"id": request["id"], "result": {"content": [{"type": "text", "text": "fine"}]}})


ACTS = {
    "dies": dies, "malformed": malformed, "duplicates": duplicates, "huge": huge, "mute": mute,
    "chatters": chatters, "shouts": shouts, "endless-line": endless_line, "wrong-id": wrong_id,
}


def tools():
    act = {"name": "act", "description": "Sets the trouble off", "inputSchema": {"type": "object"}}
    if MODE != "many-tools":
        return [act]
    schema = {"type": "object", "properties": {"v": {"type": "string", "description": "any"}}}
    return [act] + [{"name": f"tool_{i:06d}", "description": f"Tool number {i}", "inputSchema": schema} for i in range(100_000)]


def handle(message):
    method = message["method"]
    if MODE == "silent":
        return
    if MODE == "exits-on-probe" and method == "server/discover":
        complain("what is server/discover?")
        os._exit(1)
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}, "logging": {}}
        result(message, {"protocolVersion": message["params"]["protocolVersion"], "capabilities": capabilities,
                         "serverInfo": {"name": MODE, "version": "1"}})
    elif method == "tools/list":
        result(message, {"tools": tools()})
    elif method == "tools/call":
        ACTS.get(MODE, lambda request: text(request, "fine"))(message)
    elif "id" in message and method == "ping":
        result(message, {})
    elif "id" in message:
        send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})


def main():
    if MODE == "refuses-to-start":
        complain("FATAL: the variable API_KEY is not set")
        sys.exit(78)
    if MODE == "noisy":
        print("Starting the server on stdio...\n\n{not json}\n[1,2,3]\n\"text\"", flush=True)
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, __file__, "grandchild"], stdin=subprocess.DEVNULL)
    if MODE == "grandchild":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(120)
    for line in sys.stdin:
        if line.strip():
            handle(json.loads(line))
    if MODE == "stubborn":
        time.sleep(120)


main()
