"""What is checked of a device behind SNMP, inside the namespaces of the lab (NM-01, NM-02, NM-03, NM-06, NM-08, NM-12, NM-13, NM-14): through the shipped
binary and a gate, against the real `snmpd`. What the agent holds is asked of it by `snmpget`, never of Banyan alone.
"""
import json
import time

from gateway import Gateway
from network import lab, snmp_change, snmpd
from network.agent import Device, until
from wire import Legacy

IF = "1.3.6.1.2.1.2.2.1"


def configuration():
    """Devices of the gate: those that are reached, and those that are not."""
    home, there = snmpd.HOME, f'backend = "snmp"\naddress = "{snmpd.ADDRESS}"\ncommand_timeout = "2s"\n'
    secret = lambda key, name: f'{key} = "${{file:{home}/{name}}}"\n'
    user = lambda name: f'user = "{name}"\n' + secret("password", "auth")
    community = secret("community", "read")
    sections = {"sw": there + community + secret("write_community", "write"),
                "v3": there + user("ro") + secret("privacy_password", "privacy"),
                "sha256": there + user("rw") + secret("privacy_password", "privacy") + 'auth = "sha256"\n',
                "signing": there + user("signing") + 'auth = "sha512"\n',
                "stranger": there + secret("community", "foreign"),
                "unknown": there + user("nobody") + secret("privacy_password", "privacy"),
                "mistyped": there + 'user = "ro"\n' + secret("password", "foreign") + secret("privacy_password", "privacy"),
                "undecided": there + user("ro") + secret("privacy_password", "foreign"),
                "bare": there + user("ro"),
                "closed": there.replace(snmpd.ADDRESS, f"{snmpd.ADDRESS}:9") + community,
                "nowhere": there.replace(snmpd.ADDRESS, "203.0.113.1") + community}
    sections.update(snmp_change.sections(there, secret))
    return "[audit]\npath = \"record\"\n" + "".join(f"[device.{name}]\n{text}" for name, text in sections.items())


def reads(report, gateway):
    """NM-02, NM-03: resources and objects are what another client reads, over each version and protection."""
    device = Device(gateway, "sw")
    names = snmpd.walked("1.3.6.1.2.1.31.1.1.1.1")
    listed = json.loads(device.read("interfaces"))["openconfig-interfaces:interfaces"]["interface"]
    report.equal("NM-03: SNMP: the interfaces are those of another client", [one["name"] for one in listed], names)
    result = device.wire.call("resources/read", {"uri": "network:///interface/mgmt0"}).result["contents"][0]
    one = json.loads(result["text"])["openconfig-interfaces:interface"]
    report.check("NM-03: SNMP: an interface has state and addresses", one["state"]["oper-status"] == "UP" and
                 {"ip": snmpd.ADDRESS, "prefix-length": 24} in one["addresses"], str(one))
    link = json.loads(lab.sh("ip", "-n", "sw", "-j", "link", "show", "mgmt0"))[0]
    report.equal("NM-06: SNMP: the metadata have the hardware", result["_meta"]["hardware-address"], link["address"])
    index = one["state"]["ifindex"]
    octets = lambda: [int(snmpd.held(f"1.3.6.1.2.1.31.1.1.1.{column}.{index}")) for column in (6, 10)]
    before, told, after = octets(), json.loads(device.read("interface/mgmt0"))["openconfig-interfaces:interface"]["state"]["counters"], octets()
    report.check("NM-03: SNMP: octets are those of 64 bits that another client reads", before[0] > 0 and {"in-errors", "out-errors"} <= set(told) and
                 all(low <= told[name] <= high for low, name, high in zip(before, ("in-octets", "out-octets"), after)), f"{before} {told} {after}")
    report.equal("NM-06: SNMP: and say how wide they are", (result["_meta"]["counter-bits"], result["_meta"]["unit"]["in-octets"]), (64, "bytes"))
    memory = json.loads(device.read("system/memory-summary"))
    kib = int(next(line for line in open("/proc/meminfo") if line.startswith("MemTotal")).split()[1])
    report.equal("NM-03: SNMP: the memory is read", memory["total"], kib * 1024)
    for name in ("sw", "v3", "sha256", "signing"):
        told = Device(gateway, name).call("network.yang.get", path="/SNMPv2-MIB:SNMPv2-MIB/system/sysName")["structuredContent"]["data"]
        report.equal(f"NM-14: {name}: an object is read by its name", told, {"SNMPv2-MIB:SNMPv2-MIB": {"system": {"sysName": snmpd.held("1.3.6.1.2.1.1.5.0")}}})
    table = device.call("network.yang.get", path="/IF-MIB:IF-MIB/ifTable")["structuredContent"]["data"]["IF-MIB:IF-MIB"]["ifTable"]["ifEntry"]
    report.equal("NM-02: SNMP: a table is read", [entry["ifDescr"] for entry in table], snmpd.walked(f"{IF}.2"))
    numbers = device.call("network.yang.get", path="/1.3.6.1.2.1.11.1")["structuredContent"]["data"]
    report.check("NM-02: SNMP: an object is read by its number", list(numbers) == ["1.3.6.1.2.1.11.1.0"] and numbers["1.3.6.1.2.1.11.1.0"] > 0, str(numbers))
    nothing = device.call("network.yang.get", path="/1.3.6.1.4.1.99999")["structuredContent"]["data"]
    report.equal("NM-02: SNMP: where there is nothing, nothing is read", nothing, {})


