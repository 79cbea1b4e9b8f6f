"""Calls that wait for a person, through the real binary: the Python SDK calls, `ssh-keygen` signs, and the tool's own log says what went out
(AX-45, AX-46, AX-49).

A table of ways to get around that follows, each with the answer that it gets.
"""
import asyncio
import base64
import hmac
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import anyio
from aiosmtpd.smtp import SMTP
from mcp import Client

from approvals import crashes, desktop
from approvals.over_stdio import over_stdio
from gateway import Gateway, binary
from wire import Modern

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 80
WIPER = str(Path(__file__).with_name("wiper.py"))
CONFIG = """
[approvals]
mode = "irreversible"
expires = "{expires}"
approvals = {approvals}
{more}
[mount.disk]
command = "{python}"
args = ["{wiper}", "{log}"]
"""

ANSWER = {"clientDataJSON": "e30", "authenticatorData": "AA", "signature": "AA"}
PASSKEY = {"type": "webauthn", "credential": {"id": "eA", "response": ANSWER}}


def token(claims):
    """A token that nobody has signed."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims)]
    return ".".join([*parts, ""])


class Held:
    """A gate in front of the tool, a person with a key, and what went out."""

    def __init__(self, name, expires="60s", approvals=1, more="", env=None):
        handle, self.log = tempfile.mkstemp(prefix="banyan-wiped-")
        os.close(handle)
        config = CONFIG.format(expires=expires, approvals=approvals, more=more, python=sys.executable, wiper=WIPER, log=self.log)
        self.gateway = Gateway(name, {}, env, config=config)
        self.dir = Path(self.gateway.home.dir)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gateway.stop()
        os.unlink(self.log)

    def banyan(self, *arguments):
        """Runs a command: its exit code and all that it printed."""
        command = [binary(), *arguments]
        done = subprocess.run(command, env=self.gateway.home.env, cwd=self.dir, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def json(self, *arguments):
        """Runs a command; what it printed as JSON."""
        code, printed = self.banyan("--json", *arguments)
        if code:
            raise RuntimeError(printed)
        return json.loads(printed)

    def key(self, name, kind="ed25519"):
        """Makes a key; its file."""
        path = self.dir / name
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", path], check=True)
        return path

    def enroll(self, name, kind="ed25519", *more):
        """Makes a key and enrols it; its file."""
        path = self.key(name, kind)
        code, said = self.banyan("operator", "enroll", name, "--key", f"{path}.pub", *more)
        if code:
            raise RuntimeError(said)
        return path

    def pending(self):
        """The one call that waits."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            waiting = [a for a in self.json("approvals")["approvals"] if a["standing"] == "pending"]
            if waiting:
                return waiting[-1]
            time.sleep(0.05)
        raise RuntimeError("nothing waits")

    def sign(self, text, key, namespace="banyan-approval-v1"):
        """What `ssh-keygen` makes of a text."""
        command = ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", key]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout

    def wiped(self):
        """What went out."""
        return [json.loads(line) for line in Path(self.log).read_text().splitlines()]

    def confirm(self, identity, proof):
        """`mcpax/confirm`: the reason of its refusal, or how the call stands."""
        told = Modern(self.gateway.url()).call("mcpax/confirm", {"id": identity, "proof": proof})
        return told.error["data"]["reason"] if told.error else told.result["standing"]


def run(report):
    """All cases."""
    cases = {"the SDK": sdk, "over stdio": lambda r, n: over_stdio(r, n, Held), "refusals": refusals, "two people": two_people,
             "killed": killed, "killed again and again": crashed, "webhook": webhook, "agent": agent,
             "programs": programs, "mail": mail, "desktop": notified, "grants": grants}
    for name, case in cases.items():
        report.guard(f"approvals/{name}", lambda n=name, c=case: c(report, f"approvals/{n}"))


