"""Parts with real firmware behind a gate (AX-43, AX-70, AX-71, AX-72, AX-73, AX-74, AX-75): an ATmega328P in simavr on a pseudo-terminal, with a good line and a bad one.

The judge of what ran is the firmware's own counter, read over a line that is good again.
"""
import fcntl
import json
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from gateway import Gateway, end
from install import venv_bin
from wire import Modern

from devices import bed, broker, bus, firmware

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 280
# Calls over the bad line (`scripts/long` asks for more), and the frames in a hundred with a fault there.
CALLS, RATE = int(os.environ.get("BANYAN_PART_CALLS", "2000")), 8
SEED = 20261127
# Asks a terminal for the mark of TIOCEXCL (Linux).
TIOCGEXCL = 0x80045440
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
    cases = {"bounds": firmware.bounds, "numbers": firmware.numbers, "echoes": firmware.echoes, "memory": firmware.memory, "marks": firmware.marks,
             "libraries": firmware.libraries, "port": port, "calls": calls, "cortex": cortex, "official client": official, "difference": difference, "approval": approval,
             "power": power, "queue": queue, "table": table, "openings": openings, "bus": bus.talk, "bus settings": bus.settings, "bus bench": bus.bench, "bus faults": bus.faults, "broker": broker.talk, "broker refusals": broker.refusals, "broker faults": broker.faults, "faults": faults, "demonstration": demonstrated}
    no_broker = broker.lacking()
    if no_broker:
        print(f"--- devices: no broker, not installed: {no_broker}")
        cases = {name: case for name, case in cases.items() if not name.startswith("broker")}
    for name, case in cases.items():
        report.guard(f"devices/{name}", lambda n=name, c=case: c(report, f"devices/{n}"))


def config(part, more="", kind="int", hottest=125):
    """The configuration of a gate with the part."""
    return CONFIG.format(port=part.port, more=more, kind=kind, hottest=hottest)


class Bench:
    """A part, and a gate in front of it."""

    def __init__(self, name, image="lamp.elf", text=config, seed=1, kind_of_part=bed.Part, **how):
        self.part = kind_of_part(image, seed)
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


def port(report, name):
    """A port is held by one program, and two names of a port are one port."""
    with Bench(name) as bench:
        report.equal(f"{name}: the part answers", bench.counted(), (0, 0))
        held = bytearray(4)
        fcntl.ioctl(bench.part.slave, TIOCGEXCL, held)
        report.check(f"{name}: the port is marked as held", any(held))
        asked = bench.gateway.asked("stub", "add", "other", "--port", bench.part.port)
        report.check(f"{name}: another program is told so", asked.returncode and "has it" in asked.stderr, asked.stderr)
        link = f"{bench.gateway.home.dir}/other-name"
        os.symlink(bench.part.port, link)
        both = config(bench.part) + TABLE.format(port=link)
        with open(f"{bench.gateway.home.dir}/both.toml", "w") as file:
            file.write(both)
        checked = bench.gateway.asked("check", f"{bench.gateway.home.dir}/both.toml")
        report.check(f"{name}: two names of a port are refused", checked.returncode and "`lamp` has the port" in checked.stderr, checked.stderr)


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


def cortex(report, name):
    """The lamp on a Cortex-M0 in QEMU: values, and starts with another mark each (AX-73, AX-74)."""
    missing = [tool for tool in ("qemu-system-arm", "arm-none-eabi-gcc") if not shutil.which(tool)]
    if missing:
        return print(f"--- devices: no Cortex-M0, not installed: {', '.join(missing)}")
    # A simulator of this kind takes its time on a busy machine.
    def patient(part):
        return config(part).replace('work = "5ms"', 'work = "2s"')
    with Bench(name, image="lamp-m0.elf", kind_of_part=bed.PartM0, text=patient) as bench:
        report.equal(f"{name}: it is there", bench.counted(), (0, 0))
        report.equal(f"{name}: a sensor", bench.call("light").result["structuredContent"], {"light": 300, "degrees": -4})
        report.equal(f"{name}: a lamp", bench.call("lamp", on=True).result["structuredContent"], {"on": True})
        report.equal(f"{name}: a motor", bench.call("turn", steps=-7).result["structuredContent"], {"position": -7})
        report.equal(f"{name}: the part refuses", bench.call("turn", steps=150).error.get("code"), -32602)
        report.equal(f"{name}: the firmware counted", bench.counted(), (1, 1))
        bench.part.reboot()
        report.equal(f"{name}: its counter began anew", bench.counted(), (0, 0))
        report.equal(f"{name}: and it turns", bench.call("turn", steps=2).result["structuredContent"], {"position": 2})
    with bed.PartM0("lamp-m0.elf") as part:
        starts = [firmware.marked(part.said())]
        # More starts than both pages of the flash have words.
        for _ in range(600):
            part.reset()
            starts.append(firmware.marked(part.said(until=b"\0")))
        report.check(f"{name}: of 255 starts in a row no two have one mark", all(len(set(starts[at:at + 255])) == 255 for at in range(len(starts) - 254)), starts)


def official(report, name):
    """The official Python SDK calls the part through the gate."""
    script = ("import sys, anyio\nfrom mcp import Client\nfrom mcp.client.streamable_http import streamable_http_client\n"
              "async def main():\n    async with Client(streamable_http_client(sys.argv[1])) as client:\n"
              "        print((await client.call_tool('lamp__turn', {'steps': 5})).structured_content)\nanyio.run(main)\n")
    with Bench(name) as bench:
        report.equal(f"{name}: the part is there", bench.counted(), (0, 0))
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


