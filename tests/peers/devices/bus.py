"""A part on a CAN bus behind an adapter that speaks slcan (AX-70): the part is python-can's, can-isotp's and cbor2's, on the other end of the line."""
import os
import pty
import random
import subprocess
import threading
import time
import tty
from pathlib import Path

from gateway import Gateway, binary, end
from install import venv_bin
from wire import Modern

from devices.bed import Line

# Calls over a bus that loses and doubles frames, and the frames in a hundred with a fault there.
CALLS, RATE = 100, 4
TEXT = "A text that takes more than one frame of a bus, to the part and back. " * 2
CONFIG = """
[stub.valve]
port = "{port}"
heartbeat = "1s"
can = {{ to = {to}, from = {source}, extended = {extended} }}

[stub.valve.tool.calls]
id = 1
description = "Counts the turns and the texts."
results = [{{ name = "turns", kind = "int" }}, {{ name = "texts", kind = "int" }}]
read_only = true

[stub.valve.tool.turn]
id = 2
description = "Turns the valve by some steps, and gives its position."
arguments = [{{ name = "steps", kind = "int" }}]
results = [{{ name = "position", kind = "int" }}]

[stub.valve.tool.mirror]
id = 3
description = "Gives a text backwards."
arguments = [{{ name = "text", kind = "text" }}]
results = [{{ name = "text", kind = "text" }}]
work = "1s"
"""


class Frames(Line):
    """Lines of an adapter. A bus has a checksum of its own, so frames are lost or come twice, and never changed."""

    def __init__(self, seed):
        super().__init__(seed, b"\r")

    def passed(self, frame):
        self.frames.append(frame)
        if frame[:1] not in b"tT" or self.random.randrange(100) >= self.rate:
            return [frame]
        fault = self.random.choice(("drop", "double"))
        self.counts[fault] += 1
        return [] if fault == "drop" else [frame, frame]


class Bus:
    """A gate and a part, with the bus between them, as a context manager."""

    def __init__(self, name, to, source, block=0, pause=0):
        self.ids, self.flow, self.mark = (to, source), (block, pause), random.randrange(1, 200)
        self.down, self.up = Frames(1), Frames(2)
        self.ends = [pty.openpty() for _ in range(2)]
        for _, slave in self.ends:
            tty.setraw(slave)
        port = os.ttyname(self.ends[0][1])
        text = CONFIG.format(port=port, to=to, source=source, extended=str(to > 0x7FF).lower())
        self.make, self.running = lambda: Gateway(name, {}, config=text), True

    def __enter__(self):
        self.threads = [threading.Thread(target=self.carry, args=way, daemon=True) for way in
                        ((self.ends[0][0], self.ends[1][0], self.down), (self.ends[1][0], self.ends[0][0], self.up))]
        for thread in self.threads:
            thread.start()
        self.start()
        self.gateway = self.make()
        self.client = Modern(self.gateway.url())
        return self

    def start(self):
        """Powers the part on."""
        self.mark += 1
        words = [os.ttyname(self.ends[1][1]), *self.ids, self.mark, *self.flow]
        self.part = subprocess.Popen([venv_bin("bus"), Path(__file__).with_name("bus_part.py"), *map(str, words)])

    def reboot(self):
        """Takes the power away and gives it back."""
        end(self.part)
        self.start()

    def carry(self, source, target, line):
        """Lines one way."""
        held = b""
        while self.running:
            *frames, held = (held + os.read(source, 4096)).split(b"\r")
            for frame in frames:
                for out in line.passed(frame + b"\r"):
                    os.write(target, out)

    def call(self, tool, **arguments):
        """Calls a tool of the part."""
        return self.client.call("tools/call", {"name": f"valve__{tool}", "arguments": arguments})

    def counted(self):
        """How often the valve turned and a text went through, by the part."""
        for _ in range(100):
            got = self.call("calls")
            if not got.error and not got.result.get("isError"):
                return got.result["structuredContent"]["turns"], got.result["structuredContent"]["texts"]
            time.sleep(0.2)
        raise RuntimeError(f"the part does not come back: {got.text}")

    def __exit__(self, *failure):
        try:
            self.gateway.__exit__(*failure)
        finally:
            self.running = False
            end(self.part)
            # Threads that read end with a line each.
            for _, slave in self.ends:
                os.write(slave, b"\r")
            for thread in self.threads:
                thread.join(5)
            for pair in self.ends:
                for descriptor in pair:
                    os.close(descriptor)


