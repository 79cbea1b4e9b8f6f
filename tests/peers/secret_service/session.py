"""A session bus and what is on it, in a home directory that is removed at the end (Linux): an unlocked keyring, unless another desktop is made
of it. Nothing of the developer's own session is reached. The keyring is GNOME's, which many desktops have.
"""
import os
import shutil
import subprocess
import tempfile
import time

from gateway import end

PROGRAMS = ("dbus-daemon", "dbus-send", "gnome-keyring-daemon")
STARTED_WITHIN = 20
# Without service directories: whoever asks for the keyring too early would otherwise start a second one, which stays locked.
BUS = """<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"""


def missing():
    """The programs that are not installed."""
    return [program for program in PROGRAMS if not shutil.which(program)]


class Session:
    """The home and, if wanted, the bus with the keyring, as a context manager; `env` leads there."""

    def __init__(self, keyring=True):
        self.dir = tempfile.mkdtemp(prefix="banyan-keyring-")
        runtime = os.path.join(self.dir, "runtime")
        os.mkdir(runtime, 0o700)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "BANYAN_", "DBUS_", "GNOME_"))}
        self.env = {**clean, "HOME": self.dir, "XDG_RUNTIME_DIR": runtime}
        self._running = []
        try:
            if keyring:
                self._bus()
                command = ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"]
                self._start(command, self._is_open, "the password of this keyring")
        except BaseException:
            self.__exit__()
            raise

    def _bus(self):
        path = os.path.join(self.env["XDG_RUNTIME_DIR"], "bus")
        self.env["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={path}"
        rules = os.path.join(self.dir, "bus.conf")
        with open(rules, "w") as file:
            file.write(BUS.format(address=self.env["DBUS_SESSION_BUS_ADDRESS"]))
        self._start(["dbus-daemon", "--nofork", f"--config-file={rules}"], lambda: os.path.exists(path))

    def _start(self, command, ready, typed=""):
        process = subprocess.Popen(
            command, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        self._running.append(process)
        process.stdin.write(typed)
        process.stdin.close()
        end = time.monotonic() + STARTED_WITHIN
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command[0]} does not serve; it ended with {process.poll()}")
            time.sleep(0.05)

    def lock(self):
        """Locks the keyring; nobody is there to unlock it."""
        self._ask("/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock",
                  "array:objpath:/org/freedesktop/secrets/aliases/default")
        if self._is_open():
            raise RuntimeError("the keyring can't be locked")

    def _is_open(self):
        return "boolean false" in self._ask("/org/freedesktop/secrets/aliases/default", "org.freedesktop.DBus.Properties.Get",
                                            "string:org.freedesktop.Secret.Collection", "string:Locked")

    def _ask(self, *words):
        ask = ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", *words]
        return subprocess.run(ask, env=self.env, capture_output=True, text=True, timeout=30).stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self._running):
            end(process, 5)
        shutil.rmtree(self.dir, ignore_errors=True)