def sdk(report, name):
    """The Python SDK calls, a person signs, the call goes out once."""
    with Held(name) as held:
        key = held.enroll("anna")
        said = {}

        async def call():
            heard = []

            async def progress(*told):
                heard.append(told)

            async with Client(held.gateway.url()) as client:
                with anyio.fail_after(40):
                    told = await client.call_tool("disk__wipe", {"disk": "a"}, progress_callback=progress)
                said["text"], said["heard"] = told.content[0].text, heard

        caller = threading.Thread(target=lambda: anyio.run(call))
        caller.start()
        waiting = held.pending()
        report.equal(f"{name}: nothing goes out before", held.wiped(), [])
        report.equal(f"{name}: the exact arguments are shown", (waiting["tool"], waiting["arguments"]), ("disk.wipe", '{"disk":"a"}'))
        code, printed = held.banyan("approve", waiting["id"][:8], "--key", str(key), "--yes")
        report.check(f"{name}: banyan approve", code == 0, printed)
        caller.join(40)
        report.equal(f"{name}: it goes out once", (held.wiped(), said.get("text")), ([{"disk": "a"}], "wiped a"))
        report.check(f"{name}: the caller heard for what it waits", any("disk.wipe" in str(told) for told in said.get("heard", [])), said)

        async def again():
            async with Client(held.gateway.url()) as client:
                return await client.call_tool("disk__wipe", {"disk": "a"})

        told = anyio.run(again)
        report.check(f"{name}: a second call waits anew", told.is_error and "banyan approve" in told.content[0].text, told)
        code, printed = held.banyan("deny", held.pending()["id"], "--reason", "once is enough")
        report.check(f"{name}: banyan deny", code == 0, printed)
        report.equal(f"{name}: still once", len(held.wiped()), 1)


def agent(report, name):
    """A key that only an SSH agent has signs, without its file; without one, the command says what to do."""
    with Held(name) as held:
        key = held.enroll("anna")
        told = subprocess.run(["ssh-agent", "-s", "-a", held.dir / "agent"], capture_output=True, text=True, check=True).stdout
        process = int(told.split("SSH_AGENT_PID=")[1].split(";")[0])
        try:
            client, call = Modern(held.gateway.url()), {"name": "disk__wipe", "arguments": {"disk": "a"}}
            client.call("tools/call", call)
            identity = held.pending()["id"]
            held.gateway.home.env["SSH_AUTH_SOCK"] = str(held.dir / "agent")
            code, said = held.banyan("approve", identity, "--yes")
            report.check(f"{name}: without a key it says what to do", code != 0 and "ssh-add FILE" in said, said)
            subprocess.run(["ssh-add", "-q", key], env=held.gateway.home.env, check=True, capture_output=True)
            key.unlink()
            code, said = held.banyan("approve", identity, "--yes")
            report.check(f"{name}: an agent signs", code == 0, said)
            report.equal(f"{name}: and the call goes out once", (client.call("tools/call", call).text, held.wiped()), ("wiped a", [{"disk": "a"}]))
        finally:
            os.kill(process, signal.SIGTERM)


