"""Contexts shared over AXCP: a node in Python on the other side, both ways; and three gates, one of which is away and comes back."""
import base64
import gzip
import json
import subprocess
import tempfile
import threading
from pathlib import Path

from context import example, tools, troubled
from context.nodes import WITHIN, Peer, micros, op, read, section, wait, write
from gateway import Gateway, free_port
from install import venv_bin
from wire import Legacy

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 120
HERE = Path(__file__).parent
NAMES = ("one", "two", "three", "python", "stranger")


def run(report):
    with tempfile.TemporaryDirectory(prefix="banyan-contexts-") as place:
        subprocess.run([venv_bin("context"), str(HERE / "certify.py"), place, *NAMES], check=True, timeout=60)
        jobs = {"dialled": dialled, "dials": dials, "refused": refused, "killed": killed, "three gates": three, "troubled": troubled.run, "tools": tools.run, "example": example.run}
        threads = [threading.Thread(target=report.guard, args=(f"context/{name}", lambda job=job: job(report, place))) for name, job in jobs.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * BUDGET)


def dialled(report, place):
    """The peer dials, in the order of bytes of the reference and in the other one."""
    name, port = "context/dialled", free_port()
    with Gateway(name, {}, config=section(place, "one", port, python=None)) as gateway:
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            report.equal(f"{name}: the protocol is negotiated", peer.until("opened").get("opened"), "axcp/1")
            peer.send(profile=0, profile_neg={"supported_mask": 0b1111, "min_required": 1})
            hello, ack = peer.until("frame"), peer.until("frame")
            report.equal(f"{name}: XC-01: the hello, byte for byte", hello.get("frame"), "08000000" "0801" "4204" "08071002")
            report.equal(f"{name}: XC-01: the acknowledgement, byte for byte", ack.get("frame"), "06000000" "0801" "4a02" "0802")
            peer.send(profile=0, profile_ack={"agreed_profile": 2})
            report.equal(f"{name}: XC-12: the gate subscribes", peer.until("sync_subscribe"), {"from": {"context_id": "chat"}})
            peer.raw(bytes.fromhex("0d0000000801120774726163652d311802"))
            shared(report, name, gateway, peer)
            listened(report, name, gateway, peer)
            filled(report, name, gateway, peer)
            observed(report, name, gateway, peer)
            status = json.loads(gateway.told("axcp", "status", "--json"))
            report.equal(f"{name}: the status shows the peer", [(one["id"], one["connected"], one["profile"]) for one in status["peers"]], [("dns:python", True, 2)])
        away = lambda: not json.loads(gateway.told("axcp", "status", "--json"))["peers"][0]["connected"]
        with Peer(place, "dial", "127.0.0.1", port, order="big") as peer:
            peer.until("opened")
            peer.send(profile=0, profile_neg={"supported_mask": 0b0111, "min_required": 2})
            report.equal(f"{name}: XC-01: a peer with the other order of bytes is answered in its own", peer.until("frame").get("frame"), "00000008" "0801" "4204" "08071002")
            peer.until("profile_ack")
            peer.send(profile=0, profile_ack={"agreed_profile": 2})
            report.check(f"{name}: XC-01: and is let in", peer.until("sync_subscribe"), peer.seen)
        report.check(f"{name}: a peer that is gone is seen to go", wait(away, 30), gateway.told("axcp", "status"))
        history(report, name, gateway)


def shared(report, name, gateway, peer):
    peer.subscribe()
    peer.patch([op("/user/status", "busy"), op("/user/mood", {"is": "calm"}, kind=0), op("/user/mood", {"since": 5}, kind=3, packed=True)])
    wanted = {"status": "busy", "mood": {"is": "calm", "since": 5}}
    report.check(f"{name}: XC-11: a patch of the peer is read by a client", wait(lambda: read(gateway, "/user") == wanted), read(gateway))
    old = op("/user/status", "old", ts=micros() - 60_000_000)
    peer.patch([old, op("/seen", True)])
    wait(lambda: read(gateway, "/seen"))
    report.equal(f"{name}: XC-11: an older write loses", read(gateway, "/user/status"), "busy")
    version = write(gateway, "/reply", [1, 2, 3])
    patch = wait(lambda: next((one for one in [peer.until("context_patch")] if any(op["path"] == "/reply" for op in one.get("ops", []))), None)) or {}
    report.equal(f"{name}: XC-12: a patch by a client comes to the peer", [json.loads(base64.b64decode(op["data"])) for op in patch.get("ops", [])], [[1, 2, 3]])
    report.equal(f"{name}: XC-12: under its version", int(patch.get("base_version", -1)) + 1, version)
    report.equal(f"{name}: XC-11: with its author", [op["node_id"] for op in patch.get("ops", [])], ["dns:one"])