def measured(report, gateway):
    """NM-03: the load, which the agent tells once it has run for a minute: it was started before all else."""
    device = Device(gateway, "sw")
    load = lambda: device.wire.call("resources/read", {"uri": "network:///system/cpu-utilization"}).message.get("result")
    until(75, lambda: load() is not None)
    content = load()["contents"][0]
    loads = snmpd.walked("1.3.6.1.2.1.25.3.3.1.2")
    report.check("NM-03: SNMP: the load is read", 0 <= json.loads(content["text"])["utilization"] <= 100 and content["_meta"]["hardware-cores"] == len(loads),
                 str(content))


def announced(report, gateway):
    """NM-01, NM-02, NM-13: what a device over SNMP has and has not, and that no change goes out unless the risk is accepted."""
    device = Device(gateway, "sw")
    network = Legacy(gateway.url("sw")).welcome["capabilities"]["experimental"]["network"]
    report.check("NM-01: SNMP: a device without rollback says so", network["supportsRollback"] is False and network["cliDialect"] is None, str(network))
    for tool, arguments in (("network.cli.exec", {"cmd": "show version"}), ("network.cli.configure", {"commands": ["hostname x"]}),
                            ("network.file.push", {"filename": "candidate-config", "content": "x"})):
        code, detail = device.code(tool, **arguments)
        report.check(f"NM-02: SNMP: {tool} says that there is no command line", code == -32084 and device.tools[tool]["_meta"]["available"] is False,
                     f"{code} {detail}")
    before = snmpd.held("1.3.6.1.2.1.1.5.0")
    code, detail = device.code("network.yang.edit", edit=[{"path": "/SNMPv2-MIB:system/sysName", "value": "changed"}])
    report.check("NM-13: SNMP: a change without a way back is refused", code == -32087 and "accept_no_rollback" in detail, f"{code} {detail}")
    report.equal("NM-13: SNMP: and nothing was sent", snmpd.held("1.3.6.1.2.1.1.5.0"), before)


def bad_devices(report, gateway):
    """NM-08, NM-12: each way in which a device is not reached gives one clear fault, in time and without a secret."""
    for name, code, words, may_retry in (
            ("stranger", -32081, "does not know the community", True),
            ("unknown", -32082, "does not know the user `nobody`", False),
            ("mistyped", -32082, "refused the signature of the user `ro`", False),
            ("undecided", -32081, "can't decrypt what the user sends", True),
            ("bare", -32083, "authorizationError", False),
            ("closed", -32082, "no SNMP agent answers there", True),
            ("nowhere", -32082, "203.0.113.1:161", True)):
        began = time.monotonic()
        result = Device(gateway, name).call("network.yang.get", path="/SNMPv2-MIB:SNMPv2-MIB/system/sysName")
        told, took = result.get("structuredContent") or {}, time.monotonic() - began
        detail = (told.get("data") or {}).get("detail", str(result)[:400])
        report.check(f"NM-08: SNMP: {name}: {words}", told.get("code") == code and words in detail and took < 10, f"{took:.1f} s {told}")
        report.equal(f"NM-08: SNMP: {name}: a retry is offered where it may help", (told.get("data") or {}).get("retryPossible"), may_retry)
        report.check(f"NM-12: SNMP: {name}: no secret is told", "canary" not in json.dumps(result))


def run(report):
    """Starts a gate before the device, which `snmpd.start` has started, and checks both."""
    with Gateway("snmp", {}, config=configuration()) as gateway:
        report.guard("snmp/reads", lambda: reads(report, gateway))
        report.guard("snmp/announced", lambda: announced(report, gateway))
        report.guard("snmp/bad_devices", lambda: bad_devices(report, gateway))
        snmp_change.run(report, gateway)
        report.guard("snmp/measured", lambda: measured(report, gateway))
