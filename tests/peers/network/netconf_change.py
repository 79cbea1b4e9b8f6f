"""Changes of a device behind NETCONF (NM-02, NM-08, NM-09, NM-12, NM-13): confirmed, forgotten, taken back, interrupted, refused.

`ncclient` is the judge here as well. Starts nothing: the device and the gate are those of `netconf.py`.
"""
import json
import os
import signal
import time
from pathlib import Path

from network import lab, netconfd
from network.agent import Device, kill_all, processes, until

IF = "urn:ietf:params:xml:ns:yang:ietf-interfaces"
LINK = "/ietf-interfaces:interfaces/interface[name='mgmt0']"
WINDOW = 4
SECRET = "canary-radius-secret"


def link(description, **more):
    """Edits that describe an interface."""
    return [{"path": LINK, "value": {"type": "iana-if-type:ethernetCsmacd", "description": description, **more}}]


def foreign(description):
    """The same by another client."""
    return (f'<config xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><interfaces xmlns="{IF}"><interface><name>mgmt0</name>'
            f'<type xmlns:t="urn:ietf:params:xml:ns:yang:iana-if-type">t:ethernetCsmacd</type><description>{description}</description>'
            "</interface></interfaces></config>")


def made(device, edits):
    """Makes a candidate; the structure of the answer."""
    return device.call("network.yang.edit", target="candidate", edit=edits)["structuredContent"]


def free(oracle):
    """Can another client take both locks, and is the candidate what runs?"""
    told = [oracle.ask("candidate") == oracle.ask("running")]
    for kind, store in (("lock", "running"), ("lock", "candidate"), ("unlock", "candidate"), ("unlock", "running")):
        told.append(oracle.ask(kind, store) == {"is": True})
    return all(told)


def denied(report, gateway, oracle):
    """NM-08: what the device's own access control denies."""
    before = oracle.running()
    code, detail = Device(gateway, "oper").code("network.yang.edit", edit=link("by an operator"))
    report.check("NM-08: what NACM denies is told", code == -32083 and "denied" in detail, f"{code} {detail}")
    report.check("NM-08: and no lock is left", free(oracle) and oracle.running() == before)


def split(report, gateway, oracle):
    """NM-12: a device with a login for changes is read by the other one, whom NACM lets read only."""
    read = Device(gateway, "half").call("network.yang.get", path="/ietf-interfaces:interfaces")
    code, detail = Device(gateway, "half").code("network.yang.edit", edit=link("by nobody"))
    report.check("NM-12: where the login for changes is refused, reads go on and changes do not", not read.get("isError") and code == -32082 and "`ncadmin`" in detail, f"{read} {code} {detail}"[:900])
    device = Device(gateway, "split")
    made(device, link("by the login for changes"))
    done = device.call("network.commit", confirmed=WINDOW).get("structuredContent", {})
    report.check("NM-12: the login for changes makes them", "by the login for changes" in oracle.running(), str(done))
    device.call("network.commit", confirm=True)
    made(device, [{"path": f"{LINK}/description", "operation": "delete"}])
    device.call("network.commit", confirmed=WINDOW)
    back = device.call("network.rollback").get("structuredContent", {})
    report.check("NM-12: and takes them back", back.get("status") == "rolled-back" and "by the login for changes" in oracle.running(), str(back))
    made(device, [{"path": f"{LINK}/description", "operation": "delete"}])
    device.call("network.commit", confirmed=WINDOW)
    device.call("network.commit", confirm=True)
    report.check("NM-12: nothing of that is left", "<description>" not in oracle.running() and free(oracle), oracle.running())


