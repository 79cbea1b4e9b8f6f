"""Three FRR routers that speak OSPF and BGP, in network namespaces of their own.

Runs inside the namespaces that `checks.py` makes (mounts, network, processes), so that nothing of the machine is touched and the kernel
ends every process with the first one. Does not know Banyan.
"""
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

WORK = Path("/run/netlab")
LOGS = WORK / "log"
ROUTERS = ("r1", "r2", "r3")
DAEMONS = ("mgmtd", "zebra", "staticd", "ospfd", "bgpd")
ENDPOINTS = {"r1": {"eth0": "10.0.12.1/24", "eth1": "10.0.13.1/24"},
             "r2": {"eth0": "10.0.12.2/24", "eth1": "10.0.23.2/24"},
             "r3": {"eth0": "10.0.23.3/24", "eth1": "10.0.13.3/24"}}
WIRES = (("r1", "eth0", "r2", "eth0"), ("r2", "eth1", "r3", "eth0"), ("r1", "eth1", "r3", "eth1"))
PASSWORD = "canary-bgp-secret"
LOGIN = "canary-login-secret"
READY_WITHIN = 30


def sh(*command, check=True):
    """Runs a command; answers what it printed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)} gave {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def vtysh(router, *lines, check=True):
    """What the router answers to the lines of one `vtysh`."""
    return sh("vtysh", "-N", router, *(part for line in lines for part in ("-c", line)), check=check)


def running(router):
    """The running configuration, as the router shows it."""
    return vtysh(router, "show running-config")


def configuration(number):
    """The `frr.conf` of router number `number`."""
    name = f"r{number}"
    lines = ["frr defaults traditional", f"log file {LOGS}/{name}.log informational"]
    for interface, address in ENDPOINTS[name].items():
        lines += [f"interface {interface}", f" ip address {address}", " ip ospf hello-interval 1", " ip ospf dead-interval 4", "exit"]
    lines += ["interface lan0", " description customer-lan", f" ip address 192.168.{number}.1/24", "exit"]
    lines += [f"router bgp 6500{number}", f" bgp router-id 1.1.1.{number}", " no bgp ebgp-requires-policy"]
    for address, peer in neighbours(name):
        lines += [f" neighbor {address} remote-as 6500{peer}", f" neighbor {address} password {PASSWORD}", f" neighbor {address} timers 1 3",
                  f" neighbor {address} timers connect 1"]
    lines += [" address-family ipv4 unicast", "  redistribute connected", " exit-address-family", "exit"]
    lines += ["router ospf", f" ospf router-id 1.1.1.{number}", " timers throttle spf 0 50 200",
              " network 10.0.0.0/16 area 0", " network 192.168.0.0/16 area 0", "exit"]
    return "\n".join(lines) + "\n"


def neighbours(name):
    """The addresses on the other ends of a router's wires, each with the number of the router there."""
    for one, interface, other, far in WIRES:
        if name == one:
            yield ENDPOINTS[other][far].split("/")[0], other[1:]
        if name == other:
            yield ENDPOINTS[one][interface].split("/")[0], one[1:]


def start():
    """Brings up the routers, and a way to the first of them over SSH."""
    start_routers()
    start_sshd()


def start_routers():
    """Brings up wires and routers, and waits until r1 reaches the network behind r3 and all its sessions stand."""
    for path in ("/run/netns", "/run/frr", "/etc/frr", "/var/tmp", str(WORK)):
        Path(path).mkdir(parents=True, exist_ok=True)
        sh("mount", "-t", "tmpfs", "none", path)
    LOGS.mkdir()
    for path in (Path("/run/frr"), Path("/etc/frr"), LOGS):
        shutil.chown(path, "frr", "frr")
        path.chmod(0o775)
    sh("ip", "link", "set", "lo", "up")
    for name in ROUTERS:
        sh("ip", "netns", "add", name)
        sh("ip", "-n", name, "link", "set", "lo", "up")
        sh("ip", "-n", name, "link", "add", "lan0", "type", "bridge")
        sh("ip", "-n", name, "link", "set", "lan0", "up")
    for one, interface, other, far in WIRES:
        sh("ip", "link", "add", interface, "netns", one, "type", "veth", "peer", "name", far, "netns", other)
        sh("ip", "-n", one, "link", "set", interface, "up")
        sh("ip", "-n", other, "link", "set", far, "up")
    for number, name in enumerate(ROUTERS, 1):
        start_router(name, configuration(number))
    converge()


