"""What is checked of changes over SNMP, inside the namespaces of the lab (NM-08, NM-09, NM-14): the operator has accepted that the device
takes nothing back by itself, so Banyan does. The agent and the kernel behind it are the judges.
"""
import os
import signal
import time

from network import lab, snmpd
from network.agent import Device, processes, until

NAME, LOCATION = "/SNMPv2-MIB:SNMPv2-MIB/system/sysName", "/SNMPv2-MIB:SNMPv2-MIB/system/sysLocation"
HELD = {NAME: "1.3.6.1.2.1.1.5.0", LOCATION: "1.3.6.1.2.1.1.6.0"}


def sections(there, secret):
    """Devices whose changes are accepted, with credentials of each kind for writing."""
    accepted = 'accept_no_rollback = true\nlongest_window = "60s"\n'
    community = there + accepted + secret("community", "read")
    user = there + accepted + 'user = "ro"\n' + secret("password", "auth") + secret("privacy_password", "privacy")
    ruled = 'deny_edit_paths = ["/IF-MIB/ifTable/ifEntry/ifAdminStatus", "/system/sysName"]\ndeny_paths = ["/SNMPv2-MIB/system/sysContact"]\n'
    return {"ruled": community + secret("write_community", "write") + ruled, "risky": community + secret("write_community", "write"), "unwritable": community + secret("write_community", "read"),
            "unheard": community + secret("write_community", "foreign"),
            "refused": user + 'write_user = "ro"\n' + secret("write_password", "foreign") + secret("write_privacy_password", "privacy")}


def admin(device):
    """Path of the state of `port1`."""
    index = lab.sh("ip", "netns", "exec", "sw", "cat", "/sys/class/net/port1/ifindex").strip()
    return f"/IF-MIB:IF-MIB/ifTable/ifEntry[ifIndex='{index}']/ifAdminStatus"


def is_up():
    """Is `port1` up, by the kernel?"""
    return ",UP" in lab.sh("ip", "-n", "sw", "link", "show", "port1")


def edit(device, *pairs):
    """Makes a candidate; the structure of the answer."""
    return device.call("network.yang.edit", edit=[{"path": path, "value": value} for path, value in pairs])["structuredContent"]


def ruled(report, device):
    """NM-12: rules on paths hold however a path is written."""
    before = snmpd.held(HELD[NAME])
    for path in (NAME, "/SNMPv2-MIB:system/sysName", admin(device), admin(device).replace("/IF-MIB:IF-MIB/", "/IF-MIB:")):
        code, detail = device.code("network.yang.edit", edit=[{"path": path, "value": "down" if "Admin" in path else "owned"}])
        report.check(f"NM-12: SNMP: {path} is not edited", code == -32083 and "forbids" in detail, f"{code} {detail}")
    for path in ("/SNMPv2-MIB:SNMPv2-MIB/system/sysContact", "/SNMPv2-MIB:system/sysContact", "/SNMPv2-MIB:system", "/1.3.6.1.2.1.1.4"):
        code, detail = device.code("network.yang.get", path=path)
        report.check(f"NM-12: SNMP: {path} is not read", code == -32083, f"{code} {detail}")
    report.equal("NM-12: SNMP: the device holds what it held", snmpd.held(HELD[NAME]), before)


def undone(report, device):
    """NM-09: a confirmed change is undone by another, for a time and not for good; what was set by hand since stays."""
    before, location = snmpd.held(HELD[NAME]), snmpd.held(HELD[LOCATION])
    edit(device, (NAME, "by mistake"))
    device.call("network.commit", confirmed=20)
    device.call("network.commit", confirm=True)
    shown = device.call("network.rollback", confirmed=True).get("structuredContent", {})
    report.check("NM-09: SNMP: an undo shows its diff and applies nothing", f'-{NAME} "by mistake"' in shown.get("diff", "") and snmpd.held(HELD[NAME]) == "by mistake", str(shown))
    device.call("network.commit", confirmed=20, hash=shown.get("hash", ""))
    report.equal("NM-09: SNMP: a committed undo sets what the device held before", snmpd.held(HELD[NAME]), before)
    device.call("network.rollback")
    report.equal("NM-09: SNMP: and is rolled back like every change", snmpd.held(HELD[NAME]), "by mistake")
    report.equal("NM-09: SNMP: nothing else is set", snmpd.held(HELD[LOCATION]), location)


