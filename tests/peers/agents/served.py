"""The gate as an agent: the official A2A SDKs for Python and JavaScript call a tool behind it, over both bindings, and a person agrees to a call in between."""
import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

from gateway import Gateway, free_port
from install import node, node_modules, venv_bin

HERE = Path(__file__).parent
WIPER = str(HERE.parent / "approvals" / "wiper.py")
TOKENS = {"alice": "alice-" + "a" * 26, "bob": "bob-" + "b" * 28}
CARD = "/.well-known/agent-card.json"


def run(report):
    """One gate whose tool goes out at once, one where a person agrees first, and one that is no agent."""
    report.guard("agents/served", lambda: served(report))
    report.guard("agents/approved", lambda: approved(report))
    report.guard("agents/shut", lambda: shut(report))


def configuration(port, log, mode, is_agent=True):
    text = f'[gate]\nmode = "{mode}"\n'
    text += f'[agent]\nurl = "http://127.0.0.1:{port}"\nname = "Gate of tests"\n' if is_agent else ""
    return text + tokens() + f'[mount.disk]\ncommand = "{sys.executable}"\nargs = ["{WIPER}", "{log}"]\n'


def tokens():
    """The sections of the tokens."""
    return "".join(f'[[token]]\nname = "{name}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n' for name, token in TOKENS.items())


def gate(name, mode, is_agent=True):
    """A gate, and the file that shows which calls went out."""
    port, log = free_port(), f"/tmp/banyan-served-{name}-{os.getpid()}"
    Path(log).write_text("")
    return Gateway(f"agents-{name}", {}, config=configuration(port, log, mode, is_agent), port=port), log


def asker(gateway, binding):
    """Asks with the official SDK."""
    def ask(operation, *arguments, who="alice"):
        command = [venv_bin("agents"), str(HERE / "client.py"), f"http://127.0.0.1:{gateway.port}", binding, operation, *arguments]
        command += ["--token", TOKENS[who]] if who else []
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return json.loads(done.stdout)
    return ask


