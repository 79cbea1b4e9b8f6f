"""The translate endpoint (AE-10, AE-11, AE-14 to AE-18): agents of four protocols reach a server of MCP and an agent made with the official A2A SDK,
a person agrees in between, and nothing that is refused goes out."""
import hashlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

from agents import small
from agents.served import TOKENS, WIPER, tokens
from gateway import Gateway, Process, free_port
from install import venv_bin

HERE = Path(__file__).parent
ENDPOINT = "/aepb/translate"


def run(report):
    """One gate in front of a server and an agent; then one where a person agrees first."""
    report.guard("agents/translated", lambda: translated(report))
    report.guard("agents/translated and approved", lambda: approved(report))
    report.guard("agents/translated within bounds", lambda: bounded(report))


def gate(stack, name, mode="off", more=""):
    port, writer, log = free_port(), free_port(), f"/tmp/banyan-translated-{name}-{os.getpid()}"
    Path(log).write_text("")
    marks = stack.enter_context(tempfile.NamedTemporaryFile()).name
    stack.enter_context(Process([venv_bin("agents"), str(HERE / "writer.py"), str(writer), "JSONRPC", "--marks", marks, "--streams"], port=writer))
    text = f'[gate]\nmode = "{mode}"\n[agent]\nurl = "http://127.0.0.1:{port}"\nname = "Gate of tests"\n{more}' + tokens()
    text += f'[mount.disk]\ncommand = "{sys.executable}"\nargs = ["{WIPER}", "{log}"]\n'
    text += f'[mount.writer]\nurl = "http://127.0.0.1:{writer}"\ntransport = "a2a"\n'
    return stack.enter_context(Gateway(f"translated-{name}", {}, config=text, port=port)), log


def post(gateway, source, target, body, who="alice", dest="mcp-v1", **more):
    """A message for translation: status, headers and body."""
    link = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=40)
    fields = {"Authorization": f"Bearer {TOKENS[who]}", "Aepb-Source-Protocol": source, "Aepb-Dest-Protocol": dest, "Aepb-Target": target, **more}
    try:
        link.request("POST", ENDPOINT, body if isinstance(body, bytes) else json.dumps(body).encode(), fields)
        answer = link.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        link.close()


def own_did(gateway):
    """The name of a gate in AINP."""
    return f"did:web:127.0.0.1%3A{gateway.port}"


def ask(tool, payload, content=small.JSON, verb=small.ASK, number=7):
    """A question of µACP."""
    return small.frame(verb, number, [(small.TOPIC, tool.encode()), (small.CONTENT, content.to_bytes(4, "big"))], payload)


