"""A device as an agent sees it through a gate, and the processes of the binary under test."""
import json
import os
import re
import signal
import time
from pathlib import Path

from gateway import bearer, binary
from wire import Modern


# The draft's errors, and JSON-RPC's for an argument.
NUMBERS = {*range(-32090, -32080), -32602}


class Device:
    """One device behind the gate, called by a client of the stateless era."""

    def __init__(self, gateway, name, token=None):
        self.wire = Modern(gateway.url(name), headers=bearer(token))
        tools = self.wire.tools()
        self.named = {re.sub(r"[_.]+", ".", tool): tool for tool in tools}
        self.tools = {re.sub(r"[_.]+", ".", tool): definition for tool, definition in tools.items()}

    def call(self, tool, **arguments):
        """The result of a tool. A failure has the form of the era in which the gate speaks with the device: under load a device may answer the
        probe for the stateless era too late, and then its error is one of JSON-RPC. Either has its code, its detail and its path as structure."""
        reply = self.wire.tool(self.named[tool], arguments)
        if reply.error.get("code") in NUMBERS:
            return {"isError": True, "structuredContent": reply.error}
        return reply.result

    def code(self, tool, **arguments):
        """The draft's number of a tool that fails; the detail too."""
        result = self.call(tool, **arguments)
        structured = result.get("structuredContent") or {}
        return structured.get("code"), (structured.get("data") or {}).get("detail", str(result)[:400])

    def change(self, *commands):
        """Makes a candidate; the structure of the answer."""
        return self.call("network.cli.configure", commands=list(commands))["structuredContent"]

    def read(self, path):
        """The text of a resource."""
        return self.wire.call("resources/read", {"uri": f"network:///{path}"}).result["contents"][0]["text"]


def until(seconds, holds):
    """Waits until something holds; answers how long, None when it did not."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if holds():
            return time.monotonic() - began
        time.sleep(0.1)
    return None


def processes(word, gateway=None):
    """Processes of the binary under test with this word among their arguments, of one gate or of all: id by id."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            # Also a guard whose server is gone has the home of its gate.
            homes = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(binary()) == arguments[0] and word.encode() in arguments and (gateway is None or f"HOME={gateway.home.dir}".encode() in homes):
            found.append(int(entry.name))
    return found


def command_lines():
    """The arguments of every process that runs."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes())
        except OSError:
            continue
    return found


def kill_all(gateway):
    """Kills the gate, and the servers and guards of its devices."""
    servers = processes("serve", gateway) + processes("guard", gateway)
    gateway.kill()
    for pid in servers:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
