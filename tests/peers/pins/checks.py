"""Definitions made to mislead a model, through the real binary, with Cisco's offline scanner as a floor: what that finds is held and told of, and so
is what it can't see, such as a tool that shadows another server's.
"""
import json
import subprocess
import sys
import time
from pathlib import Path

from gateway import ROOT, Gateway, binary
from install import venv_bin
from wire import Modern

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 30
DEFINITIONS = ROOT / "crates" / "policy" / "tests" / "it" / "poisoned" / "definitions.json"
HERE = Path(__file__).parent
CONFIG = """
{more}
[mount.bad]
command = "{python}"
args = {args}
[mount.mail]
command = "{python}"
args = {mail}
"""
# The server whose tools some of the definitions speak of, or look like.
MAIL = {"poisoned": [], "plain": [{"tool": "send_email", "text": "Sends."}, {"tool": "read_file", "text": "Reads."}]}


def run(report):
    """All cases."""
    cases = {"the floor": floor, "a server that turns": turns, "a server that nobody looked at": unseen}
    for name, case in cases.items():
        report.guard(f"pins/{name}", lambda n=name, c=case: c(report, f"pins/{n}"))


def corpus():
    """The definitions, and what the scanner finds in each by now."""
    command = [venv_bin("scanner"), str(HERE / "floor.py"), str(DEFINITIONS)]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
    return json.loads(DEFINITIONS.read_text()), told


def floor(report, name):
    """What is kept beside each definition is what the scanner finds."""
    definitions, told = corpus()
    kept = {one["tool"]: one["scanner"] for one in definitions["poisoned"] + definitions["plain"]}
    report.equal(f"{name}: of every definition", told["found"], kept)
    flagged = [one["tool"] for one in definitions["poisoned"] if told["found"][one["tool"]]]
    report.check(f"{name}: it finds most, and not all", len(flagged) > 80 and len(definitions["poisoned"]) - len(flagged) >= 10, told["version"])


class Bad:
    """A gate in front of the server that turns, and of one that it shadows."""

    def __init__(self, name, more="", *how):
        args = [str(HERE / "turncoat.py"), str(DEFINITIONS), *how]
        prepare = lambda gateway: gateway.home.write("mail.json", json.dumps(MAIL))  # noqa: E731
        mail = [str(HERE / "turncoat.py"), "mail.json"]
        config = CONFIG.format(more=more, python=sys.executable, args=json.dumps(args), mail=json.dumps(mail))
        self.gateway = Gateway(name, {}, config=config, prepare=prepare)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gateway.stop()

    def client(self):
        """One of its clients."""
        return Modern(self.gateway.url())

    def pins(self):
        """What waits for somebody to look, by name."""
        command = [binary(), "--json", "pins"]
        home = self.gateway.home
        done = subprocess.run(command, env=home.env, cwd=home.dir, capture_output=True, text=True, timeout=60, check=True)
        return {pin["tool"]: pin for pin in json.loads(done.stdout)["pins"] if pin["mount"] == "bad"}


def shown(client):
    """The descriptions of all tools that a client is shown."""
    tools, cursor = [], {}
    while cursor is not None:
        result = client.call("tools/list", cursor).result
        tools += result["tools"]
        cursor = {"cursor": result["nextCursor"]} if "nextCursor" in result else None
    return {tool["name"]: tool["description"] for tool in tools}


def turns(report, name):
    """What was taken as harmless says something else: none of it is shown or called, and what is odd about it is told."""
    definitions, told = corpus()
    poisoned = {one["tool"]: one for one in definitions["poisoned"]}
    with Bad(name) as bad:
        client = bad.client()
        before = shown(client)
        report.equal(f"{name}: all is shown that was seen first", len([n for n in before if n.startswith("bad__")]),
                     len(poisoned) + len(definitions["plain"]) + 1)
        report.equal(f"{name}: it turns", client.call("tools/call", {"name": "bad__turn", "arguments": {}}).text, "did turn")
        end = time.monotonic() + 30
        while len(pins := bad.pins()) < len(poisoned) and time.monotonic() < end:
            time.sleep(0.1)
        report.equal(f"{name}: every one of them waits", set(pins), set(poisoned))
        report.equal(f"{name}: as one that changed", {(pin["standing"], pin["why"]) for pin in pins.values()}, {("held", "changed")})
        after = shown(client)
        texts = {one["text"] for one in poisoned.values()}
        report.equal(f"{name}: none of it is shown", [n for n, text in after.items() if text in texts or text.startswith("About ")], [])
        report.equal(f"{name}: all else is", len(after), len(before) - len(poisoned))
        answers = [client.call("tools/call", {"name": f"bad__{tool}", "arguments": {}}) for tool in poisoned if tool.isascii()]
        reasons = {answer.error["data"]["reason"] if answer.error else answer.result["content"][0]["text"] for answer in answers}
        report.equal(f"{name}: none of it is called", reasons, {"definition_held"})
        flagged = [tool for tool in poisoned if told["found"][tool]]
        report.equal(f"{name}: what the scanner finds is odd here too", [tool for tool in flagged if not pins[tool]["concerns"]], [])
        missed = [tool for tool in poisoned if not told["found"][tool]]
        report.equal(f"{name}: and so is what it misses", [tool for tool in missed if not pins[tool]["concerns"]], [])


def unseen(report, name):
    """Of a server that was never anything else nothing is shown where that is wanted."""
    definitions, _ = corpus()
    with Bad(name, '[pins]\nmode = "hold"\nmounts = { mail = "pin" }\n', "turned") as bad:
        client = bad.client()
        report.equal(f"{name}: another's tools go on", sorted(shown(client)), ["mail__read_file", "mail__send_email", "mail__turn"])
        pins = bad.pins()
        report.equal(f"{name}: all of it waits", len(pins), len(definitions["poisoned"]) + len(definitions["plain"]) + 1)
        answer = client.call("tools/call", {"name": "bad__turn", "arguments": {}})
        report.equal(f"{name}: none of it is called", answer.error and answer.error["data"]["reason"], "definition_held")
