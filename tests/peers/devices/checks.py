"""Parts with real firmware behind a gate (AX-43, AX-70, AX-71, AX-72, AX-73, AX-74, AX-75): an ATmega328P in simavr on a pseudo-terminal, with a good line and a bad one.

The judge of what ran is the firmware's own counter, read over a line that is good again.
"""
import json
import subprocess
import time

from gateway import Gateway
from install import venv_bin
from wire import Modern

from devices import bed

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 240
# Calls over the bad line, and the frames in a hundred with a fault there.
CALLS, RATE = 2000, 8
SEED = 20261127
CONFIG = """
{more}
[stub.lamp]
port = "{port}"
heartbeat = "1s"

[stub.lamp.tool.light]
id = 1
description = "Light and temperature of the room."
results = [{{ name = "light", kind = "uint", unit = "lx" }}, {{ name = "degrees", kind = "int", unit = "°C", minimum = -40, maximum = {hottest} }}]
read_only = true
work = "5ms"

[stub.lamp.tool.lamp]
id = 2
description = "Switches the lamp."
arguments = [{{ name = "on", kind = "bool" }}]
results = [{{ name = "on", kind = "bool" }}]
idempotent = true
reversible = true
work = "5ms"

[stub.lamp.tool.turn]
id = 3
description = "Turns the motor by some steps, and gives its position."
arguments = [{{ name = "steps", kind = "{kind}", minimum = -200, maximum = 200 }}]
results = [{{ name = "position", kind = "int" }}]
work = "5ms"

[stub.lamp.tool.calls]
id = 4
description = "Counts the calls of the lamp and of the motor."
results = [{{ name = "lamp", kind = "int" }}, {{ name = "motor", kind = "int" }}]
read_only = true
work = "5ms"
"""
TABLE = """
[stub.relay]
port = "{port}"
profile = "table"

[stub.relay.tool.sensor]
id = 1
description = "Four bytes of a sensor."
results = [{{ name = "level", kind = "uint", bytes = 2 }}, {{ name = "rest", kind = "bytes", bytes = 2 }}]
read_only = true

[stub.relay.tool.switch]
id = 2
description = "Switches the relay."
arguments = [{{ name = "on", kind = "uint" }}]
"""


def run(report):
    """All cases."""
    lacking = bed.lacking()
    if lacking:
        return print(f"--- devices: left out, {lacking}")
    held, printed = bed.build()
    report.check("devices/firmware: the images hold their budgets", held, printed)
    print(printed, end="")
    cases = {"memory": memory, "calls": calls, "official client": official, "difference": difference, "approval": approval,
             "power": power, "table": table, "faults": faults}
    for name, case in cases.items():
        report.guard(f"devices/{name}", lambda n=name, c=case: c(report, f"devices/{n}"))


def config(part, more="", kind="int", hottest=125):
    """The configuration of a gate with the part."""
    return CONFIG.format(port=part.port, more=more, kind=kind, hottest=hottest)


class Bench:
    """A part, and a gate in front of it."""

    def __init__(self, name, image="lamp.elf", text=config, seed=1, **how):
        self.part = bed.Part(image, seed)
        self.make = lambda: Gateway(name, {}, config=text(self.part, **how))

    def __enter__(self):
        self.part.__enter__()
        try:
            self.gateway = self.make()
            self.client = Modern(self.gateway.url())
        except BaseException:
            self.part.__exit__()
            raise
        return self

    def __exit__(self, *failure):
        try:
            self.gateway.__exit__(*failure)
        finally:
            self.part.__exit__()

    def call(self, tool, **arguments):
        """Calls a tool of the part."""
        return self.client.call("tools/call", {"name": f"lamp__{tool}", "arguments": arguments})

    def counted(self):
        """How often the lamp and the motor ran, by the firmware."""
        for _ in range(100):
            got = self.call("calls")
            if not got.error and not got.result.get("isError"):
                counts = got.result["structuredContent"]
                return counts["lamp"], counts["motor"]
            time.sleep(0.2)
        raise RuntimeError(f"the part does not come back: {got.text}")


def memory(report, name):
    """Static memory and the deepest stack, after every kind of message."""
    for image, most in (("led.elf", 245), ("lamp.elf", 256)):
        with bed.Part(image) as part:
            time.sleep(0.3)
            # Asked, called, repeated, called with what is wrong, and probed.
            for message in ("03a10206", "01a201010207", "01a201010207", "01a30102020803a100f5", "01a30102020903a10001", "01a20109020a", "04a10205"):
                part.process.stdin.write(framed(bytes.fromhex(message)))
                time.sleep(0.05)
            ram, stack = part.measured()
        report.check(f"{name}: {image} has {ram} bytes of static memory and {stack} of stack, {most} together at most", 0 < stack and ram + stack <= most)