def kept(report, device):
    """NM-09: a change is shown, applied for a time, and stays once it is confirmed."""
    before = snmpd.held(HELD[NAME])
    shown = edit(device, (NAME, "renamed"))
    report.check("NM-09: SNMP: the diff is shown and nothing is applied", f'+{NAME} "renamed"' in shown["diff"] and snmpd.held(HELD[NAME]) == before, str(shown))
    device.call("network.commit", confirmed=20, hash=shown["hash"])
    report.equal("NM-09: SNMP: a commit sets the object", snmpd.held(HELD[NAME]), "renamed")
    result = device.call("network.commit", confirm=True)
    report.check("NM-09: SNMP: a confirmation keeps it", result["structuredContent"]["status"] == "confirmed" and snmpd.held(HELD[NAME]) == "renamed", str(result))
    edit(device, (NAME, before))
    device.call("network.commit", confirmed=20)
    device.call("network.rollback")
    report.equal("NM-09: SNMP: a rollback brings the old value back", snmpd.held(HELD[NAME]), "renamed")


def forgotten(report, gateway, device):
    """NM-09: what nobody confirms comes back, an interface of the kernel as well, also when the server is killed."""
    before = snmpd.held(HELD[LOCATION])
    report.check("NM-09: SNMP: the interface is up", is_up())
    for killed in (False, True):
        edit(device, (admin(device), "down"), (LOCATION, "nowhere"))
        began = time.monotonic()
        device.call("network.commit", confirmed=2)
        report.check("NM-09: SNMP: a commit takes the link down", not is_up() and snmpd.held(HELD[LOCATION]) == "nowhere")
        if killed:
            for pid in processes("serve", gateway):
                os.kill(pid, signal.SIGKILL)
        took = until(10, lambda: is_up() and snmpd.held(HELD[LOCATION]) == before)
        who = "the guard" if killed else "the device's own process"
        report.check(f"NM-09: SNMP: {who} brings it back in time", took is not None and time.monotonic() - began > 1.9, str(took))
        if killed:
            until(15, lambda: device.wire.tool(device.named["network.rollback"], {}).message.get("result"))


def refused(report, gateway):
    """NM-08: what the agent refuses has its status, the path and its code, and nothing is left of it."""
    cases = (("risky", "/SNMPv2-MIB:SNMPv2-MIB/system/sysContact", "x", -32090, "notWritable (17)"), ("risky", NAME, 5, -32090, "wrongType (7)"),
             ("risky", admin(None), 7, -32090, "wrong"), ("unwritable", NAME, "x", -32090, "noAccess (6)"),
             ("unheard", NAME, "x", -32081, "does not know the community"), ("refused", NAME, "x", -32082, "refused the signature"))
    for name, path, value, code, words in cases:
        device, before = Device(gateway, name), snmpd.held(HELD[NAME])
        edit(device, (path, value))
        result = device.call("network.commit", confirmed=20)
        told = result.get("structuredContent") or {}
        detail = (told.get("data") or {}).get("detail", str(result)[:400])
        report.check(f"NM-08: SNMP: {name}: a SET of {value} is told as {words}", told.get("code") == code and words in detail, f"{told}")
        report.check(f"NM-08: SNMP: {name}: with the path", code != -32090 or told["data"]["path"] == path, str(told))
        report.check(f"NM-08: SNMP: {name}: and nothing is left of it", snmpd.held(HELD[NAME]) == before and is_up())
    device = Device(gateway, "risky")
    for path, value, code in ((admin(None), "sideways", -32088), ("/SNMPv2-MIB:system/sysDescr", "x", -32084), ("/SNMPv2-MIB:system", "x", -32084)):
        told, detail = device.code("network.yang.edit", edit=[{"path": path, "value": value}])
        report.check(f"NM-08: SNMP: {value} for {path} is refused before anything is sent", told == code, f"{told} {detail}")


def run(report, gateway):
    """Checks changes."""
    device = Device(gateway, "risky")
    report.guard("snmp/ruled", lambda: ruled(report, Device(gateway, "ruled")))
    report.guard("snmp/kept", lambda: kept(report, device))
    report.guard("snmp/undone", lambda: undone(report, device))
    report.guard("snmp/forgotten", lambda: forgotten(report, gateway, device))
    report.guard("snmp/refused", lambda: refused(report, gateway))
