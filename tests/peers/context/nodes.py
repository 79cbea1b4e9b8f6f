"""A node in Python, a gate's configuration with it as a peer, and the context as clients of the gate see it."""
import base64
import gzip
import json
import queue
import subprocess
import threading
import time
from pathlib import Path

from install import venv_bin
from wire import Legacy

HERE = Path(__file__).parent
WITHIN = 15


def micros():
    return time.time_ns() // 1000


def wait(check, within=WITHIN):
    """What `check` answers, once that is true, or at last."""
    end = time.monotonic() + within
    while not (found := check()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def section(place, name, listen=None, **peers):
    """The text of a gate's `[axcp]`, with the ports of peers that it dials, and one context for all of them."""
    text = '[gate]\nmode = "off"\n[axcp]\n' + "".join(f'{key} = "{place}/{file}"\n' for key, file in
                                                      {"certificate": f"{name}.pem", "key": f"{name}.key", "ca": "ca.pem"}.items())
    text += f'listen = "127.0.0.1:{listen}"\n' if listen else ""
    for peer, port in peers.items():
        text += f'[axcp.peer.{peer}]\nid = "dns:{peer}"\n' + (f'address = "127.0.0.1:{port}"\n' if port else "")
    return text + f'[context.chat]\npeers = {json.dumps(list(peers))}\n'


class Peer:
    """The node in Python, as a process of its own."""

    def __init__(self, place, way, *arguments, name="python", ca="ca", order="little", shows=True):
        shown = ["--certificate", f"{place}/{name}.pem", "--key", f"{place}/{name}.key"] if shows else []
        command = [venv_bin("context"), str(HERE / "peer.py"), way, *map(str, arguments), *shown, "--ca", f"{place}/{ca}.pem", "--order", order]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.events, self.seen = queue.Queue(), []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.events.put(json.loads(line))

    def next(self, within=WITHIN):
        """The next event, or an empty one."""
        try:
            event = self.events.get(timeout=within)
        except queue.Empty:
            return {}
        self.seen.append(event)
        return event

    def until(self, member, within=WITHIN):
        """The next envelope with `member`, or the next event of that name; what comes before is passed over."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            event = self.next(max(0.01, end - time.monotonic()))
            if member in event:
                return event
            if member in event.get("envelope", {}):
                return event["envelope"][member]
            if "closed" in event:
                return {}
        return {}

    def send(self, **envelope):
        self._command({"send": {"profile": 2, **envelope}})

    def raw(self, data):
        self._command({"raw": data.hex()})

    def offer(self, **offer):
        self._command({"offer": offer})

    def invoke(self, trace_id, tool_id, arguments=None, **more):
        """Calls a tool of the gate."""
        data = {} if arguments is None else {"arguments": base64.b64encode(json.dumps(arguments).encode()).decode()}
        self.send(trace_id=trace_id, tool_invoke={"tool_id": tool_id, **data, **more})

    def about(self, trace_id, *members, within=WITHIN):
        """The next envelope with `trace_id` and one of `members`: the member's content, or an empty one."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            event = self.next(max(0.01, end - time.monotonic()))
            envelope = event.get("envelope", {})
            found = next((envelope[member] for member in members if member in envelope), None)
            if found is not None and envelope.get("trace_id") == trace_id:
                return found
            if "closed" in event:
                return {}
        return {}

    def datagram(self, data):
        self._command({"datagram": data.hex()})

    def _command(self, command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def hello(self, mask=0b0111, least=2):
        """Settles the profile."""
        self.send(profile=0, profile_neg={"supported_mask": mask, "min_required": least})
        ack = self.until("profile_ack")
        if ack:
            self.send(profile=0, profile_ack=ack)
        return ack

    def subscribe(self, version=0, context="chat"):
        self.send(sync_subscribe={"from": {"context_id": context, "version": version}})

    def patch(self, ops, context="chat", base=0):
        self.send(context_patch={"context_id": context, "base_version": base, "ops": ops})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def op(path, value, kind=1, ts=None, packed=False):
    data = json.dumps(value).encode()
    return {"op": kind, "path": path, "ts": str(ts or micros()), "data": base64.b64encode(gzip.compress(data) if packed else data).decode()}


def read(gateway, path=""):
    """What the tool of the context reads; None where nothing stands."""
    reply = Legacy(gateway.url("chat")).tool("read", {"path": path})
    return None if reply.result.get("isError") else json.loads(reply.text)


def write(gateway, path, value, kind="replace"):
    reply = Legacy(gateway.url("chat")).tool("patch", {"ops": [{"op": kind, "path": path, "value": value}]})
    if reply.result.get("isError"):
        raise RuntimeError(reply.text)
    return int(reply.text.split()[1])
