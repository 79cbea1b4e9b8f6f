"""Changes over command lines that are scripts (NM-02, NM-08, NM-09, NM-12, NM-13): Junos-like, IOS-like and VRP-like shells, and shells that play badly.

`scripted.py` plays the devices and shows what each of them runs, which is what is judged here. No real device of these kinds was tried.
"""
import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import install
from network import canaries, lab
from network.agent import Device, until

HOME = lab.WORK / "scripted"
LOGIN = "canary-scripted-login"
PORTS = {"junos": 2301, "ios": 2302, "plain": 2303, "vrp": 2304, "hanging": 2305, "garbage": 2306, "flood": 2307, "reboot": 2308, "asking": 2309}
DIALECTS = {"junos": "junos", "reboot": "junos", "vrp": "vrp", "ios": "house", "plain": f"file:{HOME}/dialect.toml"}
# A minute of these devices, in seconds.
MINUTE = 3
CHANGES = {"junos": ["set interfaces ge-0/0/0 description by-an-agent"],
           "ios": ["interface GigabitEthernet0/2", "description by-an-agent"],
           "vrp": ["interface GE1/0/2", "description by-an-agent"]}
# A dialect of the configuration, and one in a file: both add to one that is built in.
HOUSE = """
[dialect.house]
extends = "ios"
draft_name = "acme-house"
title = "IOS as it is set up here"

[dialect.house.commands]
dangerous = ["show secrets"]
"""
FILE = """
extends = "ios"
draft_name = "acme-file"
[[error]]
pattern = '^% Rollback is not supported'
code = "RollbackNotSupported"
"""
CONFIG = """
[device.{name}]
backend = "ssh"
address = "127.0.0.1:{port}"
user = "netadm"
password = "${{file:{home}/{password}}}"
host_key = "{key}"
dialect = "{dialect}"
longest_window = "60s"
command_timeout = "{timeout}"
"""