def refusals(report, name):
    """Ways around a person, each with its own answer."""
    with Held(name, expires="8s") as held:
        key, stranger = held.enroll("anna"), held.key("mallory")
        client = Modern(held.gateway.url())
        client.call("tools/call", {"name": "disk__wipe", "arguments": {"disk": "a"}})
        waiting = held.pending()
        identity, challenge = waiting["id"], waiting["challenge"]
        edited = challenge.replace(waiting["arguments_sha256"], "0" * 64)
        for what, proof, wanted in (
            ("nothing", {}, "proof_malformed"),
            ("a word", "yes", "proof_malformed"),
            ("its own word", {"type": "jws", "token": "a.b.c"}, "proof_malformed"),
            ("a token of nobody", token({"iss": "me", "aud": "x", "exp": 9999999999, "digest": waiting["digest"]}), "unknown_issuer"),
            ("a key of its own", held.sign(challenge, stranger), "unknown_key"),
            ("another namespace", held.sign(challenge, key, "file"), "wrong_namespace"),
            ("other arguments", held.sign(edited, key), "bad_signature"),
            ("a passkey nobody has", PASSKEY, "unknown_key"),
        ):
            report.equal(f"{name}: {what}", held.confirm(identity, proof), wanted)
        proof = held.sign(challenge, key)
        report.equal(f"{name}: an id nobody gave", held.confirm("0" * 32, proof), "unknown_approval")
        answers = []
        racing = [threading.Thread(target=lambda: answers.append(held.confirm(identity, proof))) for _ in range(4)]
        [thread.start() for thread in racing]
        [thread.join() for thread in racing]
        report.equal(f"{name}: of four that race one counts", sorted(answers), ["approval_used"] * 3 + ["released"])
        told = client.call("tools/call", {"name": "disk__wipe", "arguments": {"disk": "b"}})
        report.check(f"{name}: another disk is another call", told.result.get("isError"), told.message)
        told = client.call("tools/call", {"name": "disk__wipe", "arguments": {"disk": "a"}})
        report.equal(f"{name}: the one that was approved", told.text, "wiped a")
        report.equal(f"{name}: replayed", held.confirm(identity, proof), "approval_used")
        other = held.pending()
        late = held.sign(other["challenge"], key)
        report.equal(f"{name}: agreed to another one", held.confirm(other["id"], proof), "bad_signature")
        time.sleep(max(0, other["expires"] - time.time()) + 1)
        report.equal(f"{name}: too late", held.confirm(other["id"], late), "approval_expired")
        told = client.call("tools/call", {"name": "disk__wipe", "arguments": {"disk": "b"}})
        report.equal(f"{name}: its caller hears that", told.error.get("data", {}).get("reason"), "approval_expired")
        told = client.call("tools/call", {"name": "disk__wipe", "arguments": {"disk": "c", "n": 12345678901234567890}})
        report.check(f"{name}: what can't be shown exactly", told.error.get("code") == -32602, told.message)
        held.banyan("operator", "enroll", "anna", "--key", f"{key}.pub", "--principal", "local")
        told = client.call("tools/call", {"name": "disk__wipe", "arguments": {"disk": "d"}})
        report.equal(f"{name}: nobody approves its own calls", told.error.get("data", {}).get("reason"), "no_approver")
        report.equal(f"{name}: one went out", held.wiped(), [{"disk": "a"}])


def two_people(report, name):
    """Two people have to agree, and two keys of one are one."""
    with Held(name, approvals=2) as held:
        client, call = Modern(held.gateway.url()), {"name": "disk__wipe", "arguments": {"disk": "a"}}
        anna = held.enroll("anna")
        report.equal(f"{name}: one is too few", client.call("tools/call", call).error["data"]["reason"], "no_approver")
        bert = held.enroll("bert", "ecdsa")
        client.call("tools/call", call)
        waiting = held.pending()
        report.equal(f"{name}: the first", held.confirm(waiting["id"], held.sign(waiting["challenge"], anna)), "pending")
        report.equal(f"{name}: the first again", held.confirm(waiting["id"], held.sign(waiting["challenge"], anna)), "second_person_needed")
        report.equal(f"{name}: the second", held.confirm(waiting["id"], held.sign(waiting["challenge"], bert)), "released")
        report.equal(f"{name}: it goes out", client.call("tools/call", call).text, "wiped a")


def killed(report, name):
    """`kill -9` loses nothing that waits and nothing that was agreed to, and sends nothing twice."""
    with Held(name) as held:
        call = {"name": "disk__wipe", "arguments": {"disk": "a"}}
        key = held.enroll("anna")
        Modern(held.gateway.url()).call("tools/call", call)
        before = held.pending()
        held.gateway.kill()
        held.gateway.start()
        waiting = held.pending()
        report.equal(f"{name}: it still waits", waiting["challenge"], before["challenge"])
        report.equal(f"{name}: and is agreed to", held.confirm(waiting["id"], held.sign(waiting["challenge"], key)), "released")
        held.gateway.kill()
        held.gateway.start()
        client = Modern(held.gateway.url())
        report.equal(f"{name}: it goes out", client.call("tools/call", call).text, "wiped a")
        held.gateway.kill()
        held.gateway.start()
        told = Modern(held.gateway.url()).call("tools/call", call)
        report.check(f"{name}: once", told.result.get("isError") and held.wiped() == [{"disk": "a"}], told.message)


def crashed(report, name):
    """`kill -9` around every change."""
    with Held(name) as held:
        crashes.kills(report, name, held)


