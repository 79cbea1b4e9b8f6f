"""What is checked beside the lab, in namespaces of its own at the same time: a device with an SNMP agent, its notifications, and its syslog; and
devices behind NETCONF that lie; a BIRD with somebody at its command line; and a switch."""
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from network import bird_hands, lab, lies, ovs, snmp, snmpd, streams  # noqa: E402
from report import Report  # noqa: E402


def main():
    report = Report()
    for path in ("/run/netns", str(lab.WORK)):
        Path(path).mkdir(parents=True, exist_ok=True)
        lab.sh("mount", "-t", "tmpfs", "none", path)
    lab.sh("ip", "link", "set", "lo", "up")
    lies_told = threading.Thread(target=report.guard, args=("lies", lambda: lies.run(report)))
    lies_told.start()
    snmpd.start()
    ovs.start()
    report.guard("snmp", lambda: snmp.run(report))
    report.guard("streams", lambda: streams.run(report))
    bird_hands.start()
    report.guard("bird_hands", lambda: bird_hands.run(report))
    report.guard("ovs", lambda: ovs.run(report))
    lies_told.join()
    sys.exit(report.finish())


if __name__ == "__main__":
    main()
