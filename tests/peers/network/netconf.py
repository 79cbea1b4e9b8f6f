"""What is checked of a device behind NETCONF, inside the namespaces of the lab (NM-01, NM-02, NM-03, NM-08, NM-12, NM-14): through the
shipped binary and a gate, against `netconfd`.

`ncclient` is the judge: each check looks at what the device holds, never at what was answered alone.
"""
import http.client
import json
import re
import threading
import time

from gateway import Gateway
from network import callers, events, fleet, lab, many, netconf_change, netconfd
from network.agent import Device, until
from wire import Legacy

IF = "urn:ietf:params:xml:ns:yang:ietf-interfaces"


def configuration():
    """Devices of the gate: one that is reached, and those that are not."""
    login = f'backend = "netconf"\nuser = "ncadmin"\npassword = "${{file:{netconfd.HOME}/password}}"\n'
    key = f'host_key = "{lab.fingerprint()}"\n'
    sections = {"dev": f'address = "{netconfd.ADDRESS}"\n{login}{key}longest_window = "60s"\nmax_bulk_edit = 3\n',
                "watched": f'address = "{netconfd.ADDRESS}"\n{login}{key}'
                           'health = [{ command = "/ietf-interfaces:interfaces-state/interface[name=\'mgmt0\']", expect = "<oper-status>down" }]\n',
                "bykey": f'address = "{netconfd.ADDRESS}:830"\nbackend = "netconf"\nuser = "ncadmin"\nkey = "{lab.WORK}/login"\n{key}',
                "oper": f'address = "{netconfd.ADDRESS}"\n{login.replace("ncadmin", "ncoper")}{key}',
                "split": f'address = "{netconfd.ADDRESS}"\n{login.replace("ncadmin", "ncoper")}{key}write_user = "ncadmin"\nwrite_password = "${{file:{netconfd.HOME}/password}}"\n',
                "half": f'address = "{netconfd.ADDRESS}"\n{login.replace("ncadmin", "ncoper")}{key}write_user = "ncadmin"\nwrite_password = "${{file:{netconfd.HOME}/wrong}}"\n',
                "stranger": f'address = "{netconfd.ADDRESS}"\n{login}',
                "locked-out": f'address = "{netconfd.ADDRESS}"\n{login.replace("/password}", "/wrong}")}{key}',
                "nowhere": f'address = "203.0.113.1"\n{login}{key}',
                "shell": f'address = "127.0.0.1:2222"\nbackend = "netconf"\nuser = "netadm"\npassword = "${{file:{lab.WORK}/password}}"\n{key}'}
    for port, (name, _) in netconfd.BAD.items():
        sections[name] = f'address = "{netconfd.ADDRESS}:{port}"\n{login}{key}command_timeout = "2s"\n'
    (netconfd.HOME / "wrong").write_text("canary-wrong-login")
    return "[audit]\npath = \"record\"\n" + "".join(f"[device.{name}]\n{text}" for name, text in sections.items())


def announced(report, gateway):
    """NM-01: the capabilities are those of the hello; NM-02: what a device over NETCONF has and has not."""
    capabilities = Legacy(gateway.url("dev")).welcome["capabilities"]
    network = capabilities["experimental"]["network"]
    report.equal("NM-01: behind a gate the draft's own member is that of the device", capabilities.get("network"), network)
    report.check("NM-01: and no device stands for all of them", "network" not in Legacy(gateway.url()).welcome["capabilities"])
    report.check("NM-01: the modules are those of the device", {"ietf-interfaces", "ietf-system", "ietf-netconf-acm"} <= set(network["yangModules"]),
                 str(network)[:600])
    report.equal("NM-01: datastores and rollback are those of the device",
                 (network["configDatastore"], network["supportsRollback"], network["rollbackTimeout"], network["maxBulkEdit"]),
                 (["running", "candidate", "operational"], True, 60, 3))