def talk(report, name):
    """Values, long texts both ways, a loss of power, and others on the bus (AX-70)."""
    for kind, ids, flow in (("11 bits", (0x123, 0x124), (0, 0)), ("29 bits, leave for four frames, 5 ms apart", (0x18DA10F1, 0x18DAF110), (4, 5))):
        with Bus(name, *ids, *flow) as bus:
            tools = {tool["name"]: tool for tool in bus.client.call("tools/list", {}).result["tools"]}
            report.equal(f"{name}, {kind}: the transport", tools["valve__turn"]["_meta"]["x-mcpax-transport"], "can_cbor")
            report.equal(f"{name}, {kind}: a valve", bus.call("turn", steps=-300).result["structuredContent"], {"position": -300})
            report.equal(f"{name}, {kind}: a long text", bus.call("mirror", text=TEXT).result["structuredContent"], {"text": TEXT[::-1]})
            report.equal(f"{name}, {kind}: the part counted", bus.counted(), (1, 1))
            bus.reboot()
            report.equal(f"{name}, {kind}: and begins anew", bus.counted(), (0, 0))
            report.check(f"{name}, {kind}: others were on the bus", any(frame.startswith(b"t7F0") for frame in bus.up.frames))
            report.equal(f"{name}, {kind}: the adapter is opened first", bus.down.frames[:4], [b"\r", b"C\r", b"S6\r", b"O\r"])


def bench(report, name):
    """Without a gate, `stub add` writes a part on a bus down, and `stub watch` shows what it sends."""
    with Bus(name, 0x123, 0x124) as bus:
        end(bus.gateway.process)
        wire = ["--port", os.ttyname(bus.ends[0][1]), "--can", "0x123:0x124"]
        with open(f"{bus.gateway.home.dir}/new.toml", "w") as file:
            file.write('listen = "127.0.0.1:7411"\n')
        added = bus.gateway.asked("--config", "new.toml", "stub", "add", "valve", *wire)
        with open(f"{bus.gateway.home.dir}/new.toml") as file:
            written = file.read()
        report.check(f"{name}: it is written down", "3 tools" in added.stdout and "can = { to = 291, from = 292, bit_rate = 500000 }" in written, (added.stderr, written))
        report.check(f"{name}: as the gate reads it", not bus.gateway.asked("check", "new.toml").returncode)
        command = [binary(), "--json", "stub", "watch", *wire]
        with subprocess.Popen(command, env=bus.gateway.home.env, stdout=subprocess.PIPE, text=True) as watch:
            line = watch.stdout.readline()
            end(watch)
        report.check(f"{name}: its table is shown", "Table" in line, line)


def settings(report, name):
    """A bus that no adapter has, and identifiers that are none, are refused before anything is opened."""
    with Bus(name, 0x123, 0x124) as bus:
        for wrong, why in {"to = 1, from = 1": "no two identifiers", "to = 0x800, from = 1": "no two identifiers", "to = 1, from = 2, bit_rate = 7": "this bit rate",
                           "to = 1, from = 0x20000000, extended = true": "no two identifiers"}.items():
            with open(f"{bus.gateway.home.dir}/wrong.toml", "w") as file:
                file.write(f'[stub.valve]\nport = "/dev/null"\ncan = {{ {wrong} }}\n[stub.valve.tool.turn]\nid = 1\ndescription = "Turns."\n')
            checked = bus.gateway.asked("check", f"{bus.gateway.home.dir}/wrong.toml")
            report.check(f"{name}: {wrong}", checked.returncode and why in checked.stderr, checked.stderr)


def faults(report, name):
    """Calls over a bus that loses and doubles frames run once, or are of unknown outcome: each is judged by the part's counter."""
    with Bus(name, 0x123, 0x124) as bus:
        before, ends, wrong = bus.counted(), {"done": 0, "unknown": 0, "never": 0}, []
        bus.down.rate = bus.up.rate = RATE
        for number in range(CALLS):
            got = bus.call("mirror", text=TEXT[:20]) if number % 2 else bus.call("turn", steps=1)
            is_done = not got.error and not got.result.get("isError")
            ended = "done" if is_done else "unknown" if "is not known" in got.text else "never"
            after = bus.counted()
            turned, mirrored = (now - then for now, then in zip(after, before))
            ran, other = (mirrored, turned) if number % 2 else (turned, mirrored)
            if ran not in {"done": (1,), "unknown": (0, 1), "never": (0,)}[ended] or other:
                wrong.append((number, ended, before, after, got.text[:200]))
            ends[ended] += 1
            before = after
        counts = {fault: bus.down.counts[fault] + bus.up.counts[fault] for fault in ("drop", "double")}
        print(f"--- devices: bus {ends}, faults {counts}")
        report.equal(f"{name}: calls that did not run as their end says", wrong[:3], [])
        report.check(f"{name}: frames were lost and came twice", all(counts.values()), counts)
        report.check(f"{name}: most calls were done", ends["done"] > CALLS // 2, ends)
