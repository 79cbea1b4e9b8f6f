"""The checks of the lab once more, with FRR 10 and its mgmtd, inside the tree that `trixie.py` makes. By hand, and no part of the group."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gateway import Gateway  # noqa: E402
from network import asking, hosted, inside, lab, previewed  # noqa: E402
from network.agent import Device, kill_all, until  # noqa: E402
from report import Report  # noqa: E402


def shut(report, device):
    """NM-09: interfaces that were shut come back, with the other lines of their context."""
    before = lab.running("r1")
    device.change("interface lan0", "shutdown", "description cut", "interface eth1", "shutdown", "interface lo", "description cut", "router ospf", "no network 192.168.0.0/16 area 0")
    device.call("network.commit", confirmed=inside.WINDOW)
    report.check("NM-09: two interfaces are shut", lab.running("r1").count("shutdown") == 2, lab.running("r1"))
    took = until(inside.WINDOW + 20, lambda: lab.running("r1") == before)
    report.check("NM-09: and come back, byte for byte", took is not None, lab.running("r1"))


def run(report):
    """Checks what the group `network` checks of its routers."""
    version = lab.vtysh("r1", "show version").splitlines()[0]
    report.check(f"FRR 10: {version}", "FRRouting 10." in version, version)
    report.guard("frr10/previewed", lambda: previewed.run(report))
    ssh = inside.SSH.format(work=lab.WORK, fingerprint=lab.fingerprint())
    with Gateway("frr10", {}, config=inside.CONFIG + ssh) as gateway:
        device = Device(gateway, "r1")
        for one in (lambda: inside.reads(report, device, gateway), lambda: inside.injections(report, device), lambda: inside.rules(report, gateway),
                    lambda: inside.record(report, device, gateway), lambda: inside.timed_out(report, gateway), lambda: inside.over_ssh(report, gateway),
                    lambda: inside.confirmed(report, device), lambda: inside.forgotten(report, device), lambda: inside.drift(report, device),
                    lambda: inside.refused(report, gateway, device), lambda: shut(report, device), lambda: inside.person(report, gateway),
                    lambda: inside.command_line(report, gateway), lambda: inside.killed(report, gateway), lambda: inside.all_killed(report, gateway),
                    lambda: inside.amid(report, gateway), lambda: asking.prompts(report, gateway), lambda: asking.repairs(report, gateway),
                    lambda: inside.unrestorable(report, Device(gateway, "r1")), lambda: inside.unreachable(report, Device(gateway, "r1"))):
            report.guard("frr10", one)


def behind_ssh(report):
    """NM-09: FRR 10 on machines behind SSH, where a job restores it with nothing of Banyan alive."""
    hosted.start()
    with Gateway("frr10-hosted", {}, config=hosted.configuration()) as gateway:
        report.guard("frr10/hosted", lambda: hosted.run(report, gateway))
        before = hosted.cut_and_forget(report, gateway)
        kill_all(gateway)
        hosted.forgotten(report, before)


if __name__ == "__main__":
    told = Report()
    lab.start()
    told.guard("frr10/ssh", lambda: behind_ssh(told))
    run(told)
    sys.exit(told.finish())
