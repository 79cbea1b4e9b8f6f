"""Two people with tokens of their own before a gate with rules, and a group of devices behind it (NM-12): what a rule of the gate forbids
somebody at a device is not to be had through the device's group, whatever the caller claims.

Starts a gate of its own; the device is the one of `netconf.py`.
"""
import hashlib
import json

from gateway import Gateway
from network import lab, netconfd
from network.agent import Device

TOKENS = {"ada": "canary-token-of-ada", "bob": "canary-token-of-bob"}
RULES = """@id("all") permit (principal, action, resource);
@id("not-bob") forbid (principal, action == Action::"call", resource in Mount::"n1") when { principal.name == "bob" };
@id("ask") @effect("gate") forbid (principal, action == Action::"call", resource in Mount::"n2")
when { principal.name == "bob" && context.arguments has path && context.arguments.path like "*system*" };
"""
READ = {"path": "/ietf-interfaces:interfaces"}
CLAIM = {"io.banyan/caller": {"name": "ada", "kind": "token", "groups": [], "roles": []}, "io.banyan/refused": {}}


def configuration():
    """Two devices in a group, both the same `netconfd`."""
    login = f'address = "{netconfd.ADDRESS}"\nbackend = "netconf"\nuser = "ncadmin"\npassword = "${{file:{netconfd.HOME}/password}}"\nhost_key = "{lab.fingerprint()}"\n'
    tokens = "".join(f'[[token]]\nname = "{name}"\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n' for name, token in TOKENS.items())
    return (f'[policy]\nfile = "policy.cedar"\n{tokens}[device_group.pair]\n[device_template.nc]\n{login}groups = ["pair"]\n'
            '[device.n1]\ntemplate = "nc"\n[device.n2]\ntemplate = "nc"\n')


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


def run(report):
    """Starts a gate with rules, and calls as two people."""
    with Gateway("callers", {}, config=configuration(), prepare=lambda gate: gate.home.write("policy.cedar", RULES), token=TOKENS["ada"]) as gateway:
        report.guard("callers/groups", lambda: groups(report, gateway))
