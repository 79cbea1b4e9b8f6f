"""Many devices behind one gate: processes, open files, memory and connections, with devices that take a connection and never say a word.

200 devices in the group `network`; `python3 many.py 1000` inside namespaces of its own, with the loopback up, tries more by hand. The devices are
one listener that counts, so nothing here speaks of what real devices answer.
"""
import os
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gateway import Gateway, resident  # noqa: E402
from network.agent import processes, until  # noqa: E402
from report import Report  # noqa: E402

# Logins at a time, as docs/threats.md says, and as many again whose connections are just being closed.
LOGINS = 2 * 64
READY_WITHIN = 60
# Two of the longest intervals between signs of life would be 40 s; a storm comes at once.
QUIET = 3


class SilentDevices:
    """A port that takes every connection, and counts them."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.port, self.opened, self.open, self.most = self.server.getsockname()[1], 0, 0, 0
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            connection, _ = self.server.accept()
            with self.lock:
                self.opened, self.open = self.opened + 1, self.open + 1
                self.most = max(self.most, self.open)
            threading.Thread(target=self._hold, args=(connection,), daemon=True).start()

    def _hold(self, connection):
        try:
            while connection.recv(4096):
                pass
        except OSError:
            pass
        with self.lock:
            self.open -= 1
        connection.close()


def run(report, count=200):
    """Starts a gate with many devices, and counts."""
    devices = SilentDevices()
    config = ('[device_group.many]\n[device_template.silent]\nbackend = "netconf"\nuser = "x"\npassword = "canary-many"\ngroups = ["many"]\n'
              f'command_timeout = "2s"\naddress = "127.0.0.1:{devices.port}"\n' + "".join(f'[device.d{number}]\ntemplate = "silent"\n' for number in range(count)))
    with Gateway("many", {}, config=config, wait=False) as gateway:
        file = os.path.join(gateway.home.dir, "banyan.toml")
        ready = until(READY_WITHIN, lambda: gateway.told("status", "--json", "--config", file).count('"ready"') > count)
        report.check(f"fleet: {count} devices are served although none answers", ready is not None)
        shared = processes("fleet")
        report.equal(f"fleet: {count} devices are one process", (len(shared), len(processes("serve"))), (1, 0))
        files = len(os.listdir(f"/proc/{shared[0]}/fd"))
        print(f"        {count} devices: ready after {ready or 0:.1f} s, {resident(shared[0])} and {files} files in their process, "
              f"{devices.opened} connections, {devices.most} at a time", flush=True)
        report.check("fleet: so many of them are tried at a time", 0 < devices.most <= LOGINS, str(devices.most))
        before = devices.opened
        time.sleep(QUIET)
        report.equal("fleet: and none again before somebody asks", devices.opened - before, 0)


if __name__ == "__main__":
    told = Report()
    run(told, int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    sys.exit(told.finish())
