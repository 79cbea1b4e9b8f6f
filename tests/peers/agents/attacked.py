"""Attacks on the evidence of a gate (AE-12, AE-14, AE-17, AE-40, AE-41): tokens with two signatures or two texts, agreements carried to another
call, agents that would end the workflow of their caller, refused messages in the record, and callers that send too much."""
import base64
import json
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from agents.evidence import DONE, PLANNER, Door, Issuer, Liar, call, evidence, settled, signed, verified

# The order of the group of P-256.
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def run(report):
    report.guard("agents/attacked", lambda: attacked(report))
    report.guard("agents/attacked by an agent behind", lambda: betrayed(report))


def claims(token):
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def twin(token):
    """The other signature that holds: (r, n - s)."""
    head, signature = token.rsplit(".", 1)
    raw = base64.urlsafe_b64decode(signature + "==")
    other = (ORDER - int.from_bytes(raw[32:], "big")).to_bytes(32, "big")
    return f"{head}.{base64.urlsafe_b64encode(raw[:32] + other).rstrip(b'=').decode()}"


def attacked(report):
    planner, others = Issuer(PLANNER), [Issuer(f"spiffe://o.example/{number}") for number in range(12)]
    keys = {"planner.pem": planner.public(), **{f"{number}.pem": other.public() for number, other in enumerate(others)}}
    known = evidence(known={PLANNER: "planner.pem", **{other.name: f"{number}.pem" for number, other in enumerate(others)}})
    with ExitStack() as stack:
        door = Door(stack, "gate", known, keys=keys)
        report.equal("AE-40: the keys of many issuers hide none", [door.send(one.token(door.id))[0] for one in (planner, *others)], [200] * 13)
        doubled(report, door, planner, others[0])
        forgotten(report, door, planner)
        refused(report, door, planner)
        long(report, door, planner)
        paced(report, door, planner)


def doubled(report, door, planner, other):
    """Two signatures, two texts, and two issuers for an id."""
    root = planner.token(door.id)
    report.equal("AE-40: a token is taken", door.send(root)[0], 200)
    for who in ("alice", "bob"):
        report.equal(f"AE-40: its twin is the same token, for {who}", door.send(twin(root), who=who)[0], 403)
    wid, name = str(uuid.uuid4()), str(uuid.uuid4())
    first, second = (planner.token(door.id, jti=name, wid=wid, exec_act=action) for action in ("one", "other"))
    step = planner.token(door.id, [name], wid=wid)
    report.equal("AE-40: two signatures of one text are one predecessor", door.send(planner.token(door.id, [name], wid=wid), twin(first))[0], 200)
    report.equal("AE-40: brought again with the other, it is known", door.send(step, first)[0], 200)
    report.equal("AE-40: another text of the issuer under the id is refused for everybody",
                 [door.send(planner.token(door.id, [name], wid=wid), second, who=who)[0] for who in ("alice", "bob")], [403, 403])
    name = str(uuid.uuid4())
    report.equal("AE-40: an issuer uses up no id of another", [door.send(one.token(door.id, jti=name), who=who)[0] for one, who in ((other, "bob"), (planner, "alice"))], [200, 200])


def forgotten(report, door, planner):
    """Tokens of a refused message are in the record before its error."""
    wid = str(uuid.uuid4())
    inside = planner.token(door.id, exec_act="aepb:translate", wid=wid, ect_ext={"aepb.gateway_id": door.id})
    message = planner.token(door.id, [claims(inside)["jti"]], wid=wid)
    status, headers, raw, _ = door.send(inside, message)
    report.check("AE-14: a loop is refused, and leaves an error", status == 403 and headers["Execution-Context"], raw)
    again = door.send(inside, message)
    report.equal("AE-12: sent again, it leaves nothing more", (again[0], again[1]["Execution-Context"]), (403, None))
    settled(door, wid, 3)
    held = checked(door, wid)
    report.equal("AE-41: a refused workflow is verified from the record", (held.returncode, [one["action"] for one in json.loads(held.stdout or "[]")][-1]), (0, "aepb:translate_error"))


def checked(door, wid=None, what="verify"):
    """The command over the record of the running gate."""
    Path(door.directory, "own.jwks").write_text(json.dumps(door.public()))
    issuers = ["--issuer", f"{door.id}={door.directory}/own.jwks", "--issuer", f"{PLANNER}={door.directory}/planner.pem"]
    return door.gateway.asked("ect", what, *issuers, *(["--workflow", wid] if wid else []), "--json", "--config", os.path.join(door.directory, "banyan.toml"))


