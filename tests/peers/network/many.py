"""Many devices behind one gate: an outage, processes, open files, memory and connections, with devices that take a connection and never say a word.

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
from network.agent import Device, processes, until  # noqa: E402
from report import Report  # noqa: E402

# Logins at a time, as docs/threats.md says, and as many again whose connections are just being closed.
LOGINS = 2 * 64
READY_WITHIN = 60
# Two of the longest intervals between signs of life would be 40 s; a storm comes at once.
QUIET = 2


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


class Switchable:
    """A way to a real device that can be switched off and on again, and counts the connections over it."""

    def __init__(self, address, port):
        self.target, self.server = (address, port), socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port, self.is_on, self.opened, self.most, self.streams, self.lock = self.server.getsockname()[1], True, 0, 0, set(), threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self.server.accept()
            self.opened += 1
            if not self.is_on:
                near.close()
                continue
            far = socket.create_connection(self.target)
            with self.lock:
                self.streams.add((near, far))
                self.most = max(self.most, len(self.streams))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, sink, (near, far)), daemon=True).start()

    def _carry(self, source, sink, pair):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        with self.lock:
            self.streams.discard(pair)
        for end in pair:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def off(self):
        """Ends all connections, and lets nobody in."""
        self.is_on = False
        with self.lock:
            for end in [end for pair in self.streams for end in pair]:
                end.shutdown(socket.SHUT_RDWR)


def outage(report, count=12, connections=4):
    """More devices than connections, all of them gone at once and back: bounded, nothing tried unasked, all answer again."""
    from network import lab, netconfd
    way = Switchable(netconfd.ADDRESS, 830)
    login = f'backend = "netconf"\nuser = "ncadmin"\npassword = "${{file:{netconfd.HOME}/password}}"\nhost_key = "{lab.fingerprint()}"\n'
    config = (f'[device_limits]\nconnections = {connections}\nlogins = 2\n[device_group.few]\n[device_template.nc]\n{login}groups = ["few"]\naddress = "127.0.0.1:{way.port}"\n'
              + "".join(f'[device.d{number}]\ntemplate = "nc"\n' for number in range(count)))
    with Gateway("outage", {}, config=config) as gateway:
        group = Device(gateway, "few")

        def asked():
            told = group.call("network.yang.get", path="/ietf-interfaces:interfaces")["structuredContent"]
            return told["answered"], {one["error"]["code"] for one in told["devices"].values() if "error" in one}

        report.equal(f"fleet: {count} devices answer over {connections} connections: kept sessions give way, the next one waits", asked(), (count, set()))
        # A connection that gives way may still be ending while the next one begins.
        report.check("fleet: and no more at a time", 0 < way.most <= connections + 2, str(way.most))
        way.off()
        before = way.opened
        report.equal("fleet: after the loss of all devices a call says so for each", asked(), (0, {-32082}))
        report.check("fleet: after one try of each, or two where a session was kept", way.opened - before <= 2 * count, str(way.opened - before))
        before = way.opened
        time.sleep(QUIET)
        report.equal("fleet: and nothing is tried unasked", way.opened - before, 0)
        way.is_on, way.most, before = True, 0, way.opened
        report.equal("fleet: once they are back, they answer", asked(), (count, set()))
        report.check("fleet: without a storm", way.most <= connections + 2 and way.opened - before <= 2 * count, f"{way.most} {way.opened - before}")


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
