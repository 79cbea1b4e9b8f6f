"""Devices behind SSH that are changed there (NM-09): FRR on machines with a shell, and shells that are scripts, behind one gate, side by side.

All of Banyan is killed once for both, with changes waiting on five devices. The checks are those of `hosted.py` and `shells.py`.
"""
import os
import threading

from gateway import Gateway
from network import hosted, shells
from network.agent import kill_all, processes, until


def killed(report, gateway):
    """NM-09: all of Banyan is killed while changes wait, and every device is back by itself; who starts next reads how it ended."""
    waiting = shells.forget(gateway)
    before = hosted.cut_and_forget(report, gateway)
    kill_all(gateway)
    report.check("NM-09: with changes waiting on five devices, nothing of Banyan lives", until(3, lambda: not processes("serve")) is not None, str(processes("serve")))
    hosted.forgotten(report, before)
    shells.forgotten(report, waiting)
    gateway.start()
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    names = ("host2", "host3", *waiting)
    told = until(20, lambda: all(": rolled back" in gateway.told("device", "status", name, *config) for name in names))
    report.check("NM-09: who starts next reads how it ended", told is not None, "".join(gateway.told("device", "status", name, *config) for name in names))


def run(report):
    """Starts the devices and a gate before them, and checks all."""
    hosted.start()
    playing = shells.start()
    try:
        with Gateway("remote", {}, config=hosted.configuration() + shells.configuration()) as gateway:
            beside = threading.Thread(target=lambda: report.guard("shells", lambda: shells.run(report, gateway)))
            beside.start()
            report.guard("hosted", lambda: hosted.run(report, gateway))
            beside.join()
            report.guard("remote/killed", lambda: killed(report, gateway))
    finally:
        playing.kill()