def listened(report, name, gateway, peer):
    """A client that subscribed to the resource hears of a change by the peer."""
    client = Legacy(gateway.url("chat"))
    uri = client.call("resources/list").result["resources"][0]["uri"]
    stream = client.stream()
    client.call("resources/subscribe", {"uri": uri})
    peer.patch([op("/told", 1)])
    heard = stream.wait("notifications/resources/updated", within=WITHIN)
    report.check(f"{name}: a subscriber of the resource hears of a patch by the peer", heard and heard["params"]["uri"] == uri, heard)
    text = client.call("resources/read", {"uri": uri}).result["contents"][0]["text"]
    report.equal(f"{name}: and reads it", json.loads(text).get("told"), 1)
    stream.close()


def filled(report, name, gateway, peer):
    """Gaps: versions are given again, or refused."""
    peer.send(sync_request={"missing_from": {"context_id": "chat", "version": 0}, "to_version": 2})
    patch = wait(lambda: next((one for one in [peer.until("context_patch")] if one.get("base_version", "0") == "0"), None)) or {}
    report.equal(f"{name}: XC-12: a gap is filled", len(patch.get("ops", [])), 2)
    peer.send(trace_id="gap", sync_request={"missing_from": {"context_id": "chat", "version": 5}, "to_version": 10_000})
    report.equal(f"{name}: XC-12: versions that are not there are MISSING_PATCH_RANGE", peer.until("error").get("code"), 15)


def observed(report, name, gateway, peer):
    """Telemetry in all three forms, of which one is lost on the way, and bytes without sense."""
    tokens = bytes.fromhex("08ac02" "5a04" "08071002")
    for datagram in (b"\xa0\0\x11" + tokens, b"\xa0\0\x13" + tokens, b"\xa0" + tokens, b"\x08\x01\x5a" + bytes([len(tokens)]) + tokens, b"nothing"):
        peer.datagram(datagram)
    shown = lambda: json.loads(gateway.told("axcp", "status", "--json"))["peers"][0]["telemetry"]
    wait(lambda: shown()["received"] + shown()["refused"] == 5)
    wanted = {"received": 4, "lost": 1, "refused": 1, "last": {"timestamp_ms": 300, "prompt_tokens": 7, "completion_tokens": 2}}
    report.equal(f"{name}: XC-04: telemetry is read in all three forms, and its loss counted", shown(), wanted)


def history(report, name, gateway):
    log = json.loads(gateway.told("context", "log", "chat", "--json"))["versions"]
    report.equal(f"{name}: XC-10: every version has a number", [one["version"] for one in log], list(range(1, len(log) + 1)))
    report.equal(f"{name}: XC-10: and an author", {one["author"] for one in log}, {"dns:python", "dns:one"})
    then = json.loads(gateway.told("context", "at", "chat", "1", "--json"))["value"]
    report.equal(f"{name}: XC-14: the context as it was", then, {"user": {"status": "busy"}})
    changes = json.loads(gateway.told("context", "diff", "chat", "0", "1", "--json"))["changes"]
    report.equal(f"{name}: XC-14: the changes between two versions", [(one["path"], one["value"]) for one in changes], [("/user/status", "busy")])
    absent = gateway.asked("context", "at", "chat", "9999")
    report.check(f"{name}: a version that is not kept is refused", absent.returncode == 1 and "held here" in absent.stderr, absent.stderr)


def dials(report, place):
    """The gate dials the peer."""
    name, port = "context/dials", free_port()
    with Peer(place, "listen", port) as peer:
        peer.until("listening")
        with Gateway(name, {}, config=section(place, "two", python=port)) as gateway:
            report.equal(f"{name}: the gate dials", peer.until("opened").get("opened"), "axcp/1")
            report.equal(f"{name}: XC-03: and asks for its profile", peer.until("profile_neg"), {"supported_mask": 7, "min_required": 2})
            report.equal(f"{name}: XC-03: the profile is settled", peer.hello(), {"agreed_profile": 2})
            peer.until("sync_subscribe")
            peer.subscribe()
            peer.patch([op("/from/python", "here")])
            report.check(f"{name}: XC-11: a patch of the peer is read by a client", wait(lambda: read(gateway, "/from/python") == "here"), read(gateway))
            write(gateway, "/from/two", "there")
            patch = wait(lambda: next((one for one in [peer.until("context_patch")] if any(op["path"] == "/from/two" for op in one.get("ops", []))), None))
            report.check(f"{name}: XC-12: a patch by a client comes to the peer", patch, peer.seen[-3:])


