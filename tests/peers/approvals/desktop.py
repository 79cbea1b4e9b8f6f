"""A desktop that shows notifications (org.freedesktop.Notifications): dunst, on a screen that nobody sees, with a session bus of its own."""
import json
import re
import shutil
import subprocess
import time

from gateway import ROOT
from secret_service.session import Session

PROGRAMS = ("Xvfb", "dbus-daemon", "dbus-send", "dunst", "dunstctl", "notify-send")
PACKAGES = "dbus dunst libnotify-bin xvfb"
WITHIN = 60
# What is shown stays until it is asked for, and is then remembered: all of it, each by itself.
SETTINGS = "[global]\nhistory_length = 100\nstack_duplicates = false\nhide_duplicate_count = true\nidle_threshold = 0\n" \
    "[urgency_normal]\ntimeout = 0\n"


def missing():
    """The programs that are not installed."""
    return [program for program in PROGRAMS if not shutil.which(program)]


def documented():
    """The section of a configuration that docs/approvals.md shows for a desktop."""
    text = (ROOT / "docs" / "approvals.md").read_text()
    found = re.search(r"^ +\[\[approvals\.command\]\]\n(?: +.*\n)*? +args = .*notify-send.*\n", text, re.MULTILINE)
    return "\n".join(line.strip() for line in found[0].splitlines()) + "\n"


class Desktop(Session):
    """A bus, a screen, and dunst on both."""

    def __init__(self):
        super().__init__(keyring=False)
        try:
            self._bus()
            self.env["DISPLAY"] = self._screen()
            settings = f"{self.dir}/dunstrc"
            with open(settings, "w") as file:
                file.write(SETTINGS)
            self._start(["dunst", "-conf", settings], self._is_there)
        except BaseException:
            self.__exit__()
            raise

    def reached(self):
        """The variables by which a program finds it."""
        return {name: self.env[name] for name in ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY")}

    def _screen(self):
        command = ["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]
        process = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._running.append(process)
        number = process.stdout.readline().strip()
        if not number:
            raise RuntimeError(f"Xvfb does not serve; it ended with {process.wait()}")
        return f":{number}"

    def _is_there(self):
        ask = ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus.NameHasOwner",
               "string:org.freedesktop.Notifications"]
        return "boolean true" in subprocess.run(ask, env=self.env, capture_output=True, text=True, timeout=30).stdout

    def shown(self):
        """What was shown so far, the oldest first: title and text of each."""
        def ask(what):
            return subprocess.run(["dunstctl", what], env=self.env, capture_output=True, text=True, timeout=30).stdout
        ask("close-all")
        found = sorted(json.loads(ask("history"))["data"][0], key=lambda one: one["id"]["data"])
        return [(one["summary"]["data"], one["body"]["data"]) for one in found]

    def until(self, title):
        """The same, once something of that title is among it, or nothing comes any more."""
        end = time.monotonic() + WITHIN
        while not any(summary == title for summary, _ in self.shown()) and time.monotonic() < end:
            time.sleep(0.1)
        return self.shown()
