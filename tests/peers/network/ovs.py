"""Open vSwitch (NM-01, NM-02, NM-03, NM-06, NM-07, NM-08, NM-09, NM-12): reads, VLANs of ports, and changes as one transaction of the database.

A real `ovsdb-server` and `ovs-vswitchd` with the datapath in user space are the device, and `ovs-vsctl` is the judge. Runs in namespaces.
"""
import json
import os
import signal

from gateway import Gateway
from network import asking, lab
from network.agent import Device, kill_all, processes, until
from wire import Modern

HOME = lab.WORK / "ovs"
SECRET = "canary-ovs-secret"
WINDOW = 3
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
CONFIG = f"""
[device.switch]
backend = "ovs"
socket = "{HOME}/db.sock"
longest_window = "60s"
command_timeout = "2s"

[device.ruled]
backend = "ovs"
socket = "{HOME}/db.sock"
deny_lines = ["port e2", "tag 30", "trunks 15"]

[device.pathed]
backend = "ovs"
socket = "{HOME}/db.sock"
deny_edit_paths = ["/interfaces"]
"""


def start():
    """Starts the database and the switch, with an access port, two trunks and a tunnel."""
    HOME.mkdir()
    os.environ["OVS_RUNDIR"] = str(HOME)
    lab.sh("ovsdb-tool", "create", f"{HOME}/db", SCHEMA)
    lab.sh("ovsdb-server", f"{HOME}/db", f"--remote=punix:{HOME}/db.sock", f"--pidfile={HOME}/server.pid", f"--unixctl={HOME}/server.ctl",
           f"--log-file={HOME}/server.log", "--detach")
    vsctl("--no-wait", "init")
    lab.sh("ovs-vswitchd", f"unix:{HOME}/db.sock", f"--pidfile={HOME}/switch.pid", f"--unixctl={HOME}/switch.ctl", f"--log-file={HOME}/switch.log", "--detach")
    for number in (1, 2, 3):
        lab.sh("ip", "link", "add", f"e{number}", "type", "veth", "peer", "name", f"f{number}")
        lab.sh("ip", "link", "set", f"e{number}", "up")
    vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "--", "add-port", "br0", "e1", "tag=10", "--",
          "add-port", "br0", "e2", "trunks=10,20,21,22", "--", "add-port", "br0", "e3", "--",
          "add-port", "br0", "vx0", "--", "set", "interface", "vx0", "type=vxlan", "options:remote_ip=192.0.2.9", f"options:psk={SECRET}",
          "--", "set", "port", "vx0", "external_ids:owner=backbone")


def vsctl(*words):
    """What `ovs-vsctl` says."""
    return lab.sh("ovs-vsctl", "--timeout=5", f"--db=unix:{HOME}/db.sock", *words)


def held():
    """What is configured, as `ovs-vsctl` lists it."""
    columns = {"Port": "name,tag,trunks,vlan_mode,external_ids,qos", "Interface": "name,type,options,mtu_request,external_ids", "Bridge": "name,datapath_type,external_ids",
               "Open_vSwitch": "external_ids,other_config"}
    rows = {table: sorted(json.dumps(row) for row in json.loads(vsctl("-f", "json", f"--columns={names}", "list", table))["data"]) for table, names in columns.items()}
    return rows | {"ports": sorted(vsctl("list-ports", "br0").split())}


def tag(port):
    """The access VLAN of a port."""
    return vsctl("get", "port", port, "tag").strip()


