"""Tools over AXCP: a node in Python calls those of a gate and offers its own; and two gates, one of which calls through the other."""
import base64
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from context.nodes import Peer, section, wait
from gateway import Gateway, free_port
from wire import Legacy

WIPER = str(Path(__file__).parent.parent / "approvals" / "wiper.py")
RULES = """@id("all") permit (principal, action, resource);
@id("not-sda") forbid (principal in Group::"edges", action == Action::"call", resource == Tool::"disk.wipe")
when { context.arguments has disk && context.arguments.disk == "sda" };
@id("no-patch") forbid (principal in Group::"edges", action, resource == Tool::"chat.patch");
"""
# A code of the specification: no tool of the name, not allowed, too late, no sense, too much.
ABSENT, REFUSED, LATE, SENSELESS, CROWDED = 3, 2, 4, 8, 9


def run(report, place):
    jobs = {"called": called, "ruled": ruled, "approved": approved, "offered": offered, "forged": forged, "two gates": two}
    threads = [threading.Thread(target=report.guard, args=(f"context/{name}", lambda job=job: job(report, place))) for name, job in jobs.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)


def disk(place, name, port=None, tools=("disk.*",), mode="off", **peers):
    """The text of a gate with a tool that its peers may call, and the file with the calls that went out."""
    log = tempfile.mktemp(prefix="banyan-axcp-")
    Path(log).write_text("")
    text = section(place, name, port, **peers).replace('mode = "off"', f'mode = "{mode}"')
    for peer in peers:
        text = text.replace(f'id = "dns:{peer}"\n', f'id = "dns:{peer}"\ntools = {json.dumps(tools)}\n')
    return text + f'[mount.disk]\ncommand = "{sys.executable}"\nargs = ["{WIPER}", "{log}"]\n', log


def lines(log):
    return [json.loads(line)["disk"] for line in Path(log).read_text().splitlines()]


def result(found):
    """The text of a result's first block."""
    return json.loads(base64.b64decode(found.get("result", "")) or b"{}").get("content", [{}])[0].get("text")


def called(report, place):
    """The node calls tools of a gate, as far as the operator lets it."""
    name, port = "context/called", free_port()
    config, log = disk(place, "one", port, python=None)
    config = config.replace('id = "dns:python"\n', 'id = "dns:python"\ntelemetry = "200ms"\n')
    with Gateway(name, {}, config=config) as gateway:
        Legacy(gateway.url("disk")).call("tools/list")
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            event = wait(lambda: next((one for one in [peer.next(1)] if "holds" in one), None)) or {}
            offer = event.get("envelope", {}).get("capability_msg", {}).get("offer", {})
            desc = offer.get("desc", {})
            report.equal(f"{name}: XC-20: the gate offers what the operator lets it, in one list", (desc.get("tool_id"), offer.get("list_size")), ("disk.wipe", 1))
            report.check(f"{name}: XC-20: signed by the key of its certificate, for this connection", event.get("holds"), event)
            schema = {"type": "object", "properties": {"disk": {"type": "string"}}, "required": ["disk"]}
            report.equal(f"{name}: XC-21: with the schema of the tool", json.loads(desc.get("input_schema", "{}")), schema)
            report.equal(f"{name}: XC-21: and its words", (desc.get("description"), json.loads(desc.get("annotations", "{}")).get("destructiveHint")), ("Wipes a disk.", True))
            peer.send(trace_id=event["envelope"]["trace_id"], capability_msg={"ack": {"accepted": ["disk.wipe"]}})
            shown = lambda: json.loads(gateway.told("axcp", "status", "--json"))["peers"][0]["tools"]
            beats = [wait(lambda: next((one for one in [peer.next(1)] if "datagram" in one), None)) or {} for _ in range(2)]
            heads = [bytes.fromhex(one.get("datagram", "")) for one in beats]
            report.check(f"{name}: XC-04: telemetry comes in the form of the specification, each with the next number",
                         all(head[:1] == b"\xa0" for head in heads) and int.from_bytes(heads[1][1:]) == int.from_bytes(heads[0][1:]) + 1, beats)
            report.check(f"{name}: XC-04: with the state of the machine", int(beats[1].get("body", {}).get("system", {}).get("mem_bytes", 0)) > 0, beats)
            report.check(f"{name}: XC-20: an acknowledgement is shown", wait(lambda: shown()["accepted"] == 1), shown())
            asked(report, name, peer)
            called_right(report, name, gateway, peer, log)
            called_wrong(report, name, peer, log)
            ended(report, name, gateway, peer, log)
        gone(report, name, gateway, place, port, log)


