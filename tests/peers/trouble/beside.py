"""A good server beside a bad one: keeps calling the good one and looks at how that went."""
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from gateway import Gateway
from wire import Legacy

HERE = Path(__file__).resolve().parent
FIXTURE = str(HERE.parent / "conformance" / "fixture_server.py")
HOSTILE = str(HERE / "hostile.py")
GOOD = {"command": sys.executable, "args": [FIXTURE, "stdio"]}
MEGABYTE = 1 << 20
# The good server's slowest answer while its neighbour makes trouble, on a busy machine.
SLOWEST = 3.0
MEMORY = 250 * MEGABYTE


def hostile(mode, **more):
    """The `mcpServers` entry of a hostile stdio server."""
    return {"command": sys.executable, "args": [HOSTILE, mode], **more}


@contextmanager
def beside(report, name, bad, memory=MEMORY, wait=True):
    """A gateway with the servers `good` and `bad`; checks the good one and the memory at the end."""
    with Gateway(name, {"good": GOOD, "bad": bad}, wait=wait) as gateway:
        good = Neighbour(gateway)
        try:
            yield gateway
        finally:
            good.stop()
        report.check(f"{name}: the good server answers all along", good.fine, good.verdict())
        report.check(f"{name}: memory stays below {memory // MEGABYTE} MB", good.most < memory, f"{good.most / MEGABYTE:.0f} MB")
        report.check(f"{name}: the gateway lives", gateway.process.poll() is None, gateway.tail())


class Neighbour:
    """Calls the good server until told to stop, and watches the gateway's memory."""

    def __init__(self, gateway):
        self._gateway, self._end = gateway, threading.Event()
        self.calls, self.slowest, self.most, self.wrong = 0, 0.0, 0, []
        self._thread = threading.Thread(target=self._call, daemon=True)
        self._thread.start()

    def _call(self):
        client = None
        while not self._end.wait(0.02):
            began = time.monotonic()
            try:
                client = client or self._connect()
                words = client.tool("fx_echo", {"text": str(self.calls)}).text
                if words != str(self.calls):
                    self.wrong.append(words)
            except Exception as error:  # noqa: BLE001 - what goes wrong for the good one is the finding
                self.wrong.append(repr(error))
                client = None
            self.calls += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.most = max(self.most, self._gateway.memory())

    def _connect(self):
        """The good server may itself be starting when the gateway was not waited for."""
        end = time.monotonic() + 10
        while True:
            try:
                return Legacy(self._gateway.url("good"), timeout=10)
            except RuntimeError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def stop(self):
        """Ends the calling, after enough calls to tell."""
        end = time.monotonic() + 10
        while self.calls < 5 and time.monotonic() < end:
            time.sleep(0.1)
        self._end.set()
        self._thread.join(15)

    @property
    def fine(self):
        """Whether every call answered, and in time."""
        return self.calls > 3 and not self.wrong and self.slowest < SLOWEST

    def verdict(self):
        """What happened, in a line."""
        return f"{self.calls} calls, slowest {self.slowest:.2f} s, {len(self.wrong)} wrong: {self.wrong[:3]}"
