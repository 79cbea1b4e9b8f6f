"""The console page of a change (NM-09): a person in a browser sees the diff and the time that is left, brings the old configuration back, and
keeps the next change. Drives Chromium over `tests/peers/console/devices.mjs`."""
import os
import subprocess
import tempfile
from pathlib import Path

import install
from gateway import ROOT, Gateway, binary
from network import lab
from network.agent import Device

CONFIG = """
[device.r1]
pathspace = "r1"
longest_window = "600s"
confirmation = "person"
"""
LIMIT = 300


def run(report):
    """Commits, lets the browser answer, and commits again when it says so."""
    browser = install.chromium()
    if not report.check("network/browser", browser, "no Chromium: install it (apt-get install chromium)"):
        return
    with tempfile.TemporaryDirectory(prefix="banyan-network-") as work, Gateway("page", {}, config=CONFIG) as gateway:
        device, before = Device(gateway, "r1"), lab.running("r1")
        commit(device, "seen in a browser")
        env = {**gateway.home.env, "PROFILE": work, "CHROMIUM": browser, "PEERS_NODE_MODULES": install.node_modules(), "BANYAN": binary(),
               "GATE": str(gateway.process.pid), "BANYAN_CONFIG_FILE": os.path.join(gateway.home.dir, "banyan.toml")}
        tour = subprocess.Popen([install.node(), str(Path(ROOT, "tests/peers/console/devices.mjs"))], env=env, cwd=gateway.home.dir,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        count = 0
        try:
            for line in tour.stdout:
                word, _, said = line.strip().partition(" ")
                if word in ("ok", "FAIL"):
                    count += 1
                    report.check(said.split(": ", 2)[0] + ": " + said.partition(": ")[2] if word == "ok" else said[:200], word == "ok", said)
                elif word == "NEXT":
                    report.equal("NM-09: the router runs what it ran", lab.running("r1"), before)
                    commit(device, "seen in a browser again")
            report.equal("NM-09: the browser ends in order", tour.wait(LIMIT), 0)
        finally:
            tour.kill()
        report.check("NM-09: every check of the page was reached", count >= 13, str(count))
        report.check("NM-09: what was kept in the browser runs", "seen in a browser again" in lab.running("r1"))
        lab.vtysh("r1", "configure terminal", "interface lan0", "description customer-lan")


def commit(device, description):
    """Makes a change that waits for its confirmation."""
    shown = device.change("interface lan0", f"description {description}")
    device.call("network.commit", confirmed=500, hash=shown["hash"])
