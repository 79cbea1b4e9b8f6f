"""Servers that sit in a room: clients of Python's `websockets` call them there, and what they propose waits at the gate as it waits in the room
(MX-21, MX-22)."""
from approvals.checks import Held
from rooms.party import FULL, PROPOSES, Party

MORE = """
[room.ops]
seats = ["disk"]
[participant.ann]
token = "${{file:{dir}/ann.token}}"
rooms = ["ops"]
capabilities = {full}
[participant.bot]
token = "${{file:{dir}/bot.token}}"
rooms = ["ops"]
"""
KIND = "tools/call:wipe"


def cases():
    """Each has a gate of its own."""
    return {"a call": called, "approved at the gate": approved, "fulfilled in the room": fulfilled, "denied at the gate": denied}.items()


class Table(Held):
    """A gate at which calls wait, and a room in which its server sits."""

    def __init__(self, name, tmp):
        for who in ("ann", "bot"):
            (tmp / f"{who}.token").write_text(f"{who}-secret")
        super().__init__(name, more=MORE.format(dir=tmp, full=str(FULL).replace("'", '"')))

    def party(self, who):
        """Comes in, once the server sits there."""
        while True:
            party = Party(self.gateway, "ops", f"{who}-secret", also="mcp/reject,mcp/withdraw")
            if {"disk", "gate"} <= {one["id"] for one in party.welcome["payload"]["participants"]}:
                return party
            party.socket.close()


def wipe(disk):
    """The payload of a call."""
    return {"jsonrpc": "2.0", "id": disk, "method": "tools/call", "params": {"name": "wipe", "arguments": {"disk": disk}}}


def heard(party, kind, of=None):
    """The next message of a kind, about a message where one is named."""
    while (message := party.hear())["kind"] != kind or (of and message.get("correlation_id") != of):
        pass
    return message


def called(report, name, tmp):
    """A call that waits for a signature, made in the room by one who may."""
    with Table(name, tmp) as table, table.party("ann") as ann:
        key = table.enroll("anna")
        listed = ann.say("mcp/request:tools/list", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, to=["disk"])
        tools = heard(ann, "mcp/response:tools/list", listed)["payload"]["result"]["tools"]
        report.equal(f"{name}: the list", [tool["name"] for tool in tools], ["wipe"])
        # What is for everybody is nobody's to answer: of the two only one goes out.
        ann.say(f"mcp/request:{KIND}", wipe("all"))
        asked = ann.say(f"mcp/request:{KIND}", wipe("a"), to=["disk"])
        waiting = table.pending()
        report.equal(f"{name}: waits", (waiting["caller"], waiting["room"], waiting["causes"]), ("ann", "ops", ["mode"]))
        code, printed = table.banyan("approve", waiting["id"][:8], "--key", str(key), "--yes")
        report.check(f"{name}: banyan approve", code == 0 and "room      ops" in printed, printed)
        answer = heard(ann, f"mcp/response:{KIND}", asked)
        report.equal(f"{name}: the answer", (answer["from"], answer["to"], answer["payload"]["id"]), ("disk", ["ann"], "a"))
        report.equal(f"{name}: its text", answer["payload"]["result"]["content"][0]["text"], "wiped a")
        report.equal(f"{name}: went out", table.wiped(), [{"disk": "a"}])


def approved(report, name, tmp):
    """What one proposes who may not call is approved by its signature, and everybody sees it."""
    with Table(name, tmp) as table, table.party("ann") as ann, table.party("bot") as bot:
        key = table.enroll("anna")
        report.equal(f"{name}: capabilities", bot.welcome["payload"]["you"]["capabilities"], PROPOSES)
        proposed = bot.say(f"mcp/proposal:{KIND}", {"method": "tools/call", "params": wipe("b")["params"]}, to=["disk"])
        waiting = table.pending()
        shown = (waiting["caller"], waiting["room"], waiting["arguments"], waiting["causes"])
        report.equal(f"{name}: waits", shown, ("bot", "ops", '{"disk":"b"}', ["mode", "proposal"]))
        report.check(f"{name}: the list", "bot in room ops" in table.banyan("approvals")[1])
        code, printed = table.banyan("approve", waiting["id"][:8], "--key", str(key), "--yes")
        report.check(f"{name}: banyan approve", code == 0, printed)
        asked = heard(ann, f"mcp/request:{KIND}", proposed)
        report.equal(f"{name}: fulfilled", (asked["from"], asked["to"]), ("gate", ["disk"]))
        answer = heard(bot, f"mcp/response:{KIND}", asked["id"])
        report.equal(f"{name}: the answer", (answer["to"], answer["payload"]["result"]["content"][0]["text"]), (["gate", "bot"], "wiped b"))
        late = ann.say(f"mcp/request:{KIND}", wipe("b"), to=["disk"], correlation_id=proposed)
        report.check(f"{name}: once", "nothing was called" in heard(ann, f"mcp/response:{KIND}", late)["payload"]["error"]["message"])
        report.equal(f"{name}: went out", table.wiped(), [{"disk": "b"}])


def fulfilled(report, name, tmp):
    """Whoever fulfils in the room makes the call its own: it waits for a signature all the same, and the proposal's entry is over."""
    with Table(name, tmp) as table, table.party("ann") as ann, table.party("bot") as bot:
        key = table.enroll("anna")
        proposed = bot.say(f"mcp/proposal:{KIND}", {"method": "tools/call", "params": wipe("c")["params"]}, to=["disk"])
        first = table.pending()
        asked = ann.say(f"mcp/request:{KIND}", wipe("c"), to=["disk"], correlation_id=proposed)
        while (waiting := table.pending())["id"] == first["id"]:
            pass
        over = table.json("approvals", "--all")["approvals"]
        reason = next(one["reason"] for one in over if one["id"] == first["id"])
        report.equal(f"{name}: the entry", (waiting["caller"], reason), ("ann", 'fulfilled by "ann" in the room "ops"'))
        report.equal(f"{name}: a room takes no gate away", table.wiped(), [])
        table.banyan("approve", waiting["id"][:8], "--key", str(key), "--yes")
        answer = heard(bot, f"mcp/response:{KIND}", asked)
        report.equal(f"{name}: the answer", (answer["to"], answer["payload"]["result"]["content"][0]["text"]), (["ann", "bot"], "wiped c"))
        report.equal(f"{name}: went out", table.wiped(), [{"disk": "c"}])


def denied(report, name, tmp):
    """Who denies at the gate rejects in the room, and who withdraws in the room ends the entry."""
    with Table(name, tmp) as table, table.party("ann") as ann, table.party("bot") as bot:
        table.enroll("anna")
        proposed = bot.say(f"mcp/proposal:{KIND}", {"method": "tools/call", "params": wipe("d")["params"]}, to=["disk"])
        table.banyan("deny", table.pending()["id"], "--reason", "not today")
        rejected = heard(ann, f"mcp/reject:{KIND}", proposed)
        report.equal(f"{name}: rejected", (rejected["from"], rejected["payload"]["reason"]), ("gate", "denied at the gate: not today"))
        proposed = bot.say(f"mcp/proposal:{KIND}", {"method": "tools/call", "params": wipe("e")["params"]}, to=["disk"])
        waiting = table.pending()
        bot.say(f"mcp/withdraw:{KIND}", {}, correlation_id=proposed)
        heard(ann, f"mcp/withdraw:{KIND}", proposed)
        while any(one["id"] == waiting["id"] for one in table.json("approvals")["approvals"]):
            pass
        report.equal(f"{name}: went out", table.wiped(), [])