def webhook(report, name):
    """Whoever is told can check who tells it; each transition comes once, without the arguments."""
    told = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            told.append((self.headers["banyan-timestamp"], self.headers["banyan-signature"], body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    more = f'[[approvals.webhook]]\nurl = "http://127.0.0.1:{server.server_port}/"\nsecret = "s3cret"\n'
    with Held(name, expires="4s", more=more) as held:
        held.enroll("anna")
        Modern(held.gateway.url()).call("tools/call", {"name": "disk__wipe", "arguments": {"disk": "canary-4711"}})
        end = time.monotonic() + 15
        while len(told) < 3 and time.monotonic() < end:
            time.sleep(0.1)
    server.shutdown()
    report.equal(f"{name}: each transition once", [json.loads(body)["event"] for _, _, body in told], ["requested", "expiring", "expired"])
    signed = [hmac.new(b"s3cret", at.encode() + b"." + body, "sha256").hexdigest() for at, _, body in told]
    report.equal(f"{name}: signed", [signature for _, signature, _ in told], [f"v1={one}" for one in signed])
    report.check(f"{name}: without the arguments", all(b"canary-4711" not in body for _, _, body in told))


# What a program is given goes into files, and it agrees to what waits, as a person would on the command line.
AGREEING = """
cat > "$HOME/$BANYAN_EVENT.part"
env | grep '^BANYAN_' | sort > "$HOME/$BANYAN_EVENT.env"
mv "$HOME/$BANYAN_EVENT.part" "$HOME/$BANYAN_EVENT.json"
[ "$BANYAN_EVENT" != requested ] || "{binary}" approve "$BANYAN_ID" --yes --key "$HOME/anna"
"""


def programs(report, name):
    """A real program is started with what waits, and agrees; others that fail or are not there hold up nobody."""
    commands = [("no-such-program-of-banyan", []), ("sh", ["-c", "exit 7"]), ("sh", ["-c", AGREEING.format(binary=binary())])]
    more = "".join(f"[[approvals.command]]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\n" for command, args in commands)
    with Held(name, more=more) as held:
        held.enroll("anna")
        params = {"name": "disk__wipe", "arguments": {"disk": "canary-4712"}, "_meta": {"progressToken": "mine"}}
        told = Modern(held.gateway.url()).call("tools/call", params)
        report.equal(f"{name}: a program agreed, and the call went out", (told.text, held.wiped()), ("wiped canary-4712", [{"disk": "canary-4712"}]))
        last = held.dir / "released.json"
        end = time.monotonic() + 60
        while not last.exists() and time.monotonic() < end:
            time.sleep(0.05)
        given = {event: json.loads((held.dir / f"{event}.json").read_text()) for event in ("requested", "released") if (held.dir / f"{event}.json").exists()}
        report.equal(f"{name}: each transition", [(event, one["event"], one["tool"]) for event, one in given.items()],
                     [("requested", "requested", "disk.wipe"), ("released", "released", "disk.wipe")])
        begun = {file.stem for file in held.dir.glob("*.json")} - {"servers"}
        report.equal(f"{name}: and of nothing else, such as that it goes out", begun, {"requested", "released"})
        variables = dict(line.split("=", 1) for line in (held.dir / "requested.env").read_text().splitlines())
        asked = given.get("requested", {})
        wanted = {"BANYAN_EVENT": "requested", "BANYAN_ID": asked.get("id"), "BANYAN_TOOL": "disk.wipe", "BANYAN_CALLER": asked.get("caller"),
                  "BANYAN_EXPIRES": str(asked.get("expires")), "BANYAN_URL": asked.get("url")}
        report.equal(f"{name}: the same in its environment", {key: variables.get(key) for key in wanted}, wanted)
        report.check(f"{name}: without the arguments", "canary-4712" not in json.dumps(given) + str(variables), given)
        decided = held.json("audit", "list", "--event", "approval_decided")["entries"]
        report.check(f"{name}: the record says who agreed", any("anna" in json.dumps(entry) for entry in decided), decided)


# As the documentation has it, with a file behind it that says that it ran.
MAILING = """
if [ "$BANYAN_EVENT" = expiring ]; then
  printf 'To: on-call@example.com\\nSubject: %s waits\\n\\n%s asks, until %s: %s\\n' "$BANYAN_TOOL" "$BANYAN_CALLER" "$BANYAN_EXPIRES" "$BANYAN_URL" |
    curl -sS --max-time 8 smtp://127.0.0.1:{port} --mail-from banyan@example.com --mail-rcpt on-call@example.com --crlf -T -
fi
touch "$HOME/told-$BANYAN_EVENT"
"""


class Letters:
    """What a mail server was brought."""

    def __init__(self):
        self.all = []
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(loop.create_server(lambda: SMTP(self, loop=loop), "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        threading.Thread(target=loop.run_forever, daemon=True).start()

    async def handle_DATA(self, _server, _session, envelope):
        self.all.append((envelope.mail_from, envelope.rcpt_tos, envelope.content.decode()))
        return "250 OK"


def mail(report, name):
    """Somebody else is written to shortly before a call expires of which nobody has said anything: once, not before, and not after."""
    letters = Letters()
    more = f'[[approvals.command]]\ncommand = "sh"\nargs = ["-c", {json.dumps(MAILING.format(port=letters.port))}]\n'
    with Held(name, expires="4s", more=more) as held:
        held.enroll("anna")
        Modern(held.gateway.url()).call("tools/call", {"name": "disk__wipe", "arguments": {"disk": "canary-4713"}})
        end = time.monotonic() + 60
        while not (held.dir / "told-expired").exists() and time.monotonic() < end:
            time.sleep(0.05)
        told = [event for event in ("requested", "expiring", "expired") if (held.dir / f"told-{event}").exists()]
        report.equal(f"{name}: each transition starts it", told, ["requested", "expiring", "expired"])
    sent = [(sender, receivers) for sender, receivers, _ in letters.all]
    report.equal(f"{name}: one letter, to whoever is on call", sent, [("banyan@example.com", ["on-call@example.com"])])
    text = letters.all[0][2] if letters.all else ""
    report.check(f"{name}: it says what waits and where", "Subject: disk.wipe waits" in text and "http" in text and "local asks" in text, text)
    report.check(f"{name}: without the arguments", "canary-4713" not in text, text)


def notified(report, name):
    """A real desktop shows what waits, as docs/approvals.md has it: each transition once, however often its caller comes back.

    Skipped, with the reason, where its programs are absent and there is no apt to install them with.
    """
    absent = desktop.missing()
    if absent and not shutil.which("apt-get"):
        print(f"{name}: skipped, {', '.join(absent)} not installed and no apt-get to do it", flush=True)
        return
    if not report.check(f"{name}: its programs are there", not absent, f"{absent} absent; run: apt-get install {desktop.PACKAGES}"):
        return
    with desktop.Desktop() as shown, Held(name, expires="6s", more=desktop.documented(), env=shown.reached()) as held:
        held.enroll("anna")
        client, call = Modern(held.gateway.url()), {"name": "disk__wipe", "arguments": {"disk": "canary-4714"}}
        asked = [client.call("tools/call", call).result.get("isError") for _ in range(3)]
        report.equal(f"{name}: it waits, each time", asked, [True] * 3)
        waiting = held.pending()
        notices = shown.until("disk.wipe: expired")
        report.equal(f"{name}: each transition is shown once", [summary for summary, _ in notices],
                     ["disk.wipe: requested", "disk.wipe: expiring", "disk.wipe: expired"])
        report.equal(f"{name}: who asks, and where to agree", {body for _, body in notices}, {f"local {waiting['url']}"})
        report.check(f"{name}: without the arguments", "canary-4714" not in str(notices), notices)


def grants(report, name):
    """Agreement given beforehand, for two calls of one kind."""
    with Held(name) as held:
        key, client = held.enroll("anna"), Modern(held.gateway.url())
        code, said = held.banyan("grants", "add", "disk.wipe", "--caller", "local", "--arg", "disk=tmp-*", "--uses", "2", "--key", str(key), "--yes")
        report.check(f"{name}: banyan grants add", code == 0, said)
        wipe = lambda disk: client.call("tools/call", {"name": "disk__wipe", "arguments": {"disk": disk}})  # noqa: E731
        report.equal(f"{name}: within it", [wipe("tmp-1").text, wipe("tmp-2").text], ["wiped tmp-1", "wiped tmp-2"])
        report.check(f"{name}: it is used up", wipe("tmp-3").result.get("isError"))
        report.check(f"{name}: beyond it", wipe("home").result.get("isError"))
        listed = held.json("grants", "list")["grants"][0]
        report.equal(f"{name}: listed", (listed["used"], listed["holds"]), (2, False))
        code, said = held.banyan("grants", "revoke", listed["id"])
        report.check(f"{name}: revoked", code == 0 and held.json("grants", "list")["grants"][0]["revoked"], said)
