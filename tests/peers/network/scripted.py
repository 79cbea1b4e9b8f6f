"""Devices that are scripts: command lines over SSH that play what published transcripts of Junos, IOS and VRP show, and some that play badly.

Banners, prompts, pagers, questions, errors, the configuration mode, and commits that the device itself takes back. No real device of these kinds was
tried. Runs by itself with `paramiko`: `scripted.py DIRECTORY HOSTKEY PASSWORD`; writes what each device runs into the directory, and one line once
all listen. A minute lasts three seconds here.
"""
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

import paramiko

MINUTE = 3.0
PAGE = 24
PORTS = {"junos": 2301, "ios": 2302, "plain": 2303, "vrp": 2304, "hanging": 2305, "garbage": 2306, "flood": 2307, "reboot": 2308, "asking": 2309}
JUNOS = ["set version 21.4R3.15", "set system host-name edge", 'set system root-authentication encrypted-password "$6$canary-junos-secret"',
         "set interfaces ge-0/0/0 description uplink", "set interfaces ge-0/0/0 unit 0 family inet address 10.0.0.1/30",
         "set routing-options static route 10.9.0.0/16 discard"] + [f"set policy-options prefix-list many 10.8.{n}.0/24" for n in range(40)]
IOS = ["version 15.2", "hostname access1", "enable secret 5 $1$canary-ios-secret", "interface GigabitEthernet0/1", " description uplink",
       " switchport mode trunk", "interface GigabitEthernet0/2", " switchport access vlan 10", "ip route 10.9.0.0 255.255.0.0 Null0"]
VRP = ["sysname core1", "interface GE1/0/1", " description uplink", "interface GE1/0/2", " description spare"]

# Each holds a secret of every kind that its dialect knows.
SECRETS = json.loads(Path(__file__).with_name("canaries.json").read_text())
for lines, dialect, begins in ((JUNOS, "junos", "set "), (IOS, "ios", ""), (VRP, "vrp", "")):
    lines += [line for known, _, text in SECRETS if known == dialect and text.startswith(begins) for line in text.split("\n")]


def blocks(lines):
    """Lines of VRP, with its mark between two blocks."""
    return "\n".join(f"#\n{line}" if number and not line.startswith(" ") else line for number, line in enumerate(lines))


def words_of(line):
    """The words of a line, without quotes."""
    return line.replace('"', "").split()


class Machine:
    """What a device holds, for all sessions together."""

    def __init__(self, name, lines, home):
        self.name, self.home, self.lock = name, home, threading.RLock()
        self.running, self.earlier, self.candidate = list(lines), [], None
        self.editor, self.timer, self.old, self.saved, self.down_until = None, None, None, list(lines), 0
        self.keep()

    def keep(self):
        """Shows the judges of the tests what runs."""
        file = self.home / f"{self.name}.running"
        file.with_suffix(".new").write_text("\n".join(self.running) + "\n")
        os.replace(file.with_suffix(".new"), file)

    def run(self, lines):
        """Runs a configuration."""
        with self.lock:
            self.earlier = [list(self.running), *self.earlier][:10]
            self.running = list(lines)
            self.keep()

    def erase(self, line):
        """Does what no timer takes back."""
        with (self.home / f"{self.name}.erased").open("a") as file:
            file.write(line + "\n")

    def arm(self, seconds):
        """Takes back what comes now, unless it is confirmed."""
        with self.lock:
            self.disarm()
            self.old = list(self.running)
            self.timer = threading.Timer(seconds, self.revert)
            self.timer.daemon = True
            self.timer.start()

    def disarm(self):
        """Stops the timer; was there one?"""
        with self.lock:
            timer, self.timer = self.timer, None
            if timer:
                timer.cancel()
            return timer is not None

    def revert(self):
        """Runs what ran before the timer."""
        with self.lock:
            self.timer = None
            self.run(self.old)


class Session:
    """One terminal: reads lines, shows echoes, pages and prompts."""

    def __init__(self, machine, channel):
        self.machine, self.channel, self.mode, self.block, self.pager = machine, channel, "exec", None, True
        self.buffer = b""

    def send(self, text):
        """Sends text with line ends of a terminal."""
        self.channel.sendall(text.replace("\n", "\r\n").encode())

    def line(self):
        """The next line that is typed, echoed."""
        while b"\n" not in self.buffer and b"\r" not in self.buffer:
            got = self.channel.recv(4096)
            if not got:
                raise EOFError
            self.buffer += got
        line, _, self.buffer = self.buffer.replace(b"\r", b"\n").partition(b"\n")
        self.send(line.decode() + "\n")
        return line.decode()

    def page(self, text, more):
        """Shows text page by page, each next page for a key."""
        lines = text.splitlines()
        for begin in range(0, len(lines), PAGE):
            if begin and self.pager:
                self.channel.sendall(more.encode())
                key = self.channel.recv(1)
                if not key or key == b"q":
                    return
                self.channel.sendall(b"\r" + b" " * len(more) + b"\r")
            self.send("\n".join(lines[begin:begin + PAGE]) + "\n")

    def serve(self):
        """Talks until the other side is gone."""
        try:
            self.send(self.banner)
            while True:
                self.send(self.prompt())
                line = self.line().strip()
                if line and self.answer(line) == "bye":
                    return
        except (EOFError, OSError, paramiko.SSHException):
            pass
        finally:
            if self.machine.editor is self:
                self.machine.editor, self.machine.candidate = None, None
            self.channel.close()


