"""The clock of a tree: heartbeats that an aggregator answers (AX-62).

A machine under load stretches seconds for gates and tests alike, so bounds of whole trees are counted in heartbeats. A member without tools
registers, waits an interval, sends a heartbeat, waits for its answer, waits another interval: between two answers lies an interval of the
aggregator, and not less. What has to hold within three intervals is looked at until the third answer has come. A clock that has stopped fails the test.
"""
import threading
import time
import uuid

from gateway import bearer
from wire import Modern

HEARTBEAT = 2.0
# Convergence takes less than three intervals (13.3).
BOUND = 3
# Who registered by HTTP, and falls silent, has no link that breaks: three whole intervals pass behind its last word, which may have come just before.
SILENT = BOUND + 1
# Nobody waits for ever for a clock that has stopped.
LAST = 180


class Beats:
    """Counts the heartbeats that a gate answers, from a registration on; as a context manager.

    The gate has a `url`, a `space` in which it is reached, and a `token`."""

    def __init__(self, gate):
        self.gate, self.count, self.fault, self._over = gate, 0, None, threading.Event()
        self._params = {
            "subserver_id": str(uuid.uuid4()), "segment": f"clock-{uuid.uuid4().hex[:8]}", "heartbeat_interval_ms": int(HEARTBEAT * 1000),
            "capabilities": {"tools": False, "resources": False, "notifications": False}, "url": "http://127.0.0.1:9/mcp",
        }
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self._beat()
        except Exception as fault:
            self.fault = repr(fault)

    def _beat(self):
        with self.gate.space:
            session = None
            while not self._over.is_set():
                try:
                    wire = Modern(self.gate.url(), headers=bearer(self.gate.token), timeout=30)
                    while not self._over.is_set():
                        session = session or self._registered(wire)
                        if self._over.wait(HEARTBEAT):
                            wire.call("mcpax/deregister", {"session_id": session})
                            return
                        if wire.call("mcpax/heartbeat", {"session_id": session}).error:
                            session = None
                        else:
                            self.count += 1
                except (OSError, RuntimeError, StopIteration, ValueError, KeyError):
                    # A gate that starts, or is busy: its clock stands still meanwhile.
                    time.sleep(0.05)

    def _registered(self, wire):
        answer = wire.call("mcpax/register", self._params)
        self.fault = answer.error
        if answer.error:
            raise ValueError(answer.error)
        return answer.result["session_id"]

    def wait(self, count, until):
        """Waits for more than `count` heartbeats; tells whether they came before `until`, with the clock's thread alive."""
        while self.count <= count and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.02)
        return self.count > count

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(10)


def converges(report, name, what, gate, most=BOUND):
    """Waits until `what()` holds, and checks that `gate` has answered fewer than `most` heartbeats by then."""
    since = time.monotonic()
    with Beats(gate) as beats:
        while time.monotonic() < since + LAST:
            # Whatever comes while it is looked came after the look began.
            count = beats.count
            if what():
                took = time.monotonic() - since
                # A clock that does not run bounds nothing.
                if not beats.wait(count, since + LAST):
                    return report.check(name, False, f"the clock stands at {count} heartbeats: {beats.fault or 'none was answered'}")
                print(f"        {name}: {took:.2f} s, {count} heartbeats", flush=True)
                return report.check(name, count < most, f"it took {count} heartbeats, and has to take fewer than {most}")
            if count >= most:
                return report.check(name, False, f"not before heartbeat {most}")
            time.sleep(0.02)
    return report.check(name, False, f"not within {LAST} s, and no {most} heartbeats were answered")