def asked(report, name, peer):
    peer.send(trace_id="wish", capability_msg={"request": {"ids": ["disk.wipe", "chat.read"]}})
    found = peer.about("wish", "capability_msg").get("offer", {}).get("desc", {})
    report.equal(f"{name}: XC-21: an offer is given at request", found.get("tool_id"), "disk.wipe")
    report.equal(f"{name}: XC-24: a tool that is not offered is TOOL_NOT_FOUND", peer.about("wish", "error").get("code"), ABSENT)


def called_right(report, name, gateway, peer, log):
    peer.invoke("first", "disk.wipe", {"disk": "sdb"}, idempotency_key="key")
    report.equal(f"{name}: XC-21: a call is answered with the tool's result", result(peer.about("first", "tool_result", "error")), "wiped sdb")
    for trace in ("second", "third"):
        peer.invoke(trace, "disk.wipe", {"disk": "sdb"}, idempotency_key="key")
        report.equal(f"{name}: XC-21: a repeated key is answered alike", result(peer.about(trace, "tool_result", "error")), "wiped sdb")
    report.equal(f"{name}: XC-21: and the tool ran once", lines(log), ["sdb"])
    peer.invoke("other", "disk.wipe", {"disk": "sdc"}, idempotency_key="key")
    report.equal(f"{name}: XC-24: another call under the key is MALFORMED_REQUEST", peer.about("other", "error").get("code"), SENSELESS)
    entries = json.loads(gateway.told("audit", "list", "--json", "--principal", "dns:python"))
    report.check(f"{name}: XC-21: the record has the call, under the name in the certificate", "disk" in json.dumps(entries), entries)


def called_wrong(report, name, peer, log):
    cases = {
        "a tool that is not there is TOOL_NOT_FOUND": (ABSENT, "disk.nothing", {}),
        "so is a tool outside the patterns": (ABSENT, "chat.read", {}),
        "a call without a name is MALFORMED_REQUEST": (SENSELESS, "", {}),
        "arguments that are no object are MALFORMED_REQUEST": (SENSELESS, "disk.wipe", [1]),
        "a call that takes too long is TIMEOUT": (LATE, "disk.wipe", {"disk": "held"}),
    }
    for what, (code, tool, arguments) in cases.items():
        peer.invoke(what, tool, arguments, timeout_ms=500)
        found = peer.about(what, "error", "tool_result")
        report.equal(f"{name}: XC-24: {what}", found.get("code"), code)
    report.equal(f"{name}: only the last of them reached the tool", lines(log), ["sdb", "held"])
    Path(f"{log}.go").write_text("")
    peer.invoke("fine", "disk.wipe", {"disk": "sdd"})
    report.equal(f"{name}: XC-24: the session goes on", result(peer.about("fine", "tool_result", "error")), "wiped sdd")
    os.remove(f"{log}.go")


def ended(report, name, gateway, peer, log):
    """Calls that are withdrawn, and more of them than a peer may have."""
    peer.invoke("withdrawn", "disk.wipe", {"disk": "held-1"})
    wait(lambda: "held-1" in lines(log))
    peer.send(trace_id="withdrawn", tool_cancel={"reason": "nobody waits"})
    report.check(f"{name}: XC-21: a withdrawn call is told as such", "cancel" in peer.about("withdrawn", "error").get("reason", ""), peer.seen[-2:])
    Path(f"{log}.go").write_text("")
    peer.invoke("emptied", "disk.wipe", {"disk": "sde"})
    peer.about("emptied", "tool_result", "error")
    os.remove(f"{log}.go")
    for number in range(40):
        peer.invoke(f"many-{number}", "disk.wipe", {"disk": f"held-many-{number}"})
    codes = [peer.until("error").get("code") for _ in range(8)]
    report.equal(f"{name}: XC-21: more calls than 32 at a time are TOO_MANY_REQUESTS", codes, [CROWDED] * 8)
    report.check(f"{name}: a call of another caller goes out meanwhile", Legacy(gateway.url("chat")).tool("read", {"path": ""}).text, "")
    Path(f"{log}.go").write_text("")
    done = [result(peer.until("tool_result")) for _ in range(32)]
    report.equal(f"{name}: XC-21: and the others are answered", sorted(done), sorted(f"wiped held-many-{number}" for number in range(32)))
    os.remove(f"{log}.go")