def reads(report, gateway, device):
    """NM-01, NM-02, NM-03, NM-06, NM-12: reads come from the database, without secrets."""
    told = json.loads(device.read("capabilities"))
    report.equal("NM-01: ovs: its dialect and its way back are told", (told["cliDialect"], told["supportsRollback"]), ("openvswitch-ovsdb", True))
    shown = device.call("network.cli.exec", cmd="show vlan").get("stdout", "")
    report.check("NM-02: ovs: VLANs are listed with their ports", "10    -                        e1, e2" in shown, shown)
    shown = device.call("network.cli.exec", cmd="show interface").get("stdout", "")
    report.check("NM-02: ovs: interfaces are shown", "vx0" in shown and "br0" in shown, shown)
    for command in ("del-br br0", "show vlan; del-br br0", "set port e1 tag=1"):
        code, detail = device.code("network.cli.exec", cmd=command)
        report.check(f"NM-12: ovs: {command!r} is refused", code in (-32083, -32084), f"{code} {detail}")
    one = Modern(gateway.url("switch")).call("resources/read", {"uri": "network:///interface/e1"}).result["contents"][0]
    data = json.loads(one["text"])["openconfig-interfaces:interface"]
    report.check("NM-03: ovs: an interface has its counters and its VLAN", isinstance(data["state"]["counters"]["in-octets"], int) and
                 data["openconfig-vlan:switched-vlan"] == {"interface-mode": "ACCESS", "access-vlan": 10}, str(data))
    report.check("NM-06: ovs: with units and the address of the hardware", one["_meta"]["unit"]["in-octets"] == "bytes" and
                 one["_meta"]["hardware-address"] == json.loads(lab.sh("ip", "-j", "link", "show", "e1"))[0]["address"], str(one["_meta"]))
    memory = json.loads(device.read("system/memory-summary"))
    held = next(int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    report.equal("NM-03: ovs: memory and load are those of this machine", (memory["total"], 0 <= json.loads(device.read("system/cpu-utilization"))["utilization"] <= 100), (held, True))
    pulled = device.call("network.file.pull", filename="running-config")["structuredContent"]["content"]
    report.check("NM-12: ovs: the configuration is shown without its secret", SECRET not in pulled and "port e2\n in-bridge br0\n trunks 10,20-22\n" in pulled, pulled)


def refused(report, device):
    """NM-08: lines that no switch has, rows of others, and interfaces that are not there."""
    for lines, why in ((["port e1", "tag 4096"], "4095"), (["port e9", "tag 1"], "in-bridge"), (["port e1", "tagg 1"], "none of"), (["port e1", "no tagg"], "is it `tag`?"), (["port e1", "tag 10"], "nothing would change")):
        code, detail = device.code("network.cli.configure", commands=lines)
        report.check(f"NM-08: ovs: {lines} are refused with the reason", code == -32084 and why in detail, f"{code} {detail}")
    vsctl("--", "set", "port", "e3", "qos=@q", "--", "--id=@q", "create", "qos", "type=linux-htb")
    code, detail = device.code("network.cli.configure", commands=["no port e3"])
    report.check("NM-08: ovs: what would not come back is not removed", code == -32084 and "qos" in detail, f"{code} {detail}")
    vsctl("clear", "port", "e3", "qos")
    before = held()
    device.change("port nowhere", "in-bridge br0", "tag 5")
    code, detail = device.code("network.commit", confirmed=30)
    report.check("NM-08: ovs: an interface that is not there is told, and taken back", code == -32084 and "nowhere" in detail and held() == before, f"{code} {detail}")
    shown = device.change("port e2", "trunks 10,99")
    vsctl("set", "port", "e3", "tag=7")
    code, detail = device.code("network.commit", confirmed=30, hash=shown["hash"])
    report.check("NM-09: ovs: a commit after a drift is refused", code == -32084 and "changed since" in detail and "99" not in vsctl("get", "port", "e2", "trunks"),
                 f"{code} {detail}")
    device.call("network.rollback")
    vsctl("clear", "port", "e3", "tag")


def ruled(report, gateway, device):
    """NM-12: quotes and escapes hide no line from the rules of the device."""
    for lines in (["port e2", "no trunks"], ['port "e2"', "no trunks"], ['no port "\\u00652"'], ["port e1", '"t\\u0061g" 30'], ["port e1", 'tag "30"'], ["port e1", "tag 030"], ["port e3", "trunks 10-20"], ["port e3", 'trunks "1,15"']):
        code, detail = device.code("network.cli.configure", commands=lines)
        report.check(f"NM-12: ovs: {lines} pass by no rule", code == -32083, f"{code} {detail}")
    shown = device.change('port "e1"', "tag 31")
    report.check("NM-12: ovs: and what no rule forbids is taken", "+ tag 31" in shown["diff"], str(shown))
    device.call("network.rollback")
    pathed = Device(gateway, "pathed")
    code, detail = pathed.code("network.cli.configure", commands=["port e1", "tag 5"])
    report.check("NM-12: ovs: a rule on paths refuses edits, for nobody can judge them by it", code == -32083 and "deny_lines" in detail, f"{code} {detail}")
    report.check("NM-12: ovs: and reads go on", "e1" in pathed.call("network.cli.exec", cmd="show vlan").get("stdout", ""))
    told = gateway.asked("check", os.path.join(gateway.home.dir, "banyan.toml")).stderr
    report.check("NM-12: ovs: which a check of the configuration says", "[device.pathed]" in told and "rules on paths" in told, told)


def changes(report, device):
    """NM-09: a change is shown, applied as one transaction, taken back without the work of others, and kept."""
    before = held()
    shown = device.change("port e1", "tag 30", "port e2", "no trunks", "vlan 30", "name guests", "no port vx0", "port p9", "in-bridge br0", "tag 30", "interface p9", "type internal")
    report.check("NM-09: ovs: the diff shows the change and no secret", "- tag 10" in shown["diff"] and "+ tag 30" in shown["diff"] and "-port vx0" in shown["diff"] and
                 SECRET not in json.dumps(shown), shown["diff"])
    report.equal("NM-09: ovs: a diff applies nothing", held(), before)
    done = device.call("network.commit", confirmed=30, hash=shown["hash"])
    report.check("NM-09: ovs: it runs in the switch", tag("e1") == "30" and "p9" in vsctl("list-ports", "br0") and "vx0" not in vsctl("list-ports", "br0") and
                 "p9" in lab.sh("ip", "link", "show", "p9", check=False), f"{done} {held()}")
    lab.sh("ip", "link", "add", "e4", "type", "veth", "peer", "name", "f4")
    vsctl("add-port", "br0", "e4", "tag=44")
    back = device.call("network.rollback").get("structuredContent", {})
    report.check("NM-09: ovs: it is taken back, and what somebody else added stays", back.get("status") == "rolled-back" and tag("e4") == "44", str(back))
    vsctl("del-port", "br0", "e4")
    report.equal("NM-09: ovs: with a tunnel that was removed, all of it", held(), before)
    device.change("port e1", "tag 40", "port e3", "trunks 1-3")
    device.call("network.commit", confirmed=30)
    kept = device.call("network.commit", confirm=True).get("structuredContent", {})
    report.equal("NM-09: ovs: it is confirmed and kept", (kept.get("status"), kept.get("saved"), tag("e1")), ("confirmed", True, "40"))


def meanwhile(report, gateway, device):
    """NM-09: somebody else at work on the same rows between the candidate and the commit, and between the commit and the rollback."""
    vsctl("set", "port", "e3", "trunks=1,2,3")
    before = held()
    shown = device.change("no port e3")
    vsctl("--", "set", "port", "e3", "qos=@q", "--", "--id=@q", "create", "qos", "type=linux-htb")
    code, detail = device.code("network.commit", confirmed=30, hash=shown["hash"])
    report.check("NM-09: ovs: what came to a port since the candidate is not lost with the port", code == -32084 and "qos" in detail and "e3" in held()["ports"], f"{code} {detail}")
    vsctl("clear", "port", "e3", "qos")
    device.call("network.rollback")
    device.change("port e3", "trunks 1,2,50", "external_ids ours 1", "port vx0", "no external_ids owner")
    device.call("network.commit", confirmed=30)
    vsctl("add", "port", "e3", "trunks", "60", "--", "set", "port", "e3", "external_ids:theirs=2", "--", "set", "port", "vx0", "external_ids:theirs=2")
    back = device.call("network.rollback").get("structuredContent", {})
    theirs = vsctl("get", "port", "e3", "trunks", "external_ids").split("\n")[:2], vsctl("get", "port", "vx0", "external_ids").strip()
    report.equal("NM-09: ovs: a rollback leaves the keys and values that others have added", (back.get("status"), theirs),
                 ("rolled-back", (["[1, 2, 3, 60]", "{theirs=\"2\"}"], "{owner=backbone, theirs=\"2\"}")))
    vsctl("remove", "port", "e3", "trunks", "60", "--", "remove", "port", "e3", "external_ids", "theirs", "--", "remove", "port", "vx0", "external_ids", "theirs")
    report.equal("NM-09: ovs: which is all that differs", held(), before)
    device.change("port e3", "no trunks", "port e1", "tag 99")
    device.call("network.commit", confirmed=30)
    tagged = [name for name in ("e1", "e3") if name in held()["ports"]]
    vsctl("del-port", "br0", "e3")
    code, detail = device.code("network.rollback")
    told = gateway.told("device", "status", "switch", "--config", os.path.join(gateway.home.dir, "banyan.toml"))
    report.check("NM-09: ovs: what somebody else has removed is told, and the rest is back", tagged and code == -32085 and "port e3" in detail and "somebody else" in detail and
                 tag("e1") == "10" and "overtaken" in told, f"{code} {detail} {told}")
    vsctl("add-port", "br0", "e3")
    report.check("NM-09: ovs: and the next change is taken", "hash" in device.change("port e3", "tag 5"), told)
    device.call("network.rollback")


def keys(report, device):
    """NM-09: keys with blanks are told apart."""
    device.change("port e3", 'external_ids "a b" 1', 'external_ids "a c" 2')
    device.call("network.commit", confirmed=30)
    ids = vsctl("get", "port", "e3", "external_ids").strip()
    report.equal("NM-09: ovs: two keys that begin alike stand side by side", ids, '{"a b"="1", "a c"="2"}')
    device.call("network.rollback")


def wizard(report, gateway):
    """NM-07: the wizard for a VLAN, through the person and the commit to the switch."""
    wire = Modern(gateway.url("switch"), capabilities=asking.FORMS, answer=asking.agreeing([]))
    steps = asking.walk(wire, {"vlan_id": "100", "name": "office", "ports": "e1,e3"}, name=asking.VLAN)
    report.check("NM-07: ovs: the wizard makes a VLAN with its ports", steps[-1]["_meta"]["complete"] and (tag("e1"), tag("e3")) == ("100", "100"),
                 "\n".join(asking.text(step) for step in steps))
    shown = Device(gateway, "switch").call("network.cli.exec", cmd="show vlan").get("stdout", "")
    report.check("NM-07: ovs: which has its name", "100   office                   e1, e3" in shown, shown)
    values = wire.call("completion/complete", {"ref": {"type": "ref/prompt", "name": asking.shown(asking.VLAN)}, "argument": {"name": "ports", "value": "e1,e"}}).result
    report.equal("NM-07: ovs: ports are completed", values["completion"]["values"], ["e1,e1", "e1,e2", "e1,e3"])


def killed(report, gateway):
    """NM-09: the server dies and the guard restores; all of Banyan dies, and who starts next restores."""
    for name, victims in (("the guard", lambda: [os.kill(pid, signal.SIGKILL) for pid in processes("serve", gateway)]), ("who starts next", lambda: kill_all(gateway))):
        before, device = held(), Device(gateway, "switch")
        device.change("port e1", "tag 66", "no port vx0")
        device.call("network.commit", confirmed=WINDOW)
        victims()
        report.check(f"NM-09: ovs: killed amid a change, which runs until {name} comes", tag("e1") == "66")
        if name != "the guard":
            report.check("NM-09: ovs: with nothing of Banyan alive nothing restores", until(WINDOW + 1, lambda: held() == before) is None)
            gateway.start()
        report.check(f"NM-09: ovs: {name} brings all of it back", until(WINDOW + 10, lambda: held() == before) is not None, str(held()))


def away(report, device):
    """NM-08: a switch that takes nothing over, and a database that is gone."""
    before = held()
    switch, server = (int((HOME / f"{name}.pid").read_text()) for name in ("switch", "server"))
    os.kill(switch, signal.SIGSTOP)
    device.change("port e2", "tag 77")
    code, detail = device.code("network.commit", confirmed=40)
    report.check("NM-08: ovs: a switch that takes nothing over is told, and the change taken back", code == -32081 and "ovs-vswitchd" in detail and held() == before,
                 f"{code} {detail}")
    os.kill(switch, signal.SIGKILL)
    os.kill(server, signal.SIGKILL)
    code, detail = device.code("network.cli.exec", cmd="show vlan")
    report.check("NM-08: ovs: a database that is gone is unreachable", code == -32082, f"{code} {detail}")


def run(report):
    """Checks the switch behind a gate."""
    with Gateway("ovs", {}, config=CONFIG) as gateway:
        device = Device(gateway, "switch")
        report.guard("ovs/reads", lambda: reads(report, gateway, device))
        report.guard("ovs/refused", lambda: refused(report, device))
        report.guard("ovs/ruled", lambda: ruled(report, gateway, Device(gateway, "ruled")))
        report.guard("ovs/meanwhile", lambda: meanwhile(report, gateway, device))
        report.guard("ovs/keys", lambda: keys(report, device))
        report.guard("ovs/changes", lambda: changes(report, device))
        report.guard("ovs/wizard", lambda: wizard(report, gateway))
        report.guard("ovs/killed", lambda: killed(report, gateway))
        report.guard("ovs/away", lambda: away(report, Device(gateway, "switch")))
