"""Three gates, one below the other, and a credential of its own on every edge: each is seen on its own wire and on no other (AX-40).

Every wire is recorded: those between the gates by a proxy that keeps each byte, those to the servers by the servers. Where gates know
each other by certificates, or one dials the other and is called back over that link, the proxy has the papers of both sides. The gates'
logs, metrics and status are searched as well.
"""
import hashlib
import json
import re
import tempfile
import time
import tomllib
import uuid
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs

from gateway import Gateway, free_port
from signing import Signer
from tree.joining import Member
from trouble import huffman, recording
from trouble.tap import Tap, TlsTap
from wire import Legacy, Modern

RESOURCE = "https://root.example.com/mcp"
ISSUER = "https://login.example.com"
LEAF = "https://leaf.example.com/mcp"
TOOLS = ("mid__leaf__plain__act", "mid__leaf__signed__act", "mid__leaf__press__act")
LISTED_WITHIN = 20


def cases():
    """(name, function) pairs."""
    yield "canaries on every edge of three gates", three_gates
    yield "canaries over a link and by certificates", over_a_link


def secret(edge):
    """A credential that looks like nothing else."""
    return f"canary-{edge}-{hashlib.sha256(edge.encode()).hexdigest()[:16]}"


def token(name, value):
    """A `[[token]]` entry."""
    return f'[[token]]\nname = "{name}"\nsha256 = "{hashlib.sha256(value.encode()).hexdigest()}"\n'


class SignIn(recording.Upstream):
    """A server that wants a token of the authorization server beside it, and records what both are sent."""

    def __init__(self, access, client_secret):
        super().__init__()
        outer, plain = self, self._server.RequestHandlerClass

        class Handler(plain):
            def do_POST(self):
                if self.path == "/token":
                    body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                    outer.asked.append(str(self.headers) + body)
                    good = client_secret in body or "Basic" in (self.headers.get("authorization") or "") or parse_qs(body)
                    issued = {"access_token": access, "token_type": "Bearer", "expires_in": 3600}
                    self.answer(200 if good else 400, json.dumps(issued).encode(), "application/json")
                elif self.headers.get("authorization") != f"Bearer {access}":
                    outer.seen.append((str(self.headers), self.rfile.read(int(self.headers.get("content-length", 0))).decode()))
                    self.send_response(401)
                    self.send_header("www-authenticate", f'Bearer resource_metadata="{outer.origin}/.well-known/oauth-protected-resource"')
                    self.send_header("content-length", "0")
                    self.end_headers()
                else:
                    super().do_POST()

            def do_GET(self):
                documents = {
                    "/.well-known/oauth-protected-resource": {"resource": outer.url, "authorization_servers": [outer.origin]},
                    "/.well-known/oauth-authorization-server": {
                        "issuer": outer.origin, "token_endpoint": f"{outer.origin}/token",
                        "authorization_endpoint": f"{outer.origin}/authorize", "response_types_supported": ["code"],
                        "grant_types_supported": ["client_credentials"],
                        "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"]},
                }
                found = documents.get(self.path.removesuffix("/mcp"))
                if found:
                    self.answer(200, json.dumps(found).encode(), "application/json")
                else:
                    super().do_GET()

        self.asked = []
        self.origin = self.url.removesuffix("/mcp")
        self._server.RequestHandlerClass = Handler