def gone(report, name, gateway, place, port, log):
    """A call under way when the link ends is withdrawn, and its key never runs the tool again."""
    with Peer(place, "dial", "127.0.0.1", port) as peer:
        peer.hello()
        peer.invoke("left", "disk.wipe", {"disk": "held-left"}, idempotency_key="left")
        report.check(f"{name}: a call begins", wait(lambda: "held-left" in lines(log)), lines(log))
    Path(f"{log}.go").write_text("")
    with Peer(place, "dial", "127.0.0.1", port) as peer:
        peer.hello()
        peer.invoke("again", "disk.wipe", {"disk": "held-left"}, idempotency_key="left")
        found = peer.about("again", "error", "tool_result", within=40)
        report.check(f"{name}: XC-21: a key of a call that was withdrawn with its link is answered", found, peer.seen[-3:])
        report.equal(f"{name}: XC-21: and the tool ran once", lines(log).count("held-left"), 1)


def ruled(report, place):
    """Rules and budgets hold for the node, under the name in its certificate."""
    name, port = "context/ruled", free_port()
    config, log = disk(place, "three", port, tools=("*",), python=None)
    config += '[policy]\nfile = "policy.cedar"\n[group.edges]\nmembers = ["dns:python"]\n[budget.few]\nprincipals = ["dns:python"]\nmax_calls_per_minute = 4\n'
    with Gateway(name, {}, config=config, prepare=lambda gate: gate.home.write("policy.cedar", RULES)) as gateway:
        Legacy(gateway.url("disk")).call("tools/list")
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            peer.send(trace_id="wish", capability_msg={"request": {"ids": ["chat.patch", "chat.read"]}})
            report.equal(f"{name}: XC-21: a tool that the rules hide is not offered", peer.about("wish", "error").get("code"), ABSENT)
            cases = {
                "a call of an offered tool that the rules refuse is UNAUTHORIZED": (REFUSED, "disk.wipe", {"disk": "sda"}),
                "a call of a hidden tool is TOOL_NOT_FOUND": (ABSENT, "chat.patch", {"ops": []}),
            }
            for what, (code, tool_id, arguments) in cases.items():
                peer.invoke(what, tool_id, arguments)
                report.equal(f"{name}: XC-24: {what}", peer.about(what, "error", "tool_result").get("code"), code)
            for number in range(2):
                peer.invoke(f"fine {number}", "disk.wipe", {"disk": "sdb"})
                report.equal(f"{name}: XC-21: what the rules allow is done", result(peer.about(f"fine {number}", "error", "tool_result")), "wiped sdb")
            peer.invoke("much", "disk.wipe", {"disk": "sdb"}, idempotency_key="much")
            report.equal(f"{name}: XC-24: a call beyond the budget is TOO_MANY_REQUESTS", peer.about("much", "error", "tool_result").get("code"), CROWDED)
            report.equal(f"{name}: nothing of that reached the tool", lines(log), ["sdb", "sdb"])


def approved(report, place):
    """A call waits for a person, and is told as waiting; rules refuse another."""
    name, port = "context/approved", free_port()
    config, log = disk(place, "two", port, mode="irreversible", python=None)
    with Gateway(name, {}, config=config) as gateway:
        Legacy(gateway.url("disk")).call("tools/list")
        where = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
        key = os.path.join(gateway.home.dir, "anna")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=30)
        gateway.told("operator", "enroll", "anna", "--key", f"{key}.pub", *where)
        pending = lambda: next((one["id"] for one in json.loads(gateway.told("approvals", "--json", *where))["approvals"] if one["standing"] == "pending"), None)
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            peer.invoke("waits", "disk.wipe", {"disk": "sdb"}, idempotency_key="waits")
            found = peer.about("waits", "tool_result", "error")
            report.check(f"{name}: XC-21: a call that waits for a person is told as such", found.get("outcome") == 1 and "result" not in found and found.get("words"), found)
            report.equal(f"{name}: and has not run", lines(log), [])
            gateway.told("approve", wait(pending), "--key", key, "--yes", *where)
            report.equal(f"{name}: XC-21: and completes once the person agreed", (result(peer.about("waits", "tool_result", "error")), lines(log)), ("wiped sdb", ["sdb"]))
            peer.invoke("denied", "disk.wipe", {"disk": "sdc"})
            peer.about("denied", "tool_result", "error")
            gateway.told("deny", wait(pending), "--reason", "not this one", *where)
            report.equal(f"{name}: XC-24: a call that the person denies is UNAUTHORIZED", peer.about("denied", "error").get("code"), REFUSED)
            peer.invoke("left", "disk.wipe", {"disk": "sdd"})
            peer.about("left", "tool_result", "error")
            report.check(f"{name}: a further call waits", wait(pending), "")
        report.check(f"{name}: XC-21: a call that waits is withdrawn with its link", wait(lambda: pending() is None, 40), "")
        report.equal(f"{name}: and never ran", lines(log), ["sdb"])


