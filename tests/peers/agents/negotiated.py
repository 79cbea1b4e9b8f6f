"""Capability documents and negotiation (AE-01, AE-03, AE-04, AE-05) by the gate: signed documents, kept as HTTP says, a choice with reasons,
a downgrade refused, gateways asked where nothing is shared, and documents of agents that lie."""
import http.server
import json
import os
import threading
import time
from contextlib import ExitStack

import jwt
from agents.evidence import Door, evidence

DOCUMENT = "/.well-known/aepb"


class Documents:
    """An agent whose document is of its choice, and the requests that it has heard."""

    def __init__(self):
        own = self
        self.heard, self.document, self.headers, self.status, self.pairs = [], {}, {}, 200, {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                own.heard.append((self.path, self.headers.get("If-None-Match")))
                if self.path != DOCUMENT:
                    found = own.pairs.get(self.path)
                    return self.answer(200 if found else 404, json.dumps(found or {}).encode())
                raw = own.document if isinstance(own.document, bytes) else json.dumps(own.document).encode()
                tag = own.headers.get("ETag")
                if tag and self.headers.get("If-None-Match") == tag:
                    return self.answer(304, b"")
                return self.answer(own.status, raw)

            def answer(self, status, raw):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                for name, value in own.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def document(*protocols, **other):
    return {"aepb_version": "1.0", "agent_id": "spiffe://p.example/peer", "ect_assurance_level": "L2", "translation_gateways": [], "ect_namespaces": [],
            "protocols": [{"id": one[0], "version": one[1], "endpoint": one[2], "priority": one[3]} for one in protocols],
            "lifecycle": {"status": "active", "version": "1.0.0"}, **other}


def run(report):
    report.guard("agents/negotiated", lambda: negotiated(report))


def negotiated(report):
    with ExitStack() as stack:
        peer = Door(stack, "peer", evidence(known={"spiffe://a.example/planner": "planner.pem"}), keys={"planner.pem": public()})
        door = Door(stack, "gate", evidence(known={peer.id: "peer.jwks"}), keys={"peer.jwks": json.dumps(peer.public())})
        stack.callback(lambda: None)

        def ask(url, *arguments):
            done = door.gateway.asked("agent", "negotiate", url, *arguments, "--json", "--config", os.path.join(door.directory, "banyan.toml"))
            return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr
        served(report, peer)
        between(report, door, peer, ask)
        chosen(report, Documents(), ask)
        kept(report, Documents(), ask)
        led(report, Documents(), ask)
        lied(report, Documents(), ask)
        record = json.loads(door.gateway.asked("ect", "show", "--json", "--config", os.path.join(door.directory, "banyan.toml")).stdout or "[]")
        report.check("AE-05: each outcome is a token in the record", len([one for one in record if one["action"] == "aepb:negotiate"]) > 9, record[:2])
        with open(os.path.join(door.directory, "own.jwks"), "w") as file:
            json.dump(door.public(), file)
        issuer = f"{door.id}={os.path.join(door.directory, 'own.jwks')}"
        held = json.loads(door.gateway.asked("ect", "export", "--issuer", issuer, "--json", "--config", os.path.join(door.directory, "banyan.toml")).stdout or "[]")
        peers = [jwt.decode(one, options={"verify_signature": False})["ect_ext"] for one in held]
        named = {one["banyan.peer"] for one in peers if "banyan.peer" in one}
        report.check("AE-05: a name that nobody has signed is recorded as a claim", named == {peer.id} and any(one.get("banyan.claimed_peer") == "spiffe://p.example/peer" for one in peers), peers[:2])


def public():
    from agents.evidence import PLANNER, Issuer
    return Issuer(PLANNER).public()


def served(report, peer):
    """The document, signed for whoever asks."""
    status, headers, raw, _ = peer.ask(DOCUMENT, headers={"Accept": "application/jwt"})
    report.equal("AE-01: who asks gets a signed document", (status, headers["Content-Type"]), (200, "application/jwt"))
    report.equal("AE-01: caches are told of both forms", (headers["Vary"], peer.ask(DOCUMENT)[1]["Vary"]), ("accept", "accept"))
    keys = {key.key_id: key for key in jwt.PyJWKSet(peer.public()["keys"]).keys}
    head = jwt.get_unverified_header(raw.decode())
    claims = jwt.decode(raw.decode(), keys[head["kid"]], algorithms=["ES256"])
    plain = json.loads(peer.ask(DOCUMENT)[2])
    report.equal("AE-01: which the other library verifies", (head["typ"], claims["iss"], claims["sub"]), ("aepb-capability+jwt", peer.id, peer.id))
    report.equal("AE-01: and which says the same", {name: claims[name] for name in plain}, plain)
    report.equal("AE-01: a known one is not sent again", peer.ask(DOCUMENT, headers={"Accept": "application/jwt", "If-None-Match": headers["ETag"]})[0], 304)


def between(report, door, peer, ask):
    """Two gates."""
    code, found, told = ask(f"http://127.0.0.1:{peer.port}")
    report.equal("AE-03: two gates choose A2A", (code, (found.get("chosen") or {}).get("peer", {}).get("id"), found.get("agent_id")), (0, "a2a-v1", peer.id))
    report.check("AE-03: every other protocol has its reason", len(found.get("rejected", [])) == 4 and all(one["reason"] for one in found["rejected"]), (found, told))
    code, found, told = ask(f"http://127.0.0.1:{peer.port}", "--signed", "--least-assurance", "L2")
    report.equal("AE-01: a signed document is verified", (code, found.get("signed"), told), (0, True, ""))
    code, _, told = ask(f"http://127.0.0.1:{peer.port}", "--least-security", "tls-1.3")
    report.check("AE-05: plain text is refused where TLS 1.3 is demanded", code == 1 and "policy_violation" in told, told)
    code, _, told = ask(f"http://127.0.0.1:{peer.port}", "--least-assurance", "L3")
    report.check("AE-05: and so is less evidence than is demanded", code == 1 and "L3" in told, told)
    done = door.gateway.asked("agent", "negotiate", f"http://127.0.0.1:{peer.port}", "--config", os.path.join(door.directory, "banyan.toml")).stdout
    report.check("AE-03: a person reads what was found, chosen, and why not the others", all(word in done for word in ("found ", "chosen ", "not ", "another protocol is preferred")), done)
    forged = door.ask("/-/agent/negotiation", {"url": "http://127.0.0.1:1"})
    report.check("AE-03: a caller's credential negotiates nothing", forged[0] in (401, 403), forged)


def chosen(report, agent, ask):
    """Priorities, versions and security."""
    mcp, a2a = ("mcp-v1", "2025-11-25", f"{agent.url}/mcp", 1), ("a2a-v1", "1.0", f"{agent.url}/a2a", 50)
    agent.headers = {"Cache-Control": "no-store"}
    for name, protocols, wanted in [
        ("the lowest sum wins", [a2a, mcp], ("mcp-v1", 31)), ("in any order", [mcp, a2a], ("mcp-v1", 31)),
        ("a version of another kind does not", [a2a, ("mcp-v1", "2024-11-05", f"{agent.url}/mcp", 1)], ("a2a-v1", 60)),
        ("plain text elsewhere does not", [a2a, ("mcp-v1", "2025-11-25", "http://p.example/mcp", 1)], ("a2a-v1", 60)),
    ]:
        agent.document = document(*protocols)
        code, found, told = ask(agent.url)
        choice = found.get("chosen") or {}
        report.equal(f"AE-03: {name}", (code, choice.get("peer", {}).get("id"), choice.get("priority")), (0, *wanted))
    for status in ("draining", "retired"):
        agent.document = document(a2a, lifecycle={"status": status, "version": "1.0.0"})
        code, found, told = ask(agent.url)
        report.check(f"AE-03: an agent that is {status} is not chosen", code == 1 and found["chosen"] is None and "takes no new work" in found["reason"], (found, told))
    agent.document = document(("a2a-v1", "1.0", "http://p.example/a2a", 1))
    code, found, told = ask(agent.url)
    report.check("AE-05: a document with plain text alone is a downgrade", code == 1 and found["code"] == "policy_violation" and found["chosen"] is None, (found, told))


def kept(report, agent, ask):
    """Documents as HTTP keeps them."""
    agent.document = document(("a2a-v1", "1.0", f"{agent.url}/a2a", 1))
    for name, headers, requests, last in [
        ("by their lifetime", {"Cache-Control": "max-age=60"}, 1, None), ("not where HTTP forbids", {"Cache-Control": "no-store"}, 2, None),
        ("by their tag", {"Cache-Control": "no-cache", "ETag": '"1"'}, 2, '"1"'), ("for an hour where nothing is said", {}, 1, None),
    ]:
        fresh = Documents()
        fresh.document, fresh.headers = agent.document, headers
        first, second = ask(fresh.url)[1], ask(fresh.url)[1]
        report.equal(f"AE-03: documents are kept {name}", (len(fresh.heard), fresh.heard[-1][1], first["kept"], second["kept"]), (requests, last, False, requests == 1 or last is not None))


def led(report, agent, ask):
    """Nothing is shared: the listed gateways are asked, within the reach of the owner's words."""
    agent.headers = {"Cache-Control": "no-store"}
    other = Documents()
    agent.document = document(("slim-v1", "1.0", f"{agent.url}/slim", 1), translation_gateways=[f"{other.url}/x", agent.url])
    code, found, told = ask(agent.url)
    report.check("AE-04: without a translation nothing is sent", code == 1 and found["code"] == "no_translation_path" and "no_translation_path" in told, (found, told))
    pairs = [(one["from"], one["to"]) for one in found["gateways"] if one["gateway"] == agent.url]
    report.equal("AE-04: each pair was asked for", pairs, [("a2a-v1", "slim-v1"), ("mcp-v1", "slim-v1")])
    report.equal("AE-04: and nobody at an address of the agent's choice within a network", other.heard, [])
    agent.pairs = {f"{DOCUMENT}/gateway?from=mcp-v1&to=slim-v1": {"from": "mcp-v1", "to": "slim-v1", "endpoint": f"{agent.url}/t"}}
    code, found, told = ask(agent.url)
    report.equal("AE-04: a gateway that translates is found", (code, found["code"], found["gateways"][-1]["endpoint"]), (0, None, f"{agent.url}/t"))
    strange = [(name, "1.0", f"{agent.url}/{name}", 1) for name in ("slim-v1", "x-v1", "y-v1")]
    agent.document = document(*strange, translation_gateways=[*(f"{other.url}/{number}" for number in range(6)), agent.url])
    code, found, told = ask(agent.url)
    report.equal("AE-04: the seventh gateway is asked, too", (code, found["gateways"][-1]["endpoint"]), (0, f"{agent.url}/t"))
    forgetful = Documents()
    forgetful.status = 404
    first, _, _ = ask(forgetful.url), setattr(forgetful, "status", 200), setattr(forgetful, "document", agent.document)
    report.equal("AE-03: an answer without a document counts for a minute", (first[0], ask(forgetful.url)[0], len(forgetful.heard)), (1, 1, 1))


def lied(report, agent, ask):
    """Documents without sense, and what is no document."""
    agent.headers = {"Cache-Control": "no-store"}
    good = document(("a2a-v1", "1.0", f"{agent.url}/a2a", 1))
    for name, given, status in [
        ("nonsense", b"{", 200), ("too long", json.dumps({**good, "x": "y" * (300 << 10)}).encode(), 200), ("endless", b"[" * (1 << 20), 200),
        ("twice", json.dumps(good).encode()[:-1] + b',"agent_id":"spiffe://q/q"}', 200), ("of nobody", {**good, "agent_id": "nobody"}, 200),
        ("of another version", {**good, "aepb_version": "2.0"}, 200), ("without protocols", {**good, "protocols": []}, 200),
        ("retired", b"{}", 410), ("missing", b"{}", 404), ("elsewhere", b"{}", 302),
    ]:
        agent.document, agent.status = given, status
        begun = time.monotonic()
        code, found, told = ask(agent.url)
        report.check(f"AE-01: a document that is {name} is refused", code == 1 and not found and told and time.monotonic() - begun < 30, (found, told))
    agent.document, agent.status = good, 200
    code, _, told = ask(agent.url, "--signed")
    report.check("AE-01: a plain document is none that was signed", code == 1 and "no signed document" in told, told)
    for url in ("http://p.example", "http://10.0.0.1"):
        code, _, told = ask(url)
        report.check(f"AE-05: no document is read from {url}", code == 1 and "TLS 1.3" in told, told)
