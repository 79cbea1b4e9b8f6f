"""Network equipment behind a gate: FRR routers that speak OSPF and BGP, and a NETCONF device, in namespaces that end with this group.

The lab and all that asks it run in a process of their own (`inside.py`), below `unshare`: mounts, network and processes are nobody else's.
Beside it, in as many of its own, runs what needs no router (`beside.py`).
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 240
NEEDED = ("vtysh", "bird", "ovs-vswitchd", "ovsdb-tool", "ovs-vsctl", "netconfd", "yangcli", "snmpd", "snmpget", "snmpinform", "rsyslogd", "logger", "unshare", "ip", "openssl", "ssh-keygen", "/usr/sbin/sshd")
PACKAGES = ("bird2 openvswitch-switch frr-pythontools iproute2 util-linux openssh-server net-tools netconfd yangcli netconfd-module-ietf-interfaces "
            "netconfd-module-ietf-system snmpd snmp rsyslog")


def run(report):
    """Starts the lab in namespaces of its own and counts what was checked there."""
    missing = [program for program in NEEDED if not shutil.which(program)]
    if missing:
        report.check(f"network: {', '.join(missing)} not installed", False, f"apt-get install {PACKAGES}")
        return
    spaces = ["unshare", "--mount", "--net", "--pid", "--propagation", "private", "--fork", "--kill-child", "--mount-proc"]
    asking = [] if is_root() else ["sudo", "--preserve-env"]
    running = []
    for name in ("inside.py", "beside.py"):
        # Into files: a pipe that nobody reads yet would stop whoever writes much.
        texts = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        command = [*asking, *spaces, sys.executable, str(Path(__file__).with_name(name))]
        running.append((subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=texts[0], stderr=texts[1]), texts))
    for process, texts in running:
        process.wait(3 * BUDGET)
        printed, complained = (text.seek(0) or text.read() for text in texts)
        print(printed, end="", flush=True)
        counted = re.search(r"(\d+) passed, (\d+) failed\s*\Z", printed)
        passed, failed = map(int, counted.groups()) if counted else (0, 1)
        report.count("network", passed, failed, "" if counted and not failed else f"{printed[-3000:]}\n{complained[-3000:]}")


def is_root():
    """May this process make namespaces?"""
    return subprocess.run(["id", "-u"], capture_output=True, text=True).stdout.strip() == "0"
