"""What is checked of the events of a device behind NETCONF (NM-01, NM-10, NM-12): those of the real `netconfd`, pushed to who follows, and sent
again after a break.

Starts nothing: the device is that of `netconf.py`.
"""
import json
import os
import signal
from pathlib import Path

from network import lab, netconf_change, netconfd
from network.agent import until
from network.direct import Serving

EVENTS = "network:///stream/netconf"
CHANGE = "ietf-netconf-notifications:netconf-config-change"


def pushed(device, wanted, within=10):
    """Events that are pushed until one is wanted, the last one being it; none when it does not come in time."""
    found = []
    update = lambda: device.wait("notifications/resources/updated", within, lambda params: params["uri"] == EVENTS)
    while (params := update()) is not None:
        for event in json.loads(params["contents"][0]["text"]):
            found.append(event)
            if wanted(event):
                return found
    return []


def by(session):
    """Recognizes the change of a session."""
    return lambda event: event["notification"] == CHANGE and event["data"][CHANGE]["changed-by"]["session-id"] == session


def change(oracle, description):
    """A change by another client; its session."""
    told = [oracle.ask("edit", netconf_change.foreign(description)), oracle.ask("commit")]
    assert told == [{"is": True}] * 2, told
    return str(oracle.ask("session")["is"])


def break_sessions():
    """Ends every session of the device amid its life, as an outage would."""
    for entry in Path("/proc").glob("[0-9]*/comm"):
        if entry.read_text().strip() == "netconf-subsyst":
            os.kill(int(entry.parent.name), signal.SIGKILL)


def run(report):
    """NM-10: events are pushed as they come, kept for readers, and none is lost or doubled when the session breaks off."""
    os.environ["BANYAN_DEVICE_PASSWORD"] = netconfd.LOGIN
    settings = {"name": "events", "backend": "netconf", "address": netconfd.ADDRESS, "user": "ncadmin", "host_key": lab.fingerprint()}
    oracle = netconfd.Oracle()
    with Serving(netconfd.HOME, settings) as device:
        network = device.welcome["capabilities"]["experimental"]["network"]
        report.equal("NM-01: a device that announces events has their stream", network["notificationStream"], ["netconf-stream"])
        first = change(oracle, "before anybody followed")
        device.call("resources/subscribe", uri=EVENTS)
        content = device.call("resources/read", uri=EVENTS)["contents"][0]
        kept = json.loads(content["text"])
        report.check("NM-10: events of the past are read, as the device still has them", [event for event in kept if by(first)(event)]
                     and kept == content["data"], str(kept)[-900:])
        report.check("NM-06: the time of the device stands there", content["_meta"]["sourceTime"] and content["_meta"]["failure"] is None, str(content["_meta"]))
        session = change(oracle, "while somebody follows")
        events = pushed(device, by(session))
        report.check("NM-10: a change of the configuration is pushed", events and events[-1]["eventTime"]
                     and "interface" in json.dumps(events[-1]["data"][CHANGE]["edit"]), str(events)[-900:])
        break_sessions()
        oracle.close()
        oracle = netconfd.Oracle()
        session = change(oracle, "while the session was gone")
        report.check("NM-10: what comes while the session is gone is pushed afterwards", pushed(device, by(session)))
        session = change(oracle, "after that")
        events = pushed(device, by(session))
        report.check("NM-10: and the stream goes on", events, str(events))
        read = lambda: device.call("resources/read", uri=EVENTS)["contents"][0]
        content = read()
        changes = [event["data"][CHANGE]["changed-by"]["session-id"] for event in content["data"] if event["notification"] == CHANGE]
        report.check("NM-10: nothing is told twice, and nothing was missed", changes.count(session) == 2 and content["_meta"]["gaps"] == 0, f"{changes} {content['_meta']}")
        netconfd.stop()
        report.check("NM-10: a device that is gone is told in the counts, and its last events stay", until(5, lambda: read()["_meta"]["failure"]) is not None
                     and read()["data"] == content["data"], str(read()["_meta"]))
        netconfd.start_netconfd()
        device.call("resources/unsubscribe", uri=EVENTS)
        report.check("NM-10: the device that began again is heard, with a gap", until(20, lambda: read()["_meta"]["gaps"] == 1 and not read()["_meta"]["failure"])
                     is not None, str(read()["_meta"]))
        report.check("NM-12: no secret is told", "canary" not in json.dumps(read()))
    oracle.close()