def three_gates(report, name):
    """Calls of both eras with every kind of credential, then a look at every wire."""
    own = {edge: secret(edge) for edge in ("bearer", "cookie", "proxy", "api-key", "root-to-mid", "mid-to-leaf", "leaf-to-server", "access", "client", "registrant")}
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="banyan-canaries-"))
        signer = Signer(directory)
        own["jwt"] = signer.token(iss=ISSUER, aud=RESOURCE, sub="ann", canary=secret("claim"))
        own["jwt signature"] = own["jwt"].rsplit(".", 1)[1]
        plant = Signer(directory, "plant")
        own["proof"] = plant.token(aud=LEAF, sub="press.plant.example", canary=secret("claim"))
        own["proof signature"] = own["proof"].rsplit(".", 1)[1]
        press = stack.enter_context(recording.Upstream())
        plain, signed_in = stack.enter_context(recording.Upstream()), stack.enter_context(SignIn(own["access"], own["client"]))
        leaf = stack.enter_context(Gateway(f"{name} leaf", {}, config=f'resource = "{LEAF}"\n' + token("mid", own["mid-to-leaf"]) + token("press", own["registrant"]) + (
            f'[registry]\nprincipals = ["press"]\n[authority.plant]\nkeys = "{plant.public}"\nnames = ["*.plant.example"]\n'
            f'[mount.plain]\nurl = "{plain.url}"\nheaders = {{ X-Api-Key = "{own["leaf-to-server"]}" }}\n'
            f'[mount.signed]\nurl = "{signed_in.url}"\n'
            f'oauth = {{ client_id = "leaf", client_secret = "{own["client"]}", grant = "client_credentials" }}\n')))
        below = stack.enter_context(Tap(leaf.port))
        mid = stack.enter_context(Gateway(f"{name} mid", {}, config=token("root", own["root-to-mid"]) + (
            f'[mount.leaf]\nurl = "{below.url()}"\nheaders = {{ Authorization = "Bearer {own["mid-to-leaf"]}" }}\n')))
        above = stack.enter_context(Tap(mid.port))
        root = stack.enter_context(Gateway(f"{name} root", {}, config=f'resource = "{RESOURCE}"\n' + token("client", own["bearer"]) + (
            f'[issuer.login]\nissuer = "{ISSUER}"\nkeys = "{signer.public}"\n'
            f'[mount.mid]\nurl = "{above.url()}"\nheaders = {{ Authorization = "Bearer {own["root-to-mid"]}" }}\n')))
        register(report, name, leaf, press, own)
        calls(report, name, root, own)
        wires = {"root to mid": above.text(), "mid to leaf": below.text(), "leaf to server": text(plain.seen),
                 "leaf to the other server": text(signed_in.seen), "leaf to its authorization server": "\n".join(signed_in.asked), "leaf to whoever registered": text(press.seen)}
        allowed = {"root to mid": {"root-to-mid"}, "mid to leaf": {"mid-to-leaf"}, "leaf to server": {"leaf-to-server"},
                   "leaf to the other server": {"access"}, "leaf to its authorization server": {"client"}, "leaf to whoever registered": set()}
        for wire, passed in wires.items():
            found = {edge for edge, value in own.items() if value in passed}
            report.equal(f"{name}: credentials on the wire from {wire}", sorted(found), sorted(allowed[wire]))
            report.check(f"{name}: no claim of a token on the wire from {wire}", secret("claim") not in passed, passed[:400])
        for gate in (root, mid, leaf):
            told = gate.tail(1 << 20) + "".join(gate.get(path)[1] for path in ("/metrics", "/-/status", "/-/tools", "/healthz"))
            told += gate.told("status", "--json") + gate.told("tools", "--json")
            report.equal(f"{name}: credentials in what {gate.home.log.name} says", [edge for edge, value in own.items() if value in told], [])


def over_a_link(report, name):
    """The gate in the middle is mounted with a certificate from above, and dialled from below: TLS 1.3 and both sides known on both edges (AX-42)."""
    own = {edge: secret(edge) for edge in ("bearer", "cookie", "proxy", "api-key", "root-to-mid", "leaf-to-mid", "leaf-to-server")}
    with ExitStack() as stack:
        server = stack.enter_context(recording.Upstream())
        port = free_port()
        mid = stack.enter_context(Member(f"{name} mid", f'listen = "127.0.0.1:{port}"\n' + token("root", own["root-to-mid"]) + token("leaf", own["leaf-to-mid"]) + (
            '[registry]\nproof = "never"\nprincipals = ["leaf"]\n')))
        mid.banyan("ca", "init", "--name", "localhost")
        mid.up()
        own_tls = tomllib.loads(mid.config())["tls"]
        here = own_tls["certificate"], own_tls["key"]
        top, leaf = (joined(report, name, stack, mid, port, who) for who in ("top", "leaf"))
        (_, top_papers, ca), (leaf, leaf_papers, _) = top, leaf
        above, below = (stack.enter_context(TlsTap(port, here, papers, ca)) for papers in (top_papers, leaf_papers))
        dialling = leaf.config().replace(f"localhost:{port}", f"localhost:{below.port}")
        dialling = re.sub(r"(\[\[parent\]\]\n)", rf'\1token = "{own["leaf-to-mid"]}"\n', dialling)
        leaf.home.write("banyan.toml", f'listen = "127.0.0.1:0"\n{dialling}\n[mount.plain]\nurl = "{server.url}"\nheaders = {{ X-Api-Key = "{own["leaf-to-server"]}" }}\n')
        leaf.up()
        ready = {"leaf": "ready"}
        end = time.monotonic() + LISTED_WITHIN
        while {one["name"]: one["state"] for one in mid.said("status").get("mounts", [])} != ready and time.monotonic() < end:
            time.sleep(0.05)
        root = stack.enter_context(Gateway(f"{name} root", {}, config=token("client", own["bearer"]) + (
            f'[mount.mid]\nurl = "https://localhost:{above.port}/mcp"\nheaders = {{ Authorization = "Bearer {own["root-to-mid"]}" }}\n'
            f'tls = {{ certificate = "{top_papers[0]}", key = "{top_papers[1]}", ca = "{ca}" }}\n')))
        calls(report, name, root, own, bearers=("bearer",), tools=("mid__leaf__plain__act",))
        wires = {"root and mid": (bytes(above.seen), {"root-to-mid"}), "mid and leaf": (bytes(below.seen), {"leaf-to-mid"}),
                 "leaf and server": (text(server.seen).encode(), {"leaf-to-server"})}
        said = {gate.home.log.name: gate.home.log.read_bytes() for gate in (root, mid, leaf)}
        said |= {f"banyan {what}": mid.banyan(what, "--json").stdout.encode() for what in ("status", "tools", "tree")}
        for wire, (passed, allowed) in wires.items():
            found = {edge for edge, value in own.items() if huffman.is_in(value, passed)}
            report.equal(f"{name}: credentials between {wire}", sorted(found), sorted(allowed))
        for place, passed in said.items():
            report.equal(f"{name}: credentials in {place}", [edge for edge, value in own.items() if value.encode() in passed], [])
        keys = [Path(file).read_text().splitlines()[1].encode() for file in (here[1], top_papers[1], leaf_papers[1])]
        everything = [*(passed for passed, _ in wires.values()), *said.values()]
        report.check(f"{name}: no key leaves its machine", not any(key in passed for key in keys for passed in everything), "a private key was seen")
        report.check(f"{name}: who called the gate is nobody's business below", b"example.com" not in wires["leaf and server"][0], "")
        # What is searched for would be found: this field stands on the link in the code of HTTP/2 alone.
        report.check(f"{name}: fields of the link are read", huffman.is_in("mcp-protocol-version", bytes(below.seen)) and b"mcp-protocol-version" not in below.seen, len(below.seen))
        for edge, tap, who in (("root and mid", above, "top"), ("mid and leaf", below, "leaf")):
            met = {(near, far, f"{who}.example.com" in names) for near, far, names in tap.met}
            report.equal(f"{name}: {edge} know each other, over TLS 1.3", met, {("TLSv1.3", "TLSv1.3", True)})