def refused(report, door, planner):
    """The command names the tokens that do not hold, and gives the others."""
    whole = checked(door)
    report.check("AE-41: a token of an issuer without keys fails alone", whole.returncode == 1 and "no known issuer" in whole.stderr and len(json.loads(whole.stdout)) > 10, (whole.stderr, whole.stdout[:300]))
    wid = str(uuid.uuid4())
    door.send(planner.token(door.id, wid=wid))
    settled(door, wid, 3)
    one = checked(door, wid)
    report.equal("AE-41: the workflow is chosen before keys are asked for", (one.returncode, len(json.loads(one.stdout or "[]"))), (0, 3))


def long(report, door, planner):
    """A workflow of more than 256 tokens is told its length."""
    wid, parent, status, raw = str(uuid.uuid4()), [], 200, b""
    for _ in range(10):
        chain = []
        for _ in range(30):
            chain.append(planner.wish(door.id, parent, wid=wid))
            parent = [chain[-1]["claims"]["jti"]]
        status, _, raw, _ = door.send(*signed(*chain))
        if status != 200:
            break
    report.check("AE-14: a long workflow hears that it is too long", status == 403 and b"256 tokens" in raw, (status, raw))


def paced(report, door, planner):
    """A caller with too many false tokens waits, and others do not."""
    answers = []
    with ThreadPoolExecutor(4) as pool:
        while not any(status == 429 for status, *_ in answers) and len(answers) < 4000:
            answers += pool.map(lambda _: door.send("a.b.c", who="bob"), range(40))
    wait = [answer[1]["Retry-After"] for answer in answers if answer[0] == 429]
    report.check("AE-17: after many refusals tokens are not read", wait and all(int(one) > 0 for one in wait), (len(answers), wait[:3]))
    report.equal("AE-17: a message without tokens goes on, and so does another caller", (door.send(who="bob")[0], door.send(planner.token(door.id))[0]), (200, 200))


def betrayed(report):
    """An agent behind the gate whose tokens would stop the next step of its caller."""
    planner, helper = Issuer(PLANNER), Issuer("spiffe://h.example/agent")
    gate, wid = "spiffe://127.0.0.1/agent/gate", str(uuid.uuid4())

    def hop(carried):
        return claims(carried.split(", ")[-1])["jti"]

    def translated(carried, **extension):
        return helper.token(gate, [hop(carried)], wid=wid, exec_act="aepb:translate", ect_ext=extension)

    def flood(carried):
        wishes = [helper.wish(gate, [hop(carried)], wid=wid) for _ in range(40)]
        return [", ".join(signed(*wishes))]
    kinds = {
        "another workflow": (1, lambda carried: [helper.token(gate, [hop(carried)], wid=str(uuid.uuid4()))]),
        "no workflow": (1, lambda carried: [helper.token(gate, [hop(carried)])]),
        "a loop of its own making": (0, lambda carried: [translated(carried, **{"aepb.gateway_id": gate})]),
        "gateways without an end": (0, lambda carried: [translated(carried, **{"aepb.gateway_id": str(number)}) for number in range(5)]),
        "a flood": (1, flood),
        "the id of the caller's token": (1, lambda carried: [helper.token(gate, [hop(carried)], wid=wid, jti=claims(carried.split(", ")[0])["jti"])]),
    }
    with ExitStack() as stack:
        liars = {f"liar{number}": Liar(make) for number, (_, make) in enumerate(kinds.values())}
        mounts = "".join(f'[mount.{name}]\nurl = "http://127.0.0.1:{liar.server.server_port}"\ntransport = "a2a"\n' for name, liar in liars.items())
        known = evidence(known={PLANNER: "planner.pem", helper.name: "helper.pem"})
        door = Door(stack, "gate", known, mounts=mounts, keys={"planner.pem": planner.public(), "helper.pem": helper.public()})
        for liar, (name, (warnings, _)) in zip(liars, kinds.items(), strict=True):
            status, headers, task, _ = tell(door, liar, planner.token(door.id, wid=wid))
            line = headers["Execution-Context"].split(", ")
            last = verified(line[-1], door.public())[0]["claims"]
            report.equal(f"AE-12: tokens with {name}", (status, json.loads(task)["status"]["state"], len(last["ect_ext"]["aepb.translation_warnings"])), (200, DONE, warnings))
            step = planner.token(door.id, [last["jti"]], wid=wid, iat=last["iat"])
            status, _, raw, _ = tell(door, liar, step)
            report.equal(f"AE-14: the caller goes on after {name}", (status, raw if status != 200 else b""), (200, b""))
        gone = liars["liar0"].server
        gone.shutdown()
        gone.server_close()
        root = planner.token(door.id)
        last = [one["claims"] for one in verified(tell(door, "liar0", root)[1]["Execution-Context"], door.public())]
        report.equal("AE-12: a message that never left is no translation", [(one["exec_act"], one["pred"]) for one in last], [("aepb:translate_error", [claims(root)["jti"]])])


def tell(door, liar, token):
    message = call(f"{liar}__lie")
    message["message"]["parts"] = [{"data": {"message": "tell"}}]
    return door.send(token, message=message)