def confirmed(report, device, oracle):
    """NM-09: a change is shown, applied for some seconds, confirmed, and stays."""
    before = oracle.running()
    looked = device.call("network.preview.edit", edit=link("by an agent"))["structuredContent"]
    code, detail = device.code("network.commit", confirmed=WINDOW)
    report.check("NM-09: a preview shows the diff and keeps no candidate", "+    <description>by an agent</description>" in looked["diff"] and code == -32084
                 and free(oracle) and oracle.running() == before, f"{looked} {code} {detail}")
    shown = made(device, link("by an agent"))
    report.equal("NM-09: the preview was of that very change", (looked["hash"], looked["base"]), (shown["hash"], shown["base"]))
    report.check("NM-09: the diff shows the change", "+    <description>by an agent</description>" in shown["diff"] and shown["hash"] and shown["base"], str(shown))
    report.check("NM-09: a diff applies nothing, and leaves no lock and no candidate", oracle.running() == before and free(oracle))
    pulled = device.call("network.file.pull", filename="candidate-config")["structuredContent"]["content"]
    report.check("NM-02: the candidate can be pulled", "<description>by an agent</description>" in pulled, pulled)
    done = device.call("network.commit", confirmed=WINDOW, hash=shown["hash"])["structuredContent"]
    report.check("NM-09: it is committed for the time asked for", done["status"] == "committed" and 0 < done["rollbackTimeout"] <= WINDOW, str(done))
    report.check("NM-09: the device runs it", "<description>by an agent</description>" in oracle.running())
    code, detail = device.code("network.yang.edit", edit=link("meanwhile"))
    report.check("NM-09: while it waits, nothing else is changed", code == -32083 and "waits for its confirmation" in detail, f"{code} {detail}")
    kept = device.call("network.commit", confirm=True)["structuredContent"]
    report.equal("NM-09: it is confirmed, and the device starts with it", (kept["status"], kept["saved"]), ("confirmed", True))
    told = netconfd.by_yangcli()
    report.check("NM-09: yangcli reads it too", "<description>by an agent</description>" in told, told[-1500:])
    code, detail = device.code("network.rollback", confirmed=True)
    report.check("NM-09: a device over NETCONF says that it has no undo of a confirmed change", code == -32087 and "by edits alone" in detail, f"{code} {detail}")
    time.sleep(WINDOW + 1)
    report.check("NM-09: what was confirmed stays", "<description>by an agent</description>" in oracle.running() and free(oracle), oracle.running())


def forgotten(report, device, oracle):
    """NM-09: a change that nobody confirms is taken back by the device; who confirms too late is told so."""
    before = oracle.running()
    made(device, link("forgotten", enabled=False))
    device.call("network.commit", confirmed=WINDOW)
    report.check("NM-09: the forgotten change runs", "forgotten" in oracle.running())
    took = until(WINDOW + 6, lambda: oracle.running() == before)
    report.check("NM-09: the forgotten change is gone", took is not None, oracle.running())
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: who confirms too late is told so", code == -32086, f"{code} {detail}")


def taken_back(report, device, oracle):
    """NM-09: a change is taken back before its time; a candidate is let go of."""
    before = oracle.running()
    made(device, [{"path": f"{LINK}/description", "operation": "delete"}])
    device.call("network.commit", confirmed=40)
    report.check("NM-09: a node is deleted", "<description>" not in oracle.running(), oracle.running())
    back = device.call("network.rollback")["structuredContent"]
    report.check("NM-09: it is back at once", back["status"] == "rolled-back" and oracle.running() == before and free(oracle), f"{back} {oracle.running()}")
    made(device, link("let go"))
    device.call("network.rollback")
    code, detail = device.code("network.commit", confirmed=WINDOW)
    report.check("NM-09: what was let go of can't be committed", code == -32084 and "no candidate" in detail, f"{code} {detail}")


def unhealthy(report, gateway, oracle):
    """NM-09: where the state of the device is not what it has to be after a change, the change is taken back at once."""
    before, device = oracle.running(), Device(gateway, "watched")
    made(device, link("unhealthy"))
    code, detail = device.code("network.commit", confirmed=40)
    report.check("NM-09: a change that leaves the device unwell is taken back at once", code == -32084 and "oper-status" in detail and oracle.running() == before,
                 f"{code} {detail} {oracle.running()}")


def together(report, device, oracle):
    """NM-09: edits that are valid only together are one change; a second call adds to the first."""
    path = "/ietf-interfaces:interfaces/interface[name='lo1']"
    made(device, [{"path": f"{path}/description", "value": "without a type as yet"}, {"path": f"{path}/type", "value": "iana-if-type:softwareLoopback"}])
    shown = made(device, [{"path": f"{path}/enabled", "value": False}])
    report.check("NM-09: a second call adds to the candidate", all(text in shown["diff"] for text in ("without a type as yet", "softwareLoopback", "false")), shown["diff"])
    device.call("network.commit", confirmed=30)
    report.check("NM-09: the device runs all of it", "lo1" in oracle.running() and "<enabled>false</enabled>" in oracle.running(), oracle.running())
    device.call("network.rollback")
    report.check("NM-09: and nothing of it once it is taken back", "lo1" not in oracle.running())


