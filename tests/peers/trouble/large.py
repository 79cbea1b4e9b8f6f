"""Results of 50 MB: they pass while they come, byte for byte, and the gateway holds next to nothing of them."""
import http.client
import json
import threading
from pathlib import Path

from trouble import recording
from trouble.beside import MEGABYTE, beside
from wire import META, MODERN

SIZE = 50_000_000
# What the gateway's memory may grow by meanwhile.
MOST = 2 * MEGABYTE


def cases():
    """(name, function) pairs."""
    yield "http large result", passes
    yield "http large result cut off", cut_off


def passes(report, name):
    """However it is framed, however often, and while others are served."""
    for framing in ("length", "chunked", "event"):
        with recording.Upstream(lambda handler, message: send(handler, message, framing)) as upstream:
            with beside(report, f"{name}, {framing}", {"type": "http", "url": upstream.url}) as gateway:
                # The first one also fills what the allocator and the runtime keep.
                ask(gateway)
                before = forget_peak(gateway)
                status, body, whole = ask(gateway)
                grown = peak(gateway) - before
                report.equal(f"{name}, {framing}: it is answered", (status, whole), (200, True))
                report.check(f"{name}, {framing}: byte for byte", body == expected(), body[:100] + b"..." + body[-100:])
                report.check(f"{name}, {framing}: memory grows by {MOST // MEGABYTE} MB at most", grown <= MOST, f"{grown / MEGABYTE:.1f} MB")


def cut_off(report, name):
    """What is there of a result that breaks off is not told as one, and nobody else is hurt."""
    with recording.Upstream(lambda handler, message: send(handler, message, "length", SIZE // 2)) as upstream:
        with beside(report, name, {"type": "http", "url": upstream.url}) as gateway:
            _, body, whole = ask(gateway)
            report.check(f"{name}: the caller can tell", not whole and len(body) < SIZE * 2 // 3, f"{len(body)} bytes")
            _, metrics = gateway.get("/metrics")
            failed = [line for line in metrics.splitlines() if line.startswith("mcp_server_operation_duration_seconds_count") and "-32004" in line]
            report.check(f"{name}: it counts as a failure", failed, metrics[:600])


def text():
    return "".join(f"{n:07d} ä \\\" " for n in range(SIZE // 13))


TEXT = threading.local()


def result():
    """The raw result, without its last brace."""
    if not hasattr(TEXT, "raw"):
        TEXT.raw = ('{ "content":[{"type":"text","text":"' + text() + '"}]').encode()
    return TEXT.raw


def expected():
    """What a caller of the other era gets."""
    return b'{"jsonrpc":"2.0","id":7,"result":' + result() + b',"resultType":"complete"}}'


def send(handler, message, framing, cut=None):
    """The answer of the server of the initialize era."""
    body = b'{"jsonrpc":"2.0","id":%s,"result":' % json.dumps(message["id"]).encode() + result() + b"}}"
    if framing == "event":
        body = b"event: message\ndata: " + body + b"\n\n"
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream" if framing == "event" else "application/json")
    handler.send_header(*(("content-length", str(len(body))) if framing == "length" else ("transfer-encoding", "chunked")))
    handler.end_headers()
    for at in range(0, cut or len(body), MEGABYTE):
        piece = body[at:at + MEGABYTE]
        handler.wfile.write(piece if framing == "length" else b"%x\r\n%s\r\n" % (len(piece), piece))
    if framing != "length":
        handler.wfile.write(b"0\r\n\r\n")
    handler.close_connection = cut is not None


def ask(gateway):
    """Calls the tool in the stateless era: status, body, and whether it came to its end."""
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "bad__act", "arguments": {}, "_meta": meta}}
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream",
               "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "bad__act"}
    connection = http.client.HTTPConnection("localhost", gateway.port, timeout=60)
    try:
        connection.request("POST", "/mcp", json.dumps(message), headers)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read(), True
        except http.client.IncompleteRead as broken:
            return answer.status, broken.partial, False
    finally:
        connection.close()


def forget_peak(gateway):
    """From here on `peak` is what comes; what is resident now."""
    Path(f"/proc/{gateway.process.pid}/clear_refs").write_text("5")
    return gateway.memory()


def peak(gateway):
    """The most bytes that were resident at once."""
    lines = Path(f"/proc/{gateway.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024