def refused(report, place):
    """What a node must not do, each with the code of the specification."""
    name, port = "context/refused", free_port()
    with Gateway(name, {}, config=section(place, "one", port, python=None)) as gateway:
        dial = lambda **more: Peer(place, "dial", "127.0.0.1", port, **more)
        for what, more in {"without a certificate": {"shows": False}, "with another name": {"name": "stranger"}}.items():
            with dial(**more) as peer:
                report.equal(f"{name}: a node {what} is UNAUTHORIZED", peer.until("closed").get("closed"), 2)
        with dial(name="other-python") as peer:
            report.check(f"{name}: a certificate of another authority opens nothing", peer.until("closed").get("closed", 2) > 16, peer.seen)
        closing(report, name, dial)
        gateway.home.write("banyan.toml", section(place, "one", port, python=None).replace("peers = ", "readers = "))
        gateway.asked("reload")
        with dial() as peer:
            peer.hello()
            peer.patch([op("/a", 1)])
            report.equal(f"{name}: a patch of a reader is UNAUTHORIZED", peer.until("error").get("code"), 2)
        gateway.home.write("banyan.toml", section(place, "one", port, python=None))
        gateway.asked("reload")
        with dial() as peer:
            peer.hello()
            survived(report, name, gateway, peer)


def closing(report, name, dial):
    frame = lambda data: len(data).to_bytes(4, "little") + data
    cases = {
        "XC-24: a patch before the profile is MALFORMED_REQUEST": (8, lambda peer: peer.patch([op("/a", 1)])),
        "a profile that is not spoken is PROFILE_UNSUPPORTED": (13, lambda peer: peer.hello(0b1111, 3)),
        "XC-02: profiles below contexts are PROFILE_UNSUPPORTED": (13, lambda peer: peer.hello(0b0011, 0)),
        "an offer without sense is MALFORMED_REQUEST": (8, lambda peer: peer.hello(0b0011, 2)),
        "another acknowledgement is PROFILE_NEGOTIATION_FAILED": (14, lambda peer: (
            peer.send(profile=0, profile_neg={"supported_mask": 7, "min_required": 2}), peer.send(profile=0, profile_ack={"agreed_profile": 1}))),
        "a false length is PAYLOAD_TOO_LARGE": (7, lambda peer: peer.raw(b"\xff\xff\xff\xff")),
        "another version is UNSUPPORTED_VERSION": (5, lambda peer: peer.raw(frame(b"\x08\x02"))),
        "bytes without sense are MALFORMED_REQUEST": (8, lambda peer: peer.raw(frame(b"\xff\xff\xff"))),
    }
    for what, (code, work) in cases.items():
        with dial() as peer:
            peer.until("opened")
            work(peer)
            report.equal(f"{name}: {what}, and closes", wait(lambda: next((one["closed"] for one in [*peer.seen, peer.next(0.2)] if "closed" in one), None)), code)


def survived(report, name, gateway, peer):
    """Refusals that leave the session as it was."""
    bomb = base64.b64encode(gzip.compress(b"1" * (64 << 20))).decode()
    cases = {
        "a context of others is INVALID_CONTEXT": (1, lambda: peer.patch([op("/a", 1)], context="theirs")),
        "a clock an hour ahead is BAD_DELTA": (6, lambda: peer.patch([op("/a", 1, ts=micros() + 3_600_000_000)])),
        "an operation without a time is BAD_DELTA": (6, lambda: peer.patch([{"op": 1, "path": "/a", "data": "MQ=="}])),
        "a path that is no pointer is BAD_DELTA": (6, lambda: peer.patch([op("a", 1)])),
        "data that is no JSON is BAD_DELTA": (6, lambda: peer.patch([{**op("/a", 1), "data": base64.b64encode(b"{").decode()}])),
        "packed data that bursts is PAYLOAD_TOO_LARGE": (7, lambda: peer.patch([{**op("/a", 1), "data": bomb}])),
        "too many operations are PAYLOAD_TOO_LARGE": (7, lambda: peer.patch([op(f"/a/{n}", 1) for n in range(4097)])),
        "a profile above the session is PROFILE_MISMATCH": (12, lambda: peer.send(profile=3, sync_subscribe={"from": {"context_id": "chat"}})),
        "XC-03: a downgrade below the minimum is refused": (14, lambda: peer.send(downgrade={"new_profile": 1})),
        "a request without a subscription is MALFORMED_REQUEST": (8, lambda: peer.send(sync_request={"missing_from": {"context_id": "chat"}})),
    }
    for what, (code, work) in cases.items():
        work()
        report.equal(f"{name}: {what}", peer.until("error").get("code"), code)
    report.equal(f"{name}: nothing of it was applied", read(gateway), {})
    peer.patch([op("/fine", 1)])
    report.check(f"{name}: the session goes on", wait(lambda: read(gateway, "/fine") == 1), read(gateway))


