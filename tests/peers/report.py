"""Collects the outcome of every check and prints it; the last line is `N passed, N failed`.

Knows nothing of MCP. Safe to use from several threads.
"""
import threading
import time
import traceback


class Report:
    """Counts of one run. A check below its bar counts as failed and is printed again at the end."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self._lock = threading.Lock()
        self._failures = []
        self._started = time.monotonic()

    def check(self, name, ok, detail=""):
        """One yes-or-no check."""
        self.count(name, int(bool(ok)), int(not ok), detail)
        return bool(ok)

    def equal(self, name, got, wanted):
        """A check that two values are the same; prints both when they are not."""
        return self.check(name, got == wanted, f"got {got!r:.600}, wanted {wanted!r:.600}")

    def count(self, name, passed, failed, detail=""):
        """A check that stands for several: `passed` of them held, `failed` did not."""
        with self._lock:
            self.passed += passed
            self.failed += failed
            if failed:
                self._failures.append((name, detail))
            mark = "FAIL" if failed else "ok"
            numbers = f" ({passed} passed, {failed} failed)" if passed + failed > 1 else ""
            print(f"{time.monotonic() - self._started:6.1f}s {mark:4} {name}{numbers}", flush=True)
            if failed and detail:
                print("        " + str(detail).replace("\n", "\n        "), flush=True)

    def guard(self, name, work):
        """Runs `work()`; an exception is one failed check. Returns what it returned, else None."""
        try:
            return work()
        except Exception:  # noqa: BLE001 - any breakage of a peer is a finding
            self.check(name, False, traceback.format_exc(limit=6))
            return None

    def finish(self):
        """Prints the failures again and the sum; returns the exit status."""
        for name, detail in self._failures:
            first = str(detail).strip().splitlines()
            print(f"FAILED {name}: {first[-1] if first else ''}")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed else 0
