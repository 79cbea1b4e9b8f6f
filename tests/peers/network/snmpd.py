"""A device with an SNMP agent in a network namespace of its own: the real `snmpd`, with a read-only and a writing community and users of v3.

Runs inside the namespaces of the lab. Does not know Banyan.
"""
import os
import subprocess
import time

from network import lab

HOME = lab.WORK / "snmp"
ADDRESS = "10.0.98.2"
HERE = "10.0.98.1"
READ, WRITE, FOREIGN = "canary-snmp-read", "canary-snmp-write", "canary-snmp-foreign"
AUTH, PRIVACY = "canary-snmp-auth", "canary-snmp-privacy"
READY_WITHIN = 15
CONFIG = f"""agentAddress udp:161
rocommunity {READ} {HERE}
rwcommunity {WRITE} {HERE}
sysContact fixed in the file of the agent
createUser ro SHA "{AUTH}" AES "{PRIVACY}"
rouser ro priv
createUser rw SHA-256 "{AUTH}" AES "{PRIVACY}"
rwuser rw priv
createUser signing SHA-512 "{AUTH}"
rouser signing auth
"""
# Where it sends notifications, by both versions, and which: those of its links, which it looks at each second.
TRAPS = f"""createUser _mon
rouser _mon noauth
iquerySecName _mon
trap2sink {HERE}:1162 {READ}
trapsess -v 3 -u ro -l authPriv -a SHA -A {AUTH} -x AES -X {PRIVACY} {HERE}:1162
notificationEvent lu 1.3.6.1.6.3.1.1.5.4 1.3.6.1.2.1.2.2.1.1 1.3.6.1.2.1.2.2.1.7 1.3.6.1.2.1.2.2.1.8
notificationEvent ld 1.3.6.1.6.3.1.1.5.3 1.3.6.1.2.1.2.2.1.1 1.3.6.1.2.1.2.2.1.7 1.3.6.1.2.1.2.2.1.8
monitor -r 1 -e lu "Up" 1.3.6.1.2.1.2.2.1.7 == 1
monitor -r 1 -e ld "Down" 1.3.6.1.2.1.2.2.1.7 == 2
"""
agents = []


def start():
    """Brings up the namespace and `snmpd`, and waits until it answers."""
    HOME.mkdir(parents=True)
    lab.sh("ip", "netns", "add", "sw")
    lab.sh("ip", "-n", "sw", "link", "set", "lo", "up")
    lab.sh("ip", "link", "add", "sw0", "type", "veth", "peer", "name", "mgmt0", "netns", "sw")
    lab.sh("ip", "addr", "add", f"{HERE}/24", "dev", "sw0")
    lab.sh("ip", "link", "set", "sw0", "up")
    lab.sh("ip", "-n", "sw", "addr", "add", f"{ADDRESS}/24", "dev", "mgmt0")
    lab.sh("ip", "-n", "sw", "link", "set", "mgmt0", "up")
    lab.sh("ip", "-n", "sw", "link", "add", "port1", "type", "bridge")
    lab.sh("ip", "-n", "sw", "link", "set", "port1", "up")
    for name, secret in (("read", READ), ("write", WRITE), ("foreign", FOREIGN), ("auth", AUTH), ("privacy", PRIVACY)):
        (HOME / name).write_text(secret)
    end = time.monotonic() + READY_WITHIN
    while "state UP" not in lab.sh("ip", "-n", "sw", "link", "show", "mgmt0") and time.monotonic() < end:
        time.sleep(0.05)
    start_agent()


def restart_with_traps():
    """Starts the agent again, which sends notifications from then on."""
    agents[-1].terminate()
    agents[-1].wait(10)
    start_agent(CONFIG + TRAPS)


def start_agent(config=CONFIG):
    """Starts the agent."""
    (HOME / "snmpd.conf").write_text(config)
    environment = {**os.environ, "MIBS": "", "SNMP_PERSISTENT_DIR": str(HOME / "kept")}
    program = ["ip", "netns", "exec", "sw", "snmpd", "-f", "-C", "-c", str(HOME / "snmpd.conf"), "-Lf", str(HOME / "log")]
    agent = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    agents.append(agent)
    end = time.monotonic() + READY_WITHIN
    while time.monotonic() < end:
        if held("1.3.6.1.2.1.1.5.0"):
            return
        time.sleep(0.1)
    raise RuntimeError(f"snmpd did not start: {(HOME / 'log').read_text()[-2000:]}")


def held(oid):
    """What the agent holds, by another client; empty where it does not answer."""
    told = lab.sh("env", "MIBS=", "snmpget", "-v2c", "-c", READ, "-t", "0.3", "-r", "0", "-Oqvn", ADDRESS, oid, check=False)
    return told.strip().strip('"')


def walked(oid):
    """Values below an identifier, by another client."""
    told = lab.sh("env", "MIBS=", "snmpwalk", "-v2c", "-c", READ, "-Oqvn", ADDRESS, oid)
    return [line.strip().strip('"') for line in told.splitlines()]
