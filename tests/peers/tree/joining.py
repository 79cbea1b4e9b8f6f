"""A tree of two gates by two commands: `banyan ca init` here, and there the command that it prints (AX-13, AX-42).

The commands are run as they are printed. What a token is good for is tried with gates that come too late.
"""
import json
import re
import shlex
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from conformance.server_scenarios import fixture
from gateway import STARTED_WITHIN, Home, binary, end, free_port
from tree.links import mount, until

TOOL = "leaf__fx__fx_echo"
# The ledger is a file that the gate watches; without a watch it looks every other second.
REVOKED_WITHIN = 5
OPEN = '[registry]\nproof = "never"\n'


class Member:
    """A gate whose configuration the commands write: a home, `banyan up` in it, and other commands beside."""

    def __init__(self, name, config):
        self.home = Home(name, {})
        self.home.write("banyan.toml", config)
        self.process = None

    def banyan(self, *arguments):
        """Runs a command in this home."""
        return subprocess.run([binary(), *arguments], env=self.home.env, cwd=self.home.dir, capture_output=True, text=True, timeout=60, check=False)

    def up(self):
        """Starts the gate, and waits until it is there."""
        self._log = open(self.home.log, "ab")
        self.process = subprocess.Popen([binary(), "up"], env=self.home.env, cwd=self.home.dir, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        end = time.monotonic() + STARTED_WITHIN
        while not self.said("status"):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"banyan is not there:\n{self.home.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def said(self, *arguments):
        """What a command says as JSON; nothing where it fails."""
        done = self.banyan(*arguments, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def call(self, text):
        """What the tool at the bottom answers."""
        return self.banyan("call", TOOL, json.dumps({"text": text})).stdout.strip()

    def config(self):
        """The configuration as it is now."""
        return Path(self.home.dir, "banyan.toml").read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            end(self.process, 15)
            self._log.close()
        self.home.remove()


def run(report):
    """Two gates, and those that come too late."""
    with ExitStack() as stack:
        root = stack.enter_context(Member("joining root", f'listen = "127.0.0.1:{free_port()}"\n{OPEN}'))
        made = root.banyan("ca", "init", "--name", "localhost")
        command = shlex.split(made.stdout.strip())
        report.check("joining: what is printed is a command", command[:2] == ["banyan", "join"] and "--token" in command, made.stdout + made.stderr)
        root.up()
        leaf = stack.enter_context(Member("joining leaf", f'listen = "127.0.0.1:{free_port()}"\n{mount("fx", fixture("stdio", "legacy", stack))}'))
        joined = leaf.banyan(*command[1:], "--segment", "leaf")
        report.equal("joining: the command that was printed joins", (joined.returncode, joined.stderr.count("error")), (0, 0))
        secret = command[command.index("--token") + 1]
        report.check("joining: the token stays in no file", secret not in leaf.config() and "[[parent]]" in leaf.config(), leaf.config())
        leaf.up()
        until(report, "joining: a call goes through both", lambda: root.call("two commands") == "two commands")
        tree(report, root, leaf)
        late(report, stack, root, command)
        revoked(report, root, leaf)


def tree(report, root, leaf):
    """How both show it."""
    mounts = {one["name"]: one for one in root.said("tree").get("mounts", [])}
    about = mounts.get("leaf", {})
    report.equal("joining: the root shows a link", (about.get("transport"), about.get("gate"), about.get("state")), ("link", True, "ready"))
    report.check("joining: and so does the text", re.search(r"leaf {2}ready, \d+ tools, link", root.banyan("tree").stdout), root.banyan("tree").stdout)
    listed = root.said("ca", "list").get("certificates", [])
    report.equal("joining: it is known by its certificate", about.get("registered", {}).get("principal"), f"dns:{listed[0]['name']}" if listed else None)
    report.equal("joining: the leaf says that it is registered", parent(leaf).get("state"), "registered")
    steps = root.said("trace", TOOL).get("hops", [])
    report.equal("joining: the steps of a trace", [step["transport"] for step in steps], ["link", "stdio"])


def late(report, stack, root, command):
    """A token is good once, and not after its time; nothing is left behind where it was not."""
    for name, token in (("second", None), ("expired", "1s")):
        given = list(command)
        if token:
            given = shlex.split(root.banyan("ca", "token", "--ttl", token).stdout.strip())
            time.sleep(1.2)
        other = stack.enter_context(Member(f"joining {name}", f'listen = "127.0.0.1:{free_port()}"\n'))
        refused = other.banyan(*given[1:], "--segment", name)
        report.check(f"joining: a token that is {name} lets nobody in", refused.returncode == 1 and "banyan ca token" in refused.stderr, refused.stderr)
        kept = [str(path) for path in Path(other.home.dir).rglob("*") if path.suffix in (".key", ".pem")]
        report.check(f"joining: and leaves nothing behind ({name})", "[[parent]]" not in other.config() and not kept, other.config() + str(kept))
    report.equal("joining: one certificate was made", len(root.said("ca", "list").get("certificates", [])), 1)


def revoked(report, root, leaf):
    """A certificate that is taken back ends the link that it opened, and opens none any more."""
    name = root.said("ca", "list")["certificates"][0]["name"]
    said = root.banyan("ca", "revoke", name)
    report.equal("joining: the certificate is taken back", (said.returncode, said.stdout.strip()), (0, "took back 1 certificate"))
    until(report, "joining: its link ends with it", lambda: root.call("revoked") != "revoked", within=REVOKED_WITHIN)
    until(report, "joining: the leaf says that it is not registered", lambda: parent(leaf).get("state") != "registered")
    time.sleep(2)
    report.check("joining: and it does not come back", root.call("still revoked") != "still revoked" and parent(leaf).get("state") != "registered", parent(leaf))


def parent(member):
    """How a gate stands with its first parent."""
    return member.said("status").get("joined", {}).get("parents", [{}])[0]
