"""Starting and ending: no child outlives the gateway, and a child that dies is started again."""
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from gateway import Gateway, Home, binary, end
from trouble.beside import FIXTURE, hostile
from wire import Legacy

MARK = "BANYAN_PEER_MARK"
ALL_GONE_WITHIN = 8


def cases():
    """(name, function) pairs."""
    yield "SIGTERM ends everything", lambda report, name: ends(report, name, signal.SIGTERM)
    yield "SIGINT ends everything", lambda report, name: ends(report, name, signal.SIGINT)
    yield "SIGKILL leaves nobody", lambda report, name: ends(report, name, signal.SIGKILL)
    yield "closing stdin ends banyan stdio", stdio_ends
    yield "a killed child comes back", comes_back


def marked(mark):
    """The processes that have this mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def gone(mark, within):
    """The marked processes that are left after some time."""
    end = time.monotonic() + within
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def described(pids):
    """The command lines of processes that should not be there."""
    return [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ") for pid in pids if Path(f"/proc/{pid}").exists()]


def servers(mark, stubborn):
    """A good child, and one that ignores SIGTERM and has a child that does too."""
    env = {MARK: mark}
    found = {"good": {"command": sys.executable, "args": [FIXTURE, "stdio"], "env": env}}
    if stubborn:
        found["stubborn"] = hostile("stubborn", env=env)
    return found


def ends(report, name, number):
    """A signal: the gateway ends, its children and their children too."""
    mark = uuid.uuid4().hex
    # Nobody can end a stubborn child after SIGKILL; one that reads its standard input ends by itself.
    gateway = Gateway(name, servers(mark, stubborn=number != signal.SIGKILL))
    try:
        client = Legacy(gateway.url())
        client.stream()
        client.open({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "good__fx_sleep", "arguments": {"ms": 60000}}})
        report.check(f"{name}: the children run", len(marked(mark)) >= 1)
        began = time.monotonic()
        gateway.process.send_signal(number)
        status = gateway.process.wait(15)
        report.check(f"{name}: within 10 s, with a call and a stream open", time.monotonic() - began < 10, f"{time.monotonic() - began:.1f} s")
        if number != signal.SIGKILL:
            report.check(f"{name}: exit status", status in (0, 128 + number, -number), status)
        left = gone(mark, ALL_GONE_WITHIN)
        report.check(f"{name}: no child is left", not left, described(left))
    finally:
        gateway.stop()
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)


def stdio_ends(report, name):
    """`banyan stdio` ends with its client, and takes its children along."""
    mark = uuid.uuid4().hex
    home = Home(name, servers(mark, stubborn=False))
    try:
        process = subprocess.Popen([binary(), "stdio", "--from", home.file], env=home.env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        process.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
                            '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n')
        process.stdin.flush()
        report.check(f"{name}: it answers", '"id":1' in process.stdout.readline().replace(" ", ""))
        process.stdin.close()
        report.equal(f"{name}: exit status", process.wait(10), 0)
        left = gone(mark, ALL_GONE_WITHIN)
        report.check(f"{name}: no child is left", not left, described(left))
    finally:
        end(process)
        home.remove()


def comes_back(report, name):
    """SIGKILL for a child: the call in flight fails with the reason, later ones find a new child."""
    mark = uuid.uuid4().hex
    with Gateway(name, servers(mark, stubborn=False)) as gateway:
        client = Legacy(gateway.url(), timeout=30)
        report.equal(f"{name}: before", client.tool("good__fx_echo", {"text": "a"}).text, "a")
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
        end, words = time.monotonic() + 15, ""
        while words != "b" and time.monotonic() < end:
            words = client.tool("good__fx_echo", {"text": "b"}).text
            time.sleep(0.1)
        report.equal(f"{name}: after", words, "b")
        report.check(f"{name}: the same session lists its tools", "good__fx_echo" in client.tools())
