"""NETCONF devices that lie, are slow, or fall over: scripts behind SSH, each with a running configuration, a candidate and a timer of its own.

Runs by itself with `paramiko`: `liar.py DIRECTORY HOSTKEY PASSWORD`; writes what each device runs into the directory, and one line once all
listen. Says nothing of how real devices are made; what a real one does is tried with `netconfd`.
"""
import os
import re
import socket
import sys
import threading
import time
from pathlib import Path

import paramiko

PORTS = {"honest": 2831, "yes": 2832, "late": 2833, "garbled": 2834, "falling": 2835, "slow": 2836, "deaf": 2837}
END, BASE = b"]]>]]>", "urn:ietf:params:xml:ns:netconf:base:1.0"
CAPABILITIES = ["urn:ietf:params:netconf:base:1.0", "urn:ietf:params:netconf:capability:candidate:1.0",
                "urn:ietf:params:netconf:capability:confirmed-commit:1.1", "urn:x?module=x"]
# Seconds until the slow one says its hello, until the late one does what it was asked, and for which the falling one is down.
SLOW, LATE, DOWN = 3, 1, 3


class Machine:
    """What a device holds, for all sessions together."""

    def __init__(self, name, home):
        self.name, self.home, self.lock = name, home, threading.RLock()
        self.running = self.candidate = "old"
        self.old, self.timer, self.down_until, self.open = None, None, 0, []
        self.run("old")

    def run(self, value):
        """Runs a configuration, and shows the judges of the tests which."""
        with self.lock:
            self.running = self.candidate = value
            file = self.home / f"{self.name}.running"
            file.with_suffix(".new").write_text(value)
            os.replace(file.with_suffix(".new"), file)
            with file.with_suffix(".history").open("a") as history:
                history.write(f"{value}\n")

    def commit(self, seconds):
        """Runs the candidate for some seconds."""
        with self.lock:
            self.disarm()
            self.old, self.timer = self.running, threading.Timer(seconds, self.revert)
            self.timer.daemon = True
            self.timer.start()
            self.run(self.candidate)

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
    """One session: reads requests, and answers each."""

    def __init__(self, machine, channel):
        self.machine, self.channel = machine, channel

    def say(self, text):
        """Sends a message."""
        self.channel.sendall(text.encode() + END)

    def serve(self):
        """Talks until the other side is gone."""
        machine, buffer = self.machine, b""
        try:
            if machine.name == "slow":
                time.sleep(SLOW)
            capabilities = "".join(f"<capability>{one}</capability>" for one in CAPABILITIES)
            self.say(f'<hello xmlns="{BASE}"><capabilities>{capabilities}</capabilities><session-id>1</session-id></hello>')
            while True:
                while END not in buffer:
                    got = self.channel.recv(65536)
                    if not got:
                        return
                    buffer += got
                message, _, buffer = buffer.partition(END)
                request = message.decode()
                if not re.search(r"<(\w+:)?hello", request):
                    self.answer(request, re.search(r'message-id="([^"]+)"', request)[1])
        except (EOFError, OSError, paramiko.SSHException):
            pass
        finally:
            self.channel.close()

    def answer(self, request, number):
        """Answers one request."""
        reply = lambda inner: self.say(f'<rpc-reply xmlns="{BASE}" message-id="{number}">{inner}</rpc-reply>')
        refuse = lambda tag, why: reply(f"<rpc-error><error-type>protocol</error-type><error-tag>{tag}</error-tag><error-severity>error</error-severity>"
                                        f"<error-message>{why}</error-message></rpc-error>")
        machine = self.machine
        value = lambda text: f'<top xmlns="urn:x"><name>{text}</name></top>'
        if "<get-config>" in request:
            return reply(f"<data>{value(machine.candidate if '<candidate/>' in request else machine.running)}</data>")
        if "<edit-config>" in request:
            machine.candidate = re.search(r"<name[^>]*>([^<]*)</name>", request)[1]
        elif "<discard-changes" in request:
            machine.candidate = machine.running
        elif "<cancel-commit>" in request:
            if not machine.disarm():
                return refuse("invalid-value", "no confirmed commit is pending")
            machine.revert()
        elif "<persist-id>" in request:
            if not machine.disarm():
                return refuse("invalid-value", "no confirmed commit is pending")
        elif "<commit>" in request:
            return self.commit(float(re.search(r"<confirm-timeout>(\d+)", request)[1]), reply)
        return reply("<ok/>")

    def commit(self, seconds, reply):
        """Does what this device does with a commit."""
        machine, name = self.machine, self.machine.name
        if name == "yes":
            # Says so, and does nothing.
            return reply("<ok/>")
        if name == "late":
            # Does it once everybody has given up, whatever it has answered meanwhile.
            wanted = machine.candidate

            def carry_out():
                machine.candidate = wanted
                machine.commit(seconds)
            threading.Timer(seconds + LATE, carry_out).start()
            return None
        if name == "deaf":
            # Does it, and the answer gets lost.
            return machine.commit(seconds)
        if name == "garbled":
            return self.say("<rpc-reply><ok/><<>>&nonsense;")
        if name == "falling":
            machine.down_until = time.monotonic() + DOWN
            for transport in machine.open:
                transport.close()
            return None
        machine.commit(seconds)
        return reply("<ok/>")


class Door(paramiko.ServerInterface):
    """Lets in whoever has the password, to the subsystem `netconf`."""

    def __init__(self, password, begin):
        self.password, self.begin = password, begin

    def check_auth_password(self, username, password):
        return paramiko.AUTH_SUCCESSFUL if (username, password) == ("netadm", self.password) else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username):
        return "password"

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED if kind == "session" else paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_subsystem_request(self, channel, name):
        threading.Thread(target=self.begin, args=(channel,), daemon=True).start()
        return name == "netconf"


def listen(name, home, key, password):
    """Serves one device for ever."""
    machine = Machine(name, home)
    listener = socket.create_server(("127.0.0.1", PORTS[name]))

    def let_in(connection):
        if time.monotonic() < machine.down_until:
            return connection.close()
        try:
            transport = paramiko.Transport(connection)
            transport.add_server_key(key)
            machine.open.append(transport)
            transport.start_server(server=Door(password, lambda channel: Session(machine, channel).serve()))
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
    for name in PORTS:
        listen(name, home, key, password)
    print("listening", flush=True)
    # Ends with the process that started it.
    sys.stdin.read()


if __name__ == "__main__":
    main()