def framed(message):
    """A frame of profile B."""
    import binascii
    whole = message + binascii.crc_hqx(message, 0xFFFF).to_bytes(2, "big")
    return b"".join(bytes([len(piece) + 1]) + piece for piece in whole.split(b"\0")) + b"\0"


def calls(report, name):
    """Names, schemas and annotations are the gate's; values go by place, both ways (AX-70, AX-71, AX-73, AX-74, AX-75)."""
    with Bench(name) as bench:
        tools = {tool["name"]: tool for tool in bench.client.call("tools/list", {}).result["tools"]}
        report.check(f"{name}: all tools are listed", {f"lamp__{tool}" for tool in ("light", "lamp", "turn", "calls")} <= set(tools), sorted(tools))
        turn = tools["lamp__turn"]
        report.equal(f"{name}: the schema", turn["inputSchema"]["properties"], {"steps": {"type": "integer", "minimum": -200, "maximum": 200}})
        report.equal(f"{name}: the transport", turn["_meta"]["x-mcpax-transport"], "uart_cbor")
        report.equal(f"{name}: the risk", (turn["annotations"]["destructiveHint"], turn["_meta"]["x-mcpax-reversible"]), (True, False))
        report.equal(f"{name}: a sensor", bench.call("light").result["structuredContent"], {"light": 300, "degrees": -4})
        report.equal(f"{name}: a lamp", bench.call("lamp", on=True).result["structuredContent"], {"on": True})
        report.equal(f"{name}: a motor", bench.call("turn", steps=-7).result["structuredContent"], {"position": -7})
        for wrong, arguments in {"missing": {}, "text": {"steps": "1"}, "too large": {"steps": 201}, "more": {"steps": 1, "fast": 1}}.items():
            got = bench.call("turn", **arguments)
            report.check(f"{name}: arguments that are {wrong} do not leave", got.error.get("code") == -32602 or got.result.get("isError"), got.raw[:300])
        got = bench.call("turn", steps=150)
        report.check(f"{name}: the part refuses what only it knows to be wrong", got.error.get("code") == -32602, got.raw[:300])
        report.equal(f"{name}: the firmware counted", bench.counted(), (1, 1))


def official(report, name):
    """The official Python SDK calls the part through the gate."""
    script = ("import sys, anyio\nfrom mcp import Client\nfrom mcp.client.streamable_http import streamable_http_client\n"
              "async def main():\n    async with Client(streamable_http_client(sys.argv[1])) as client:\n"
              "        print((await client.call_tool('lamp__turn', {'steps': 5})).structured_content)\nanyio.run(main)\n")
    with Bench(name) as bench:
        done = subprocess.run([venv_bin("modern"), "-c", script, bench.gateway.url()], capture_output=True, text=True, timeout=60)
        report.equal(f"{name}: its result", done.stdout.strip(), "{'position': 5}")
        report.equal(f"{name}: the firmware counted", bench.counted(), (0, 1))


def difference(report, name):
    """A tool that the part has otherwise is degraded, with both sides; what the part says beyond its schema goes no further (AX-43)."""
    with Bench(name, kind="uint", hottest=-10) as bench:
        tools = {tool["name"]: tool for tool in bench.client.call("tools/list", {}).result["tools"]}
        report.equal(f"{name}: it is degraded", tools["lamp__turn"]["_meta"].get("x-mcpax-availability"), "degraded")
        got = bench.call("turn", steps=1)
        report.check(f"{name}: both sides are shown", "(uint) -> int" in got.text and "(int) -> int" in got.text, got.text)
        got = bench.call("light")
        report.check(f"{name}: a result beyond its bounds", "-4" in got.text and "above -10" in got.text and "structuredContent" not in str(got.message), got.text)
        report.equal(f"{name}: other tools are unharmed", bench.call("lamp", on=True).result["structuredContent"], {"on": True})
        report.equal(f"{name}: the motor did not run", bench.counted()[1], 0)


def approval(report, name):
    """An actuator call waits for a person, and then leaves once although its answer is lost and its tool is idempotent."""
    with Bench(name, more='[gate]\nmode = "mutable"') as bench:
        home = bench.gateway.home
        key = f"{home.dir}/anna"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=30)
        bench.gateway.asked("operator", "enroll", "anna", "--key", f"{key}.pub")
        held = bench.call("lamp", on=True)
        report.check(f"{name}: it waits", "approve" in held.text, held.text)
        report.equal(f"{name}: nothing ran", bench.counted(), (0, 0))
        done = bench.gateway.asked("approve", pending(bench.gateway)["id"], "--key", key, "--yes")
        report.equal(f"{name}: it is approved", done.returncode, 0)
        bench.part.deafen()
        ended = bench.call("lamp", on=True)
        report.check(f"{name}: its end is not known", "is not known" in ended.text, ended.text)
        bench.part.quiet()
        report.equal(f"{name}: it left once", bench.part.down.seen(b"\x01\xa3\x01\x02\x02"), 1)
        report.equal(f"{name}: it ran once", bench.counted()[0], 1)