class Junos(Session):
    """Junos: a candidate of the session, `commit confirmed` in minutes."""

    banner = "--- JUNOS 21.4R3.15 Kernel 64-bit\nAuthorized use only!\n"

    def prompt(self):
        edit = "[edit]\n" if self.mode == "configure" else ""
        warning = "\n# commit confirmed will be rolled back in 1 minute\n" if edit and self.machine.timer else ""
        return f"{warning}{edit}netadm@edge{'#' if edit else '>'} "

    def answer(self, line):
        machine = self.machine
        if line.startswith("set cli screen-length"):
            self.pager = not line.endswith(" 0")
            return self.send("Screen length set to 0\n")
        if line.startswith("set cli screen-width"):
            return self.send("Screen width set to 0\n")
        return self.configuring(line) if self.mode == "configure" else self.showing(line, machine)

    def showing(self, line, machine):
        if line == "show version":
            return self.send("Hostname: edge\nModel: vmx\nJunos: 21.4R3.15\n")
        if line == "show configuration | display set":
            return self.page("\n".join(machine.running), "---(more)---")
        if line == "configure exclusive":
            with machine.lock:
                if machine.editor:
                    return self.send("error: configuration database locked by:\n  ann terminal p0 (pid 4242) on since 2026-11-25 09:00:00 UTC\n      exclusive [edit]\n")
                machine.editor, machine.candidate = self, list(machine.running)
            self.mode = "configure"
            return self.send("warning: uncommitted changes will be discarded on exit\nEntering configuration mode\n\n")
        return self.send(f"                  ^\nunknown command.\n") if line != "quit" else "bye"

    def configuring(self, line):
        machine = self.machine
        verb, _, rest = line.partition(" ")
        if line == "show | display set":
            return self.page("\n".join(machine.candidate), "---(more)---")
        if "weak" in line:
            return self.send(f"error: {words_of(line)[-1]}: is no good\n")
        if verb == "set" and rest.split(" ")[0] in ("system", "interfaces", "routing-options", "policy-options", "vlans", "snmp"):
            single = rest.rsplit(" ", 1)[0] if " description " in line or " host-name " in line else None
            machine.candidate = [old for old in machine.candidate if not (single and old.startswith(f"set {single} ")) and old != line] + [line]
            return None
        if verb == "delete":
            kept = [old for old in machine.candidate if not (old + " ").startswith(f"set {rest} ")]
            if len(kept) == len(machine.candidate):
                self.send("warning: statement not found\n")
            machine.candidate = kept
            return None
        if line == "commit check":
            machine.disarm()
            bad = any("mtu 99999" in one for one in machine.candidate)
            return self.send("error: mtu: value 99999 must be in range 256..9192: invalid value\nerror: configuration check-out failed\n" if bad else "configuration check succeeds\n")
        if line.startswith("commit confirmed "):
            return self.confirmed(int(rest.split(" ")[-1]))
        if line == "commit":
            machine.disarm()
            machine.run(machine.candidate)
            return self.send("commit complete\n")
        if verb == "rollback":
            number = int(rest)
            machine.candidate = list(machine.running if number == 0 else machine.earlier[number - 1]) if number <= len(machine.earlier) else machine.candidate
            return self.send("load complete\n" if number <= len(machine.earlier) else f"error: rollback {number} is not there\n")
        if line == "exit configuration-mode":
            machine.editor, machine.candidate, self.mode = None, None, "exec"
            return self.send("Exiting configuration mode\n\n")
        return self.send("                 ^\nsyntax error.\n")

    def confirmed(self, minutes):
        self.machine.arm(minutes * MINUTE)
        self.machine.run(self.machine.candidate)
        self.send(f"commit confirmed will be automatically rolled back in {minutes} minutes unless confirmed\ncommit complete\n")


class Reboot(Junos):
    """Junos that loses its power within a commit, and comes back with the old configuration."""

    def confirmed(self, minutes):
        self.machine.run(self.machine.candidate)
        self.machine.down_until = time.monotonic() + 1.5
        threading.Timer(1.0, lambda: self.machine.run(self.machine.saved)).start()
        self.machine.editor = None
        self.channel.get_transport().close()
        raise EOFError


