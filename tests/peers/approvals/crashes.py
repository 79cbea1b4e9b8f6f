"""Kills a gate around every change of an approval (asked, agreed to, on its way, done), again and again.

After each kill the approval has to stand as it was acknowledged, or as `outcome_unknown` where the call may have left; whatever is asked for then,
no call goes out twice. What went out, the tool's own log says.
"""
import random
import threading
import time

from wire import Modern

RUNS = 48
STAGES = ("asked", "decided", "dispatched", "done")
# How each may stand after the kill, by the last thing that was acknowledged before it, where the next one had begun.
MAY = {
    "asked": {None, "pending"},
    "decided": {"pending", "released"},
    "dispatched": {"released", "outcome_unknown", "done"},
    "done": {"done"},
}


class Step(threading.Thread):
    """One request that may not be answered any more; `told` is what came back."""

    def __init__(self, do):
        super().__init__(daemon=True)
        self.do, self.told = do, None

    def run(self):
        try:
            self.told = self.do()
        except Exception:  # noqa: BLE001 - the gate was killed, which is what this is about
            return


def approval(held, disk):
    """The last approval of a call for that disk; nothing where there is none."""
    found = [a for a in held.json("approvals", "--all")["approvals"] if f'"{disk}"' in a["arguments"]]
    return max(found, key=lambda a: a["requested"], default={})


def ask(held, disk):
    """Makes the call, by a connection of its own."""
    return Modern(held.gateway.url(), timeout=10).call("tools/call", {"name": "disk__wipe", "arguments": {"disk": disk}})


def kills(report, name, held, runs=RUNS):
    """Kills and starts a gate `runs` times, a quarter of them in each stage."""
    chance, wrong, seen = random.Random(runs), [], {}
    key = held.enroll("anna")
    for run in range(runs):
        stage, disk = STAGES[run % len(STAGES)], f"slow-{run}" if run % 2 else f"disk-{run}"
        found = one(held, key, stage, disk, chance)
        seen.setdefault(stage, set()).add(found["standing"])
        wrong += [f"run {run}, {stage}, {disk}: {what}" for what in found["wrong"]]
    report.check(f"{name}: {runs} kills, and then they stood as {sorted((k, sorted(map(str, v))) for k, v in seen.items())}", not wrong, wrong[:10])
    sent = [wiped["disk"] for wiped in held.wiped()]
    report.equal(f"{name}: nothing goes out twice", sorted(sent), sorted(set(sent)))


def one(held, key, stage, disk, chance):
    """One approval up to `stage`, where the gate is killed; what was wrong afterwards."""
    identity = None
    if stage != "asked":
        ask(held, disk)
        waiting = approval(held, disk)
        identity, proof = waiting["id"], held.sign(waiting["challenge"], key)
    if stage in ("dispatched", "done"):
        held.confirm(identity, proof)
    steps = {"asked": lambda: ask(held, disk), "decided": lambda: held.confirm(identity, proof)}
    step = Step(steps.get(stage, lambda: ask(held, disk)))
    step.start()
    if stage == "done":
        step.join(20)
    else:
        time.sleep(chance.uniform(0, 0.12))
    held.gateway.kill()
    step.join(20)
    before = len([w for w in held.wiped() if w["disk"] == disk])
    held.gateway.start()
    now, wrong = approval(held, disk).get("standing"), []
    if now not in MAY[stage]:
        wrong.append(f"it stands as {now}")
    if step.told is not None and stage == "asked" and now != "pending":
        wrong.append(f"its caller was told that it waits, and it stands as {now}")
    if step.told == "released" and now != "released":
        wrong.append(f"whoever agreed was told that it is released, and it stands as {now}")
    if before and now == "released":
        wrong.append("it went out, and could go out again")
    told = ask(held, disk)
    after = len([w for w in held.wiped() if w["disk"] == disk])
    if after > 1 or (now != "released" and after != before):
        wrong.append(f"it went out {before} times before and {after} times after, as {now}")
    if now == "outcome_unknown" and told.error.get("data", {}).get("reason") != "outcome_unknown":
        wrong.append(f"its caller is not told that nobody knows: {told.error or told.result}")
    return {"standing": now, "wrong": wrong}
