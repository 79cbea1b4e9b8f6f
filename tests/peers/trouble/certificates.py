"""A gate with TLS, made by `banyan ca init`, and TLS peers that are not ours: openssl and curl (AX-13, AX-42)."""
import hashlib
import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import signing
from gateway import Gateway, binary
from trouble import recording

NAME = "gate.example.com"
CONFIG = """allowed_hosts = ["gate.example.com"]
[tls]
certificate = ".local/state/banyan/ca/gate.pem"
key = ".local/state/banyan/ca/gate.key"
client_ca = ".local/state/banyan/ca/ca.pem"
[mount.up]
url = "{upstream}"
"""
ENDED_WITHIN = 10


def cases():
    """(name, function) pairs."""
    yield "certificates, openssl and curl", peers


class TlsGateway(Gateway):
    """A gate whose authority is made before it starts."""

    def __init__(self, name, config):
        super().__init__(name, {}, config=config, prepare=TlsGateway._certify)

    def _certify(self):
        """What the command prints, and the section that it adds to a configuration."""
        self.home.write("banyan.toml", f'listen = "127.0.0.1:{self.port}"\n')
        self.made = self.banyan("ca", "init", "--name", NAME)
        self.added = Path(self.home.dir, "banyan.toml").read_text()

    def banyan(self, *arguments):
        """The command line, in the home of the gate."""
        return subprocess.run([binary(), *arguments], env=self.home.env, cwd=self.home.dir, capture_output=True, text=True, timeout=30, check=False)

    def path(self, name):
        """A file of the authority."""
        return os.path.join(self.home.dir, ".local/state/banyan/ca", name)

    def get(self, path):
        context = ssl.create_default_context(cafile=self.path("ca.pem"))
        context.check_hostname = False
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{self.port}{path}", timeout=5, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def curl(self, path, *more, body=None):
        """Status and body."""
        given = ["--data-binary", "@-", "-H", "content-type: application/json", "-H", "accept: application/json, text/event-stream"]
        done = subprocess.run(
            ["curl", "-sS", "--max-time", "20", "--cacert", self.path("ca.pem"), "--connect-to", f"{NAME}:443:127.0.0.1:{self.port}",
             "-w", "\n%{http_code}", *(given if body is not None else []), *more, f"https://{NAME}{path}"],
            input=json.dumps(body) if body is not None else None, capture_output=True, text=True, check=False)
        text, _, status = done.stdout.rpartition("\n")
        return int(status or 0), text, done.stderr


def peers(report, name):
    """One gate, from its authority's first certificate to the last one that it takes back."""
    with recording.Upstream() as upstream, TlsGateway(name, CONFIG.format(upstream=upstream.url)) as gate:
        report.check(f"{name}: the command adds the section", "[tls]\ncertificate = " in gate.added, gate.added)
        handshakes(report, name, gate)
        edge = joined(report, name, gate)
        known(report, name, gate, edge)
        report.equal(f"{name}: the command line finds the gate over TLS", json.loads(gate.banyan("status", "--json").stdout)["pid"], gate.process.pid)
        taken_back(report, name, gate, edge)
        sent = "\n".join(headers + body for headers, body in upstream.seen)
        report.check(f"{name}: nothing of a certificate goes on", "edge.example.com" not in sent and "BEGIN" not in sent, sent[:600])


def handshakes(report, name, gate):
    """TLS 1.3, which resumes, and nothing older."""
    report.equal(f"{name}: curl verifies the gate", gate.curl("/healthz")[:2], (200, "ok\n"))
    report.check(f"{name}: curl with TLS 1.2 is refused", gate.curl("/healthz", "--tls-max", "1.2")[0] == 0, "")
    session = os.path.join(gate.home.dir, "session.pem")
    said = client(gate, "-tls1_3", "-sess_out", session)
    report.check(f"{name}: openssl verifies the gate", "Verify return code: 0" in said and "TLSv1.3" in said, said[-1500:])
    report.check(f"{name}: a session is resumed", "Reused, TLSv1.3" in client(gate, "-sess_in", session), said[-500:])
    report.check(f"{name}: openssl with TLS 1.2 is refused", "alert protocol version" in client(gate, "-tls1_2"), "")