def joined(report, name, stack, mid, port, who):
    """A gate with a certificate of the one in the middle: the gate, (certificate, key), and the authority."""
    invited = mid.banyan("ca", "token", "--for", f"{who}.example.com", "--json")
    member = stack.enter_context(Member(f"{name} {who}", ""))
    done = member.banyan("join", f"https://localhost:{port}", "--token", json.loads(invited.stdout)["token"], "--segment", who)
    report.equal(f"{name}: {who} has joined", done.returncode, 0)
    tls = tomllib.loads(member.config())["parent"][0]["tls"]
    return member, (tls["certificate"], tls["key"]), tls["ca"]


def register(report, name, leaf, press, own):
    """A server registers with a proof of its authority; without one, what it lists would not be shown."""
    params = {"subserver_id": str(uuid.uuid4()), "segment": "press", "capabilities": {"tools": True}, "heartbeat_interval_ms": 0,
              "transport_class": "http", "version": "2026-05-01", "url": press.url,
              "authority": "dns:press.plant.example", "authority_proof": own["proof"]}
    reply = Modern(leaf.url(), headers={"authorization": f"Bearer {own['registrant']}"}).call("mcpax/register", params)
    report.check(f"{name}: a server registers with a proof", "result" in (reply.message or {}), reply.raw[:600])


def calls(report, name, root, own, bearers=("bearer", "jwt"), tools=TOOLS):
    """Every kind of credential that a client may have, in both eras, down to all servers."""
    more = {"cookie": f"session={own['cookie']}", "proxy-authorization": f"Basic {own['proxy']}", "x-api-key": own["api-key"]}
    for bearer in bearers:
        for client in (Legacy, Modern):
            peer = client(root.url(), headers={**more, "authorization": f"Bearer {own[bearer]}"})
            listed(report, name, peer, tools)
            for tool in tools:
                reply = peer.tool(tool)
                report.equal(f"{name}: {client.__name__} with a {bearer} calls {tool}", reply.text, "fine")


def listed(report, name, peer, tools):
    """Waits until everything below is listed: a registration takes a moment to come up through three gates."""
    end = time.monotonic() + LISTED_WITHIN
    while not set(tools) <= set(peer.tools()) and time.monotonic() < end:
        time.sleep(0.05)
    report.check(f"{name}: {type(peer).__name__} sees every server", set(tools) <= set(peer.known), sorted(peer.known))


def text(seen):
    """What a server was sent."""
    return "\n".join(headers + body for headers, body in seen)
