"""What MCPx v0.1 does not have: for those who asked for it in their address, and for nobody else."""
import json

from rooms.party import PATIENCE, Party
from rooms.talk import change


def cases():
    """Each has a room of its own; that of `history` keeps five messages."""
    return {"history": history, "also": also, "streams": streams}.items()


def history(report, name, gateway, room):
    """Whoever joins later and asks gets the last messages as they came, and a room that is empty meanwhile keeps them."""
    with Party(gateway, room, "ann-secret") as ann:
        for number in range(7):
            ann.chat(f"line {number}")
        odd = '{ "kind":"chat", "id":"odd","from":"ann","protocol":"mcpx/v0.1", "payload":{"n":1.50e0} }'
        ann.socket.send(odd)
        while ann.hear()["id"] != "odd":
            pass
    with Party(gateway, room, "bob-secret", history=3) as bob:
        told = bob.joined
        report.equal(f"{name}/behind the welcome", (bob.welcome["kind"], told["kind"], told["to"]), ("system/welcome", "system/history", ["bob"]))
        ids = [past["envelope"]["payload"].get("text") for past in told["payload"]["messages"]]
        report.equal(f"{name}/the last of them", (ids, told["payload"]["more"]), (["line 5", "line 6", None], True))
        report.check(f"{name}/with their times", all(past["at"].endswith("Z") for past in told["payload"]["messages"]), told)
        report.equal(f"{name}/then it joins", bob.hear()["kind"], "system/presence")
    with Party(gateway, room, "bob-secret", history=100) as bob:
        report.equal(f"{name}/no more than are kept", len(bob.joined["payload"]["messages"]), 5)
    bare = Party(gateway, room, "bob-secret", history=1)
    with bare:
        bare.chat("now")
        report.check(f"{name}/and then it goes on", bare.hear()["kind"] == "system/presence" and bare.hear()["payload"] == {"text": "now"})
    with Party(gateway, room, "bob-secret") as bob:
        report.equal(f"{name}/not for whoever did not ask", bob.joined["kind"], "system/presence")
    with Party(gateway, "ops", "bob-secret", history=5) as bob:
        report.equal(f"{name}/none is kept elsewhere", bob.joined["payload"], {"messages": [], "more": False})


def also(report, name, gateway, room):
    """Each kind beyond v0.1 reaches those who asked for it."""
    kinds = ["chat/acknowledge", "chat/cancel", "mcp/reject:tools/call", "mcp/withdraw:tools/call", "participant/pause", "participant/resume"]
    classes = ",".join(kind.split(":")[0] for kind in kinds)
    patterns = {"add": ["chat/*", "participant/*"], "remove": []}
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bob-secret", also=classes) as bob:
        change(gateway, room, "ann", patterns)
        while ann.hear()["kind"] != "system/welcome":
            pass
        report.equal(f"{name}/told so", sorted(bob.welcome["payload"]["also"]), sorted(classes.split(",")))
        sent = [ann.say(kind, {}, correlation_id="of-that") for kind in kinds]
        last = ann.chat("done")
        report.equal(f"{name}/to whoever asked", until(bob, last, sent), sent)
        report.equal(f"{name}/and to nobody else", until(ann, last, sent), [])


def streams(report, name, gateway, room):
    """A stream goes to those it names, in order, and not back to its sender."""
    patterns = {"add": ["stream/*"], "remove": []}
    with Party(gateway, room, "ann-secret") as ann, Party(gateway, room, "bob-secret", also="stream") as bob:
        change(gateway, room, "ann", patterns)
        while ann.hear()["kind"] != "system/welcome":
            pass
        sent = [ann.say("stream/data", {"n": n}, to=["bob"]) for n in range(50)]
        last = ann.chat("done")
        report.equal(f"{name}/to whom it names", until(bob, last, sent), sent)
        report.equal(f"{name}/and to nobody else", until(ann, last, sent), [])
        ann.say("stream/data", {})
        told = ann.error()["payload"]
        report.check(f"{name}/one that names nobody is refused", told["error"] == "invalid_envelope" and "names" in told["message"], told)


def until(who, last, wanted):
    """The ids of what was wanted, in the order in which it came, up to the last message."""
    came = []
    while (message := json.loads(who.socket.recv(timeout=PATIENCE)))["id"] != last:
        came += [message["id"]] if message["id"] in wanted else []
    return came
