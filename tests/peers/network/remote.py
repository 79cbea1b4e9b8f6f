"""Devices with a way back of their own (NM-08, NM-09): FRR on machines behind SSH, shells that are scripts, and BIRD, behind one gate, side by side.

All of Banyan is killed once for all, with changes waiting on six devices. The checks are those of `hosted.py`, `shells.py` and `bird.py`.
"""
import os
import threading

from gateway import Gateway
from network import bird, hosted, shells
from network.agent import kill_all, processes, until


def killed(report, gateway):
    """NM-09: all of Banyan is killed while changes wait, and every device is back by itself; who starts next reads how it ended."""
    waiting = shells.forget(gateway)
    before = hosted.cut_and_forget(report, gateway)
    file = bird.forget(report, gateway)
    kill_all(gateway)
    report.check("NM-09: with changes waiting on six devices, nothing of Banyan lives", until(3, lambda: not processes("serve")) is not None, str(processes("serve")))
    hosted.forgotten(report, before)
    shells.forgotten(report, waiting)
    bird.forgotten(report, file)
    gateway.start()
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    names = ("host2", "host3", "bird", *waiting)
    told = until(20, lambda: all(": rolled back" in gateway.told("device", "status", name, *config) for name in names))
    report.check("NM-09: who starts next reads how it ended", told is not None, "".join(gateway.told("device", "status", name, *config) for name in names))


def run(report):
    """Starts the devices and a gate before them, and checks all."""
    hosted.start()
    bird.start()
    playing = shells.start()
    try:
        with Gateway("remote", {}, config=hosted.configuration() + shells.configuration() + bird.CONFIG) as gateway:
            beside = [threading.Thread(target=lambda part=part: report.guard(part.__name__, lambda: part.run(report, gateway))) for part in (shells, bird)]
            for thread in beside:
                thread.start()
            report.guard("hosted", lambda: hosted.run(report, gateway))
            for thread in beside:
                thread.join()
            report.guard("remote/killed", lambda: killed(report, gateway))
            report.guard("bird/away", lambda: bird.away(report, gateway))
    finally:
        playing.kill()