def pending(gateway):
    """The call that waits for a person."""
    for _ in range(100):
        told = json.loads(gateway.told("--json", "approvals") or "{}").get("approvals", [])
        waiting = [one for one in told if one["standing"] == "pending"]
        if waiting:
            return waiting[0]
        time.sleep(0.1)
    raise RuntimeError("nothing waits")


def power(report, name):
    """A part that loses its power comes back by itself, and nothing that ran runs again (AX-74)."""
    with Bench(name) as bench:
        report.equal(f"{name}: before", bench.call("turn", steps=5).result["structuredContent"], {"position": 5})
        bench.part.reboot()
        report.equal(f"{name}: its counter began anew", bench.counted(), (0, 0))
        report.equal(f"{name}: after", bench.call("turn", steps=2).result["structuredContent"], {"position": 2})
        for _ in range(3):
            bench.part.reboot()
        report.equal(f"{name}: a call right behind", bench.counted(), (0, 0))


def plain(part):
    """The configuration of a gate with a table part, whose frames have no end to split them by."""
    part.down.delimiter = part.up.delimiter = None
    return TABLE.format(port=part.port)


def table(report, name):
    """A part of profile A, whose layout only the configuration knows (AX-72, AX-74)."""
    with Bench(name, image="table-avr.elf", text=plain) as bench:
        call = lambda tool, **arguments: bench.client.call("tools/call", {"name": f"relay__{tool}", "arguments": arguments})  # noqa: E731
        report.equal(f"{name}: a sensor", call("sensor").result["structuredContent"], {"level": 258, "rest": "AwQ="})
        report.equal(f"{name}: a relay", call("switch", on=1).result.get("isError", False), False)
        report.equal(f"{name}: the part refuses", call("switch", on=2).error.get("code"), -32602)
        report.check(f"{name}: what does not fit its layout does not leave", call("switch", on=256).error.get("code") == -32602)


def faults(report, name):
    """Actuator calls over a bad line run once, or are of unknown outcome, and never run twice."""
    with Bench(name, seed=SEED) as bench:
        bench.part.worst(RATE)
        tally = {"done": 0, "unknown": 0, "never": 0, "wrong": []}
        lamps = {"done": 0, "unknown": 0, "never": 0, "wrong": []}
        positions = []
        for number in range(CALLS):
            if number % 4 == 3:
                judge(bench.call("lamp", on=bool(number & 4)), lamps, [])
            else:
                judge(bench.call("turn", steps=1), tally, positions)
        bench.part.quiet()
        ran, motor = bench.counted()
        faulty = {fault: bench.part.down.counts[fault] + bench.part.up.counts[fault] for fault in bed.FAULTS}
        print(f"--- devices: seed {SEED}, motor {[tally[k] for k in ('done', 'unknown', 'never')]} ran {motor}, "
              f"lamp {[lamps[k] for k in ('done', 'unknown', 'never')]} ran {ran}, faults {faulty}")
        report.check(f"{name}: every end of a call says what is known", not tally["wrong"] and not lamps["wrong"], (tally["wrong"] + lamps["wrong"])[:3])
        report.check(f"{name}: the motor ran once for each answer, and never without", tally["done"] <= motor <= tally["done"] + tally["unknown"], (tally, motor))
        report.check(f"{name}: no position twice, and none that skips back", positions == sorted(set(positions)), positions[:20])
        report.check(f"{name}: the lamp ran for each answer", lamps["done"] <= ran <= lamps["done"] + lamps["unknown"], (lamps, ran))
        report.check(f"{name}: there were faults of each kind", all(faulty.values()), faulty)
        report.check(f"{name}: most calls were done", tally["done"] > CALLS // 4 and lamps["done"] > CALLS // 8, (tally, lamps))


def judge(got, tally, positions):
    """Puts a call's end to those of its kind."""
    text = got.text
    if not got.error and not got.result.get("isError"):
        tally["done"] += 1
        positions.append(got.result["structuredContent"].get("position"))
    elif "is not known" in text:
        tally["unknown"] += 1
    elif "did not run" in text:
        tally["never"] += 1
        time.sleep(0.2)
    else:
        tally["never"] += 1
        # A gate that has no line to the part says so without sending anything.
        if got.error.get("code") not in (-32001, -32002):
            tally["wrong"].append(text[:300])
        time.sleep(0.05)