def offered(report, place):
    """The node's tools are a server of the gate."""
    name, port = "context/offered", free_port()
    with Gateway(name, {}, config=section(place, "three", port, python=None) + '[pins]\nmode = "trust"\n[offered.machine]\npeer = "python"\n', wait=False) as gateway:
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            now = time.time_ns() // 1_000_000
            for tool_id in ("spin", "stop"):
                peer.offer(trace_id="list", desc=tool(tool_id), list_size=2, created_ms=now)
            report.equal(f"{name}: XC-20: a list is acknowledged with its tools", peer.about("list", "capability_msg"), {"ack": {"accepted": ["spin", "stop"]}})
            report.check(f"{name}: XC-21: and becomes a server of the tree", wait(lambda: names(gateway) == ["spin", "stop"]), names(gateway))
            answered(report, name, gateway, peer)
            peer.offer(trace_id="other", desc=tool("turn"), list_size=1)
            report.check(f"{name}: XC-20: another list takes its place", wait(lambda: names(gateway) == ["turn"]), names(gateway))
            peer.offer(trace_id="one", desc=tool("stop"))
            report.check(f"{name}: XC-20: an offer without a list adds a tool", wait(lambda: names(gateway) == ["stop", "turn"]), names(gateway))
            with_call(gateway, "stop", lambda reply: report.check(f"{name}: XC-21: a call whose link ends has an unknown outcome", "not known" in reply.text, reply.text),
                      lambda: (peer.until("tool_invoke"), peer.process.kill()))
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            peer.offer(trace_id="back", desc=tool("spin"), list_size=1)
            report.check(f"{name}: XC-21: a node that comes back is a server again", wait(lambda: names(gateway) == ["spin"]), names(gateway))


def tool(tool_id, **more):
    return {"tool_id": tool_id, "input_schema": '{"type":"object"}', "description": f"Makes it {tool_id}.", **more}


def names(gateway):
    """The tools of the mount, as far as it is there."""
    reply = Legacy(gateway.url("machine")).call("tools/list")
    return sorted(one["name"] for one in (reply.message or {}).get("result", {}).get("tools", []))


def with_call(gateway, name, check, meanwhile, **arguments):
    """Calls a tool of the node, does something meanwhile, and checks the reply."""
    replies = []
    thread = threading.Thread(target=lambda: replies.append(Legacy(gateway.url("machine")).tool(name, arguments)))
    thread.start()
    meanwhile()
    thread.join(60)
    check(replies[0])


def answered(report, name, gateway, peer):
    """A call goes to the node, which answers as it likes."""
    def give(**envelope):
        def work():
            event = wait(lambda: next((one for one in [peer.next(1)] if "tool_invoke" in one.get("envelope", {})), None)) or {}
            seen.append(event.get("envelope", {}))
            trace = seen[-1].get("trace_id")
            peer.send(**{"trace_id": trace, **envelope})
            if envelope.get("trace_id"):
                peer.send(trace_id=trace, tool_result={"result": encoded({"content": [{"type": "text", "text": "mine"}]})})
        return work

    def refused(what, words):
        return lambda reply: report.check(f"{name}: {what}", words in json.dumps(reply.message), reply.message)

    seen = []
    raw = b'{"content": [{"type":"text","text":"spun"}],  "extra":1.0}'
    with_call(gateway, "spin", lambda reply: report.check(f"{name}: XC-21: the result arrives, byte for byte but for what the era adds", b'"content": [{"type":"text","text":"spun"}],  "extra":1.0' in reply.raw, reply.raw),
              give(tool_result={"result": base64.b64encode(raw).decode()}), speed=3)
    invoke = seen[0].get("tool_invoke", {})
    report.equal(f"{name}: XC-21: the call has the tool and the arguments", (invoke.get("tool_id"), json.loads(base64.b64decode(invoke.get("arguments", "")))), ("spin", {"speed": 3}))
    with_call(gateway, "spin", refused("XC-24: a refusal of the node arrives with its code and words", "UNAUTHORIZED"), give(error={"code": 2, "reason": "no\nmore"}))
    with_call(gateway, "spin", refused("a result that is no object is none", "no JSON object"), give(tool_result={"result": encoded([1])}))
    with_call(gateway, "spin", lambda reply: report.equal(f"{name}: XC-21: a result of another call is nobody's", reply.text, "mine"),
              give(trace_id="never", tool_result={"result": encoded({"content": [{"type": "text", "text": "theirs"}]})}))
    status = json.loads(gateway.told("axcp", "status", "--json"))["peers"][0]["tools"]
    report.equal(f"{name}: and is counted", (status["offered"], status["astray"]), (2, 1))