def send(tool, parts, stream=False, **more):
    """A message of A2A for a tool."""
    message = {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": parts, "metadata": {"io.banyan/aepb": {"op": tool, **more}}}
    return {"jsonrpc": "2.0", "id": 5, "method": "SendStreamingMessage" if stream else "SendMessage", "params": {"message": message}}


def call(tool, arguments, **meta):
    """A call of MCP."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", **meta}
    return {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}}


def events(raw):
    return [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: ")]


def translated(report):
    with ExitStack() as stack:
        gateway, log = gate(stack, "all")
        wiped = lambda: len(Path(log).read_text().splitlines())  # noqa: E731
        small_frames(report, gateway, wiped)
        envelopes(report, gateway, wiped)
        larger(report, gateway)
        once(report, gateway, wiped)
        let_go(report, gateway)
        refused(report, gateway, wiped)


def small_frames(report, gateway, wiped):
    """µACP to MCP, and to A2A."""
    status, _, raw = post(gateway, "uacp-v1", "disk", ask("wipe", b'{"disk":"sda"}'))
    answer = small.unframed(raw)
    report.equal("AE-11: a question of uacp is answered", (status, answer["code"], answer["payload"], wiped()), (200, 0, b"wiped sda", 1))
    report.equal("AE-11: with the number of the question", (answer["number"], answer["options"][small.CORRELATION]), (7, [b"\0\0\7"]))
    raw = post(gateway, "uacp-v1", "disk", ask("wipe", small.cbor_map("disk", "sdb"), small.CBOR))[2]
    report.equal("AE-11: CBOR is the arguments of a tool", small.unframed(raw)["payload"], b"wiped sdb")
    raw = post(gateway, "uacp-v1", "writer", ask("echo", b"hello", small.TEXT), dest="a2a-v1")[2]
    report.equal("AE-11: a text of uacp reaches an agent of A2A", small.unframed(raw)["payload"], b"hello|[]")
    raw = post(gateway, "uacp-v1", "writer", ask("draft", b"a poem", small.TEXT, small.OBSERVE), dest="a2a-v1")[2]
    frames = small.streamed(raw)
    report.check("AE-18: who observes hears the end", len(frames) >= 1 and frames[-1]["code"] == 0 and b"one two" in frames[-1]["payload"], frames)
    raw = post(gateway, "uacp-v1", "disk", ask("no", b"{}"))[2]
    report.equal("AE-11: an unknown tool is a failure in the frame", small.unframed(raw)["code"], 0x80)
    raw = post(gateway, "uacp-v1", "disk", small.frame(small.PING, 3))[2]
    report.equal("AE-11: a sign of life is answered", (small.unframed(raw)["code"], small.unframed(raw)["options"][small.CORRELATION]), (0, [b"\0\0\3"]))


def envelopes(report, gateway, wiped):
    """AINP to MCP and to A2A, in both modes of signing; each envelope runs its tool once."""
    for prehash in (True, False):
        signer, before = small.Signer(own_did(gateway), prehash), wiped()
        intent = signer.intent("wipe", {"disk": "sdc"}, trace_id="t-1")
        answer = json.loads(post(gateway, "ainp-v1", "disk", intent)[2])
        report.equal(f"AE-11: an intent is answered (pre-hash {prehash})", (answer["msg_type"], answer["payload"]["status"], answer["payload"]["result"]),
                     ("RESULT", "success", "wiped sdc"))
        report.equal("AE-11: to its sender, about its intent", (answer["to_did"], answer["payload"]["intent_id"]), (signer.did, intent["id"]))
        report.check("AE-11: the answer is signed by whom it names", small.holds(answer), answer)
        report.equal("AE-15: the conversation comes back", answer.get("trace_id"), "t-1")
        again = json.loads(post(gateway, "ainp-v1", "disk", intent)[2])
        report.equal("AE-17: an envelope sent again runs nothing again", (again["payload"]["result"], wiped() - before), ("wiped sdc", 1))
        forged = json.loads(post(gateway, "ainp-v1", "disk", {**intent, "id": str(uuid.uuid4())})[2])
        report.equal("AE-17: a changed envelope is refused", (forged["payload"]["error_code"], wiped() - before), ("INVALID_SIGNATURE", 1))
        late = signer.intent("wipe", {"disk": "sdc"}, timestamp=int((time.time() - 7200) * 1000))
        report.equal("AE-17: so is an old one", json.loads(post(gateway, "ainp-v1", "disk", late)[2])["payload"]["error_code"], "TIMEOUT")
        theirs = json.loads(post(gateway, "ainp-v1", "disk", intent, who="bob")[2])
        report.equal("AE-17: an envelope sent again by another runs nothing", (theirs["payload"]["error_code"], wiped() - before), ("DUPLICATE_INTENT", 1))
        strayed = signer.intent("wipe", {"disk": "sdc"}, to_did="did:web:gate.example")
        report.equal("AE-17: an envelope for another gate is refused", (json.loads(post(gateway, "ainp-v1", "disk", strayed)[2])["payload"]["error_code"], wiped() - before),
                     ("UNAUTHORIZED", 1))
        named = signer.intent("echo", {"n": 2}, to_did=answer["from_did"])
        report.equal("AE-17: the name in an answer is one of the gate", json.loads(post(gateway, "ainp-v1", "writer", named, dest="a2a-v1")[2])["payload"]["status"], "success")
        said = json.loads(post(gateway, "ainp-v1", "writer", signer.intent("echo", {"n": 1}), dest="a2a-v1")[2])
        report.equal("AE-11: an intent reaches an agent of A2A", said["payload"].get("result"), "|[{'n': 1.0}]")


def larger(report, gateway):
    """A2A to MCP, and MCP to A2A, by the same endpoint."""
    task = json.loads(post(gateway, "a2a-v1", "disk", send("wipe", [{"data": {"disk": "sdd"}}]))[2])["result"]["task"]
    report.equal("AE-11: a message of A2A is a call of MCP", task["artifacts"][0]["parts"], [{"text": "wiped sdd"}])
    answer = json.loads(post(gateway, "mcp-v1", "writer", call("files", {"poem": 1}), dest="a2a-v1")[2])["result"]
    report.equal("AE-11: a call of MCP is a message of A2A", [one["type"] for one in answer["content"]], ["text", "image", "resource_link", "text"])
    raw = post(gateway, "mcp-v1", "writer", call("draft", {"poem": 1}, progressToken="p"), dest="a2a-v1")[2]
    heard = events(raw)
    report.check("AE-18: steps of an agent are progress", all(one["params"]["progressToken"] == "p" for one in heard[:-1]), heard)
    report.equal("AE-18: and the result ends the stream", (heard[-1]["id"], "result" in heard[-1]), (6, True))
    raw = post(gateway, "a2a-v1", "disk", send("wipe", [{"data": {"disk": "slow"}}], stream=True))[2]
    report.equal("AE-18: a stream of A2A ends with the task", events(raw)[-1]["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED")
    report.equal("AE-11: ping", json.loads(post(gateway, "mcp-v1", "writer", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, dest="a2a-v1")[2])["result"], {})


def once(report, gateway, wiped):
    """A frame sent again, and requests that could have no answer."""
    before, frame = wiped(), ask("wipe", b'{"disk":"sdf"}', number=4711)
    told = [small.unframed(post(gateway, "uacp-v1", "disk", frame)[2])["payload"] for _ in range(2)]
    report.equal("AE-17: a frame sent again runs nothing again", (told, wiped() - before), ([b"wiped sdf"] * 2, 1))
    theirs = small.unframed(post(gateway, "uacp-v1", "disk", frame, who="bob")[2])
    report.equal("AE-17: the same frame of another caller is another message", (theirs["payload"], wiped() - before), (b"wiped sdf", 2))
    silent = send("wipe", [{"data": {"disk": "sdf"}}])
    del silent["id"]
    report.equal("AE-11: a request without an id is refused first", (post(gateway, "a2a-v1", "disk", silent)[0], wiped() - before), (400, 2))
    early = post(gateway, "mcp-v1", "writer", call("echo", {"n": 1}, **{"io.banyan/aepb": {"immediate": True}}), dest="a2a-v1")
    report.check("AE-18: MCP has no answer before the end, and is told first", "error" in json.loads(early[2]), early)


def let_go(report, gateway):
    """A stream of MCP is cancelled by its notification, and by its end."""
    ended = []
    waits = threading.Thread(target=lambda: ended.extend(events(post(gateway, "mcp-v1", "writer", call("wait", {"n": 1}, progressToken="w"), dest="a2a-v1")[2])))
    waits.start()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}}
    until = time.monotonic() + 20
    while waits.is_alive() and time.monotonic() < until:
        post(gateway, "mcp-v1", "writer", cancel, dest="a2a-v1")
        waits.join(0.3)
    report.check("AE-18: a cancelled stream of MCP ends with its answer", not waits.is_alive() and ended and ended[-1].get("id") == 6, ended)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=20) as link:
        body = json.dumps(call("wait", {"n": 2}, progressToken="w")).encode()
        head = f"POST {ENDPOINT} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKENS['alice']}\r\nAepb-Source-Protocol: mcp-v1\r\n"
        link.sendall(f"{head}Aepb-Dest-Protocol: a2a-v1\r\nAepb-Target: writer\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        report.check("AE-18: a stream of MCP begins", link.recv(4096).startswith(b"HTTP/1.1 200"))
    listed = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageSize": 1}}

    def state():
        link = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
        link.request("POST", "/a2a", json.dumps(listed), {"Authorization": f"Bearer {TOKENS['alice']}", "A2A-Version": "1.0"})
        return json.loads(link.getresponse().read())["result"]["tasks"][0]["status"]["state"]

    report.equal("AE-18: a stream of MCP let go cancels its call", settled(state, lambda seen: seen == "TASK_STATE_CANCELED"), "TASK_STATE_CANCELED")


def refused(report, gateway, wiped):
    """Nothing that is refused goes out, and each refusal is one clear document."""
    before, good = wiped(), ask("wipe", b'{"disk":"sde"}')
    own = "spiffe://127.0.0.1/agent/gate-of-tests"
    for name, answer, status, code in [
        ("slim", post(gateway, "slim-v1", "disk", good), 404, "no_translation_path"),
        ("no such server", post(gateway, "uacp-v1", "none", good), 404, "no_translation_path"),
        ("a sign of life to no server", post(gateway, "uacp-v1", "none", small.frame(small.PING, 3)), 404, "no_translation_path"),
        ("a server of another protocol", post(gateway, "uacp-v1", "disk", good, dest="a2a-v1"), 404, "no_translation_path"),
        ("a torn frame", post(gateway, "uacp-v1", "disk", good[:5]), 400, "policy_violation"),
        ("no tool", post(gateway, "uacp-v1", "disk", small.frame(small.ASK, 1)), 422, "semantic_loss"),
        ("a loop", post(gateway, "a2a-v1", "disk", send("wipe", [{"text": "a"}, {"text": "b"}], hops=[own])), 508, "policy_violation"),
        ("too many hops", post(gateway, "a2a-v1", "disk", send("wipe", [{"data": {}}], hops=["a", "b", "c"])), 403, "policy_violation"),
    ]:
        told = json.loads(answer[2])
        report.equal(f"AE-14: {name} is refused", (answer[0], answer[1]["Content-Type"], told.get("code")), (status, "application/problem+json", code))
    link = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    link.request("POST", ENDPOINT, good, {"Aepb-Source-Protocol": "uacp-v1", "Aepb-Dest-Protocol": "mcp-v1", "Aepb-Target": "disk"})
    report.equal("AE-17: nobody is translated without a credential", link.getresponse().status, 401)
    link.close()
    report.equal("AE-15: and nothing went out", wiped(), before)


def approved(report):
    """A call that waits for a person is told as such in each binding, and runs once."""
    with ExitStack() as stack:
        gateway, log = gate(stack, "approved", "irreversible")
        config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
        key, wiped = os.path.join(gateway.home.dir, "anna"), lambda: len(Path(log).read_text().splitlines())
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=30)
        gateway.told("operator", "enroll", "anna", "--key", f"{key}.pub", *config)

        def agree():
            [one] = [one for one in json.loads(gateway.told("approvals", "--json", *config))["approvals"] if one["standing"] == "pending"]
            gateway.told("approve", one["id"], "--key", key, "--yes", *config)

        waits = small.unframed(post(gateway, "uacp-v1", "disk", ask("wipe", b'{"disk":"sda"}'))[2])
        report.equal("AE-18: a question that waits is accepted", (waits["code"], small.told(waits)["state"], wiped()), (2, "TASK_STATE_AUTH_REQUIRED", 0))
        agree()
        piece = json.dumps({"task": small.told(waits)["task"]}).encode()
        follow = small.frame(small.ASK, 8, [(small.TOPIC, b"wipe"), (small.EXTENSION, b"\0\1" + piece)])
        ended = settled(lambda: small.unframed(post(gateway, "uacp-v1", "disk", follow)[2]), lambda one: one["code"] == 0)
        report.equal("AE-18: who asks for the task hears the end, and the tool ran once", (ended["payload"], wiped()), (b"wiped sda", 1))
        elsewhere = small.unframed(post(gateway, "uacp-v1", "writer", follow, dest="a2a-v1")[2])
        report.equal("AE-17: the task of another server is unknown", elsewhere["code"], 0x43)
        theirs = small.unframed(post(gateway, "uacp-v1", "disk", follow, who="bob")[2])
        report.equal("AE-17: the task of another caller is unknown", theirs["code"], 0x43)

        intent = small.Signer(own_did(gateway)).intent("wipe", {"disk": "sdb"})
        waits = json.loads(post(gateway, "ainp-v1", "disk", intent)[2])["payload"]
        report.equal("AE-18: an intent that waits is partial", (waits["status"], waits["io.banyan/aepb"]["state"], wiped()), ("partial", "TASK_STATE_AUTH_REQUIRED", 1))
        agree()
        ended = settled(lambda: json.loads(post(gateway, "ainp-v1", "disk", intent)[2])["payload"], lambda one: one["status"] == "success")
        report.equal("AE-18: and sent again it is answered, and ran once", (ended["result"], wiped()), ("wiped sdb", 2))

        message = send("wipe", [{"data": {"disk": "sdc"}}])
        task = json.loads(post(gateway, "a2a-v1", "disk", message)[2])["result"]["task"]
        report.equal("AE-18: a task that waits", (task["status"]["state"], wiped()), ("TASK_STATE_AUTH_REQUIRED", 2))
        cancel = {"jsonrpc": "2.0", "id": 9, "method": "CancelTask", "params": {"id": task["id"]}}
        ended = json.loads(post(gateway, "a2a-v1", "disk", cancel)[2])["result"]["task"]
        report.equal("AE-18: is cancelled", (ended["status"]["state"], wiped()), ("TASK_STATE_CANCELED", 2))


def settled(look, is_over):
    """What `look` sees once it is over."""
    until = time.monotonic() + 20
    while not is_over(seen := look()) and time.monotonic() < until:
        time.sleep(0.2)
    return seen


def bounded(report):
    """A caller has a rate of its own, a pair may be shut, and a hidden server looks like none."""
    with ExitStack() as stack:
        hidden = hashlib.sha256(b"eve-" + b"e" * 28).hexdigest()
        more = f'[profile.nothing]\nexclude = ["*"]\n[[token]]\nname = "eve"\nsha256 = "{hidden}"\nprofile = "nothing"\n'
        gateway, log = gate(stack, "hidden", more=more)
        ran = post(gateway, "uacp-v1", "disk", ask("wipe", b'{"disk":"a"}'))[0]
        eve = {"Authorization": "Bearer eve-" + "e" * 28}
        seen = [post(gateway, "uacp-v1", target, ask("wipe", b'{"disk":"b"}'), **eve)[::2] for target in ("disk", "none")]
        report.equal("AE-17: a hidden server looks like none", (ran, seen[0] == seen[1], seen[0][0], Path(log).read_text().count("\n")), (200, True, 404, 1))
    with ExitStack() as stack:
        gateway, _ = gate(stack, "bounded", more='translate_from = ["uacp-v1"]\ntranslate_rate = 3\n')
        good = small.frame(small.PING, 3)
        report.equal("AE-16: a protocol that is not listed is shut", json.loads(post(gateway, "a2a-v1", "disk", send("wipe", [{"data": {}}]))[2])["code"], "policy_violation")
        statuses = [post(gateway, "uacp-v1", "disk", good)[0] for _ in range(3)]
        report.equal("AE-17: more than the rate is refused", statuses, [200, 200, 429])
        report.equal("AE-17: another caller has its own", post(gateway, "uacp-v1", "disk", good, who="bob")[0], 200)
