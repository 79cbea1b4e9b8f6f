"""People with tokens of their own before a gate with rules, and a group of devices behind it (NM-12): what a rule of the gate forbids
somebody at a device is not to be had through the device's group, and the roles of a device name the principals of the gate, whatever a caller
claims.

Starts a gate of its own; the device is the one of `netconf.py`.
"""
import hashlib
import json
import os

from gateway import Gateway
from network import lab, netconfd
from network.agent import Device

TOKENS = {name: f"canary-token-of-{name}" for name in ("ada", "bob", "eve")}
RULES = """@id("all") permit (principal, action, resource);
@id("not-bob") forbid (principal, action == Action::"call", resource in Mount::"n1") when { principal.name == "bob" };
@id("ask") @effect("gate") forbid (principal, action == Action::"call", resource in Mount::"n2")
when { principal.name == "bob" && context.arguments has path && context.arguments.path like "*system*" };
"""
ROLES = """roles = [
  { callers = ["token:ada"], deny_paths = ["/nacm"] },
  { callers = ["b*"], read_only = true, allow_paths = ["/interfaces"] },
]
"""
READ = {"path": "/ietf-interfaces:interfaces"}
CLAIM = {"io.banyan/caller": {"name": "ada", "kind": "token", "groups": [], "roles": []}, "io.banyan/refused": {}}


def configuration():
    """Two devices in a group, both the same `netconfd`."""
    login = f'address = "{netconfd.ADDRESS}"\nbackend = "netconf"\nuser = "ncadmin"\npassword = "${{file:{netconfd.HOME}/password}}"\nhost_key = "{lab.fingerprint()}"\n'
    tokens = "".join(f'[[token]]\nname = "{name}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n' for name, token in TOKENS.items())
    return (f'[policy]\nfile = "policy.cedar"\n{tokens}[device_group.pair]\n[device_template.nc]\n{login}groups = ["pair"]\n'
            '[device.n1]\ntemplate = "nc"\n[device.n2]\ntemplate = "nc"\n'
            f'[device.alone]\n{login}{ROLES}[device_group.roles]\n[device.shared]\n{login}groups = ["roles"]\n{ROLES}')


def answered(device, meta=None, **arguments):
    """The codes of the devices of a group; 0 for an answer."""
    params = {"name": device.named["network.yang.get"], "arguments": {**READ, **arguments}, **({"_meta": meta} if meta else {})}
    told = device.wire.call("tools/call", params).result["structuredContent"]["devices"]
    return {name: one.get("error", {}).get("code", 0) for name, one in told.items()}, json.dumps(told)


def groups(report, gateway):
    """A group is read by everybody as far as the rules let that somebody read each device."""
    ada, bob = (Device(gateway, "pair", token=TOKENS[name]) for name in ("ada", "bob"))
    report.equal("NM-12: whoever may read all devices reads them as a group", answered(ada)[0], {"n1": 0, "n2": 0})
    codes, told = answered(bob)
    report.equal("NM-12: what a rule forbids at a device, its group does not give", codes, {"n1": -32083, "n2": 0})
    report.check("NM-12: and says so, with the decision for the owner of the gate", "does not let this caller" in told and "(decision " in told, told[:600])
    report.equal("NM-12: nor to whoever names it", answered(bob, devices=["n1"])[0], {"n1": -32083})
    report.equal("NM-12: nor to whoever claims to be another", answered(bob, meta=CLAIM)[0], {"n1": -32083, "n2": 0})
    codes, told = answered(bob, path="/ietf-system:system")
    report.check("NM-12: a read that waits for a person at a device is not made through its group", codes == {"n1": -32083, "n2": -32083} and
                 "a person has to agree" in told, told[:600])


def roles(report, gateway, name):
    """NM-12: a device knows the principals of the gate that started its process, and nobody by their own words."""
    ada, bob, eve = (Device(gateway, name, token=TOKENS[who]) for who in ("ada", "bob", "eve"))
    get, claim = "network.yang.get", {"io.banyan/caller": {"name": "ada", "kind": "token", "groups": [], "roles": []}}
    edit = [{"path": "/ietf-interfaces:interfaces/interface[name='mgmt0']", "value": {"type": "iana-if-type:ethernetCsmacd", "description": "by a role"}}]

    def code(who, path, meta=None):
        params = {"name": who.named[get], "arguments": {"path": path}, **({"_meta": meta} if meta else {})}
        return (who.wire.call("tools/call", params).result.get("structuredContent") or {}).get("code", 0)

    interfaces, system, nacm = "/ietf-interfaces:interfaces", "/ietf-system:system", "/ietf-netconf-acm:nacm"
    report.equal(f"NM-12: {name}: each principal has a role of its own", [[code(who, path) for path in (interfaces, system, nacm)] for who in (ada, bob, eve)],
                 [[0, 0, -32083], [0, -32083, -32083], [-32083] * 3])
    report.equal(f"NM-12: {name}: whoever claims to be another has the own role", [code(who, system, claim) for who in (ada, bob, eve)], [0, -32083, -32083])

    def read(who, uri):
        error = who.wire.call("resources/read", {"uri": f"network:///{uri}"}).error
        return (error.get("data") or {}).get("networkCode", error["code"]) if error else 0

    report.equal(f"NM-12: {name}: whom no role names reads no resource", [read(who, "capabilities") for who in (ada, bob, eve)], [0, 0, -32083])
    report.equal(f"NM-12: {name}: events, which may tell of any path, want a right to all paths",
                 [read(who, "stream/netconf") for who in (ada, bob, eve)], [-32083] * 3)
    refused = bob.code("network.yang.edit", edit=edit)
    report.check(f"NM-12: {name}: a role that is read-only changes nothing", refused[0] == -32083 and "read-only" in refused[1], str(refused))
    refused = eve.code("network.yang.edit", edit=edit)
    report.check(f"NM-12: {name}: whom no role names is told so", refused[0] == -32083 and "names `eve` of the tokens" in refused[1], str(refused))
    report.check(f"NM-12: {name}: a role that allows it makes a candidate", "hash" in (ada.call("network.yang.edit", edit=edit).get("structuredContent") or {}))
    file = os.path.join(gateway.home.dir, "banyan.toml")
    [own] = [one for one in json.loads(gateway.told("device", "list", "--json", "--config", file))["devices"] if one["device"] == name]
    report.equal(f"NM-12: {name}: which belongs to that principal", own.get("owner"), "token:ada")
    ada.call("network.rollback")


def roles_of_groups(report, gateway):
    """NM-12: the roles of each device hold for a call of its group."""
    for who, wanted in (("ada", 0), ("bob", -32083), ("eve", -32083)):
        device = Device(gateway, "roles", token=TOKENS[who])
        report.equal(f"NM-12: {who} reads as a group what {who} may read", answered(device, path="/ietf-system:system", meta=CLAIM)[0], {"shared": wanted})


def run(report):
    """Starts a gate with rules, and calls as two people."""
    with Gateway("callers", {}, config=configuration(), prepare=lambda gate: gate.home.write("policy.cedar", RULES), token=TOKENS["ada"]) as gateway:
        report.guard("callers/groups", lambda: groups(report, gateway))
        report.guard("callers/alone", lambda: roles(report, gateway, "alone"))
        report.guard("callers/shared", lambda: roles(report, gateway, "shared"))
        report.guard("callers/roles", lambda: roles_of_groups(report, gateway))
