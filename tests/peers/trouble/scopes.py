"""A client of the Python SDK that signs in for a gate, and signs in again for more scope when a rule wants it (403 `insufficient_scope`).

The authorization server is a small one of this file: it gives whatever scope it is asked for, and writes down what that was.
"""
import hashlib
import json
import tempfile
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

import anyio
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from gateway import Gateway, free_port
from signing import Signer, encoded
from trouble import recording

BACK = "http://127.0.0.1:1/back"
RULES = """@id("all") permit (principal, action, resource);
@id("writers") @scope("write")
forbid (principal, action == Action::"call", resource == Tool::"up.act") unless { principal.scopes.contains("write") };
"""
CONFIG = """resource = "http://localhost:{port}/mcp"
[policy]
file = "policy.cedar"
[issuer.login]
issuer = "{issuer}"
keys = "{keys}"
scopes = ["tools"]
[mount.up]
url = "{upstream}"
[mount.free]
url = "{upstream}"
"""
WITHIN = 120


def cases():
    """(name, function) pairs."""
    yield "a client that signs in again for more scope", stepping_up


class Login:
    """An authorization server: discovery, registration, consent by nobody, and tokens for whoever has the code and its verifier."""

    def __init__(self, signer, audience):
        self.asked, self.tokens, self.codes = [], [], {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                at = urlsplit(self.path)
                if at.path == "/.well-known/oauth-authorization-server":
                    self.answer(200, outer.metadata())
                elif at.path == "/authorize":
                    self.send_response(302)
                    self.send_header("location", outer.authorized({key: values[0] for key, values in parse_qs(at.query).items()}))
                    self.send_header("content-length", "0")
                    self.end_headers()
                else:
                    self.answer(404, {})

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.path == "/register":
                    self.answer(201, {**json.loads(body), "client_id": "peer"})
                else:
                    self.answer(*outer.exchanged({key: values[0] for key, values in parse_qs(body.decode()).items()}))

            def answer(self, status, value):
                raw = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_):
                pass

        self.signer, self.audience = signer, audience
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def metadata(self):
        return {"issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/authorize", "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register", "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"], "token_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": True}

    def authorized(self, asked):
        """Where the browser is sent back to."""
        self.asked.append(asked.get("scope", "").split())
        code = f"code-{len(self.asked)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.issuer})}"

    def exchanged(self, given):
        """A token for a code."""
        asked = self.codes.pop(given.get("code"), None)
        verifier = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        if not asked or encoded(verifier) != asked["code_challenge"] or given.get("resource") != self.audience:
            return 400, {"error": "invalid_grant"}
        token = self.signer.token(iss=self.issuer, aud=self.audience, sub="ann", scope=asked["scope"])
        self.tokens.append(token)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": asked["scope"]}


class Kept:
    """What the SDK remembers of its sign-in."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Goes where it is sent, up to the address of the program."""

    class Stop(HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    def __init__(self):
        self.back = None

    async def goes(self, url):
        def look():
            try:
                build_opener(self.Stop).open(url, timeout=WITHIN)
            except HTTPError as answer:
                return answer.headers["location"]
            raise AssertionError("nobody was sent back")
        self.back = await anyio.to_thread.run_sync(look)

    async def comes(self):
        said = {key: values[0] for key, values in parse_qs(urlsplit(self.back).query).items()}
        return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said["iss"])


async def calls(url, mode, tools):
    """What a client is told that calls these tools, one after the other."""
    browser = Browser()
    about = OAuthClientMetadata(client_name="peer", redirect_uris=[BACK], grant_types=["authorization_code"],
                                response_types=["code"], token_endpoint_auth_method="none")
    auth = OAuthClientProvider(url, about, Kept(), browser.goes, browser.comes)
    told = []
    async with create_mcp_http_client(auth=auth) as http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        for tool in tools:
            with anyio.fail_after(WITHIN):
                answer = await client.call_tool(tool, {"what": "look"})
            told.append(not answer.is_error)
    return told


def stepping_up(report, name):
    """Both eras: the first call needs no more than the door, the second needs `write`, the third goes by the same token."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="banyan-scopes-"))
        signer, port = Signer(directory), free_port()
        upstream = stack.enter_context(recording.Upstream())
        login = stack.enter_context(Login(signer, f"http://localhost:{port}/mcp"))
        config = CONFIG.format(port=port, issuer=login.issuer, keys=signer.public, upstream=upstream.url)
        gate = stack.enter_context(Gateway(name, {}, config=config, port=port, prepare=lambda g: g.home.write("policy.cedar", RULES)))
        for mode in ("legacy", "2026-07-28"):
            del login.asked[:], login.tokens[:], upstream.seen[:]
            told = anyio.run(calls, gate.url(), mode, ["free__act", "up__act", "up__act"])
            report.equal(f"{name}: {mode}: every call is answered", told, [True, True, True])
            report.equal(f"{name}: {mode}: it signed in twice, first for the door and then for both", [sorted(scopes) for scopes in login.asked],
                         [["tools"], ["tools", "write"]])
            report.equal(f"{name}: {mode}: each call went out once", sum('"tools/call"' in body for _, body in upstream.seen), 3)
            report.check(f"{name}: {mode}: no token went on", not any(token in head + body for token in login.tokens for head, body in upstream.seen))