def queue(report, name):
    """A call that waits is held against the table of another firmware, and one caller leaves places for others (AX-43)."""
    with Bench(name) as bench:
        report.equal(f"{name}: before", bench.counted(), (0, 0))
        bench.part.deafen(both=True)
        calls = together(bench, 2)
        time.sleep(0.05)
        bench.part.reboot("led.elf")
        bench.part.up.is_dead = bench.part.down.is_dead = False
        texts = [got.text for got in calls()]
        known = [sum(word in text for text in texts) for word in ("is not known", "lists its tools otherwise")]
        report.check(f"{name}: of two calls one had left, and one did not leave any more", known == [1, 1], texts)
    with Bench(name) as bench:
        report.equal(f"{name}: before, again", bench.counted(), (0, 0))
        bench.part.deafen()
        texts = [got.text for got in together(bench, 30)()]
        report.check(f"{name}: a caller has a share of the places", any("calls of yours wait" in text for text in texts), texts)
        bench.part.quiet()
        report.check(f"{name}: and the part comes back", bench.counted()[1] >= 0)


def together(bench, count):
    """Has so many calls of the motor go out at once, and gives what waits for their ends."""
    def turn():
        return Modern(bench.gateway.url()).call("tools/call", {"name": "lamp__turn", "arguments": {"steps": 1}})
    pool = ThreadPoolExecutor(count)
    futures = [pool.submit(turn) for _ in range(count)]
    return lambda: [future.result() for future in futures]


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


def openings(report, name):
    """A gate that opens the port of a table part moves its number little, and what an earlier gate has sent does not run behind (AX-74)."""
    with Bench(name, image="table-avr.elf", text=plain) as bench:
        wrong, first = [], []
        for opening in range(4):
            part = bench.part
            got = bench.client.call("tools/call", {"name": "relay__switch", "arguments": {"on": 1}})
            kept = [frame for frame in part.down.frames if frame[:4] == b"\xa5\1\1\2"][-1]
            report.check(f"{name}: {opening}: a call runs", not got.error and not got.result.get("isError"), got.text)
            end(bench.gateway.process)
            part.down.frames.clear()
            bench.gateway.start()
            bench.client.call("tools/call", {"name": "relay__sensor", "arguments": {}})
            first.append(b"".join(part.down.frames).lstrip(b"\0")[:5])
            part.up.frames.clear()
            with part.lock:
                part.process.stdin.write(kept)
            time.sleep(bed.QUIET)
            # An answer of this part to a call of this number.
            if bytes([2, 2, kept[4]]) in b"".join(part.up.frames):
                wrong.append((opening, kept.hex(), b"".join(part.up.frames).hex()))
        report.equal(f"{name}: late calls that ran again", wrong, [])
        report.equal(f"{name}: each gate asks first, and counts on from the answer", first, 4 * [b"\xa5\1\4\0\0"])


def faults(report, name):
    """Actuator calls over a bad line run once, or are of unknown outcome, and never run twice: each call is judged by the firmware's counter."""
    with Bench(name, seed=SEED) as bench:
        bench.part.worst(RATE)
        ends = {tool: dict.fromkeys(("done", "unknown", "never"), 0) for tool in ("lamp", "turn")}
        wrong, before = [], (0, 0)
        for number in range(CALLS):
            tool, arguments = ("lamp", {"on": bool(number & 4)}) if number % 4 == 3 else ("turn", {"steps": 1})
            got = bench.call(tool, **arguments)
            finish = ended(got)
            # The gate counts on only behind its question, and nothing from before the question runs: the counter is final.
            after = bench.counted()
            lamp, motor = (now - then for now, then in zip(after, before))
            ran, other = (lamp, motor) if tool == "lamp" else (motor, lamp)
            may = {"done": (1,), "unknown": (0, 1), "never": (0,)}.get(finish, ())
            if ran not in may or other or finish == "done" and tool == "turn" and got.result["structuredContent"] != {"position": after[1]}:
                wrong.append((number, tool, finish, before, after, got.text[:200]))
            if finish in ends[tool]:
                ends[tool][finish] += 1
            before = after
        bench.part.quiet()
        faulty = {fault: bench.part.down.counts[fault] + bench.part.up.counts[fault] for fault in bed.FAULTS}
        print(f"--- devices: seed {SEED}, {ends}, ran {bench.counted()}, faults {faulty}")
        report.equal(f"{name}: calls that did not run as their end says", wrong[:3], [])
        report.equal(f"{name}: nothing runs afterwards", bench.counted(), before)
        report.check(f"{name}: there were faults of each kind", all(faulty.values()), faulty)
        report.check(f"{name}: most calls were done", ends["turn"]["done"] > CALLS // 4 and ends["lamp"]["done"] > CALLS // 8, ends)


def demonstrated(report, name):
    """The demonstration, with what it takes from the console's checks, which `bench/parts` has not installed."""
    from devices import demonstration
    demonstration.run(report, name, config)


def ended(got):
    """What a call's end says of its run; its text, where it says nothing of that."""
    if not got.error and not got.result.get("isError"):
        return "done"
    if "is not known" in got.text:
        return "unknown"
    # A gate that has no line to the part says so without sending anything.
    if "did not run" in got.text or got.error.get("code") in (-32001, -32002):
        return "never"
    return got.text