def encoded(value):
    return base64.b64encode(json.dumps(value).encode()).decode()


def forged(report, place):
    """Offers that are not what they say."""
    name, port = "context/forged", free_port()
    with Gateway(name, {}, config=section(place, "one", port, python=None) + '[offered.machine]\npeer = "python"\n', wait=False) as gateway:
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            now = time.time_ns() // 1_000_000
            cases = {
                "an offer without a signature is UNAUTHORIZED": (2, {"unsigned": True}),
                "an offer of another key is UNAUTHORIZED": (2, {"sender_did": "did:key:zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv"}),
                "an offer of another connection is UNAUTHORIZED": (2, {"session": base64.b64encode(b"s" * 32).decode()}),
                "an offer of an hour ago is UNAUTHORIZED": (2, {"created_ms": now - 3_600_000}),
                "an offer of tomorrow is UNAUTHORIZED": (2, {"created_ms": now + 86_400_000}),
                "a schema that is too long is PAYLOAD_TOO_LARGE": (7, {"desc": tool("long", input_schema=json.dumps({"x": "x" * 70_000}))}),
                "a schema that is no object is MALFORMED_REQUEST": (8, {"desc": tool("bad", input_schema="7")}),
                "a schema with more behind it is MALFORMED_REQUEST": (8, {"desc": tool("bad", input_schema='{}},{"name":"hidden","inputSchema":{}')}),
                "a list that is too long is PAYLOAD_TOO_LARGE": (7, {"list_size": 100_000}),
            }
            for what, (code, more) in cases.items():
                peer.offer(**{"trace_id": what, "desc": tool("forged"), **more})
                report.equal(f"{name}: XC-20: {what}", peer.about(what, "error", "capability_msg").get("code"), code)
            peer.offer(trace_id="new", desc=tool("new"), list_size=1)
            peer.about("new", "capability_msg")
            peer.offer(trace_id="old", desc=tool("old"), list_size=1, created_ms=now)
            report.equal(f"{name}: XC-20: an offer older than the last is UNAUTHORIZED", peer.about("old", "error", "capability_msg").get("code"), 2)
            report.check(f"{name}: only the true offer counts", wait(lambda: names(gateway) == ["new"]), names(gateway))
            peer.invoke("call", "chat.read")
            report.equal(f"{name}: XC-24: a node without tools from the operator is UNAUTHORIZED", peer.about("call", "error").get("code"), 2)


def two(report, place):
    """A client of one gate calls a tool of another."""
    name, port = "context/two gates", free_port()
    config, log = disk(place, "one", port, two=None)
    with Gateway(f"{name} one", {}, config=config) as one, Gateway(f"{name} two", {}, config=section(place, "two", one=port) + '[offered.machine]\npeer = "one"\n', wait=False) as gate:
        Legacy(one.url("disk")).call("tools/list")
        report.check(f"{name}: XC-21: a tool of one gate is in the tree of the other", wait(lambda: names(gate), 30), gate.told("axcp", "status"))
        shown = names(gate)[0]
        reply = Legacy(gate.url("machine")).tool(shown, {"disk": "sdb"})
        report.equal(f"{name}: XC-21: and is called there", (shown, reply.text, lines(log)), (shown, "wiped sdb", ["sdb"]))
        report.check(f"{name}: the record of both has the call", "disk" in one.told("audit", "list", "--json") and "machine" in gate.told("audit", "list", "--json"), "")
        one.kill()
        report.check(f"{name}: a gate that is gone is told as such", wait(lambda: "error" in (Legacy(gate.url("machine")).tool(shown, {"disk": "sdc"}).message or {}), 40), "")
        one.start()
        Legacy(one.url("disk")).call("tools/list")
        again = lambda: Legacy(gate.url("machine")).tool(shown, {"disk": "sdd"})
        report.check(f"{name}: XC-21: and is called again once it is back", wait(lambda: not again().error, 40), gate.told("axcp", "status"))
