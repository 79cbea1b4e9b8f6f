"""The end of the gate as an agent: its capability document, the pairs that it translates, and each transition, over kills and restarts."""
import json
import os
import time
import uuid
from pathlib import Path

from agents.served import TOKENS, gate, http

DOCUMENT, PAIRS = "/.well-known/aepb", "/.well-known/aepb/gateway"
SUCCESSOR = "https://next.example/.well-known/aepb"
OWN = {"Authorization": f"Bearer {TOKENS['alice']}", "Content-Type": "application/json", "A2A-Version": "1.0"}


def run(report):
    """One gate that lives and ends, and one that is no agent."""
    report.guard("agents/lifecycle", lambda: lifecycle(report))
    report.guard("agents/lifecycle of no agent", lambda: nobody(report))


def life(gateway, *arguments):
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    return gateway.asked("agent", *arguments, *config)


def call(disk="sda"):
    """A message of its own that calls the tool."""
    return {"message": {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"data": {"disk": disk}}], "metadata": {"io.banyan/skill": "disk__wipe"}}}


def begin(gateway, disk):
    """A task that is not waited for: its id."""
    return http(gateway, "/a2a/message:send", OWN, {**call(disk), "configuration": {"returnImmediately": True}})[2]["task"]["id"]


def state(gateway, task):
    return http(gateway, f"/a2a/tasks/{task}", OWN)[2]["status"]["state"]


