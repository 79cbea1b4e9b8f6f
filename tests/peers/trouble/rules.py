"""Rules and budgets of a real gate (AX-48): what is refused and what is not there look alike, the owner can tell them apart, a changed file of
rules holds at once, a bad one changes nothing."""
import json
import subprocess
import time
from pathlib import Path

from gateway import Gateway, binary
from trouble import recording
from wire import Legacy, Modern

RULES = """@id("all") permit (principal, action, resource);
@id("no-act") @remedy("ask the owner")
forbid (principal, action == Action::"call", resource == Tool::"up.act")
when { context.arguments has what && context.arguments.what like "wipe*" };
"""
CONFIG = """[policy]
file = "policy.cedar"
[budget.few]
max_calls_per_minute = {calls}
[mount.up]
url = "{upstream}"
"""
HEARD_WITHIN = 10


def cases():
    """(name, function) pairs."""
    yield "rules", rules
    yield "budgets", budgets


def started(name, upstream, calls):
    """A gate with rules."""
    return Gateway(name, {}, config=CONFIG.format(upstream=upstream.url, calls=calls),
                   prepare=lambda gate: gate.home.write("policy.cedar", RULES))


def banyan(gate, *arguments):
    """The command line, in the home of the gate."""
    return subprocess.run([binary(), *arguments], env=gate.home.env, cwd=gate.home.dir, capture_output=True, text=True, timeout=30, check=False)


def rules(report, name):
    """Refusals, explanations, and changes of the file."""
    with recording.Upstream() as upstream, started(name, upstream, 1000) as gate:
        for client in (Legacy(gate.url()), Modern(gate.url())):
            era = type(client).__name__
            report.check(f"{name}: {era}: what is permitted is done", not client.tool("up__act", {"what": "look"}).error)
            refused, unknown = client.tool("up__act", {"what": "wipe all"}), client.tool("up__nope", {"what": "wipe all"})
            report.equal(f"{name}: {era}: a refusal is told as an unknown name", alike(refused, "up__act"), alike(unknown, "up__nope"))
            explained(report, f"{name}: {era}", gate, refused, unknown)
        report.check(f"{name}: what is refused never leaves", not any("wipe" in body for _, body in upstream.seen))
        changed(report, name, gate, Modern(gate.url()))


def alike(reply, shown):
    """An error without what differs in every answer."""
    error = json.loads(json.dumps(reply.error).replace(shown, "NAME"))
    return reply.status, error, len(error.get("data", {}).pop("decision", ""))


def explained(report, name, gate, refused, unknown):
    """`banyan explain` of both."""
    told = json.loads(banyan(gate, "explain", refused.error["data"]["decision"], "--json").stdout)
    report.equal(f"{name}: the owner sees the rule", (told["cause"], told["rules"][0]["id"], told["rules"][0]["remedy"]),
                 ("forbidden", "no-act", "ask the owner"))
    other = banyan(gate, "explain", unknown.error["data"]["decision"])
    report.check(f"{name}: and that there was no such name", "nothing of that name" in other.stdout, other)


def changed(report, name, gate, client):
    """A file that changes while the gate runs."""
    file = Path(gate.home.dir, "policy.cedar")
    file.write_text("permit (principal, action, resource) when { resource.nonsense };\n")
    report.check(f"{name}: bad rules change nothing and are told with their line", until(lambda: "policy.cedar:1:" in gate.tail()), gate.tail())
    report.check(f"{name}: the rules before them hold", not client.tool("up__act", {"what": "look"}).error)
    file.write_text("forbid (principal, action, resource);\n")
    report.check(f"{name}: new rules hold at once", until(lambda: client.tool("up__act", {"what": "look"}).error))
    report.equal(f"{name}: and hide what nobody may call", client.tools(), {})


def until(true):
    """Waits for something to become so."""
    end = time.monotonic() + HEARD_WITHIN
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.1)
    return False


def budgets(report, name):
    """Who is over budget is told so, and the owner sees what is spent."""
    with recording.Upstream() as upstream, started(name, upstream, 3) as gate:
        client = Modern(gate.url())
        made = [client.tool("up__act", {"n": n}) for n in range(5)]
        report.equal(f"{name}: three calls are made", [bool(reply.error) for reply in made], [False] * 3 + [True] * 2)
        data = made[-1].error.get("data", {})
        report.equal(f"{name}: the others are told why", (made[-1].error.get("code"), data.get("reason"), data.get("limit")),
                     (-32003, "budget_exceeded", "max_calls_per_minute"))
        report.check(f"{name}: and when to come back", 0 < data.get("retry_after_ms", 0) <= 60_000, data)
        status = json.loads(banyan(gate, "status", "--json").stdout)
        report.equal(f"{name}: the owner sees what is spent", [row["calls_in_minute"] for row in status.get("budgets", [])], [3])
        report.check(f"{name}: also as text", "3 of 3 calls a minute" in banyan(gate, "status").stdout)