def start_router(name, text):
    """Starts the daemons of one router with the configuration `text`."""
    home = Path("/etc/frr") / name
    home.mkdir(exist_ok=True)
    (home / "vtysh.conf").write_text("")
    (home / "frr.conf").write_text(text)
    sh("chown", "-R", "frr:frr", str(home))
    home.chmod(0o755)
    for daemon in DAEMONS:
        start_daemon(name, daemon)
    with open(LOGS / "start", "ab") as log:
        boot = ["ip", "netns", "exec", name, "vtysh", "-N", name, "-b"]
        subprocess.run(boot, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)


def start_daemon(name, daemon):
    """Starts a daemon of a router, where this FRR has one."""
    program = f"/usr/lib/frr/{daemon}"
    if os.access(program, os.X_OK):
        command = ["ip", "netns", "exec", name, program, "-d", "-N", name, "--log", f"file:{LOGS}/{name}-{daemon}.log"]
        with open(LOGS / "start", "ab") as log:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)


def kill_daemon(name, daemon):
    """Kills a daemon of a router, and waits until it is gone."""
    pid = int(Path(f"/run/frr/{name}/{daemon}.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.05)


def start_sshd():
    """Lets `netadm` in at port 2222 of this namespace, to a `vtysh` of r1; accounts and keys are of these namespaces alone."""
    socket = os.stat("/run/frr/r1/zebra.vty")
    shell = WORK / "shell"
    shell.write_text('#!/bin/sh\n[ "$1" = -c ] && exec vtysh -N r1 -c "$2"\nexec vtysh -N r1\n')
    shell.chmod(0o755)
    hidden = sh("openssl", "passwd", "-6", LOGIN).strip()
    for name, line in (("passwd", f"netadm:x:{socket.st_uid}:{socket.st_gid}::{WORK}:{shell}"), ("shadow", f"netadm:{hidden}:19000:0:99999:7:::")):
        copy = WORK / name
        shutil.copy(f"/etc/{name}", copy)
        with copy.open("a") as file:
            file.write(line + "\n")
        sh("mount", "--bind", str(copy), f"/etc/{name}")
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(WORK / "host"))
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(WORK / "login"))
    (WORK / "password").write_text(LOGIN)
    (WORK / "wrong").write_text("canary-wrong-login")
    (WORK / "sshd.conf").write_text(
        f"Port 2222\nListenAddress 127.0.0.1\nHostKey {WORK}/host\nPidFile none\nUsePAM no\nPrintMotd no\nStrictModes no\n"
        f"AllowUsers netadm\nAuthorizedKeysFile {WORK}/login.pub\nPasswordAuthentication yes\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    sh("/usr/sbin/sshd", "-f", str(WORK / "sshd.conf"), "-E", str(LOGS / "sshd"))


def fingerprint():
    """The fingerprint of the host key."""
    return sh("ssh-keygen", "-l", "-f", str(WORK / "host.pub")).split()[1]


def converge():
    """Waits until r1 has the route to the network behind r3, and two sessions of BGP stand."""
    end = time.monotonic() + READY_WITHIN
    while time.monotonic() < end:
        if "192.168.3.0/24" in vtysh("r1", "show ip route ospf", check=False) and \
                vtysh("r1", "show bgp summary json", check=False).count('"Established"') >= 2:
            return
        time.sleep(0.2)
    raise RuntimeError(f"the routers did not find each other within {READY_WITHIN} s: {(LOGS / 'start').read_text()[-2000:]}")
