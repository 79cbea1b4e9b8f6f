"""What is checked of the messages that devices send by themselves, inside the namespaces of the lab (NM-08, NM-10, NM-12, NM-14): notifications
of the real `snmpd` and of net-snmp's senders, and syslog of the real `rsyslogd`, received by `banyan device serve` and pushed to who follows.
"""
import json
import os
import socket
import subprocess
import time

from network import lab, snmpd
from network.agent import until
from network.direct import Serving

HERE, TRAPS, SYSLOG = snmpd.HERE, "network:///stream/snmp-trap", "network:///stream/syslog"
ENGINE = "0x8000000001020304"
CONFIG = f"""module(load="imudp")
input(type="imudp" address="127.0.0.1" port="5140")
*.* action(type="omfwd" target="{HERE}" port="1514" protocol="udp" template="RSYSLOG_SyslogProtocol23Format")
*.* action(type="omfwd" target="{HERE}" port="1514" protocol="tcp" template="RSYSLOG_SyslogProtocol23Format" TCP_Framing="octet-counted")
*.* action(type="omfwd" target="{HERE}" port="1514" protocol="tcp" template="RSYSLOG_TraditionalForwardFormat" TCP_Framing="traditional")
"""


def settings(name, **more):
    """A device that is reached over SNMP, and whose messages are received."""
    listen = {"traps": f"{HERE}:1162", "syslog": f"{HERE}:1514"}
    return {"name": name, "backend": "snmp", "address": snmpd.ADDRESS, "command_timeout": 5, "listen": listen, **more}


def serving(home, name, secrets, **more):
    """A device served, with its secrets in variables."""
    for variable in ("COMMUNITY", "PASSWORD", "PRIVACY_PASSWORD"):
        os.environ.pop(f"BANYAN_DEVICE_{variable}", None)
    os.environ.update({f"BANYAN_DEVICE_{variable}": secret for variable, secret in secrets.items()})
    device = Serving(home, settings(name, **more))
    device.call("resources/subscribe", uri=TRAPS)
    device.call("resources/subscribe", uri=SYSLOG)
    return device


def notified(device, kind, within=15):
    """The next notification of a kind that is pushed, None when none comes in time."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        update = device.wait("notifications/resources/updated", end - time.monotonic(), lambda params: params["uri"] == TRAPS)
        found = [one for content in (update or {}).get("contents", []) for one in json.loads(content["text"]) if one["notification"] == kind]
        if found:
            return found[0]
    return None


def told(device, words, within=10):
    """Lines of the log that are pushed until one has these words; None when none does in time."""
    end, lines = time.monotonic() + within, []
    while time.monotonic() < end:
        update = device.wait("notifications/resources/updated", end - time.monotonic(), lambda params: params["uri"] == SYSLOG)
        for content in (update or {}).get("contents", []):
            lines += content["text"].splitlines()
        if any(words in line for line in lines):
            return lines
    return None


def counts(device, uri=TRAPS):
    """The metadata of a stream."""
    return device.call("resources/read", uri=uri)["contents"][0]["_meta"]


def send(kind, *arguments, community=snmpd.READ):
    """Sends a notification from the device by net-snmp's own tool; was that answered, where it was to be?"""
    version = arguments or ("-v2c", "-c", community)
    command = ["ip", "netns", "exec", "sw", "env", "MIBS=", kind, "-r", "4", "-t", "1", *version, f"{HERE}:1162", "", "1.3.6.1.6.3.1.1.5.2"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30).returncode == 0


def user(password=snmpd.AUTH):
    """Arguments for a user of v3."""
    return ("-v3", "-u", "ro", "-l", "authPriv", "-a", "SHA", "-A", password, "-x", "AES", "-X", snmpd.PRIVACY)


def traps(report, home):
    """NM-10: notifications of a real agent are pushed, by v2c and v3; informs are answered; others' are refused and counted."""
    with serving(home, "two", {"COMMUNITY": snmpd.READ}) as two, \
            serving(home, "three", {"PASSWORD": snmpd.AUTH, "PRIVACY_PASSWORD": snmpd.PRIVACY}, user="ro") as three:
        network = two.welcome["capabilities"]["experimental"]["network"]
        report.equal("NM-10: the streams are announced", network["notificationStream"], ["syslog", "snmp-trap"])
        report.check("NM-10: both devices have mailboxes", until(5, lambda: len(list((home / "direct" / "intake" / f"traps-{HERE}:1162").glob("*@*"))) == 2) is not None)
        snmpd.restart_with_traps()
        for name, device in (("v2c", two), ("v3", three)):
            report.check(f"NM-10: {name}: a start of the agent is pushed", notified(device, "SNMPv2-MIB:coldStart") is not None, str(counts(device)))
        lab.sh("ip", "-n", "sw", "link", "set", "port1", "down")
        index = int(lab.sh("ip", "netns", "exec", "sw", "cat", "/sys/class/net/port1/ifindex"))
        for name, device in (("v2c", two), ("v3", three)):
            down = notified(device, "IF-MIB:linkDown") or {}
            entries = down.get("objects", {}).get("IF-MIB:IF-MIB", {}).get("ifTable", {}).get("ifEntry", [])
            report.check(f"NM-10: {name}: a link that goes down is pushed with its interface", [entry["ifIndex"] for entry in entries] == [index] and
                         entries[0]["ifAdminStatus"] == "down" and down["source"] == snmpd.ADDRESS, str(down))
        lab.sh("ip", "-n", "sw", "link", "set", "port1", "up")
        report.check("NM-10: and the link that comes up", notified(two, "IF-MIB:linkUp") is not None)
        report.check("NM-10: v2c: an inform is answered", send("snmpinform") and notified(two, "SNMPv2-MIB:warmStart")["inform"])
        report.check("NM-10: v3: an inform is answered", send("snmpinform", *user()) and notified(three, "SNMPv2-MIB:warmStart")["inform"])
        before = (counts(two), counts(three))
        send("snmptrap", community=snmpd.FOREIGN)
        send("snmptrap", "-e", ENGINE, *user(snmpd.FOREIGN))
        until(5, lambda: counts(three)["refused"] > before[1]["refused"] + 1)
        after = (counts(two), counts(three))
        report.check("NM-12: what is not the device's is refused and counted", all(new["refused"] >= old["refused"] + 2 and new["received"] == old["received"]
                     for old, new in zip(before, after)), f"{before} {after}")
        send("snmptrap", "-e", ENGINE, *user())
        report.check("NM-10: v3: a trap of another engine of the user is taken", notified(three, "SNMPv2-MIB:warmStart") is not None)
        report.check("NM-12: no secret is pushed or read", "canary" not in json.dumps([two.call("resources/read", uri=TRAPS), three.call("resources/read", uri=TRAPS)]))
        two.process.kill()
        report.check("NM-10: another process receives when the one that did is killed", send("snmpinform", *user()) and notified(three, "SNMPv2-MIB:warmStart") is not None)


