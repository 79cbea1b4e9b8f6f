"""Execution Context Tokens at the gate (AE-12, AE-13, AE-14, AE-40, AE-41): signed and verified by an independent library in both directions,
over one gate, over two, with a person in between, and with agents that lie."""
import base64
import hashlib
import http.client
import http.server
import json
import os
import stat
import subprocess
import sys
import threading
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

import jwt
from agents.served import TOKENS, WIPER, tokens
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from gateway import Gateway, free_port

PLANNER, STRANGER = "spiffe://a.example/planner", "spiffe://x.example/stranger"
WAY = ["aepb:translate", "aepb:translate", "banyan:answer", "banyan:answer"]
DONE, REJECTED = "TASK_STATE_COMPLETED", "TASK_STATE_REJECTED"


def signed(*wishes):
    """Tokens signed by the other library."""
    return [jwt.encode(wish["claims"], wish["pem"], algorithm="ES256", headers=wish["header"]) for wish in wishes]


def digest(raw):
    return base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()


class Issuer:
    """An agent with a key of its own."""

    def __init__(self, name):
        self.name, self.key = name, ec.generate_private_key(ec.SECP256R1())
        self.pem = self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()

    def public(self):
        return self.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()

    def wish(self, audience, parents=(), header=None, **other):
        """A token of draft -01 to be signed."""
        now = int(time.time())
        claims = {"iss": self.name, "aud": [audience], "iat": now, "exp": now + 300, "jti": str(uuid.uuid4()), "exec_act": "plan", "pred": list(parents), **other}
        return {"pem": self.pem, "header": {"kid": "k", "typ": "exec+jwt", **(header or {})}, "claims": {k: v for k, v in claims.items() if v is not None}}

    def token(self, *arguments, **other):
        return signed(self.wish(*arguments, **other))[0]


