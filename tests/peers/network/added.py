"""`banyan device add` at a terminal: what the way to a device needs is asked, and nothing stays of a device that can't be reached.

A real sshd judges the login. The commands run as a person runs them, with a terminal of their own.
"""
import os
import pty
import select
import subprocess
import time
from pathlib import Path

from gateway import Home, binary
from network import lab

ANSWERED_WITHIN = 30


class Terminal:
    """A command with a terminal, and what was shown there."""

    def __init__(self, home, *arguments):
        self.end, end = pty.openpty()
        self.process = subprocess.Popen([binary(), *arguments], stdin=end, stdout=end, stderr=end, env=home.env, cwd=home.dir, start_new_session=True)
        os.close(end)
        self.shown = ""

    def answer(self, question, typed):
        """Types a line once the question stands there."""
        self.read(lambda: question in self.shown)
        if question not in self.shown:
            raise AssertionError(f"{question!r} was not asked: {self.shown}")
        self.shown = self.shown.split(question, 1)[1]
        os.write(self.end, f"{typed}\n".encode())

    def ends(self):
        """The exit code."""
        self.read(lambda: False)
        os.close(self.end)
        return self.process.wait(ANSWERED_WITHIN)

    def read(self, is_enough):
        end = time.monotonic() + ANSWERED_WITHIN
        while not is_enough() and time.monotonic() < end:
            if select.select([self.end], [], [], 0.2)[0]:
                try:
                    self.shown += os.read(self.end, 4096).decode(errors="replace")
                except OSError:
                    return


def run(report):
    """Devices that are added, refused and asked for again."""
    home = Home("added", {})
    try:
        config, secret = Path(home.dir) / "banyan.toml", Path(home.dir) / ".config/banyan/secrets/dut"
        config.write_text("# a comment stays\n")
        report.guard("network/added.refused", lambda: refused(report, home, config, secret))
        report.guard("network/added.password", lambda: password(report, home, config, secret))
        report.guard("network/added.key", lambda: key(report, home, config))
        report.guard("network/added.nobody", lambda: nobody(report, home, config))
    finally:
        home.remove()


def refused(report, home, config, secret):
    """No host key is taken unseen, and a wrong password leaves nothing."""
    asked = begin(home)
    asked.answer(f"shows the host key {lab.fingerprint()}. Is that the key of the device? [yes/no] ", "")
    code = asked.ends()
    report.check("NM-12: a host key that nobody took adds nothing", code == 4 and "nothing is added" in asked.shown and "dut" not in config.read_text(), asked.shown)
    asked = begin(home)
    asked.answer("[yes/no] ", "yes")
    asked.answer("User", "netadm")
    asked.answer("File of the private key, or nothing for a password: ", "")
    asked.answer("Password of netadm: ", "canary-wrong-login")
    asked.answer("Dialect (frr, ios, junos, vrp) [frr]: ", "")
    code = asked.ends()
    report.check("a login that is refused adds nothing, and the password is gone", code == 1 and "netadm" in asked.shown and not secret.exists()
                 and "dut" not in config.read_text() and "canary" not in asked.shown, asked.shown)


def password(report, home, config, secret):
    """A password is typed unseen and kept out of the configuration."""
    asked = begin(home)
    asked.answer("[yes/no] ", "yes")
    asked.answer("User", "netadm")
    asked.answer("File of the private key, or nothing for a password: ", "")
    asked.answer("Password of netadm: ", lab.LOGIN)
    asked.answer("Dialect (frr, ios, junos, vrp) [frr]: ", "")
    code, text = asked.ends(), config.read_text()
    report.check("a device is added by what was asked", code == 0 and "added to" in asked.shown and "FRRouting" in asked.shown and text.startswith("# a comment stays\n"),
                 asked.shown + text)
    report.check("the configuration holds a reference, and the file is its owner's", lab.LOGIN not in text + asked.shown and "${file:" in text
                 and secret.read_text() == lab.LOGIN and secret.stat().st_mode & 0o777 == 0o600 and str(secret) in asked.shown, text)
    again = subprocess.run([binary(), "device", "add", "dut"], env=home.env, cwd=home.dir, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    report.check("a device is added once", again.returncode == 4 and "already" in again.stderr, again.stderr)


def key(report, home, config):
    """Nothing is asked that was given."""
    asked = Terminal(home, "device", "add", "bykey", "--backend", "ssh", "--address", "127.0.0.1:2222", "--user", "netadm", "--key", f"{lab.WORK}/login", "--dialect", "frr")
    asked.answer("[yes/no] ", "yes")
    code = asked.ends()
    report.check("only the host key is asked for where the rest was given", code == 0 and "[device.bykey]" in config.read_text(), asked.shown)


def nobody(report, home, config):
    """Where nobody can be asked, the command says what is missing."""
    done = subprocess.run([binary(), "device", "add", "late", "--backend", "ssh"], env=home.env, cwd=home.dir, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    report.check("without a terminal nothing is asked, and what is missing is named", done.returncode and "needs `address`" in done.stderr and "late" not in config.read_text(),
                 done.stderr)


def begin(home):
    """The command up to the address."""
    asked = Terminal(home, "device", "add", "dut")
    asked.answer("Way to the device (frr, ssh, bird, ovs, netconf, snmp) [frr]: ", "telnet")
    asked.answer("Way to the device (frr, ssh, bird, ovs, netconf, snmp) [frr]: ", "ssh")
    asked.answer("Address: ", "127.0.0.1:2222")
    return asked