def start_rsyslog():
    """Starts `rsyslogd` on the device; answers its process."""
    (snmpd.HOME / "rsyslog.conf").write_text(CONFIG)
    program = ["ip", "netns", "exec", "sw", "rsyslogd", "-n", "-f", str(snmpd.HOME / "rsyslog.conf"), "-i", str(snmpd.HOME / "rsyslog.pid")]
    return subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def log(text):
    """Logs a line on the device."""
    lab.sh("ip", "netns", "exec", "sw", "logger", "--server", "127.0.0.1", "--port", "5140", "--udp", "--tag", "bgpd", text)


def syslog(report, home):
    """NM-10: lines that a real rsyslogd forwards over UDP and TCP are pushed and read; a flood is bounded and counted."""
    with serving(home, "logged", {"COMMUNITY": snmpd.READ}) as device:
        until(5, lambda: list((home / "direct" / "intake" / f"syslog-{HERE}:1514").glob("*@logged*")))
        server = start_rsyslog()
        report.check("NM-10: rsyslogd's lines arrive", until(10, lambda: log("awake") or told(device, "awake", 1)) is not None, str(counts(device, SYSLOG)))
        log("%ADJCHANGE: neighbor 10.0.12.2 Down password canary-in-log")
        report.check("NM-10: a line is pushed", told(device, "ADJCHANGE") is not None)
        read = lambda: [line for line in device.call("resources/read", uri="network:///log/syslog/last100")["contents"][0]["text"].splitlines() if "ADJCHANGE" in line]
        until(5, lambda: len(read()) >= 3)
        lines = read()
        report.equal("NM-10: it came over UDP, and over TCP in both framings", (len(lines), sum(">1 2" in line for line in lines)), (3, 2))
        report.check("NM-12: a secret in it is hidden", all("canary" not in line for line in lines), str(lines))
        meta = counts(device, SYSLOG)
        report.check("NM-06: the time of the device stands there", meta["sourceTime"] and meta["failure"] is None, str(meta))
        server.terminate()
        server.wait(10)
        flood(report, device)


def settled(device):
    """The counts once nothing comes any more."""
    now = counts(device, SYSLOG)
    for _ in range(20):
        time.sleep(0.5)
        last, now = now, counts(device, SYSLOG)
        if (last["received"], last["lost"]) == (now["received"], now["lost"]):
            break
    return now


def flood(report, device):
    """NM-10: 20,000 lines at once leave 2,000 lines and counts, and the device goes on."""
    # The last words of rsyslog are still on their way when its process is gone.
    before = settled(device)
    script = f"""import socket, time
s = socket.create_connection(("{HERE}", 1514))
for n in range(20): s.sendall(b"".join(b"<165>1 - sw flood - - - line %d\\n" % (n * 1000 + m) for m in range(1000)))
time.sleep(2)
s.sendall(b"<165>1 - sw flood - - - the last line\\n"); s.close()"""
    lab.sh("ip", "netns", "exec", "sw", "python3", "-c", script)
    lines = told(device, "the last line", 15)
    after = counts(device, SYSLOG)
    come = after["received"] - before["received"] + after["lost"] - before["lost"]
    report.check("NM-10: a flood is pushed to its end, and every line is there or counted", lines is not None and come == 20_001, f"{before} {after}")
    kept = device.call("resources/read", uri="network:///log/syslog/last10000")["contents"][0]["text"].splitlines()
    report.check("NM-10: and its lines are bounded", len(kept) <= 2_000 and "the last line" in kept[-1], f"{len(kept)} {kept[-1:]}")


def taken(report, home):
    """NM-08: an address that another program has is told, with the reason."""
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind((HERE, 1163))
    listen = {"traps": f"{HERE}:1163"}
    os.environ["BANYAN_DEVICE_COMMUNITY"] = snmpd.READ
    with Serving(home, {**settings("deaf"), "listen": listen}) as device:
        answer = lambda: device.ask("resources/read", uri=TRAPS).get("error", {})
        until(5, lambda: answer())
        error = answer()
        report.check("NM-08: a port that another program has is told", error.get("code") == -32082 and "can't listen on" in error["data"]["detail"], str(error))
    other.close()


def run(report):
    """Checks what `snmpd.start` has started, as the last of the lab: the agent is started again."""
    home = snmpd.HOME
    report.guard("streams/traps", lambda: traps(report, home))
    report.guard("streams/syslog", lambda: syslog(report, home))
    report.guard("streams/taken", lambda: taken(report, home))
