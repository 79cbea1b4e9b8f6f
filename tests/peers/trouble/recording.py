"""HTTP upstreams in this process: one that records every header and body it is sent, and some that misbehave."""
import http.server
import json
import threading
import time


class Upstream:
    """A legacy streamable-HTTP server on `port` (0: a free one); `behave` may answer a tool call in its own way."""

    def __init__(self, behave=None, port=0):
        self.seen = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                outer.seen.append((str(self.headers), body.decode("utf-8", "replace")))
                message = json.loads(body)
                if message.get("method") == "tools/call" and behave:
                    behave(self, message)
                    return
                self.reply(message)

            def do_GET(self):
                outer.seen.append((self.path + "\n" + str(self.headers), ""))
                self.answer(405, b"", "text/plain")

            do_DELETE = do_GET

            def reply(self, message):
                """The ordinary answer."""
                if "id" not in message:
                    self.answer(202, b"", "text/plain")
                    return
                results = {
                    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "recording", "version": "1"}},
                    "tools/list": {"tools": [{"name": "act", "description": "Acts", "inputSchema": {"type": "object"}}]},
                    "tools/call": {"content": [{"type": "text", "text": "fine"}]},
                    "ping": {},
                }
                found = results.get(message["method"])
                error = {"error": {"code": -32601, "message": "Method not found"}}
                out = {"jsonrpc": "2.0", "id": message["id"], **({"result": found} if found is not None else error)}
                self.answer(200, json.dumps(out).encode(), "application/json")

            def answer(self, status, body, kind):
                """Status, body and media type."""
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def server_error(handler, message):
    """HTTP 500 with a page of HTML."""
    handler.answer(500, b"<html><body>Internal Server Error: the database is gone</body></html>", "text/html")


def not_json(handler, message):
    """HTTP 200, JSON by its header only."""
    handler.answer(200, b"<!doctype html><title>Welcome to the captive portal</title>", "application/json")


def cut_short(handler, message):
    """Promises more bytes than it sends, then hangs up."""
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"jsonrpc":"2.0",')
    handler.close_connection = True


def endless_events(handler, message):
    """An event stream of notifications that never comes to an answer."""
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.end_headers()
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "n" * 1000}})
    try:
        while True:
            handler.wfile.write(f"data: {note}\n\n".encode())
    except OSError:
        handler.close_connection = True


def too_busy(handler, message):
    """HTTP 429 with a time to come back."""
    handler.send_response(429)
    handler.send_header("retry-after", "7")
    handler.send_header("content-length", "0")
    handler.end_headers()


def hangs(handler, message):
    """Never answers."""
    time.sleep(120)
    handler.close_connection = True
