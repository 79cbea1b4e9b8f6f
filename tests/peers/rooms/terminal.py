"""A terminal in a room (`banyan room join`) among clients of Python's `websockets`, which it takes as they take each other (MX-03, MX-20, MX-22)."""
import os
import subprocess
import threading

from gateway import binary, end
from rooms.party import PATIENCE, Party

CALL = {"method": "tools/call", "params": {"name": "lights", "arguments": {"on": True}}}


def cases():
    """Each of them has a room of its own, and `bob` and `bot` with their tokens; `ann` sits at the terminal."""
    return {"terminal": terminal}.items()


def terminal(report, name, gateway, room):
    """What a client proposes is approved at the terminal, carried out by another client, and shown; what hides behind a kind is not."""
    env = {**gateway.home.env, "BANYAN_ROOM_TOKEN": "ann-secret"}
    command = [binary(), "room", "join", room, "--url", f"http://127.0.0.1:{gateway.port}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=env, cwd=os.path.dirname(gateway.home.file), text=True, bufsize=1, **pipes) as ann:
        # What it never shows ends the wait.
        bound = threading.Timer(2 * PATIENCE, ann.kill)
        bound.start()
        try:
            shows(report, f"{name}/welcome", ann, "you are ann")
            with Party(gateway, room, "bob-secret") as bob, Party(gateway, room, "bot-secret") as bot:
                hidden = {"method": "tools/call", "params": {"name": "doors", "arguments": {}}}
                bot.say("mcp/proposal:tools/call:lights", hidden, to=["bob"])
                shows(report, f"{name}/hidden", ann, "dropped a message of bot")
                proposed = bot.say("mcp/proposal:tools/call:lights", CALL, to=["bob"])
                shows(report, f"{name}/proposal", ann, '#1 bot proposes lights at bob {"on": true}')
                types(ann, "/approve 1")
                while (asked := bob.hear()).get("correlation_id") != proposed:
                    pass
                report.equal(f"{name}/request", (asked["from"], asked["to"], asked["kind"]), ("ann", ["bob"], "mcp/request:tools/call:lights"))
                params = {key: asked["payload"][key] for key in CALL}
                report.equal(f"{name}/as proposed", params, CALL)
                result = {"jsonrpc": "2.0", "id": asked["payload"]["id"], "result": {"content": [{"type": "text", "text": "it is light"}]}}
                bob.say("mcp/response:tools/call:lights", result, to=["ann", "bot"], correlation_id=asked["id"])
                shows(report, f"{name}/result", ann, "#1 done by bob: it is light")
                types(ann, "/who")
                shows(report, f"{name}/counted", ann, "bot  mcp/proposal:*, mcp/withdraw:*, mcp/response:*, chat  1 message dropped")
                spelt = bot.say("mcp/proposal:tools/call", CALL, to=["bob"])
                shows(report, f"{name}/without a context", ann, '#2 bot proposes lights at bob {"on": true}')
                types(ann, "/approve 2\n/approve 2\nThat was all")
                calls = [asked for asked in until_chat(bob) if asked.get("correlation_id") == spelt]
                report.equal(f"{name}/approved twice, called once", len(calls), 1)
                types(ann, "/open\n/export")
                shows(report, f"{name}/closed", ann, '{"state":"requested","proposal":{"id":"%s"' % spelt)
                types(ann, "Good night")
                while (said := bot.hear())["kind"] != "chat" or said["payload"]["text"] == "That was all":
                    pass
                report.equal(f"{name}/chat", (said["from"], said["payload"]["text"]), ("ann", "Good night"))
            types(ann, "/quit")
            report.equal(f"{name}/leaves", ann.wait(PATIENCE), 0)
        finally:
            bound.cancel()
            end(ann)


def until_chat(party):
    """What comes before the next line that is said."""
    heard = []
    while (message := party.hear())["kind"] != "chat":
        heard.append(message)
    return heard


def types(terminal_, line):
    terminal_.stdin.write(f"{line}\n")
    terminal_.stdin.flush()


def shows(report, name, terminal_, wanted):
    """A line with this text comes; the terminal's end is a failure."""
    seen = []
    for line in terminal_.stdout:
        seen.append(line)
        if wanted in line:
            return report.check(name, True)
    return report.check(name, False, "".join(seen)[-1500:] + terminal_.stderr.read()[-500:])