def client(gate, *more):
    """What `openssl s_client` says of one connection, on which a request is made so that the session's ticket comes."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{gate.port}", "-servername", NAME, "-verify_hostname", NAME,
         "-CAfile", gate.path("ca.pem"), "-ign_eof", *more],
        input="GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", capture_output=True, text=True, timeout=20, check=False)
    return done.stdout + done.stderr


def admission(token, name, csr):
    """The body of a request to join."""
    _, _, number, secret = token.split(".")
    return {"id": number, "secret": secret, "name": name, "csr": csr}


def joined(report, name, gate):
    """Joins as a program would that is not ours: the paths of a certificate and its key."""
    token = gate.made.stdout.split()[-1]
    authority = signing.openssl("x509", "-in", gate.path("ca.pem"), "-outform", "DER")
    report.equal(f"{name}: the token names the authority", token.split(".")[1], signing.encoded(hashlib.sha256(authority).digest()))
    # Over HTTP/2, where an answer in front of the body's end would be lost every second time.
    asked = {gate.curl("/mcp", body={"jsonrpc": "2.0", "id": 1, "method": "ping"})[0] for _ in range(12)}
    report.equal(f"{name}: a stranger is asked for a credential", asked, {401})
    asked = {gate.curl("/-/call", body={"tool": "x", "arguments": {"long": "x" * 40_000}})[0] for _ in range(12)}
    report.equal(f"{name}: a stranger rules nothing, and hears so", asked, {401})
    asked = {gate.curl("/-/nothing", body={"long": "x" * 40_000})[0] for _ in range(12)}
    report.equal(f"{name}: what is not there is not there, whatever comes with it", asked, {404})
    key, csr = signing.request(gate.home.dir, "edge.example.com")
    status, answer, _ = gate.curl("/-/join", body=admission(token, "edge.example.com", csr))
    report.equal(f"{name}: openssl's request is signed", status, 200)
    given = json.loads(answer)
    certificate = gate.home.write("edge.pem", given["certificate"])
    told = signing.openssl("x509", "-in", certificate, "-noout", "-ext", "subjectAltName,basicConstraints").decode()
    report.check(f"{name}: the certificate proves one name", told.count("DNS:") == 1 and "DNS:edge.example.com" in told and "CA:FALSE" in told, told)
    signing.openssl("verify", "-x509_strict", "-CAfile", gate.path("ca.pem"), "-purpose", "sslclient", certificate)
    status, answer, _ = gate.curl("/-/join", body=admission(token, "other", csr))
    report.check(f"{name}: the token was good once", status != 200 and "banyan ca token" in answer, answer)
    second = gate.banyan("ca", "token", "--for", "second").stdout.split()[-1]
    status, answer, _ = gate.curl("/-/join", body=admission(second, "whatever", signing.request(gate.home.dir, "second", "ed25519")[1]))
    report.equal(f"{name}: an Ed25519 key joins under the name it was meant for", (status, json.loads(answer).get("name")), (200, "second"))
    return certificate, key


def known(report, name, gate, edge):
    """Whoever has joined calls tools and renews its certificate."""
    own = ("--cert", edge[0], "--key", edge[1])
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "up__act", "arguments": {}, "_meta": meta}}
    headers = ("-H", "mcp-protocol-version: 2026-07-28", "-H", "mcp-method: tools/call", "-H", "mcp-name: up__act")
    for version in ("--http1.1", "--http2"):
        status, answer, _ = gate.curl("/mcp", *own, *headers, version, body=call)
        report.check(f"{name}: curl {version} calls a tool by its certificate", status == 200 and "fine" in answer, answer[:600])
    csr = signing.openssl("req", "-new", "-key", edge[1], "-subj", "/CN=somebody-else").decode()
    status, answer, _ = gate.curl("/-/renew", *own, body={"csr": csr})
    report.check(f"{name}: a certificate is renewed under its own name", status == 200 and json.loads(answer)["name"] == "edge.example.com", answer[:600])
    report.check(f"{name}: nobody renews without one", gate.curl("/-/renew", body={"csr": csr})[0] != 200, "")


def taken_back(report, name, gate, edge):
    """A certificate that was revoked opens no connection any more."""
    listed = json.loads(gate.banyan("ca", "list", "--json").stdout)["certificates"]
    report.equal(f"{name}: who has joined is listed", sorted({one["name"] for one in listed}), ["edge.example.com", "second"])
    gate.banyan("ca", "revoke", "edge.example.com")
    end = time.monotonic() + ENDED_WITHIN
    status = 200
    while time.monotonic() < end and status:
        status = gate.curl("/-/status", "--cert", edge[0], "--key", edge[1])[0]
    report.equal(f"{name}: a certificate that was taken back opens nothing", status, 0)
    report.equal(f"{name}: others are served", gate.get("/healthz")[0], 200)
