"""A NETCONF device in a network namespace of its own: `netconfd` behind `sshd`, and beside it devices that speak badly.

Runs inside the namespaces of the lab and after it, since it adds accounts to those that the lab made. Does not know Banyan.
"""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import install
from network import lab

HOME = lab.WORK / "netconf"
ADDRESS = "10.0.99.2"
LOGIN = "canary-netconf-login"
READY_WITHIN = 20
HELLO = ('<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities><capability>urn:ietf:params:netconf:base:1.0</capability>'
         '<capability>urn:x?module=x</capability></capabilities><session-id>1</session-id></hello>]]>]]>')
# What devices say that are no good, each behind a port of its own, once they have said their hello.
BAD = {831: ("garbage", "echo 'no XML at all]]>]]>'; sleep 60"),
       832: ("hanging", "sleep 60"),
       833: ("endless", "yes '<data>' ; sleep 60"),
       834: ("gone", "sleep 0.5"),
       835: ("no-hello", "sleep 60")}

# The process of `netconfd`.
running = []


class Oracle:
    """What the device holds, by another client."""

    def __init__(self, user="ncadmin"):
        command = [install.venv_bin("network"), str(Path(__file__).with_name("oracle.py")), ADDRESS, user, LOGIN]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, kind, given=None):
        """The answer to one request: `is`, or the tag of the error as `refused`."""
        print(json.dumps({"do": kind, "with": given}), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def running(self):
        """The running configuration, canonical."""
        return self.ask("running")["is"]

    def close(self):
        """Ends the session."""
        self.process.stdin.close()
        self.process.wait(10)


def by_yangcli():
    """What a third client, `yangcli`, prints of the running configuration."""
    # A home of its own: it keeps modules there.
    command = ["yangcli", f"--server={ADDRESS}", "--user=ncadmin", f"--password={LOGIN}", "--batch-mode", "--display-mode=xml", "--run-command=get-config source=running"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env={"HOME": str(HOME), "PATH": os.environ["PATH"]})
    return done.stdout + done.stderr


def start():
    """Brings up the namespace, `netconfd` and all `sshd`, and waits until a client gets in."""
    HOME.mkdir()
    lab.sh("ip", "netns", "add", "nc")
    lab.sh("ip", "-n", "nc", "link", "set", "lo", "up")
    lab.sh("ip", "link", "add", "nc0", "type", "veth", "peer", "name", "mgmt0", "netns", "nc")
    lab.sh("ip", "addr", "add", "10.0.99.1/24", "dev", "nc0")
    lab.sh("ip", "link", "set", "nc0", "up")
    lab.sh("ip", "-n", "nc", "addr", "add", f"{ADDRESS}/24", "dev", "mgmt0")
    lab.sh("ip", "-n", "nc", "link", "set", "mgmt0", "up")
    hidden = lab.sh("openssl", "passwd", "-6", LOGIN).strip()
    for number, user in enumerate(("ncadmin", "ncoper")):
        with (lab.WORK / "passwd").open("a") as file:
            file.write(f"{user}:x:{1500 + number}:{1500 + number}::{HOME}:/bin/sh\n")
        with (lab.WORK / "shadow").open("a") as file:
            file.write(f"{user}:{hidden}:19000:0:99999:7:::\n")
    (HOME / "password").write_text(LOGIN)
    # `netconfd` asserts at its first session where there is no such program.
    helper = HOME / "bin" / "get-interface-ipv4"
    helper.parent.mkdir()
    helper.write_text("#!/bin/sh\nexit 0\n")
    helper.chmod(0o755)
    start_netconfd()
    serve(830, f"/usr/sbin/netconf-subsystem --ncxserver-sockname=830@{HOME}/ncxserver.sock")
    for port, (_, script) in BAD.items():
        program = HOME / f"bad-{port}"
        greeting = "" if port == 835 else f"printf '%s' '{HELLO}'\n"
        program.write_text(f"#!/bin/sh\n{greeting}{script}\n")
        program.chmod(0o755)
        serve(port, str(program))
    end = time.monotonic() + READY_WITHIN
    while time.monotonic() < end:
        if (HOME / "ncxserver.sock").exists():
            return
        time.sleep(0.1)
    raise RuntimeError(f"netconfd did not start: {(HOME / 'out').read_text()[-2000:]}")


def start_netconfd():
    """Starts `netconfd`, with a host name of its own: it really sets the one of the configuration."""
    environment = {**os.environ, "PATH": f"{HOME}/bin:{os.environ['PATH']}", "HOME": str(HOME)}
    program = ["netconfd", "--module=ietf-interfaces", "--module=ietf-system", "--no-startup", "--superuser=ncadmin", "--target=candidate",
               f"--ncxserver-sockname={HOME}/ncxserver.sock", f"--log={HOME}/log"]
    with (HOME / "out").open("ab") as out:
        # It writes a backup of its configuration where it stands.
        running.append(subprocess.Popen(["ip", "netns", "exec", "nc", "unshare", "--uts", *program], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                        env=environment, cwd=HOME))


def stop():
    """Ends `netconfd`."""
    process = running.pop()
    process.kill()
    process.wait(10)
    (HOME / "ncxserver.sock").unlink()


def serve(port, subsystem):
    """Lets the accounts in at a port of the device, to the subsystem `netconf` alone."""
    file = HOME / f"sshd-{port}.conf"
    file.write_text(f"Port {port}\nListenAddress {ADDRESS}\nHostKey {lab.WORK}/host\nPidFile none\nUsePAM no\nPrintMotd no\nStrictModes no\n"
                    f"AllowUsers ncadmin ncoper\nAuthorizedKeysFile {lab.WORK}/login.pub\nPasswordAuthentication yes\n"
                    f"Subsystem netconf {subsystem}\n")
    lab.sh("ip", "netns", "exec", "nc", "/usr/sbin/sshd", "-f", str(file), "-E", str(HOME / f"sshd-{port}.log"))


if __name__ == "__main__":
    sys.exit("started by the checks")
