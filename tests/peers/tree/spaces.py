"""Network namespaces, and wires between them that can be cut: packets go nowhere, and nobody is told.

Takes root and `ip`. What runs in a namespace is known to those who start it.
"""
import ctypes
import itertools
import os
import shutil
import subprocess
import threading

CLONE_NEWNET = 0x40000000
# A card that nobody has.
NOWHERE = "02:00:00:00:00:ff"
NUMBERS = itertools.count(1)


def missing():
    """What this machine lacks for namespaces; nothing where it lacks nothing."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return "network namespaces take root and `ip`"
    name = f"banyan-{os.getpid()}-try"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "this machine lets nobody make network namespaces"
    ip("netns", "delete", name)
    return None


class Space:
    """A namespace; as a context manager, where the thread that enters it is, with the processes and threads that it starts."""

    def __init__(self, stack):
        self.name = f"banyan-{os.getpid()}-{next(NUMBERS)}"
        ip("netns", "add", self.name)
        stack.callback(ip, "netns", "delete", self.name)
        self._before = threading.local()
        self.loopback("up")

    def loopback(self, state):
        """Whether its processes reach each other (`up`) or not (`down`)."""
        ip("-n", self.name, "link", "set", "lo", state)

    def __enter__(self):
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._before.all = [*getattr(self._before, "all", []), before]
        inside = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        go(inside)
        os.close(inside)
        return self

    def __exit__(self, *_):
        before = self._before.all.pop()
        go(before)
        os.close(before)


class Wire:
    """What joins two namespaces: each has an address on it, in the order in which they were given."""

    def __init__(self, *spaces):
        self.spaces, number = spaces, next(NUMBERS)
        self.addresses = [f"10.77.{number}.{at}" for at in (1, 2)]
        self.device = f"wire{number}"
        one, two = (space.name for space in spaces)
        ip("link", "add", self.device, "netns", one, "type", "veth", "peer", "name", self.device, "netns", two)
        for space, address in zip(spaces, self.addresses):
            ip("-n", space.name, "address", "add", f"{address}/24", "dev", self.device)
            ip("-n", space.name, "link", "set", self.device, "up")

    def cut(self):
        """From now on whatever goes over it vanishes."""
        self._neighbours("replace", "lladdr", NOWHERE, "nud", "permanent")

    def mend(self):
        """It carries again."""
        self._neighbours("delete")

    def _neighbours(self, change, *how):
        for space, other in zip(self.spaces, reversed(self.addresses)):
            ip("-n", space.name, "neighbor", change, other, *how, "dev", self.device)


def go(space):
    """Takes this thread into a namespace, by an open file."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(space, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def ip(*words):
    """Runs `ip`."""
    subprocess.run(["ip", *words], check=True)
