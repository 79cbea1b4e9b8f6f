"""Hostile HTTP servers, and one that is down."""
import re
import time

from gateway import free_port
from trouble import recording
from trouble.beside import beside
from trouble.hostile_stdio import says
from wire import Legacy

# behaviour: what the error that its caller gets must say
ERRORS = {
    "HTTP 500": (recording.server_error, (r"bad", r"500")),
    "HTML for JSON": (recording.not_json, (r"bad", r"JSON")),
    "cut short": (recording.cut_short, (r"bad",)),
    "HTTP 429": (recording.too_busy, (r"bad", r"429")),
}


def cases():
    """(name, function) pairs."""
    for words, (behave, patterns) in ERRORS.items():
        yield f"http {words}", lambda report, name, b=behave, p=patterns: fails(report, name, b, p)
    yield "http endless events", endless
    yield "http hangs", hangs
    yield "http down, then up", down


def fails(report, name, behave, patterns):
    """A call that goes wrong: one clear error, soon; the server is not given up for it."""
    with recording.Upstream(behave) as upstream, beside(report, name, entry(upstream.url)) as gateway:
        client, began = Legacy(gateway.url(), timeout=20), time.monotonic()
        says(report, name, client.tool("bad__act"), patterns)
        report.check(f"{name}: soon", time.monotonic() - began < 10, f"{time.monotonic() - began:.1f} s")
        report.check(f"{name}: its tool is still listed", "bad__act" in client.tools())


def endless(report, name):
    """An event stream that never ends and that nobody reads: memory stays bounded, and the caller can leave."""
    with recording.Upstream(recording.endless_events) as upstream, beside(report, name, entry(upstream.url)) as gateway:
        client = Legacy(gateway.url(), timeout=20)
        connection = client.open({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "bad__act", "arguments": {}}})
        time.sleep(3)
        report.equal(f"{name}: it was streamed", connection.status, 200)
        report.equal(f"{name}: the caller cancels", client.notify("notifications/cancelled", {"requestId": 77}), 202)
        connection.close()


def hangs(report, name):
    """A server that takes the request and never answers."""
    with recording.Upstream(recording.hangs) as upstream, beside(report, name, entry(upstream.url)) as gateway:
        client = Legacy(gateway.url(), timeout=2)
        try:
            got = client.tool("bad__act").text
        except TimeoutError:
            got = None
        report.check(f"{name}: no invented answer", got is None, got)


def down(report, name):
    """Nothing listens at first; when something does, it is found without a restart of the gateway."""
    port = free_port()
    with beside(report, name, entry(f"http://127.0.0.1:{port}/mcp")) as gateway:
        client = Legacy(gateway.url(), timeout=20)
        reply = client.tool("bad__act")
        says(report, name, reply, (r"bad", rf"{port}", r"(?i)refused|connect"))
        with recording.Upstream(port=port):
            end = time.monotonic() + 40
            while "fine" not in (words := client.tool("bad__act").text) and time.monotonic() < end:
                time.sleep(0.5)
            report.check(f"{name}: found when it is up", re.fullmatch("fine", words), words[:600])


def entry(url):
    """An `mcpServers` entry."""
    return {"type": "http", "url": url}
