"""Hostile stdio servers."""
import re
import time

from trouble.beside import MEGABYTE, beside, hostile
from wire import Legacy, Modern

FIFTY = 50 * MEGABYTE
# mode: what the error that its caller gets must say. What a server wrote on its standard error is for its operator alone.
ERRORS = {
    "dies": (r"bad", r"`banyan logs bad`", r"\b3\b"),
    "malformed": (r"bad", r"JSON"),
    "duplicates": (r"bad", r"duplicate|twice"),
    "endless-line": (r"bad", r"MB|MiB|bytes|large|long|limit"),
}


def cases():
    """(name, function) pairs."""
    for mode in ERRORS:
        yield f"stdio {mode}", lambda report, name, m=mode: fails(report, name, m)
    yield "stdio huge result", huge
    yield "stdio floods notifications", lambda report, name: floods(report, name, "chatters", "flooding")
    yield "stdio floods stderr", lambda report, name: floods(report, name, "shouts", "shouting")
    yield "stdio 100,000 tools", many_tools
    for mode in ("exits-on-probe", "noisy", "wrong-id"):
        yield f"stdio {mode}", lambda report, name, m=mode: works(report, name, m)
    yield "stdio never answers a call", mute
    yield "stdio never answers at all", silent
    yield "stdio refuses to start", lambda report, name: absent(
        report, name, hostile("refuses-to-start"), (r"bad", r"`banyan logs bad`", r"\b78\b"))
    yield "stdio no such program", lambda report, name: absent(
        report, name, {"command": "/no/such/program"}, (r"bad", r"/no/such/program", r"there is no program"))


def says(report, name, reply, patterns):
    """The reply is one error whose text has all of the patterns."""
    words = reply.text
    failed = bool(reply.error) or bool(reply.result.get("isError"))
    report.check(f"{name}: the caller gets an error", failed, words[:600])
    for pattern in patterns:
        report.check(f"{name}: the error says /{pattern}/", re.search(pattern, words), words[:1200])


def fails(report, name, mode):
    """A call that goes wrong at the server: an error soon, and the next call finds the server again."""
    with beside(report, name, hostile(mode)) as gateway:
        client, began = Legacy(gateway.url()), time.monotonic()
        says(report, name, client.tool("bad__act"), ERRORS[mode])
        report.check(f"{name}: soon", time.monotonic() - began < 10, f"{time.monotonic() - began:.1f} s")
        modern = Modern(gateway.url())
        says(report, name + " (modern client)", modern.tool("bad__act"), ERRORS[mode][:1])


def huge(report, name):
    """A 50 MB result: passed whole, or refused with a reason; either way memory stays bounded."""
    with beside(report, name, hostile("huge"), memory=6 * FIFTY) as gateway:
        reply = Legacy(gateway.url()).tool("bad__act")
        whole = not reply.error and len(reply.text) == FIFTY
        told = re.search(r"bad", reply.text[:2000]) and re.search(r"MB|MiB|bytes", reply.text[:2000])
        report.check(f"{name}: it arrives, or the caller is told why not", whole or told, reply.text[:600])


def floods(report, name, mode, words):
    """A flood that goes on for some seconds."""
    with beside(report, name, hostile(mode)) as gateway:
        client = Legacy(gateway.url(), timeout=20)
        report.equal(f"{name}: the call that starts it", client.tool("bad__act").text, words)
        time.sleep(4)
        report.equal(f"{name}: a call during it", client.tool("bad__act").text, words)


def many_tools(report, name):
    """100,000 tools: all are listed, or the tools that find them are; and one is called."""
    with beside(report, name, hostile("many-tools"), memory=600 * MEGABYTE) as gateway:
        client = Legacy(gateway.url(), timeout=60)
        tools = client.tools()
        search = next((tool for tool in tools if "search" in tool), None)
        found = client.tool(search, {"query": "tool number 99999"}).text if search else tools
        report.check(f"{name}: one is found", "bad__tool_099999" in found, f"{len(tools)} listed")
        report.equal(f"{name}: it is called", client.tool("bad__tool_099999").text, "fine")


def works(report, name, mode):
    """Odd, but harmless: it works."""
    with beside(report, name, hostile(mode)) as gateway:
        client = Legacy(gateway.url())
        report.check(f"{name}: its tool is listed", "bad__act" in client.tools())
        report.equal(f"{name}: its tool answers", client.tool("bad__act").text, "fine")


def mute(report, name):
    """A call that is never answered: the caller can give up, and others are served meanwhile."""
    with beside(report, name, hostile("mute")) as gateway:
        client = Legacy(gateway.url(), timeout=2)
        try:
            got = client.tool("bad__act").text
        except TimeoutError:
            got = None
        report.check(f"{name}: no invented answer", got is None, got)
        report.check(f"{name}: its list is still served", "act" in Legacy(gateway.url("bad")).tools())


def silent(report, name):
    """A server that never says hello: the others do not wait for it, and its state can be seen."""
    with beside(report, name, hostile("silent"), wait=False) as gateway:
        began = time.monotonic()
        tools = Legacy(gateway.url(), timeout=20).tools()
        took = time.monotonic() - began
        report.check(f"{name}: the list does not wait for it", took < 10 and "good__fx_echo" in tools, f"{took:.1f} s, {len(tools)} tools")
        status, _ = gateway.get("/readyz")
        report.check(f"{name}: not ready while it starts", status == 503, status)


def absent(report, name, bad, patterns):
    """A server that can't be started: its caller hears the reason."""
    with beside(report, name, bad) as gateway:
        client = Legacy(gateway.url(), timeout=20)
        report.check(f"{name}: the good tools are listed", "good__fx_echo" in client.tools())
        says(report, name, client.tool("bad__act"), patterns)