def configuration():
    """All devices that are scripts, and two that are not let in or not recognised."""
    key = lab.fingerprint()
    devices = [(name, port, "password", key, "20s" if name == "flood" else "2s" if name in ("hanging", "garbage", "asking") else "5s") for name, port in PORTS.items()]
    devices += [("twin", 2301, "password", key, "5s"), ("outside", 2301, "wrong", key, "5s"), ("other", 2301, "password", "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "5s")]
    return HOUSE + "".join(CONFIG.format(name=name, port=port, home=HOME, password=password, key=shown, timeout=timeout, dialect=DIALECTS.get(name, "junos" if port == 2301 else "ios"))
                   for name, port, password, shown, timeout in devices)


def start():
    """Starts the scripts, which end with this process."""
    HOME.mkdir()
    (HOME / "password").write_text(LOGIN)
    (HOME / "wrong").write_text("canary-wrong-login")
    (HOME / "dialect.toml").write_text(FILE)
    script = str(Path(__file__).with_name("scripted.py"))
    with (HOME / "errors").open("wb") as errors:
        playing = subprocess.Popen([install.venv_bin("network"), script, str(HOME), str(lab.WORK / "host"), LOGIN], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=errors)
    if playing.stdout.readline() != b"listening\n":
        raise RuntimeError((HOME / "errors").read_text()[-2000:])
    return playing


def runs(name):
    """What a device runs."""
    return (HOME / f"{name}.running").read_text()


def changed(report, gateway, name):
    """NM-02, NM-09, NM-12: a change is shown, applied for a time of the device, confirmed, saved where there is something to save, and stays; another
    is taken back before its time."""
    device, before, lines = Device(gateway, name), runs(name), CHANGES[name]
    pulled = device.call("network.file.pull", filename="running-config")
    report.check(f"NM-12: {name}: a configuration is shown without secrets", "canary" not in json.dumps(pulled) and "uplink" in json.dumps(pulled), str(pulled)[:800])
    shown = device.change(*lines)
    report.check(f"NM-09: {name}: the diff shows the change, and applies nothing", "description by-an-agent" in shown.get("diff", "") and runs(name) == before, str(shown))
    done = device.call("network.commit", confirmed=60, hash=shown.get("hash"))
    report.check(f"NM-09: {name}: the device runs it", done.get("status") == "committed" and "by-an-agent" in runs(name), f"{done} {runs(name)}")
    kept = device.call("network.commit", confirm=True)["structuredContent"]
    report.equal(f"NM-09: {name}: it is confirmed and saved", (kept.get("status"), kept.get("saved")), ("confirmed", True))
    time.sleep(MINUTE + 0.5)
    after = runs(name)
    report.check(f"NM-09: {name}: what was confirmed stays", "by-an-agent" in after, after)
    device.change(*(line.replace("by-an-agent", "not-for-long") for line in lines))
    device.call("network.commit", confirmed=60)
    ran, back = "not-for-long" in runs(name), device.call("network.rollback").get("structuredContent", {})
    report.check(f"NM-09: {name}: a change is taken back at once", ran and back.get("status") == "rolled-back" and runs(name) == after, f"{ran} {back} {runs(name)}")


def refused(report, gateway):
    """NM-08, NM-13: what a device refuses has its code, and nothing is half applied."""
    before = {name: runs(name) for name in CHANGES}
    for name, lines, code, words in (("junos", ["set nonsense x"], -32084, "syntax error"), ("vrp", ["interface GE1/0/2", "nonsense"], -32084, "Unrecognized"),
                                     ("junos", ["set interfaces ge-0/0/0 mtu 99999"], -32088, "mtu")):
        got, detail = Device(gateway, name).code("network.cli.configure", commands=lines)
        report.check(f"NM-08: {name}: {lines[-1]!r} is refused by the device's own check", got == code and words in detail, f"{got} {detail}")
    device = Device(gateway, "ios")
    device.change("interface GigabitEthernet0/2", "description half", "nonsense here")
    code, detail = device.code("network.commit", confirmed=60)
    report.check("NM-08: ios: what is refused amid a change is taken back", code == -32084 and "Invalid input" in detail, f"{code} {detail}")
    for name, text in before.items():
        report.check(f"NM-08: {name}: runs what it ran", until(4, lambda: runs(name) == text) is not None, runs(name))


def outside(report, gateway):
    """NM-12: no line of a change is a command of the device: not in a preview, not in a candidate, not in a commit."""
    for name, leave, erase in (("vrp", "quit", "delete /unreserved flash:/system.cc"), ("ios", "exit", "redundancy force-switchover")):
        device, before = Device(gateway, name), runs(name)
        device.call("network.preview.configure", commands=[leave, erase])
        shown = device.call("network.cli.configure", commands=[leave, erase])
        code, detail = device.code("network.commit", confirmed=60)
        told = f"{shown} {code} {detail}"
        report.check(f"NM-12: {name}: a line that leaves the configuration ends the change", "leaves the configuration mode" in told and leave in told, told[:800])
        report.check(f"NM-12: {name}: and nothing behind it reaches the device", not (HOME / f"{name}.erased").exists())
        device.call("network.rollback")
        report.check(f"NM-12: {name}: which runs what it ran", until(4, lambda: runs(name) == before) is not None, runs(name))
    result = Device(gateway, "junos").call("network.cli.configure", commands=["set system login user ada authentication plain-text-password canary-weak"])
    report.check("NM-12: junos: a device that quotes a secret in its refusal tells it to nobody", result.get("isError") and "canary" not in json.dumps(result), str(result)[:600])
    report.check("NM-09: plain: no timer is confirmed that is not Banyan's", not (HOME / "plain.confirmed").exists())
    undone = ["ip route 10.66.0.0 255.255.0.0 Null0", "no ip route 10.66.0.0 255.255.0.0 Null0", "interface GigabitEthernet0/2", "description seen"]
    shown = Device(gateway, "ios").call("network.preview.configure", commands=undone)["structuredContent"]
    report.check("NM-09: ios: whoever decides sees each line that is typed, also one that another undoes", all(line in shown["diff"] for line in undone), str(shown))


def foreign(report, gateway):
    """NM-09: a commit of somebody else that waits on the device is confirmed by no try, and goes back in its time."""
    before, twin = runs("junos"), Device(gateway, "twin")
    twin.change("set interfaces ge-0/0/0 description by-somebody-else")
    twin.call("network.commit", confirmed=60)
    code, detail = Device(gateway, "junos").code("network.preview.configure", commands=["set interfaces ge-0/0/0 description tried"])
    report.check("NM-09: junos: nothing is tried while a commit of somebody else waits", code == -32083 and "waits on the device" in detail, f"{code} {detail}")
    report.check("NM-09: junos: and the device takes that commit back in its time", until(MINUTE + 4, lambda: runs("junos") == before) is not None, runs("junos"))
    twin.call("network.rollback")


def unsafe(report, gateway):
    """NM-08, NM-13: a device without a way back, and one that restarts amid a commit, run what they ran."""
    before = {name: runs(name) for name in ("plain", "reboot")}
    device = Device(gateway, "plain")
    device.change("interface GigabitEthernet0/2", "description nowhere")
    code, detail = device.code("network.commit", confirmed=60)
    report.check("NM-13: a device without an archive takes nothing back, so nothing is sent", code == -32087, f"{code} {detail}")
    device = Device(gateway, "reboot")
    device.change("set interfaces ge-0/0/0 description amid-a-reboot")
    code, detail = device.code("network.commit", confirmed=60)
    report.check("NM-08: a reboot amid a commit is told", code in (-32082, -32085), f"{code} {detail}")
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    told = until(12, lambda: ": rolled back" in gateway.told("device", "status", "reboot", *config))
    report.check("NM-09: how a reboot amid a commit ended is read once the device is there again", told is not None, gateway.told("device", "status", "reboot", *config))
    for name, text in before.items():
        report.check(f"NM-08: {name}: runs what it ran", runs(name) == text, runs(name))


def own_dialects(report, gateway):
    """NM-02: dialects that users wrote are those of their devices, and what is wrong in one is told before anything starts."""
    for name, dialect in (("ios", "acme-house"), ("plain", "acme-file")):
        told = json.loads(Device(gateway, name).read("capabilities"))
        report.equal(f"NM-02: {name}: speaks the dialect that a user wrote", told["cliDialect"], dialect)
    code, detail = Device(gateway, "ios").code("network.cli.exec", cmd="sh secrets")
    report.check("NM-12: a command that the user's dialect calls dangerous is refused", code == -32083, f"{code} {detail}")
    for text, words in ((HOUSE.replace("dangerous", "menacing"), "menacing"), (HOUSE.replace('"ios"', '"iso"'), "built in"),
                        (HOUSE.replace("[dialect.house.commands]", "[[dialect.house.error]]\npattern = '('\ncode = \"Timeout\"\n[dialect.house.commands]"), "expression")):
        done = gateway.asked("check", "--config", gateway.home.write("dialect.toml", text))
        report.check(f"NM-02: banyan check says what is wrong in a dialect: {words}", done.returncode != 0 and words in done.stdout + done.stderr, str(done)[:600])


def added(report, gateway):
    """NM-14: a device behind SSH is added once its key was accepted and it answered, and a bad dialect is told."""
    config = ["--config", gateway.home.write("added.toml", "")]
    way = ["device", "add", "edge", "--backend", "ssh", "--address", "127.0.0.1:2301", "--user", "netadm", "--password", f"${{file:{HOME}/password}}", *config]
    done = gateway.asked(*way, "--dialect", "junos")
    key = lab.fingerprint()
    report.check("NM-14: the first try names the key to accept", done.returncode != 0 and key in done.stdout + done.stderr and "[device" not in Path(config[1]).read_text(), str(done)[:600])
    done = gateway.asked(*way, "--host-key", key, "--dialect", "jumos")
    report.check("NM-14: a dialect that nobody knows is told", done.returncode != 0 and "jumos" in done.stdout + done.stderr and "[device" not in Path(config[1]).read_text(), str(done)[:600])
    done = gateway.asked(*way, "--host-key", key, "--dialect", "junos")
    report.check("NM-14: a device behind SSH is added once it answered", done.returncode == 0 and "Hostname: edge" in done.stdout and
                 "[device.edge]" in Path(config[1]).read_text(), str(done)[:600])


def bad(report, gateway):
    """NM-08: devices that hang, ask, flood or speak garbage: each gives its code in time, with a detail, and says whether to try again."""
    for name, command, code, words, may_retry in (("hanging", "show tech-support", -32081, "no complete answer in 2 s", True), ("garbage", "show version", -32081, "no complete answer", True),
                                                  ("asking", "show tech-support", -32084, "[confirm]", False), ("flood", "show tech-support", -32081, "no end within 33554432 bytes", False),
                                                  ("outside", "show version", -32082, "refused the login", False), ("other", "show version", -32082, "somebody is in between", False)):
        began = time.monotonic()
        result = Device(gateway, name).call("network.cli.exec", cmd=command)
        told, took = result.get("structuredContent") or {}, time.monotonic() - began
        data = told.get("data") or {}
        report.check(f"NM-08: {name}: {words}", told.get("code") == code and words in data.get("detail", "") and took < 20, f"{took:.1f} s {str(result)[:600]}")
        report.equal(f"NM-08: {name}: a retry is offered where it may help", data.get("retryPossible"), may_retry)
        report.check(f"NM-12: {name}: no password is told", "canary" not in json.dumps(result))


def forget(gateway):
    """Commits on every kind of shell, and confirms nothing; what each device ran before."""
    before = {name: runs(name) for name in CHANGES}
    for name, lines in CHANGES.items():
        device = Device(gateway, name)
        device.change(*(line.replace("by-an-agent", "forgotten") for line in lines))
        device.call("network.commit", confirmed=5)
    return before


def forgotten(report, before):
    """NM-09: with nothing of Banyan alive, each device takes its change back by its own timer."""
    for name, text in before.items():
        report.check(f"NM-09: {name}: is back by itself", until(MINUTE + 6, lambda: runs(name) == text) is not None, runs(name))


def run(report, gateway):
    """Checks all shells that are scripts, side by side."""
    works = [lambda name=name: changed(report, gateway, name) for name in CHANGES]
    works += [lambda: bad(report, gateway), lambda: unsafe(report, gateway), lambda: own_dialects(report, gateway), lambda: added(report, gateway)]
    with ThreadPoolExecutor(len(works)) as pool:
        list(pool.map(lambda work: report.guard("shells", work), works))
    report.guard("shells/refused", lambda: refused(report, gateway))
    report.guard("shells/canaries", lambda: canaries.scripted(report, gateway, runs))
    report.guard("shells/outside", lambda: outside(report, gateway))
    report.guard("shells/foreign", lambda: foreign(report, gateway))
