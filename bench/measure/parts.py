"""Parts behind a gate, each figure beside its floor. Starts what it needs; prints a line for each figure."""
import json
import os
import pty
import resource
import select
import shutil
import subprocess
import threading
import time
import tty
from concurrent.futures import ThreadPoolExecutor

from devices import bed
from devices.checks import CONFIG
from devices.firmware import asked, framed, marked, opened
from gateway import Gateway, resident
from measure.devices import Rows, median, took
from wire import Modern

# Bits of a byte on a serial line.
BITS = 10
SPEEDS = (9_600, 115_200)
CALLERS = 8
# Seconds for which heartbeats are counted, and the rest between those of one part.
WATCHED, REST = 10, 5
MANY = """
[stub.p{at}]
port = "{port}"
heartbeat = "{rest}s"
[stub.p{at}.tool.turn]
id = 3
description = "Turns by some steps, and gives the position."
arguments = [{{ name = "steps", kind = "int" }}]
results = [{{ name = "position", kind = "int" }}]
"""


def measure(options):
    """All figures."""
    rows = Rows()
    print(f"{'':46} {'value':>12} {'floor':>12}")
    wire(rows)
    if shutil.which("qemu-system-arm") and shutil.which("arm-none-eabi-gcc"):
        call(rows, options.calls)
    else:
        print("left out: a call to firmware (apt install gcc-arm-none-eabi qemu-system-arm)")
    many(rows, options.parts, options.calls)
    return rows


def wire(rows):
    """Bytes of a call and of its answer, and how long they take on a line; the floor is JSON-RPC with the same content."""
    arguments, content = b"\xa1\0\7", b"\x18\x64"
    frames = framed(b"\1\xa3\1\3\2\x18\x64\3" + arguments), framed(b"\2\xa2\2\x18\x64\4" + content)
    texts = [json.dumps(text, separators=(",", ":")).encode() + b"\n" for text in (
        {"jsonrpc": "2.0", "id": 100, "method": "tools/call", "params": {"name": "turn", "arguments": {"steps": 7}}},
        {"jsonrpc": "2.0", "id": 100, "result": {"content": [{"type": "text", "text": "{\"position\":100}"}], "structuredContent": {"position": 100}}})]
    for what, frame, text in zip(("a call", "an answer"), frames, texts):
        rows.add(f"bytes of {what}", len(frame), len(text), "B", "the floor is JSON-RPC")
        for speed in SPEEDS:
            rows.add(f"wire time of {what} at {speed} baud", len(frame) * BITS / speed * 1e3, len(text) * BITS / speed * 1e3, "ms", "the floor is JSON-RPC")
    around = len(frames[0]) - len(arguments)
    rows.add("bytes around the map of the arguments", around, 13, "B", "the floor is the most that is allowed")


def call(rows, calls):
    """A call of a sensor in firmware, through a gate and over the bare line."""
    built = subprocess.run([bed.ROOT / "firmware/build", bed.OUT], capture_output=True, text=True, timeout=120)
    if built.returncode:
        raise SystemExit(f"bench/parts: {built.stderr}")
    with bed.PartM0("lamp-m0.elf") as part:
        mark = marked(part.said())
        opened(part.said(framed(asked(mark)), until=b"\0"))
        numbers = iter(n for _ in range(calls) for n in range(7, 256))

        def bare():
            part.said(framed(b"\1\xa2\1\1\2" + head(next(numbers))), until=b"\0")
        floor = median(calls, bare)
        text = CONFIG.format(port=part.port, more="", kind="int", hottest=125)
        with Gateway("bench parts", {}, config=text) as gate:
            client = Modern(gate.url())
            through = median(calls, lambda: client.call("tools/call", {"name": "lamp__light", "arguments": {}}).result)
    rows.add("a call to firmware in QEMU", through * 1e3, floor * 1e3, "ms", "the floor is the bare line")


def head(number):
    return bytes([number]) if number < 24 else bytes([0x18, number])


class Parts:
    """Parts in software, each on a pseudo-terminal, in one thread."""

    def __init__(self, count):
        self.ends = [pty.openpty() for _ in range(count)]
        for _, slave in self.ends:
            tty.setraw(slave)
        self.ports = [os.ttyname(slave) for _, slave in self.ends]
        self.last, self.held = {}, {}
        self.beats, self.running = 0, True

    def __enter__(self):
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.running = False
        self.thread.join(5)
        for pair in self.ends:
            for descriptor in pair:
                os.close(descriptor)

    def work(self):
        poll = select.epoll()
        for master, _ in self.ends:
            poll.register(master, select.EPOLLIN)
        while self.running:
            for master, _ in poll.poll(0.2):
                *frames, self.held[master] = (self.held.get(master, b"") + os.read(master, 4096)).split(b"\0")
                for frame in filter(None, frames):
                    self.hear(master, opened(frame + b"\0"))

    def hear(self, master, message):
        kind, rest = message[0], message[2:]
        members = {}
        while rest and rest[0] in (1, 2, 10, 11):
            key, value, rest = rest[0], *((rest[2], rest[3:]) if rest[1] == 0x18 else (rest[1], rest[2:]))
            members[key] = value
        number = head(members.get(2, 0))
        if kind == 4:
            self.beats += 1
            answer = b"\4\xa2\2" + number + b"\x0b\1"
        elif kind == 3:
            if members.get(11) == 1:
                self.last[master] = number
            told = b"\2" + self.last[master] if master in self.last else b""
            answer = bytes([3, 0xA3 + bool(told)]) + told + b"\6\x18\x40\7\x81\x83\3\1\1\x0b\1"
        else:
            self.last[master] = number
            answer = b"\2\xa2\2" + number + b"\4\x07"
        os.write(master, framed(answer))


def many(rows, count, calls):
    """Many parts behind one gate, beside a gate without parts, and beside the parts alone."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with Gateway("bench no parts", {}, config="[[token]]\nname = \"n\"\nsha256 = \"" + "0" * 64 + "\"\n") as gate:
        empty = resident(gate.process.pid)
    with Parts(count) as parts:
        text = "".join(MANY.format(at=at, port=port, rest=REST) for at, port in enumerate(parts.ports))
        with Gateway("bench many parts", {}, config=text) as gate:
            clients = [Modern(gate.url()) for _ in range(CALLERS)]

            def turn(at):
                return clients[at % CALLERS].call("tools/call", {"name": f"p{at % count}__turn", "arguments": {"steps": 1}})
            ready = took(lambda: [until_done(turn, at) for at in range(count)])[0]
            rows.add(f"first calls of {count} parts", ready, None, "s")
            rows.add(f"memory of a part, of {count}", (resident(gate.process.pid) - empty) / count / 1024, None, "KiB")
            before, began = parts.beats, time.monotonic()
            time.sleep(WATCHED)
            rows.add(f"heartbeats a second of {count} parts", (parts.beats - before) / (time.monotonic() - began), count / REST, "/s", "the floor is one a rest", True)
            with ThreadPoolExecutor(CALLERS) as pool:
                total = CALLERS * calls
                seconds = took(lambda: list(pool.map(lambda caller: [turn(caller + CALLERS * n) for n in range(calls)], range(CALLERS))))[0]
            rows.add(f"calls a second to {count} parts", total / seconds, None, "/s", "parts and callers are slow programs, in one process")


def until_done(turn, at):
    """Calls a part until it has answered once."""
    for _ in range(600):
        got = turn(at)
        if not got.error and not got.result.get("isError"):
            return
        time.sleep(0.05)
    raise SystemExit(f"bench/parts: the part {at} does not answer: {got.text}")