def send(gateway, binding):
    """A new task: status, headers and answer."""
    if binding == "HTTP+JSON":
        return http(gateway, "/a2a/message:send", OWN, call())
    return http(gateway, "/a2a", OWN, {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": call()})


def lifecycle(report):
    gateway, log = gate("life", "off")
    with gateway:
        active(report, gateway)
        deprecated(report, gateway)
        draining(report, gateway, log)
        retired(report, gateway)
        recorded(report, gateway)


def active(report, gateway):
    status, headers, read = http(gateway, DOCUMENT, {})
    report.equal("AE-01: everybody reads the document", (status, headers["Cache-Control"]), (200, "public, max-age=3600"))
    report.equal("AE-01: it names the doors", [one["id"] for one in read["protocols"]], ["a2a-v1", "mcp-v1", "mcp-v1"])
    report.equal("AE-01: and an active agent", (read["lifecycle"]["status"], read["lifecycle"]["successor"]), ("active", None))
    report.equal("AE-01: a known document is not sent again", http(gateway, DOCUMENT, {"If-None-Match": headers["ETag"]})[0], 304)
    report.equal("AE-31: an active agent says nothing of an end", [headers[name] for name in ("Deprecation", "Sunset", "Link")], [None] * 3)
    pairs = [(one["from"], one["to"]) for one in http(gateway, PAIRS, {})[2]["translation_pairs"]]
    report.equal("AE-10: only what is translated is listed", pairs, [("a2a-v1", "mcp-v1"), ("ainp-v1", "mcp-v1"), ("uacp-v1", "mcp-v1")])
    for query, code in {"from=a2a-v1&to=mcp-v1": 200, "from=mcp-v1&to=a2a-v1": 404, "from=a2a-v1&to=slim-v1": 404, "from=a2a-v1": 400}.items():
        report.equal(f"AE-10: {query} is {code}", http(gateway, f"{PAIRS}?{query}", {})[0], code)
    forged = http(gateway, "/-/agent", OWN, {"to": "draining"})
    report.check("AE-30: a caller's credential ends no agent", forged[0] in (401, 403), forged)
    report.equal("AE-30: nothing has changed", http(gateway, DOCUMENT, {})[2]["lifecycle"]["status"], "active")
    refused = life(gateway, "retire")
    report.check("AE-30: an active agent does not retire at once", refused.returncode == 1 and "may become" in refused.stderr, refused.stderr)


def deprecated(report, gateway):
    done = life(gateway, "deprecate", "--successor", SUCCESSOR, "--hours", "48", "--reason", "replaced", "--json")
    report.equal("AE-30: the owner deprecates", (done.returncode, json.loads(done.stdout or "{}").get("lifecycle", {}).get("status")), (0, "deprecated"))
    for name, (status, headers, _) in {"document": http(gateway, DOCUMENT, {}), "task": send(gateway, "HTTP+JSON"), "pairs": http(gateway, PAIRS, {})}.items():
        report.equal(f"AE-31: work goes on: {name}", status, 200)
        report.check(f"AE-31: Deprecation is a structured date: {name}", (headers["Deprecation"] or "").startswith("@1"), headers["Deprecation"])
        report.check(f"AE-31: Sunset is a date of HTTP: {name}", (headers["Sunset"] or "").endswith("GMT"), headers["Sunset"])
        report.equal(f"AE-31: Link leads to the successor: {name}", headers["Link"], f'<{SUCCESSOR}>; rel="successor-version"')
    restart(gateway)
    read = http(gateway, DOCUMENT, {})[2]["lifecycle"]
    report.equal("AE-30: the state survives kill -9", (read["status"], read["successor"]), ("deprecated", SUCCESSOR))
    bad = life(gateway, "drain", "--successor", "http://next.example/")
    report.check("AE-31: a successor without TLS is refused", bad.returncode == 1 and "https" in bad.stderr, bad.stderr)


def draining(report, gateway, log):
    lines = lambda: len(Path(log).read_text().splitlines())
    before, again = lines(), call("twice")
    tasks = {http(gateway, "/a2a/message:send", OWN, again)[2]["task"]["id"] for _ in range(3)}
    report.equal("agents: a message sent again gives its task back, and its tool ran once", (len(tasks), lines() - before), (1, 1))
    before, held = lines(), begin(gateway, "held")
    wait(lambda: lines() > before)
    before = lines()
    report.equal("AE-30: the owner drains", life(gateway, "drain", "--reason", "now").returncode, 0)
    for binding in ("HTTP+JSON", "JSONRPC"):
        status, headers, answer = send(gateway, binding)
        report.equal(f"AE-31: new work is refused over {binding}", (status, headers["Location"]), (503, SUCCESSOR))
        report.check(f"AE-31: with a time to come back over {binding}", int(headers["Retry-After"]) >= 60, headers["Retry-After"])
        report.check(f"AE-31: and the way to the successor over {binding}", SUCCESSOR in json.dumps(answer), answer)
    report.equal("AE-31: refused work never goes out", lines(), before)
    busy = life(gateway, "retire")
    report.check("AE-31: no agent retires from its work", busy.returncode == 1 and "in progress" in busy.stderr, busy.stderr)
    report.equal("AE-31: work in progress goes on in a drain", state(gateway, held), "TASK_STATE_WORKING")
    Path(f"{log}.go").write_text("")
    report.check("AE-31: and ends", wait(lambda: state(gateway, held) == "TASK_STATE_COMPLETED"), state(gateway, held))
    restart(gateway)
    report.equal("AE-31: a drain survives kill -9", send(gateway, "HTTP+JSON")[0], 503)
    report.equal("AE-10: a drained gate offers no translation", http(gateway, f"{PAIRS}?from=a2a-v1&to=mcp-v1", {})[0], 404)


def retired(report, gateway):
    report.equal("AE-30: the owner retires", life(gateway, "retire", "--reason", "done").returncode, 0)
    for _ in range(2):
        status, headers, _ = http(gateway, DOCUMENT, {})
        report.equal("AE-31: the document is gone, with a link", (status, headers["Link"]), (410, f'<{SUCCESSOR}>; rel="successor-version"'))
        restart(gateway)
    again = life(gateway, "activate")
    report.check("AE-30: retirement is final", again.returncode == 1 and "final" in again.stderr, again.stderr)


def recorded(report, gateway):
    root = Path(gateway.home.dir)
    lines = [json.loads(line) for path in sorted(root.rglob("*.jsonl")) for line in path.read_text().splitlines() if line.startswith("{")]
    changes = [line["facts"] for line in lines if line.get("event") == "changed" and line["facts"]["what"].startswith("aepb:")]
    told = [(one["what"], one["version"]) for one in changes]
    expected = [("aepb:lifecycle_change", state) for state in ("deprecated", "draining", "retired")] + [("aepb:shutdown", "retired")]
    report.equal("AE-30, AE-32: each transition stands in the record", told, expected)
    report.check("AE-30: with its reason", "reason replaced" in changes[0]["lines"] if changes else False, changes)


def wait(is_so, within=10):
    """Looks until something is so; says if it ever was."""
    until = time.monotonic() + within
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def restart(gateway):
    gateway.kill()
    gateway.start()


def nobody(report):
    gateway, _ = gate("life-none", "off", is_agent=False)
    with gateway:
        for path in (DOCUMENT, PAIRS):
            report.equal(f"AE-01: a gate that is no agent serves no {path}", http(gateway, path, OWN)[0], 404)