class Ios(Session):
    """IOS with an archive: `configure terminal revert timer` in minutes."""

    banner = "\n************\n* Keep out! *\n************\n"
    has_archive = True

    def prompt(self):
        return "access1" + ("(config-if)" if self.block else "(config)" if self.mode == "configure" else "") + "#"

    def answer(self, line):
        if line.startswith("terminal "):
            self.pager = self.pager and line != "terminal length 0"
            return None
        return self.configuring(line) if self.mode == "configure" else self.showing(line)

    def showing(self, line):
        machine = self.machine
        if line == "show version":
            return self.send("Cisco IOS Software, C2960 Software, Version 15.2(7)E\n")
        if line == "show running-config":
            stamp = time.strftime("%H:%M:%S UTC %a %b %d %Y")
            head = f"Building configuration...\n\nCurrent configuration : {len(str(machine.running))} bytes\n!\n! Last configuration change at {stamp} by netadm\n!\n"
            return self.page(head + "\n".join(machine.running) + "\n!\nend\n", " --More-- ")
        if line.startswith("configure terminal"):
            if "revert" in line:
                if not self.has_archive:
                    return self.send("% Rollback is not supported: archive is not configured\n")
                machine.arm(int(line.split()[-1]) * MINUTE)
                self.send("Rollback Confirmed Change: Backing up current running config to flash:bk-1\n\n")
            self.mode = "configure"
            return self.send("Enter configuration commands, one per line.  End with CNTL/Z.\n")
        if line == "configure confirm":
            (machine.home / f"{machine.name}.confirmed").write_text(line + "\n")
            return None if machine.disarm() else self.send("% No Rollback Confirmed Change pending\n")
        if line == "configure revert now":
            if not machine.disarm():
                return self.send("% No Rollback Confirmed Change pending\n")
            machine.revert()
            return self.send("Rollback Confirmed Change: Rollback to: flash:bk-1\nTotal number of passes: 1\nRollback Done\n")
        if line.startswith("redundancy "):
            return machine.erase(line)
        if line == "write memory":
            machine.saved = list(machine.running)
            (machine.home / f"{machine.name}.saved").write_text("\n".join(machine.saved) + "\n")
            return self.send("Building configuration...\n[OK]\n")
        return "bye" if line == "exit" else self.send(f"{' ' * 8}^\n% Invalid input detected at '^' marker.\n\n")

    def configuring(self, line):
        machine = self.machine
        bare, words = line.removeprefix("no "), line.split()
        if line == "end":
            self.mode, self.block = "exec", None
            return None
        if line == "exit":
            self.mode, self.block = self.mode if self.block else "exec", None
            return None
        if words[0] == "interface":
            self.block = line
            if line not in machine.running:
                machine.run([*machine.running, line])
            return None
        if bare.split()[0] not in ("description", "switchport", "shutdown", "hostname", "ip", "vlan", "name"):
            return self.send(f"{' ' * 8}^\n% Invalid input detected at '^' marker.\n\n")
        lines = list(machine.running)
        if self.block:
            begin = lines.index(self.block) + 1
            end = next((n for n in range(begin, len(lines)) if not lines[n].startswith(" ")), len(lines))
            key = " " + bare.split()[0]
            block = [old for old in lines[begin:end] if not (old == f" {bare}" or (key == " description" and old.startswith(key)))]
            lines[begin:end] = block if line.startswith("no ") else [*block, f" {bare}"]
        else:
            lines = [old for old in lines if old != bare and not (bare.startswith("hostname") and old.startswith("hostname"))]
            lines += [] if line.startswith("no ") else [bare]
        machine.run(lines)
        return None


class Plain(Ios):
    """IOS without an archive."""

    has_archive = False