def script_asker(gateway, binding):
    """Asks with the official SDK for JavaScript."""
    def ask(operation, *arguments):
        command = [node(), str(HERE / "client.mjs"), node_modules("@a2a-js", "sdk"), f"http://127.0.0.1:{gateway.port}", binding, operation, *arguments]
        done = subprocess.run([*command, "--token", TOKENS["alice"]], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return json.loads(done.stdout)
    return ask


def http(gateway, path, headers, body=None):
    """A plain request: status, headers and JSON."""
    request = urllib.request.Request(f"http://127.0.0.1:{gateway.port}{path}", data=body and json.dumps(body).encode(), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        raw = error.read()
        return error.code, error.headers, json.loads(raw) if raw.startswith(b"{") else None


def served(report):
    gateway, log = gate("served", "off")
    with gateway:
        card(report, gateway)
        for binding in ("JSONRPC", "HTTP+JSON"):
            called(report, f"agents/served over {binding}", asker(gateway, binding))
            scripted(report, f"agents/served over {binding} by JavaScript", script_asker(gateway, binding))
        report.equal("agents/served: each call went out once", len(Path(log).read_text().splitlines()), 8)
        call = {"jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": {"id": "x"}}
        own = {"Authorization": f"Bearer {TOKENS['alice']}", "Content-Type": "application/json"}
        for name, more in {"no version": {}, "version 0.3": {"A2A-Version": "0.3"}}.items():
            told = http(gateway, "/a2a", {**own, **more}, call)[2]
            report.equal(f"agents/served: {name} is refused as such", (told["id"], told["error"]["code"]), (7, -32009))
        report.equal("agents/served: nobody calls without a credential", http(gateway, "/a2a", {"A2A-Version": "1.0"}, call)[0], 401)
        foreign = {**own, "A2A-Version": "1.0", "Origin": "https://evil.example"}
        report.equal("agents/served: nor from a foreign page", http(gateway, "/a2a", foreign, call)[0], 403)


def card(report, gateway):
    """The card shows tools to callers alone, and is told apart by its tag."""
    ask = asker(gateway, "JSONRPC")
    report.equal("agents/served: the card lists the caller's tools", [skill["id"] for skill in ask("card")["skills"]], ["disk__wipe"])
    report.equal("agents/served: a card without a credential names no tool", [skill["id"] for skill in ask("card", who=None)["skills"]], ["hidden"])
    own = {"Authorization": f"Bearer {TOKENS['alice']}"}
    status, headers, _ = http(gateway, CARD, own)
    report.equal("agents/served: a card of a caller is kept by no other", (status, headers["Cache-Control"], headers["Vary"]), (200, "private, no-cache", "authorization"))
    report.equal("agents/served: a known card is not sent again", http(gateway, CARD, {**own, "If-None-Match": headers["ETag"]})[0], 304)
    report.equal("agents/served: a wrong credential shows no card", http(gateway, CARD, {"Authorization": "Bearer wrong"})[0], 401)


def called(report, name, ask):
    """A call, its task afterwards, and what is refused."""
    task = ask("send", "--skill", "disk__wipe", "--arguments", '{"disk": "sda"}')["task"]
    report.equal(f"{name}: the task is complete", task["status"]["state"], "TASK_STATE_COMPLETED")
    report.equal(f"{name}: the tool's words are its artifact", task["artifacts"][0]["parts"], [{"text": "wiped sda"}])
    report.equal(f"{name}: the task is found again", ask("get", "--task", task["id"]), task)
    report.equal(f"{name}: but not by another caller", ask("get", "--task", task["id"], who="bob")["refused"], "TaskNotFoundError")
    report.equal(f"{name}: an ended task can't be cancelled", ask("cancel", "--task", task["id"])["refused"], "TaskNotCancelableError")
    told = ask("send", "--text", "wipe sda")
    report.check(f"{name}: who names no skill reads how to", "io.banyan/skill" in told.get("message", ""), told)
    unknown = ask("send", "--skill", "disk__no")["task"]
    report.equal(f"{name}: an unknown skill is rejected", unknown["status"]["state"], "TASK_STATE_REJECTED")
    listed(report, name, ask, task, unknown)
    streamed(report, name, ask, task)


def scripted(report, name, ask):
    """The same with another SDK, which must not differ: a call, its task afterwards, a stream, and what is refused."""
    task = ask("send", "--skill", "disk__wipe", "--arguments", '{"disk": "sda"}')["task"]
    report.equal(f"{name}: the task is complete", (task["status"]["state"], task["artifacts"][0]["parts"]), ("TASK_STATE_COMPLETED", [{"text": "wiped sda"}]))
    report.equal(f"{name}: the task is found again", ask("get", "--task", task["id"]), task)
    report.equal(f"{name}: an ended task can't be cancelled", ask("cancel", "--task", task["id"]).get("refused"), "TaskNotCancelableError")
    streamed(report, name, ask, task)


def streamed(report, name, ask, ended):
    """A call by a stream: the task, its artifact and its end."""
    events = ask("stream", "--skill", "disk__wipe", "--arguments", '{"disk": "sdz"}')
    report.equal(f"{name}: a stream begins with the task", [[*event] for event in events[:1]], [["task"]])
    # A call may have ended before its stream looks: then the task says all.
    kinds = [[*event][0] for event in events[1:]]
    report.check(f"{name}: the artifact comes before the end", kinds in ([], ["artifactUpdate", "statusUpdate"]), events)
    last = events[-1].get("statusUpdate", events[-1].get("task"))
    report.equal(f"{name}: a stream ends with the task", last["status"]["state"], "TASK_STATE_COMPLETED")
    refused = ask("subscribe", "--task", ended["id"])
    report.equal(f"{name}: an ended task has no stream", isinstance(refused, dict) and refused.get("refused"), "UnsupportedOperationError")


def listed(report, name, ask, task, unknown):
    """The tasks of a caller, newest first, by filter and by page."""
    def ids(page):
        return [one["id"] for one in page.get("tasks", [])]
    first = ask("list", "--filter", '{"pageSize": 1}')
    report.equal(f"{name}: the last task is listed first", ids(first), [unknown["id"]])
    second = ask("list", "--filter", json.dumps({"pageSize": 1, "pageToken": first["nextPageToken"]}))
    report.equal(f"{name}: the next page goes on there", (ids(second), second["totalSize"]), ([task["id"]], first["totalSize"]))
    report.equal(f"{name}: a list has no artifacts", [one for one in second["tasks"] if "artifacts" in one], [])
    filters = {"contextId": task["contextId"], "status": "TASK_STATE_COMPLETED", "includeArtifacts": True,
               "statusTimestampAfter": task["status"]["timestamp"]}
    report.equal(f"{name}: unless they are asked for, by filter", ask("list", "--filter", json.dumps(filters))["tasks"], [task])
    report.equal(f"{name}: another caller's list has none of them", ids(ask("list", who="bob")), [])
    refused = ask("list", "--filter", '{"pageToken": "no such page"}')
    report.equal(f"{name}: a page that nobody gave is refused", refused.get("refused"), "InvalidParamsError")


def approved(report):
    gateway, log = gate("approved", "irreversible")
    with gateway:
        config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
        key = os.path.join(gateway.home.dir, "anna")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=30)
        gateway.told("operator", "enroll", "anna", "--key", f"{key}.pub", *config)
        ask, wiped = asker(gateway, "JSONRPC"), lambda: len(Path(log).read_text().splitlines())
        waits = "TASK_STATE_AUTH_REQUIRED"

        def standing():
            return json.loads(gateway.told("approvals", "--json", *config))["approvals"]

        def pending():
            [one] = [one for one in standing() if one["standing"] == "pending"]
            return one

        task = ask("send", "--skill", "disk__wipe", "--arguments", '{"disk": "sdb"}')["task"]
        report.equal("agents/approved: a call that waits is a task that waits", (task["status"]["state"], wiped()), (waits, 0))
        gateway.told("approve", pending()["id"], "--key", key, "--yes", *config)
        report.equal("agents/approved: and completes by itself once a person agreed", (left(ask, task["id"], waits), wiped()), ("TASK_STATE_COMPLETED", 1))
        again = ask("send", "--task", task["id"], "--text", "go on")
        report.equal("agents/approved: the tool ran once", ("refused" in again, wiped()), (True, 1))
        other = ask("send", "--skill", "disk__wipe", "--arguments", '{"disk": "sdc"}')["task"]
        held = ask("send", "--task", other["id"], "--text", "go on")["task"]
        report.equal("agents/approved: a message about it hurries nobody", (held["status"]["state"], wiped()), (waits, 1))
        stopped = ask("cancel", "--task", other["id"])
        report.equal("agents/approved: a task that waits can be cancelled", (stopped["status"]["state"], wiped()), ("TASK_STATE_CANCELED", 1))
        report.equal("agents/approved: and people are asked no more", [one for one in standing() if one["standing"] == "pending"], [])
        denied = ask("send", "--skill", "disk__wipe", "--arguments", '{"disk": "sde"}')["task"]
        gateway.told("deny", pending()["id"], "--reason", "not this one", *config)
        report.equal("agents/approved: a denied task is rejected", (left(ask, denied["id"], waits), wiped()), ("TASK_STATE_REJECTED", 1))
        revoked(report, gateway, ask, pending, standing)
        followed(report, gateway, ask, pending, key, config)
        early = ask("send", "--skill", "disk__wipe", "--arguments", '{"disk": "sdd"}', "--at-once")["task"]
        report.equal("agents/approved: who does not wait looks at the task", left(ask, early["id"], "TASK_STATE_WORKING"), waits)
        crowded(report, gateway, ask, early["id"])


def crowded(report, gateway, ask, task):
    """A call whose stream finds no place does not begin: its client would send it again."""
    open_streams = [HTTPConnection("127.0.0.1", gateway.port, timeout=30) for _ in range(64)]
    own = {"Authorization": f"Bearer {TOKENS['alice']}", "A2A-Version": "1.0"}
    try:
        for stream in open_streams:
            stream.request("GET", f"/a2a/tasks/{task}:subscribe", headers=own)
        report.equal("agents/crowded: a caller has 64 streams", {stream.getresponse().status for stream in open_streams}, {200})
        before = ask("list")["totalSize"]
        refused = ask("stream", "--skill", "disk__wipe", "--arguments", '{"disk": "sdh"}')
        report.check("agents/crowded: one more is refused with its reason", isinstance(refused, dict) and "Too many streams" in json.dumps(refused), refused)
        report.equal("agents/crowded: and its call has not begun", ask("list")["totalSize"], before)
    finally:
        for stream in open_streams:
            stream.close()


def followed(report, gateway, ask, pending, key, config):
    """A stream ends where its call waits for people; a subscriber over the other binding then hears of the end."""
    events = ask("stream", "--skill", "disk__wipe", "--arguments", '{"disk": "sdg"}')
    task, last = events[0]["task"]["id"], events[-1].get("statusUpdate", events[-1].get("task"))
    report.equal("agents/approved: a stream ends where people are asked", last["status"]["state"], "TASK_STATE_AUTH_REQUIRED")
    with ThreadPoolExecutor(2) as pool:
        heard = [pool.submit(way, "subscribe", "--task", task) for way in (ask, asker(gateway, "HTTP+JSON"))]
        time.sleep(4)
        gateway.told("approve", pending()["id"], "--key", key, "--yes", *config)
        for way, heard in zip(("JSONRPC", "HTTP+JSON"), heard, strict=True):
            events = heard.result()
            kinds = [[*event][0] for event in events]
            report.check(f"agents/approved: a subscriber over {way} hears of the end", kinds[0] == "task" and kinds[-2:] == ["artifactUpdate", "statusUpdate"]
                         and events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED", events)


def revoked(report, gateway, ask, pending, standing):
    """A task ends with the token of its client: otherwise it would go on by itself once a person agrees."""
    waits, file = "TASK_STATE_AUTH_REQUIRED", Path(gateway.home.dir, "banyan.toml")
    theirs = ask("send", "--skill", "disk__wipe", "--arguments", '{"disk": "sdf"}', who="bob")["task"]
    asked, text = pending()["id"], file.read_text()
    stream = HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    stream.request("GET", f"/a2a/tasks/{theirs['id']}:subscribe", headers={"Authorization": f"Bearer {TOKENS['bob']}", "A2A-Version": "1.0"})
    heard = stream.getresponse()
    token = text[text.index('[[token]]\nname = "bob"'):text.index("[mount.disk]")]
    file.write_text(text.replace(token, ""))
    gateway.told("reload", "--config", str(file))
    until = time.monotonic() + 10
    while [one for one in standing() if one["standing"] == "pending"] and time.monotonic() < until:
        time.sleep(0.1)
    report.check("agents/approved: nobody is asked for a client whose token is gone", asked not in [one["id"] for one in standing() if one["standing"] == "pending"], standing())
    report.check("agents/approved: its stream ends", heard.status == 200 and b"data:" in heard.read(), heard.status)
    file.write_text(text)
    gateway.told("reload", "--config", str(file))
    report.equal("agents/approved: and its task is nobody's from then on", (theirs["status"]["state"], ask("get", "--task", theirs["id"], who="bob").get("refused")), (waits, "TaskNotFoundError"))


def left(ask, task, state, who="alice"):
    """The state of a task once it is no longer in `state`."""
    until = time.monotonic() + 30
    while (now := ask("get", "--task", task, who=who)["status"]["state"]) == state and time.monotonic() < until:
        time.sleep(0.2)
    return now


def shut(report):
    gateway, _ = gate("shut", "off", is_agent=False)
    with gateway:
        report.equal("agents/shut: a gate without [agent] is none", http(gateway, CARD, {"Authorization": f"Bearer {TOKENS['alice']}"})[0], 404)