def reads(report, gateway, device, oracle):
    """NM-02, NM-12: network.yang.get and network.file.pull give what the device holds, without secrets."""
    schema = device.tools["network.yang.get"]["inputSchema"]
    report.equal("NM-02: the schema of network.yang.get is the one of the draft", (set(schema["properties"]), schema["properties"]["datastore"]["enum"], schema["required"]),
                 ({"path", "datastore"}, ["running", "operational"], ["path"]))
    state = device.call("network.yang.get", path="/ietf-interfaces:interfaces-state/interface[name='mgmt0']", datastore="operational")
    entry = state["structuredContent"]["data"]["ietf-interfaces:interfaces-state"]["interface"]
    report.check("NM-02: the state of an interface is read", entry["name"] == "mgmt0" and entry["oper-status"] == "up", str(state)[:600])
    held = oracle.ask("get", f'<interfaces-state xmlns="{IF}"><interface><name>mgmt0</name><speed/></interface></interfaces-state>')["is"]
    report.check("NM-02: and is what another client reads", f">{entry['speed']}</speed>" in held, held)
    for name in ("bykey", "dev"):
        again = Device(gateway, name).call("network.yang.get", path="/ietf-netconf-acm:nacm")
        report.check(f"NM-02: {name}: a node is read", "ietf-netconf-acm:nacm" in again["structuredContent"]["data"], str(again)[:400])
    listed = {one["uri"] for one in device.wire.call("resources/list").result["resources"]}
    report.check("NM-03: NETCONF: interfaces are a resource, and what the device does not tell is none", "network:///interfaces" in listed and
                 not any(part in uri for uri in listed for part in ("routing/", "system/", "startup", "syslog")), str(listed))
    all_told = json.loads(device.read("interfaces"))["ietf-interfaces:interfaces-state"]["interface"]
    names = re.findall(r"<name>([^<]*)</name>", oracle.ask("get", f'<interfaces-state xmlns="{IF}"><interface><name/></interface></interfaces-state>')["is"])
    report.equal("NM-03: NETCONF: the interfaces are those of another client", sorted(told["name"] for told in all_told), sorted(names))
    one = device.wire.call("resources/read", {"uri": "network:///interface/mgmt0"}).result["contents"][0]
    node = json.loads(one["text"])["ietf-interfaces:interface"]
    report.check("NM-03: NETCONF: an interface has its state and its counters", node["oper-status"] == "up" and int(node["statistics"]["in-octets"]) > 0, str(node))
    missing = device.wire.call("resources/read", {"uri": "network:///interface/nothing"}).error
    report.equal("NM-03: NETCONF: an interface that is not there is no resource", missing["code"], -32602)
    nothing = device.call("network.yang.get", path="/ietf-system:system/clock")
    report.equal("NM-02: where there is nothing, nothing is read", nothing["structuredContent"]["data"], {})
    code, detail = device.code("network.yang.get", path="/openconfig-interfaces:interfaces")
    report.check("NM-08: a module that the device has not is told", code == -32084 and "openconfig-interfaces" in detail, f"{code} {detail}")
    for path in ("interfaces", "/ietf-interfaces:interfaces//name", "/ietf-interfaces:interfaces/interface[1]", "/ietf-interfaces:*"):
        code, detail = device.code("network.yang.get", path=path)
        report.check(f"NM-02: {path!r} is no path", code == -32602, f"{code} {detail}")
    pulled = device.call("network.file.pull", filename="running-config")["structuredContent"]["content"]
    report.equal("NM-02: the file of the running configuration is what another client reads", plain(pulled), plain(oracle.running()))
    for tool, arguments in (("network.cli.exec", {"cmd": "show version"}), ("network.cli.configure", {"commands": ["hostname x"]}),
                            ("network.file.push", {"filename": "candidate-config", "content": "x"})):
        code, detail = device.code(tool, **arguments)
        report.check(f"NM-02: {tool} says that there is no command line", code == -32084 and device.tools[tool]["_meta"]["available"] is False,
                     f"{code} {detail}")


def plain(text):
    """XML without white space between elements, and without what only writers differ in."""
    text = re.sub(r">\s+<", "><", text.strip())
    return re.sub(r"<([\w-]+)((?: [^<>]*)?)/>", r"<\1\2></\1>", text)