def killed(report, place):
    """What was acknowledged is there after SIGKILL, at any moment."""
    name, port = "context/killed", free_port()
    with Gateway(name, {}, config=section(place, "three", port, python=None)) as gateway:
        acknowledged = []
        for turn in range(3):
            stop = threading.Event()

            def patch():
                client = Legacy(gateway.url("chat"))
                while not stop.is_set():
                    number = len(acknowledged)
                    try:
                        reply = client.tool("patch", {"ops": [{"op": "add", "path": f"/n/{number}", "value": number}]})
                    except (OSError, RuntimeError, ValueError):
                        return
                    if reply.message and not reply.error and not reply.result.get("isError"):
                        acknowledged.append(number)

            before, writer = len(acknowledged), threading.Thread(target=patch)
            writer.start()
            wait(lambda: len(acknowledged) >= before + 20)
            gateway.kill()
            stop.set()
            writer.join(30)
            gateway.start()
            kept = read(gateway, "/n") or {}
            lost = [number for number in acknowledged if kept.get(str(number)) != number]
            report.check(f"{name}: XC-14: turn {turn}: none of {len(acknowledged)} acknowledged patches is lost", not lost and len(acknowledged) >= before + 20, lost)
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            peer.patch([op("/from/python", 1)])
            wait(lambda: read(gateway, "/from/python"))
        gateway.kill()
        gateway.start()
        report.equal(f"{name}: XC-14: a patch of a peer is there after SIGKILL", read(gateway, "/from/python"), 1)


def three(report, place):
    """A hub and two gates at the edge, of which one is away for a while."""
    name, port = "context/three gates", free_port()
    hub = Gateway(f"{name} hub", {}, config=section(place, "one", port, two=None, three=None))
    edges = [Gateway(f"{name} {edge}", {}, config=section(place, edge, one=port)) for edge in ("two", "three")]
    with hub, edges[0] as two, edges[1] as three:
        write(two, "/from/two", 1)
        report.check(f"{name}: a patch at one edge is read at the other", wait(lambda: read(three, "/from/two") == 1), three.told("axcp", "status"))
        client = Legacy(three.url("chat"))
        stream = client.stream()
        client.call("resources/subscribe", {"uri": "axcp://context/chat"})
        write(two, "/from/two", 2)
        report.check(f"{name}: a subscriber at the other edge hears of a patch", stream.wait("notifications/resources/updated", within=WITHIN))
        stream.close()
        three.kill()
        for number in range(20):
            write((hub, two)[number % 2], f"/while/{number}", number)
        three.start()
        write(three, "/back", True)
        same = lambda: read(hub) == read(two) == read(three) and read(hub).get("back") and len(read(hub)["while"]) == 20
        report.check(f"{name}: XC-13: the one that was away catches up, and all are equal", wait(same), [read(one) for one in (hub, two, three)])
        authors = {one["author"] for one in json.loads(three.told("context", "log", "chat", "--json"))["versions"]}
        report.equal(f"{name}: XC-11: authors stay over the hub", authors, {"dns:one", "dns:two", "dns:three"})
        hub.kill()
        write(two, "/apart", "two")
        write(three, "/apart", "three")
        hub.start()
        report.check(f"{name}: XC-11: writes made apart end in the later one, everywhere",
                     wait(lambda: [read(one, "/apart") for one in (hub, two, three)] == ["three"] * 3), [read(one) for one in (hub, two, three)])