def refused(report, gateway, device, oracle):
    """NM-08, NM-13: what the device refuses, with its code, and nothing half applied."""
    before = oracle.running()
    code, detail = device.code("network.yang.edit", edit=link("x", enabled="perhaps"))
    result = device.call("network.yang.edit", edit=link("x", enabled="perhaps"))
    path = result["structuredContent"]["data"].get("path", "")
    report.check("NM-08: a value that the device's model does not allow is told with its place", code == -32088 and "enabled" in path, f"{code} {detail} {path}")
    code, detail = device.code("network.yang.edit", edit=[{"path": "/ietf-interfaces:interfaces/interface[name='lo2']/description", "value": "no type"}])
    report.check("NM-08: what is missing is told", code == -32088, f"{code} {detail}")
    code, detail = device.code("network.yang.edit", edit=link("x", nonesuch=1))
    report.check("NM-08: a node that the device has not is told", code == -32084 and "nonesuch" in detail, f"{code} {detail}")
    code, detail = device.code("network.yang.edit", edit=link("x") * 4)
    report.check("NM-13: more edits than allowed are refused", code == -32084 and "3 are allowed" in detail, f"{code} {detail}")
    many = [{"path": "/ietf-interfaces:interfaces/interface", "value": [{"name": f"many{n}", "type": "iana-if-type:softwareLoopback"} for n in range(4)]}]
    code, detail = device.code("network.yang.edit", edit=many)
    report.check("NM-13: nor do they pass as entries of one list", code == -32084 and "3 are allowed" in detail, f"{code} {detail}")
    device.call("network.yang.edit", edit=many, chunked=True)
    device.call("network.commit", confirmed=30)
    report.check("NM-13: in parts, as the caller asks, they are one change", all(f"many{n}<" in oracle.running() for n in range(4)), oracle.running())
    device.call("network.rollback")
    report.check("NM-13: and are taken back as one", "many" not in oracle.running(), oracle.running())
    code, detail = device.code("network.commit", confirmed=61)
    report.check("NM-08: a window beyond the longest is refused", code == -32602, f"{code} {detail}")
    code, detail = device.code("network.yang.edit", target="running", edit=link("x"))
    report.check("NM-02: only the candidate is edited", code == -32602, f"{code} {detail}")
    code, detail = Device(gateway, "hanging").code("network.yang.edit", edit=link("x"))
    report.check("NM-13: a device without confirmed commits is not changed", code in (-32087, -32084), f"{code} {detail}")
    report.check("NM-08: the device runs what it ran, and holds no lock", oracle.running() == before and free(oracle))


def locked(report, device, oracle):
    """NM-08, NM-09: somebody else's lock, and somebody else's edits."""
    session = oracle.ask("session")["is"]
    for store in ("candidate", "running"):
        oracle.ask("lock", store)
        code, detail = device.code("network.yang.edit", edit=link("locked out"))
        report.check(f"NM-08: somebody else's lock of {store} is told with the session", code == -32083 and f"locked by session {session}" in detail, f"{code} {detail}")
        oracle.ask("unlock", store)
        report.check("NM-08: and no other lock is left", free(oracle))
    oracle.ask("edit", foreign("half done by hand"))
    code, detail = device.code("network.yang.edit", edit=link("over it"))
    report.check("NM-09: a candidate that somebody edits is left alone", code == -32083 and "half done by hand" in oracle.ask("candidate")["is"], f"{code} {detail}")
    oracle.ask("discard")
    made(device, link("mine"))
    oracle.ask("lock", "running")
    code, detail = device.code("network.commit", confirmed=WINDOW)
    report.check("NM-09: a commit under somebody's lock applies nothing", code == -32083 and "mine" not in oracle.running(), f"{code} {detail}")
    oracle.ask("unlock", "running")
    device.call("network.commit", confirmed=30)
    report.check("NM-09: and goes through once the lock is gone", "mine" in oracle.running())
    oracle.ask("edit", foreign("slipped in"))
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: a confirmation takes nobody else's edits along", code == -32083 and "slipped in" in detail and "slipped in" not in oracle.running(), f"{code} {detail}")
    oracle.ask("discard")
    kept = device.call("network.commit", confirm=True)["structuredContent"]
    report.check("NM-09: and goes through once these are gone", kept.get("status") == "confirmed" and "mine" in oracle.running(), str(kept))


def drift(report, device, oracle):
    """NM-09: what somebody changed since the diff was shown makes the commit void."""
    shown = made(device, link("late"))
    oracle.ask("edit", foreign("by hand"))
    oracle.ask("commit")
    before = oracle.running()
    code, detail = device.code("network.commit", confirmed=WINDOW, hash=shown["hash"])
    report.check("NM-09: a commit after a drift is refused", code == -32084 and "changed since the diff" in detail, f"{code} {detail}")
    report.check("NM-09: and nothing of it was applied", oracle.running() == before and free(oracle), oracle.running())
    made(device, link("late"))
    code, detail = device.code("network.commit", confirmed=WINDOW, hash=shown["hash"])
    report.check("NM-09: nor is a candidate committed by the hash of another", code == -32084 and oracle.running() == before, f"{code} {detail}")
    device.call("network.rollback")