def bad_devices(report, gateway):
    """NM-08: each way in which a device is not reached, or speaks badly, gives one clear fault, in time."""
    accept = f'host_key = "{lab.fingerprint()}"'
    for name, code, words, may_retry in (
            ("stranger", -32082, ("never accepted", accept), False),
            ("locked-out", -32082, ("refused the login of `ncadmin`",), False),
            ("nowhere", -32082, ("203.0.113.1:830",), True),
            ("shell", -32082, ("no subsystem `netconf`",), True),
            ("garbage", -32082, ("does not speak as it should",), False),
            ("hanging", -32081, ("no complete answer in 2 s",), True),
            ("endless", -32081, ("no end within 33554432 bytes",), False),
            ("gone", -32082, ("broke off",), True),
            ("no-hello", -32081, ("no complete answer in 2 s",), True)):
        began = time.monotonic()
        result = Device(gateway, name).call("network.yang.get", path="/x:y")
        told, took = result.get("structuredContent") or {}, time.monotonic() - began
        detail = (told.get("data") or {}).get("detail", str(result)[:400])
        report.check(f"NM-08: {name}: {words[0]}", told.get("code") == code and all(word in detail for word in words) and took < 20, f"{took:.1f} s {told}")
        report.equal(f"NM-08: {name}: a retry is offered where it may help", told["data"]["retryPossible"], may_retry)
        report.check(f"NM-12: {name}: no password is told", "canary" not in json.dumps(result))


def crowded(report, count=12):
    """NM-08: devices that say much at once find the room of their process full, and a device that says little finds room."""
    said = 24 << 20
    program = netconfd.HOME / "long"
    program.write_text(f"#!/bin/sh\nprintf '%s' '{netconfd.HELLO}'\nhead -c {said} /dev/zero | tr '\\0' x\nsleep 60\n")
    program.chmod(0o755)
    netconfd.serve(836, str(program))
    login = f'backend = "netconf"\nuser = "ncadmin"\npassword = "${{file:{netconfd.HOME}/password}}"\nhost_key = "{lab.fingerprint()}"\ngroups = ["all"]\n'
    config = (f'[device_group.all]\n[device.short]\naddress = "{netconfd.ADDRESS}"\n{login}'
              + "".join(f'[device.long{number}]\ncommand_timeout = "60s"\naddress = "{netconfd.ADDRESS}:836"\n{login}' for number in range(count)))
    with Gateway("crowded", {}, config=config) as gateway:
        refused = []

        def ask(number):
            try:
                code, detail = Device(gateway, f"long{number}").code("network.yang.get", path="/x:data")
            except (OSError, http.client.HTTPException):
                # The gate ends before the answers do.
                return
            if "take all 256 MiB" in detail:
                refused.append((code, detail))

        for number in range(count):
            threading.Thread(target=ask, args=(number,), daemon=True).start()
        report.check(f"NM-08: {count} answers of {said >> 20} MiB each find no room together", until(50, lambda: refused) is not None and refused[0][0] == -32082, str(refused[:1]))
        told = Device(gateway, "short").call("network.yang.get", path="/ietf-interfaces:interfaces/interface[name='lo']")
        report.check("NM-08: and a short one is read meanwhile", not told.get("isError"), str(told)[:400])
        # It would wait for the calls under way.
        gateway.kill()


def run(report):
    """Starts the device and a gate before it, and checks both."""
    netconfd.start()
    oracle = netconfd.Oracle()
    with Gateway("netconf", {}, config=configuration()) as gateway:
        device = Device(gateway, "dev")
        report.guard("netconf/announced", lambda: announced(report, gateway))
        report.guard("netconf/reads", lambda: reads(report, gateway, device, oracle))
        report.guard("netconf/bad_devices", lambda: bad_devices(report, gateway))
        netconf_change.run(report, gateway, device, oracle)
    report.guard("crowded", lambda: crowded(report))
    report.guard("fleet", lambda: fleet.run(report, oracle))
    report.guard("callers", lambda: callers.run(report))
    report.guard("outage", lambda: many.outage(report))
    report.guard("many", lambda: many.run(report))
    oracle.close()
    # As the last, since the device begins again there.
    report.guard("events", lambda: events.run(report))
