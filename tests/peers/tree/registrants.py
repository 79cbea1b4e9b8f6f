"""The examples of servers that register themselves, with the official SDKs, at the real binary: killed, stopped, back again, and gone
(AX-20, AX-22, AX-23, AX-27, AX-60, AX-61).
"""
import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import install
from gateway import ROOT, Gateway, binary, end
from wire import Legacy, Modern

WITHIN = 20
IDS = {"python": "11111111-1111-4111-8111-111111111111", "typescript": "22222222-2222-4222-8222-222222222222"}


class Registrant:
    """One of the examples as a process, where its gate is, with the token that its gate knows."""

    def __init__(self, language, gate, segment, subserver_id=None):
        example = Path(ROOT, "examples")
        if language == "python":
            command = [install.venv_bin("modern"), str(example / "registrant.py")]
        else:
            # Node looks for packages beside the file that wants them.
            linked = Path(gate.home.write("registrant.ts", (example / "registrant.ts").read_text()))
            modules = linked.with_name("node_modules")
            if not modules.exists():
                modules.symlink_to(install.node_modules())
            command = [install.node(), "--experimental-strip-types", "--preserve-symlinks", str(linked)]
        env = {**os.environ, **gate.home.env, "BANYAN_TOKEN": gate.token or ""}
        with gate.space:
            self.process = subprocess.Popen([*command, gate.url(), segment, subserver_id or IDS[language]], stdout=subprocess.DEVNULL,
                                            stderr=open(f"{gate.home.log}.{segment}", "ab"), env=env)

    def send(self, number):
        """A signal."""
        self.process.send_signal(number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)


def run(report):
    """Both examples at one gate."""
    with ExitStack() as stack:
        gate = stack.enter_context(Gateway("tree registrants", {}, config="[registry]\nprincipals = ['local']\ngrace = '1m'\n"))
        for language in IDS:
            report.guard(f"tree/registrant {language}", lambda lang=language: life(report, gate, lang))


def life(report, gate, language):
    """One registrant from its first registration to its last."""
    say, tool, segment = f"tree/registrant {language}: ", f"{language}__uptime", language
    clients = [Modern(gate.url()), Legacy(gate.url())]
    with Registrant(language, gate, segment) as server:
        report.check(say + "it is in the tree", until(lambda: mount(gate, segment).get("state") == "ready"), gate.tail())
        for client in clients:
            reply = client.tool(tool, {})
            report.check(say + "a call", language in reply.text.lower(), reply.raw[:600])
        first = process_of(clients[0].tool(tool, {}))
        with Registrant(language, gate, segment, "33333333-3333-4333-8333-333333333333"):
            refused = until(lambda: explained(gate, segment))
            report.equal(say + "a second server is refused, and explained", (refused or [{}])[0].get("reason"), "namespace_conflict")
        server.send(signal.SIGSTOP)
        report.check(say + "stopped, it is degraded", until(lambda: mount(gate, segment).get("state") == "degraded"), mount(gate, segment))
        error = clients[1].tool(tool, {}).error
        report.equal(say + "and a call is refused", (error.get("code"), error.get("message")), (-32002, "tool_degraded"))
        report.check(say + "with when to retry", error.get("data", {}).get("retry_after_ms") == 1000, error)
        server.send(signal.SIGCONT)
        report.check(say + "it goes on, and is back", until(lambda: not clients[0].tool(tool, {}).error), mount(gate, segment))
        server.send(signal.SIGKILL)
        report.check(say + "killed, it is degraded", until(lambda: mount(gate, segment).get("state") == "degraded"), mount(gate, segment))
    with Registrant(language, gate, segment) as server:
        back = until(lambda: mount(gate, segment).get("state") == "ready" and not clients[0].tool(tool, {}).error)
        report.check(say + "started anew, it is back", back and process_of(clients[0].tool(tool, {})) != first, gate.tail())
        server.send(signal.SIGTERM)
        report.check(say + "ended, it is gone", until(lambda: not mount(gate, segment)), mount(gate, segment))
        report.check(say + "and so are its tools", tool not in clients[1].tools(), clients[1].tools())


def until(look):
    """What `look` finds, once it finds something; what it found last, when that takes too long."""
    end, found = time.monotonic() + WITHIN, look()
    while not found and time.monotonic() < end:
        time.sleep(0.1)
        found = look()
    return found


def mount(gate, name):
    """What the gate says of a mount; nothing where there is none."""
    code, body = gate.get("/-/status")
    mounts = json.loads(body)["mounts"] if code == 200 else []
    return next((m for m in mounts if m["name"] == name), {})


def process_of(reply):
    """The process id that `uptime` tells."""
    return reply.text.rsplit(" ", 1)[-1]


def explained(gate, segment):
    """What `banyan explain` says of a segment."""
    ran = subprocess.run([binary(), "explain", segment, "--json"], env=gate.home.env, cwd=gate.home.dir, capture_output=True, timeout=20)
    return json.loads(ran.stdout)["refused"] if ran.returncode == 0 else []