class Door:
    """A gate as an agent, and the log of its tool."""

    def __init__(self, stack, name, evidence, mounts=None, mode="off", keys=None):
        self.port, self.log = free_port(), f"/tmp/banyan-evidence-{name}-{os.getpid()}"
        Path(self.log).write_text("")
        self.id = f"spiffe://127.0.0.1/agent/{name}"
        mounts = mounts or f'[mount.disk]\ncommand = "{sys.executable}"\nargs = ["{WIPER}", "{self.log}"]\n'
        self.head = f'[gate]\nmode = "{mode}"\n[agent]\nurl = "http://127.0.0.1:{self.port}"\nname = "{name}"\n'
        self.rest = tokens() + mounts
        self.keys = keys or {}
        self.gateway = stack.enter_context(Gateway(f"evidence-{name}", {}, config=self.head + evidence + self.rest, port=self.port, prepare=self.write))
        self.directory = self.gateway.home.dir

    def write(self, gateway):
        """The keys of issuers, beside the configuration."""
        for name, text in self.keys.items():
            Path(gateway.home.dir, name).write_text(text)

    def ask(self, path, body=None, headers=None, who="alice"):
        """A plain request: status, headers, and the bytes of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        raw = json.dumps(body).encode() if body is not None else None
        own = {"Authorization": f"Bearer {TOKENS[who]}", "Content-Type": "application/json", "A2A-Version": "1.0"}
        connection.request("POST" if raw else "GET", path, raw, {**own, **(headers or {})})
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return *found, raw

    def send(self, *carried, skill="disk__wipe", message=None, **more):
        """A message with tokens: status, headers, the raw task or the problem, and the body as sent."""
        message = message or call(skill)
        headers = {"Execution-Context": ", ".join(carried)} if carried else {}
        status, headers, raw, sent = self.ask("/a2a/message:send", message, headers, **more)
        return status, headers, raw[len(b'{"task":'):-1] if raw.startswith(b'{"task":') else raw, sent

    def lines(self):
        return len(Path(self.log).read_text().splitlines())

    def public(self):
        return json.loads(self.ask("/.well-known/aepb/keys")[2])


def call(skill="disk__wipe"):
    """A message of its own that calls a skill, with the arguments that a mounted agent takes where it is one."""
    data = {"disk": "sda"} if skill.startswith("disk__") else {"data": {"disk": "sda"}}
    return {"message": {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"data": data}], "metadata": {"io.banyan/skill": skill}}}


def verified(line, *sets):
    """The claims of each token of a line, all verified."""
    keys = {key.key_id: key for key in jwt.PyJWKSet([key for one in sets for key in one["keys"]]).keys}

    def claims(token):
        key = keys[jwt.get_unverified_header(token)["kid"]]
        return jwt.decode(token, key, algorithms=["ES256"], options={"verify_aud": False, "require": ["iss", "aud", "iat", "exp", "jti"]})
    return [{"header": jwt.get_unverified_header(token), "claims": claims(token)} for token in line.split(", ")]


def run(report):
    report.guard("agents/evidence", lambda: alone(report))
    report.guard("agents/evidence of two gates", lambda: chained(report))
    report.guard("agents/evidence with a person", lambda: agreed(report))
    report.guard("agents/evidence of liars", lambda: lied_to(report))


def settled(door, wid, count):
    """The tokens of a workflow as the command shows them, once the record has as many: a gate answers before the disk has all entries."""
    until = time.monotonic() + 20
    while True:
        found = door.gateway.asked("ect", "show", "--json", "--workflow", wid, "--config", os.path.join(door.directory, "banyan.toml"))
        shown = json.loads(found.stdout or "[]")
        if len(shown) >= count or time.monotonic() > until:
            return shown
        time.sleep(0.1)


def evidence(known=None, required=False, draft="01"):
    """The table, with files of keys by issuer."""
    listed = ", ".join(f'"{name}" = "{file}"' for name, file in (known or {PLANNER: "planner.pem"}).items())
    return f'[agent.evidence]\nissuers = {{ {listed} }}\ndraft = "{draft}"\nrequired = {str(required).lower()}\n'


def alone(report):
    planner, stranger = Issuer(PLANNER), Issuer(STRANGER)
    with ExitStack() as stack:
        door = Door(stack, "gate", evidence(), keys={"planner.pem": planner.public()})
        own = door.public()
        [file] = Path(door.directory).rglob("*.ect.pem")
        report.equal("AE-40: the key of the gate is its owner's alone", stat.S_IMODE(file.stat().st_mode), 0o600)
        document = json.loads(door.ask("/.well-known/aepb")[2])
        report.equal("AE-40: the document names the level and the id", (document["ect_assurance_level"], document["agent_id"]), ("L2", door.id))
        answered(report, door, planner, own)
        for draft, header, parents in (("-00", {"typ": "wimse-exec+jwt"}, "par"), ("-01", {}, "pred")):
            token = planner.token(door.id, header=header, pred=None if parents == "par" else [], **({"par": []} if parents == "par" else {}))
            report.equal(f"AE-40: a token of draft {draft} is taken", door.send(token)[0], 200)
        again(report, door, planner)
        refused(report, door, planner, stranger)
        astray(report, door, planner, own)
        recorded(report, door, planner)
        mute = Door(stack, "mute", "")
        report.equal("AE-40: a gate without evidence reads no token and makes none", (mute.send("nonsense")[0], mute.send()[1]["Execution-Context"], mute.ask("/.well-known/aepb/keys")[0]), (200, None, 404))
        strict = Door(stack, "strict", evidence(required=True, draft="00"), keys={"planner.pem": planner.public()})
        status, _, raw, _ = strict.send()
        report.check("AE-40: a gate that wants tokens takes no task without", (status, strict.lines()) == (403, 0) and b"sign one for each task" in raw, raw)
        old = verified(strict.send(planner.token(strict.id))[1]["Execution-Context"], strict.public())
        report.equal("AE-40: tokens are of the wanted draft", [(one["header"]["typ"], "par" in one["claims"]) for one in old], [("wimse-exec+jwt", True)] * 2)


def answered(report, door, planner, own):
    """A call with a token, and the tokens that come back, over both bindings and a look."""
    token = planner.token(door.id)
    root = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    status, headers, task, sent = door.send(token)
    report.equal("AE-12: a call with a token is made", (status, json.loads(task)["status"]["state"]), (200, DONE))
    hop, last = [one["claims"] for one in verified(headers["Execution-Context"], own)]
    report.equal("AE-12: the hop is a translation after the token", (hop["exec_act"], hop["pred"], hop["ect_ext"]["aepb.source_protocol"], hop["ect_ext"]["aepb.dest_protocol"], hop["ect_ext"]["aepb.gateway_id"]),
                 ("aepb:translate", [root["jti"]], "a2a-v1", "mcp-v1", door.id))
    report.equal("AE-12: the answer follows the hop", (last["exec_act"], last["pred"], last["ect_ext"]["banyan.state"]), ("banyan:answer", [hop["jti"]], DONE))
    report.equal("AE-12: the hash of the request is that of its bytes", (hop["inp_hash"], last["inp_hash"]), (digest(sent), digest(sent)))
    report.equal("AE-12: the hash of the answer is that of the task as sent", last["out_hash"], digest(task))
    report.equal("AE-40: both are for the issuer of the token and for the gate", sorted(last["aud"]), sorted([PLANNER, door.id]))
    name = json.loads(task)["id"]
    _, looked, raw, _ = door.ask(f"/a2a/tasks/{name}")
    report.equal("AE-12: who looks at the task gets the same", (looked["Execution-Context"], raw), (headers["Execution-Context"], task))
    _, looked, raw, _ = door.ask("/a2a", {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": name}})
    inner = raw[raw.index(b'"result":') + 9:-1]
    report.equal("AE-12: over JSON-RPC too", (looked["Execution-Context"], digest(inner)), (headers["Execution-Context"], last["out_hash"]))
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": call()}
    raw = door.ask("/a2a", rpc, {"Execution-Context": planner.token(door.id)})[2]
    events = [json.loads(line[6:]) for line in raw.decode().split("\n\n") if line]
    line = events[-1]["result"].get("statusUpdate", {}).get("metadata", {}).get("io.banyan/execution-context", "")
    report.equal("AE-12: the last event of a stream has the tokens", [one["claims"]["exec_act"] for one in verified(line, own)], ["aepb:translate", "banyan:answer"])
    denied = door.send(planner.token(door.id), skill="disk__no")
    last = verified(denied[1]["Execution-Context"], own)[-1]["claims"]
    report.equal("AE-12: a rejected call leaves an error", (json.loads(denied[2])["status"]["state"], last["exec_act"], last["ect_ext"]["aepb.error"]), (REJECTED, "aepb:translate_error", "policy_violation"))
    plain = [one["claims"] for one in verified(door.send()[1]["Execution-Context"], own)]
    report.check("AE-12: a call without a token begins a workflow", plain[0]["pred"] == [] and plain[0]["wid"] == plain[1]["wid"], plain)


def again(report, door, planner):
    """The same message, the same token, and the next step of a workflow."""
    message, token, before = call(), planner.token(door.id), door.lines()
    first, second = door.send(token, message=message), door.send(token, message=message)
    report.equal("AE-40: a message sent again with its token is no replay", (first[2], second[0], door.lines() - before), (second[2], 200, 1))
    report.equal("AE-40: another message with the token is", (door.send(token)[0], door.send(token, who="bob")[0]), (403, 403))
    answer = first[1]["Execution-Context"].split(", ")
    parent = json.loads(base64.urlsafe_b64decode(answer[-1].split(".")[1] + "=="))
    step = planner.wish(door.id, [parent["jti"]], iat=parent["iat"])
    report.equal("AE-14: the next step of a workflow is no loop, its ancestry known", door.send(*signed(step))[0], 200)
    unknown = planner.wish(door.id, [parent["jti"]], iat=parent["iat"])
    report.equal("AE-14: to another caller the ancestry is unknown", door.send(*signed(unknown), who="bob")[0], 403)
    whole = planner.wish(door.id, [parent["jti"]], iat=parent["iat"])
    report.equal("AE-14: who sends it along is heard", door.send(*signed(whole), *answer, token, who="bob")[0], 200)


def refused(report, door, planner, stranger):
    """Tokens that are not true: no tool runs, and a stranger hears nothing of the reason."""
    before, now = door.lines(), int(time.time())
    good = planner.token(door.id)
    header, payload, signature = good.split(".")
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    deep = {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}
    wishes = {
        "of a stranger": stranger.wish(door.id), "in another's name": {**stranger.wish(door.id), "claims": {**stranger.wish(door.id)["claims"], "iss": PLANNER}},
        "with a key from its own header": stranger.wish(door.id, header={"jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/x", "jwk": {"kty": "EC"}}),
        "of another type": planner.wish(door.id, header={"typ": "JWT"}), "with `crit`": planner.wish(door.id, header={"crit": ["x"]}),
        "with names of both drafts": planner.wish(door.id, par=[]), "with a deep extension": planner.wish(door.id, ect_ext=deep),
        "with a long extension": planner.wish(door.id, ect_ext={"a": "x" * 4096}), "without an id": planner.wish(door.id, jti=None),
    }
    told = {
        "for another gate": (planner.wish("spiffe://b.example/other"), "does not name this verifier"),
        "that has expired": (planner.wish(door.id, iat=now - 800, exp=now - 100), "expired"),
        "of the future": (planner.wish(door.id, iat=now + 300, exp=now + 600), "future"),
        "that is too old": (planner.wish(door.id, iat=now - 2000, exp=now + 600), "older"),
        "after an unknown one": (planner.wish(door.id, [str(uuid.uuid4())]), "is not known"),
    }
    made = dict(zip([*wishes, *told], signed(*wishes.values(), *(wish for wish, _ in told.values())), strict=True))
    crafted = {
        "with a changed claim": f"{header}.{part({**claims, 'exec_act': 'other'})}.{signature}",
        "without an algorithm": f"{part({'alg': 'none', 'kid': 'k', 'typ': 'exec+jwt'})}.{payload}.",
        "with a shared secret": f"{part({'alg': 'HS256', 'kid': 'k', 'typ': 'exec+jwt'})}.{payload}.{signature}",
        "unsigned": part(claims), "that is nonsense": "a.b.c", "that is long": "a" * 20_000 + ".b.c",
        "among 33": ", ".join([good] * 33), "twice": f"{good}, {good}", "beyond all room": "a" * 30_000,
    }
    for name in (*wishes, *crafted):
        status, headers, raw, _ = door.send(made.get(name) or crafted[name])
        problem = json.loads(raw) if status == 403 else {"code": None, "title": str(raw)}
        is_open = name == "twice"
        report.check(f"AE-40: a token {name} is refused", (status, headers["Content-Type"], problem["code"]) == (403, "application/problem+json", "policy_violation"), (status, raw))
        report.check(f"AE-40: and nobody hears why: {name}", is_open or "that this gate knows" in problem["title"], problem)
    for name, (_, words) in told.items():
        status, _, raw, _ = door.send(made[name])
        report.check(f"AE-40: a token {name} is refused, and its issuer hears why", status == 403 and words in json.loads(raw)["title"], raw)
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": call()}
    report.equal("AE-40: over JSON-RPC too", door.ask("/a2a", rpc, {"Execution-Context": "a.b.c"})[0], 403)
    report.equal("AE-40: and no tool has run", door.lines() - before, 0)
    report.equal("AE-40: a token that was refused with others is still good alone", door.send(good)[0], 200)


def astray(report, door, planner, own):
    """A message inside the gate already, and a message that has passed too many gates."""
    def chain(*gateways):
        wishes, parents = [], []
        for gateway in gateways:
            wish = planner.wish(door.id, parents, exec_act="aepb:translate", ect_ext={"aepb.gateway_id": gateway})
            wishes.append(wish)
            parents = [wish["claims"]["jti"]]
        return signed(*wishes, planner.wish(door.id, parents))
    before = door.lines()
    for name, gateways in {"a loop": [door.id], "a loop with another gate between": [door.id, "b"], "a fourth hop": ["a", "b", "c"]}.items():
        status, headers, raw, _ = door.send(*chain(*gateways))
        report.check(f"AE-14: {name} is refused", status == 403 and "may not go on" in json.loads(raw)["title"], raw)
        [left] = verified(headers["Execution-Context"], own)
        report.equal(f"AE-12: {name} leaves an error", (left["claims"]["exec_act"], left["claims"]["ect_ext"]["aepb.error"]), ("aepb:translate_error", "policy_violation"))
    report.equal("AE-14: and no tool has run", door.lines() - before, 0)
    report.equal("AE-14: a third hop is not", door.send(*chain("a", "b"))[0], 200)


def recorded(report, door, planner):
    """The record of the gate, read by the command after the gate is gone."""
    wid = str(uuid.uuid4())
    door.send(planner.token(door.id, wid=wid))
    keys = door.gateway.told("agent", "card", "--keys", "--config", os.path.join(door.directory, "banyan.toml"))
    Path(door.directory, "own.jwks").write_text(keys)
    settled(door, wid, 3)
    issuers = ["--issuer", f"{door.id}={door.directory}/own.jwks", "--issuer", f"{PLANNER}={door.directory}/planner.pem"]
    door.gateway.kill()
    def ect(what, *more):
        return door.gateway.asked("ect", what, *more, "--workflow", wid, "--config", os.path.join(door.directory, "banyan.toml"))
    shown = json.loads(ect("verify", *issuers, "--json").stdout or "[]")
    report.equal("AE-41: a task of the gate is verified offline from its record", [one["action"] for one in shown], ["plan", "aepb:translate", "banyan:answer"])
    report.equal("AE-41: and shown", len(json.loads(ect("show", "--json").stdout or "[]")), 3)
    report.equal("AE-41: and drawn", ect("draw").stdout.count("->"), 2)
    exported = ect("export", *issuers).stdout.split()
    report.equal("AE-41: and exported for the other library", [one["claims"]["exec_act"] for one in verified(", ".join(exported[1:]), json.loads(keys))], ["aepb:translate", "banyan:answer"])
    whole = door.gateway.asked("ect", "verify", *issuers, "--config", os.path.join(door.directory, "banyan.toml"))
    report.check("AE-41: the whole record holds, refused loops included", whole.returncode == 0 and "every link" in whole.stdout, (whole.returncode, whole.stderr))
    missing = door.gateway.asked("ect", "verify", *issuers, "--workflow", str(uuid.uuid4()), "--config", os.path.join(door.directory, "banyan.toml"))
    report.check("AE-41: an unknown workflow is told as such", missing.returncode != 0 and "no token of this workflow" in missing.stderr, missing.stderr)
    door.gateway.start()


def chained(report):
    """Gate a has gate b as a server: the answer of both leads back to the planner."""
    planner = Issuer(PLANNER)
    with ExitStack() as stack:
        behind = Door(stack, "b", evidence(), keys={"planner.pem": planner.public()})
        mount = f'[mount.far]\nurl = "http://127.0.0.1:{behind.port}"\ntransport = "a2a"\nheaders = {{ Authorization = "Bearer {TOKENS["bob"]}" }}\n'
        front = Door(stack, "a", evidence(known={PLANNER: "planner.pem", behind.id: "b.jwks"}), mounts=mount,
                     keys={"planner.pem": planner.public(), "b.jwks": json.dumps(behind.public())})
        report.check("AE-13: a gate that does not know the issuer refuses the message", b"FAILED" in front.send(planner.token(front.id), skill="far__disk__wipe")[2], behind.lines())
        Path(behind.directory, "a.jwks").write_text(json.dumps(front.public()))
        behind.gateway.kill()
        known = evidence(known={PLANNER: "planner.pem", front.id: "a.jwks"})
        Path(behind.directory, "banyan.toml").write_text(behind.head + known + behind.rest)
        behind.gateway.start()
        before = behind.lines()
        token = planner.token(front.id, wid=str(uuid.uuid4()))
        root = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        status, headers, task, _ = front.send(token, skill="far__disk__wipe")
        report.equal("AE-13: a call over two gates is made once", (status, json.loads(task)["status"]["state"], behind.lines() - before), (200, DONE, 1))
        found = [one["claims"] for one in verified(headers["Execution-Context"], front.public(), behind.public())]
        by = {(one["iss"], one["exec_act"]): one for one in found}
        hop, far, back, last = (by.get(key, {}) for key in ((front.id, "aepb:translate"), (behind.id, "aepb:translate"), (behind.id, "banyan:answer"), (front.id, "banyan:answer")))
        report.equal("AE-13: the answer has the tokens of both gates", len(by), 4)
        report.equal("AE-13: in the order of the way", (hop.get("pred"), far.get("pred"), back.get("pred"), sorted(last.get("pred", []))),
                     ([root["jti"]], [hop.get("jti")], [far.get("jti")], sorted([hop.get("jti"), back.get("jti")])))
        report.equal("AE-13: all of one workflow", {one["wid"] for one in found}, {root["wid"]})
        report.equal("AE-12: what one gate sends, the other has received", hop["out_hash"], far["inp_hash"])
        report.equal("AE-12: and the answer is over the task", last["out_hash"], digest(task))
        shown = settled(front, root["wid"], 5)
        report.equal("AE-41: the record of the first gate has the whole way", sorted(one["action"] for one in shown), ["aepb:translate", "aepb:translate", "banyan:answer", "banyan:answer", "plan"])
        called = front.gateway.asked("call", "far__disk__wipe", '{"data": {"disk": "sdc"}}', "--config", os.path.join(front.directory, "banyan.toml"))
        begun, until = [], time.monotonic() + 20
        while sorted(WAY) not in begun and time.monotonic() < until:
            shown = json.loads(front.gateway.asked("ect", "show", "--json", "--config", os.path.join(front.directory, "banyan.toml")).stdout or "[]")
            flows = {}
            for one in shown:
                flows.setdefault(one["workflow"], []).append(one["action"])
            begun = [sorted(actions) for actions in flows.values()]
        report.check("AE-12: a call of MCP to an agent begins a workflow of its own", sorted(WAY) in begun, (called.stderr, flows))


def agreed(report):
    """A person agrees in between: the agreement stands before the hop."""
    planner = Issuer(PLANNER)
    with ExitStack() as stack:
        door = Door(stack, "gate", evidence(), mode="irreversible", keys={"planner.pem": planner.public()})
        config = ["--config", os.path.join(door.directory, "banyan.toml")]
        key = os.path.join(door.directory, "anna")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=30)
        door.gateway.told("operator", "enroll", "anna", "--key", f"{key}.pub", *config)
        _, headers, task, _ = door.send(planner.token(door.id))
        name = json.loads(task)["id"]
        report.equal("AE-20: a task that waits has no token yet", (json.loads(task)["status"]["state"], headers["Execution-Context"]), ("TASK_STATE_AUTH_REQUIRED", None))
        [one] = json.loads(door.gateway.told("approvals", "--json", *config))["approvals"]
        door.gateway.told("approve", one["id"], "--key", key, "--yes", *config)
        until = time.monotonic() + 20
        while not (headers := door.ask(f"/a2a/tasks/{name}")[1])["Execution-Context"] and time.monotonic() < until:
            time.sleep(0.1)
        found = [one["claims"] for one in verified(headers["Execution-Context"], door.public())]
        report.equal("AE-20: the agreement is a token between the caller's and the hop", ([one["exec_act"] for one in found], found[1]["pred"], found[0]["ect_ext"].get("banyan.approval")),
                     (["hitl:approval_granted", "aepb:translate", "banyan:answer"], [found[0]["jti"]], one["id"]))
        report.equal("AE-20: the agreement is bound to the params that left", found[0].get("out_hash"), found[1]["out_hash"])
        status, _, raw, _ = door.send(headers["Execution-Context"].split(", ")[0], skill="disk__no")
        report.check("AE-12: an agreement stands before no other call", status == 403 and b"ends no task" in raw, (status, raw))


class Liar:
    """An agent whose answer has tokens of its choice."""

    def __init__(self, make):
        liar = self
        self.heard = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                base = f"http://127.0.0.1:{liar.server.server_port}"
                self.answer({"name": "Liar", "description": "Lies.", "version": "1", "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
                             "skills": [{"id": "lie", "name": "Lie", "description": "Lies.", "tags": []}],
                             "supportedInterfaces": [{"url": f"{base}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}, [])

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                carried = self.headers["Execution-Context"]
                liar.heard.append(carried)
                message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "done"}]}
                self.answer({"jsonrpc": "2.0", "id": asked["id"], "result": {"message": message}}, make(carried))

            def answer(self, value, lines):
                raw = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                for line in lines:
                    self.send_header("Execution-Context", line)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def lied_to(report):
    """Tokens of agents that do not hold are left out, and the answer says so; those that hold are passed on."""
    planner, helper, stranger = Issuer(PLANNER), Issuer("spiffe://h.example/agent"), Issuer(STRANGER)

    def hop(carried):
        return json.loads(base64.urlsafe_b64decode(carried.split(", ")[-1].split(".")[1] + "=="))["jti"]
    gate_id, replayed = "spiffe://127.0.0.1/agent/gate", []

    def replay(carried):
        replayed.append(replayed[0] if replayed else helper.token(gate_id, [hop(carried)], wid=None))
        return [replayed[-1]]
    kinds = {
        "good": lambda carried: [helper.token(gate_id, [hop(carried)])],
        "garbage": lambda carried: ["a.b.c"], "forged": lambda carried: [stranger.token(gate_id, [hop(carried)])],
        "unlinked": lambda carried: [helper.token(gate_id)], "elsewhere": lambda carried: [helper.token("spiffe://b.example/b", [hop(carried)])],
        "many": lambda carried: [", ".join(["a.b.c"] * 65)], "replay": replay, "bytes": lambda carried: ["\xe9"],
    }
    with ExitStack() as stack:
        liars = {name: Liar(make) for name, make in kinds.items()}
        mounts = "".join(f'[mount.{name}]\nurl = "http://127.0.0.1:{liar.server.server_port}"\ntransport = "a2a"\n' for name, liar in liars.items())
        known = evidence(known={PLANNER: "planner.pem", helper.name: "helper.pem"})
        door = Door(stack, "gate", known, mounts=mounts, keys={"planner.pem": planner.public(), "helper.pem": helper.public()})
        own = door.public()

        def tell(name):
            message = call(f"{name}__lie")
            message["message"]["parts"] = [{"data": {"message": "tell"}}]
            _, headers, task, _ = door.send(planner.token(door.id), message=message)
            return json.loads(task)["status"]["state"], headers["Execution-Context"].split(", ")
        for name in kinds:
            state, line = tell(name)
            if name == "replay":
                state, line = tell(name)
            last = verified(line[-1], own)[0]["claims"]
            expected = (DONE, 3, 0) if name == "good" else (DONE, 2, 1)
            report.equal(f"AE-12: tokens of an agent: {name}", (state, len(line), len(last["ect_ext"]["aepb.translation_warnings"])), expected)
            report.equal(f"AE-13: tokens go along to an agent: {name}", len(liars[name].heard[0].split(", ")), 2)