def secrets(report, device, oracle, gateway):
    """NM-12: a secret that is typed reaches the device, and no answer and no record."""
    path = "/ietf-system:system/radius/server[name='one']"
    edits = [{"path": path, "value": {"udp": {"address": "192.0.2.1", "shared-secret": SECRET}}}]
    texts = [device.call("network.yang.edit", edit=edits), device.call("network.commit", confirmed=30)]
    report.check("NM-12: the device has the secret", SECRET in oracle.running(), f"{texts} {oracle.running()}")
    texts += [device.call("network.yang.get", path=path), device.call("network.file.pull", filename="running-config"),
              device.call("network.file.pull", filename="candidate-config"), device.call("network.rollback")]
    texts = json.dumps(texts)
    report.check("NM-12: no answer has it", SECRET not in texts and "[redacted]" in texts and netconfd.LOGIN not in texts, texts[:1500])
    chains = [file.read_bytes() for file in Path(gateway.home.dir).glob("record/chain-*/entries/*.jsonl")]
    report.check("NM-12: nor has the record", chains and not any(SECRET.encode() in chain for chain in chains))


def killed(report, gateway, oracle):
    """NM-09: all of Banyan dies within the window; the device takes the change back, and the next process says so."""
    device = Device(gateway, "dev")
    before = oracle.running()
    made(device, link("nobody left"))
    device.call("network.commit", confirmed=WINDOW + 2)
    report.check("NM-09: the change runs before the kill", "nobody left" in oracle.running())
    kill_all(gateway)
    gone = until(5, lambda: not processes("serve") + processes("guard"))
    report.check("NM-09: nothing of Banyan lives any more", gone is not None, str(processes("serve")))
    # Who asks without a pause keeps netconfd from looking at its timer.
    took = until(WINDOW + 15, lambda: time.sleep(3) or oracle.running() == before)
    report.check("NM-09: the device takes the change back by itself", took is not None, oracle.running())
    gateway.start()
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    told = until(10, lambda: "rolled back" in gateway.told("device", "status", "dev", *config))
    report.check("NM-09: the next process knows how it ended", told is not None, gateway.told("device", "status", "dev", *config))
    code, detail = Device(gateway, "dev").code("network.commit", confirm=True)
    report.check("NM-09: and tells who confirms", code == -32086, f"{code} {detail}")


def restarted(report, gateway, oracle):
    """NM-09: a process that starts within the window can confirm what another one has applied."""
    device = Device(gateway, "dev")
    made(device, link("kept by another"))
    device.call("network.commit", confirmed=20)
    for pid in processes("serve"):
        os.kill(pid, signal.SIGKILL)
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    told = gateway.told("device", "confirm", "dev", *config)
    report.check("NM-09: a person confirms from another process", "confirmed" in told, told)
    device = Device(gateway, "dev")
    until(20, lambda: "result" in device.wire.tool(device.named["network.file.pull"], {"filename": "running-config"}).message)
    code, detail = device.code("network.commit", confirm=True)
    report.check("NM-09: and there is nothing left to confirm", code == -32602 and "kept by another" in oracle.running(), f"{code} {detail}")


def command_line(report, gateway):
    """NM-14: a device is added once it answered; where its host key is unknown, the key to accept is told."""
    fresh = ["--config", gateway.home.write("fresh-netconf.toml", "")]
    way = ["device", "add", "spine", "--backend", "netconf", "--address", netconfd.ADDRESS, "--user", "ncadmin", "--password", f"${{file:{netconfd.HOME}/password}}"]
    report.check("NM-14: a device with an unknown host key is not added", not gateway.told(*way, *fresh) and "spine" not in Path(fresh[1]).read_text())

    told = gateway.told(*way, "--host-key", lab.fingerprint(), *fresh)
    report.check("NM-14: a device is added once it answered", "YANG modules" in told and 'backend = "netconf"' in Path(fresh[1]).read_text(), told)


def run(report, gateway, device, oracle):
    """All of them; what NACM denies comes first, since netconfd turns it off at the first rollback."""
    report.guard("netconf/denied", lambda: denied(report, gateway, oracle))
    report.guard("netconf/split", lambda: split(report, gateway, oracle))
    report.guard("netconf/confirmed", lambda: confirmed(report, device, oracle))
    report.guard("netconf/forgotten", lambda: forgotten(report, device, oracle))
    report.guard("netconf/taken_back", lambda: taken_back(report, device, oracle))
    report.guard("netconf/unhealthy", lambda: unhealthy(report, gateway, oracle))
    report.guard("netconf/together", lambda: together(report, device, oracle))
    report.guard("netconf/refused", lambda: refused(report, gateway, device, oracle))
    report.guard("netconf/locked", lambda: locked(report, device, oracle))
    report.guard("netconf/drift", lambda: drift(report, device, oracle))
    report.guard("netconf/secrets", lambda: secrets(report, device, oracle, gateway))
    report.guard("netconf/killed", lambda: killed(report, gateway, oracle))
    report.guard("netconf/restarted", lambda: restarted(report, gateway, oracle))
    report.guard("netconf/command_line", lambda: command_line(report, gateway))
