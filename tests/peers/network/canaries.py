"""Secrets of every kind that a dialect knows, in no output (NM-12): results, files, resources, diffs, refusals, the command line, the record, the log.

`canaries.json` has a line of each kind; the unit tests of the redactor read the same ones. Starts nothing.
"""
import json
import os
from pathlib import Path

from network import lab
from network.agent import Device, until

CANARY, MARK = "Xq7canary9", "[redacted]"
KINDS = json.loads(Path(__file__).with_name("canaries.json").read_text())
SCRIPTED = {"junos": ("show configuration | display set", "delete {0}"), "ios": ("show running-config", "no {0}"), "vrp": ("display current-configuration", "undo {0}")}
# Where FRR takes a line.
FRR = {"password": [], "enable": [], "bgp": ["router bgp 65001"], "ospf": ["interface lan0"], "ospf6": ["interface lan0"], "isis": ["interface lan0"],
       "rip": ["interface lan0"], "key chain": [], "nhrp": ["interface lan0"]}
# What the daemons of the lab run as it is typed: no password that they shorten or hash.
RUN = [f"password {CANARY}", "interface lan0", f"ip ospf message-digest-key 1 md5 {CANARY}", "router bgp 65001", f"neighbor 10.0.12.2 password {CANARY}"]


def config(gateway):
    """Arguments that name the configuration of a gate."""
    return ["--config", os.path.join(gateway.home.dir, "banyan.toml")]


def candidate(told, what, device, gateway, name, commands):
    """What is said of a candidate: before it is made, when it is, afterwards, and at the command line."""
    told[f"{what}, preview"] = device.call("network.preview.configure", commands=commands)
    told[f"{what}, candidate"] = device.call("network.cli.configure", commands=commands)
    told[f"{what}, at the command line"] = gateway.told("device", "diff", name, *config(gateway)) + gateway.told("device", "status", name, *config(gateway))
    told[f"{what}, candidate pulled"] = device.call("network.file.pull", filename="candidate-config")
    told[f"{what}, commit"] = device.call("network.commit", confirmed=60)


def reads(told, when, device, running):
    """What is said of the running configuration."""
    told[f"{when}, exec"] = device.call("network.cli.exec", cmd=running)
    told[f"{when}, pull"] = device.call("network.file.pull", filename="running-config")
    told[f"{when}, resource"] = device.wire.call("resources/read", {"uri": "network:///file/running-config"}).result


def judge(report, name, told, gateway):
    """Looks for the canary in all that was said, in the record and in the log."""
    told["record"], told["log"] = gateway.told("audit", "export", *config(gateway)), gateway.tail(1 << 20)
    texts = {what: text if isinstance(text, str) else json.dumps(text) for what, text in told.items()}
    shown = [(what, text[max(0, text.find(CANARY) - 200):][:400]) for what, text in texts.items() if CANARY in text]
    report.check(f"NM-12: {name}: no output of {len(texts)} shows a secret", not shown, str(shown)[:2000])
    return texts


def scripted(report, gateway, runs):
    """The shells that are scripts hold a secret of each kind; it is read, typed, deleted and refused."""
    for name, (running, delete) in SCRIPTED.items():
        device, before, told = Device(gateway, name), runs(name), {}
        held = [line for dialect, _, text in KINDS if dialect == name and (name != "junos" or text.startswith("set ")) for line in text.split("\n")]
        # A line of a public key stands behind no word.
        typed = [line for line in held if CANARY in line and line.strip() != CANARY]
        reads(told, "as it is", device, running)
        for what, commands in (("typed", typed), ("deleted", [delete.format(line.strip().removeprefix("set ")) for line in typed])):
            candidate(told, what, device, gateway, name, commands)
            told[f"{what}, rollback"] = device.call("network.rollback")
        for line in typed:
            told[f"exec {line}"] = device.call("network.cli.exec", cmd=line)
            told[f"show {line}"] = device.call("network.cli.exec", cmd=f"show {line}")
        report.equal(f"NM-12: {name}: the device holds a secret of every kind", [line for line in held if line not in before.splitlines()], [])
        texts = judge(report, name, {what: text for what, text in told.items()}, gateway)
        report.check(f"NM-12: {name}: and each is read as hidden", all(texts[f"as it is, {what}"].count(MARK) >= len(typed) for what in ("exec", "pull", "resource")),
                     str({what: text.count(MARK) for what, text in texts.items()})[:1500])
        report.check(f"NM-12: {name}: and the device runs what it ran", until(4, lambda: runs(name) == before) is not None, runs(name))


def routed(report, gateway):
    """The same of a router: what its daemons run is typed and read while it runs, and what they do not is refused."""
    device, told, before = Device(gateway, "r1"), {}, lab.running("r1")
    for _, kind, text in (one for one in KINDS if one[0] == "frr" and one[1] in FRR):
        candidate(told, f"{kind}: {text}", device, gateway, "r1", [*FRR[kind], *text.split("\n")])
        told[f"{kind}: {text}, rollback"] = device.call("network.rollback")
    candidate(told, "all", device, gateway, "r1", RUN)
    held = lab.running("r1")
    reads(told, "as it runs", device, "show running-config")
    told["rollback"] = device.call("network.rollback")
    for line in RUN:
        told[f"exec {line}"] = device.call("network.cli.exec", cmd=line)
    report.check("NM-12: r1: runs secrets of its routing protocols", held.count(CANARY) == 3, f"{told['all, commit']} {held}"[:3000])
    texts = judge(report, "r1", told, gateway)
    report.check("NM-12: r1: and each is read as hidden", all(texts[f"as it runs, {what}"].count(MARK) >= held.count(CANARY) for what in ("exec", "pull", "resource")), str(texts)[:600])
    report.equal("NM-12: r1: which runs what it ran", lab.running("r1"), before)
    running = lab.vtysh("r1", "show running-config no-header")
    pushed = device.call("network.file.push", filename="candidate-config", content=running.replace("\nend", "\nline vty\n!\nend"))
    report.check("NM-13: r1: a file with an empty `line vty`, as many have, is taken", not pushed.get("isError"), str(pushed)[:600])
    device.call("network.rollback")
    for line in ("agentx", "agent", "usern x nopassword"):
        for tool in ("network.preview.configure", "network.cli.configure"):
            code, detail = device.code(tool, commands=[line])
            report.check(f"NM-13: r1: {line!r}, which FRR never takes away, is refused by {tool}", code == -32087 and f"`{line[:7].strip()}" in detail, f"{code} {detail}")
