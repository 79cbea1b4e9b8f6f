"""A client of `banyan device serve` on a pipe of its own, without a gate: raw messages in either era, and what comes by itself."""
import json
import queue
import subprocess
import threading
import time

from gateway import binary

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


class Serving:
    """One process of a device. `answer(method, params)` serves its questions."""

    def __init__(self, home, settings, compat=None, capabilities=None, modern=False, answer=None):
        command = [binary(), "device", "serve", "--settings", json.dumps(settings), "--state", f"{home}/direct"]
        self.process = subprocess.Popen([*command, *(["--compat", compat] if compat else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.modern, self.capabilities, self.answer, self.number = modern, capabilities or {}, answer, 0
        self.answers, self.told = {}, queue.Queue()
        self.arrived = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        if not modern:
            self.welcome = self.call("initialize", protocolVersion="2025-06-18", capabilities=self.capabilities, clientInfo={"name": "x", "version": "1"})

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self._write({"jsonrpc": "2.0", "id": message["id"], "result": self.answer(message["method"], message["params"])})
            elif "method" in message:
                self.told.put(message)
            else:
                with self.arrived:
                    self.answers[message["id"]] = message
                    self.arrived.notify_all()

    def _write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        """The whole answer to a request."""
        self.number += 1
        number = self.number
        if self.modern:
            params["_meta"] = {META + "protocolVersion": MODERN, META + "clientCapabilities": self.capabilities, **params.get("_meta", {})}
        self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        with self.arrived:
            if not self.arrived.wait_for(lambda: number in self.answers, timeout=15):
                raise RuntimeError(f"no answer to {method}")
            return self.answers.pop(number)

    def call(self, method, **params):
        """The result of a request."""
        answer = self.ask(method, **params)
        if "result" not in answer:
            raise RuntimeError(f"{method}: {answer}")
        return answer["result"]

    def send(self, method, **params):
        """Sends a request without waiting for its answer; answers its id."""
        self.number += 1
        params["_meta"] = {META + "protocolVersion": MODERN, META + "clientCapabilities": self.capabilities}
        self._write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def wait(self, method, within=10, where=lambda params: True):
        """Params of the next notification of this kind, None when it does not come in time."""
        end = time.monotonic() + within
        while (left := end - time.monotonic()) > 0:
            try:
                message = self.told.get(timeout=left)
            except queue.Empty:
                return None
            if message["method"] == method and where(message.get("params") or {}):
                return message["params"]
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