class Vrp(Ios):
    """VRP in two stages: a candidate of the device, `commit trial` in seconds."""

    banner = "\nInfo: The max number of VTY users is 21.\n"

    def prompt(self):
        inner = f"-{self.block.split()[1]}" if self.block else ""
        changed = "*" if self.machine.candidate not in (None, self.machine.running) else "~"
        return f"[{changed}core1{inner}]" if self.mode == "configure" else "<core1>"

    def answer(self, line):
        machine = self.machine
        if line.startswith("screen-"):
            self.pager = False
            return None
        if line == "display version":
            return self.send("Huawei Versatile Routing Platform Software\nVRP (R) software, Version 8.180\n")
        if line == "display current-configuration":
            return self.page("!Software Version V200R005\n!Last configuration was updated at 2026-11-25\n#\n" + blocks(machine.running) + "\n#\nreturn\n", "  ---- More ----")
        if line == "display configuration candidate":
            return self.page("#\n" + blocks(machine.candidate or machine.running) + "\n#\nreturn\n", "  ---- More ----")
        if line == "save force":
            return self.send("Now saving the current configuration to the slot 1.\nSave the configuration successfully.\n")
        if self.mode == "exec":
            if line.startswith("delete "):
                return machine.erase(line)
            if line != "system-view":
                return self.send("                 ^\nError: Unrecognized command found at '^' position.\n")
            self.mode, machine.candidate, machine.editor = "configure", list(machine.running), self
            return self.send("Enter system view, return user view with return command.\n")
        return self.editing(line)

    def editing(self, line):
        machine = self.machine
        if line == "return":
            self.mode, self.block, machine.candidate, machine.editor = "exec", None, None, None
            return None
        if line == "quit":
            self.mode, self.block = self.mode if self.block else "exec", None
            return None
        if line == "clear configuration candidate":
            self.block, machine.candidate = None, list(machine.running)
            return None
        if line.startswith("commit trial "):
            machine.arm(int(line.split()[-1]))
            return machine.run(machine.candidate)
        if line == "commit":
            machine.disarm()
            return machine.run(machine.candidate)
        if line == "abort trial":
            return machine.revert() if machine.disarm() else self.send("Error: No trial configuration exists.\n")
        if line.startswith("interface "):
            self.block = line
            return None
        if line.removeprefix("undo ").split()[0] not in ("description", "sysname", "vlan"):
            return self.send("                 ^\nError: Unrecognized command found at '^' position.\n")
        begin = machine.candidate.index(self.block) + 1
        kept = [old for n, old in enumerate(machine.candidate) if not (n == begin and old.startswith(" description"))]
        machine.candidate = kept if line.startswith("undo ") else [*kept[:begin], f" {line}", *kept[begin:]]
        return None


class Hanging(Ios):
    """A command that never ends."""

    def showing(self, line):
        return time.sleep(30) if line == "show tech-support" else super().showing(line)


class Garbage(Ios):
    """Bytes that are no text, and no prompt."""

    def serve(self):
        try:
            for _ in range(200):
                self.channel.sendall(bytes(range(256)).replace(b"#", b"").replace(b">", b"") * 4)
                time.sleep(0.05)
        except OSError:
            pass
        self.channel.close()


class Flood(Ios):
    """A hundred megabytes for one command."""

    def showing(self, line):
        if line != "show tech-support":
            return super().showing(line)
        block = ("x" * 78 + "\r\n") * 800
        for _ in range(100 * 1024 * 1024 // len(block)):
            self.channel.sendall(block.encode())
        return None


class Asking(Ios):
    """A question where nobody answers."""

    def showing(self, line):
        if line == "show tech-support":
            self.channel.sendall(b"Proceed with the report? [confirm]")
            return time.sleep(30)
        return super().showing(line)


KINDS = {"junos": (Junos, JUNOS), "ios": (Ios, IOS), "plain": (Plain, IOS), "vrp": (Vrp, VRP), "hanging": (Hanging, IOS), "garbage": (Garbage, IOS),
         "flood": (Flood, IOS), "reboot": (Reboot, JUNOS), "asking": (Asking, IOS)}


class Door(paramiko.ServerInterface):
    """Lets in whoever has the password, to a shell on a terminal."""

    def __init__(self, password, begin):
        self.password, self.begin = password, begin

    def check_auth_password(self, username, password):
        return paramiko.AUTH_SUCCESSFUL if (username, password) == ("netadm", self.password) else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username):
        return "password"

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED if kind == "session" else paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_pty_request(self, channel, term, width, height, pixelwidth, pixelheight, modes):
        return True

    def check_channel_shell_request(self, channel):
        threading.Thread(target=self.begin, args=(channel,), daemon=True).start()
        return True


def listen(name, home, key, password):
    """Serves one device for ever."""
    kind, lines = KINDS[name]
    machine = Machine(name, lines, home)
    listener = socket.create_server(("127.0.0.1", PORTS[name]))

    def let_in(connection):
        if time.monotonic() < machine.down_until:
            return connection.close()
        try:
            transport = paramiko.Transport(connection)
            transport.add_server_key(key)
            transport.start_server(server=Door(password, lambda channel: kind(machine, channel).serve()))
        except (OSError, EOFError, paramiko.SSHException):
            connection.close()
        return None

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=let_in, args=(connection,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


def main():
    home, key, password = Path(sys.argv[1]), paramiko.Ed25519Key.from_private_key_file(sys.argv[2]), sys.argv[3]
    for name in KINDS:
        listen(name, home, key, password)
    print("listening", flush=True)
    # Ends with the process that started it.
    sys.stdin.read()


if __name__ == "__main__":
    main()
