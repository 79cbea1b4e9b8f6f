"""Network equipment behind a gate: FRR routers that speak OSPF and BGP, and a NETCONF device, in namespaces that end with this group.

The lab and all that asks it run in a process of their own (`inside.py`), below `unshare`: mounts, network and processes are nobody else's.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 240
NEEDED = ("vtysh", "netconfd", "snmpd", "snmpget", "unshare", "ip", "openssl", "ssh-keygen", "/usr/sbin/sshd")
PACKAGES = ("frr frr-pythontools iproute2 util-linux openssh-server net-tools netconfd netconfd-module-ietf-interfaces "
            "netconfd-module-ietf-system snmpd snmp")


def run(report):
    """Starts the lab in namespaces of its own and counts what was checked there."""
    missing = [program for program in NEEDED if not shutil.which(program)]
    if missing:
        report.check(f"network: {', '.join(missing)} not installed", False, f"apt-get install {PACKAGES}")
        return
    inside = Path(__file__).with_name("inside.py")
    spaces = ["unshare", "--mount", "--net", "--pid", "--propagation", "private", "--fork", "--kill-child", "--mount-proc"]
    asking = [] if is_root() else ["sudo", "--preserve-env"]
    done = subprocess.run([*asking, *spaces, sys.executable, str(inside)], capture_output=True, text=True, timeout=2 * BUDGET)
    print(done.stdout, end="", flush=True)
    counted = re.search(r"(\d+) passed, (\d+) failed\s*\Z", done.stdout)
    passed, failed = map(int, counted.groups()) if counted else (0, 1)
    report.count("network", passed, failed, "" if counted and not failed else f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")


def is_root():
    """May this process make namespaces?"""
    return subprocess.run(["id", "-u"], capture_output=True, text=True).stdout.strip() == "0"
