"""What a client of a device sees beyond tools (NM-03 to NM-08, NM-10): prompts, resources, subscriptions, written resources. Through the gate in
both eras, with an official SDK, and without a gate in both dialects. FRR, the kernel and the machine are the judges.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import anyio
from mcp import Client
from mcp_types import ElicitResult, PromptReference, ResourceUpdatedNotification

from network import lab
from network.direct import Serving
from wire import Legacy, Modern

PING, VLAN, AUDIT = "network.troubleshoot.ping-fail", "network.config.add-vlan", "network.security.audit"
OVER = "Diagnosis complete"
FORMS = {"elicitation": {"form": {}}}
R1 = {"name": "r1", "pathspace": "r1"}


def shown(name):
    """The name by which the gate shows a prompt: without dots, which some models refuse."""
    return name.replace(".", "_")


def tools_of(wire):
    """The shown names of the tools, by the draft's."""
    return {re.sub(r"[_.]+", ".", tool): tool for tool in wire.tools()}


def walk(wire, arguments, name=PING, most=10):
    """Follows a prompt to its end as the draft has it: makes the calls of each step and hands the answers back. All steps."""
    tools, steps = tools_of(wire), [wire.call("prompts/get", {"name": shown(name), "arguments": arguments}).result]
    while not steps[-1]["_meta"]["complete"] and len(steps) < most:
        meta = steps[-1]["_meta"]
        answers = [wire.tool(tools[call["tool"]], call["arguments"]).result for call in meta["toolCalls"]]
        follow = {"previousContextId": meta["contextId"], "results": json.dumps(answers)}
        steps.append(wire.call("prompts/get", {"name": shown(name), "arguments": follow}).result)
    return steps


def text(step):
    """The text of a step."""
    content = step["messages"][0]["content"]
    return content if isinstance(content, str) else content["text"]


def agreeing(asked, approve=True):
    """A person who answers each question, and remembers it."""
    def answer(method, params):
        asked.append((method, params))
        return {"action": "accept", "content": {"approve": approve}} if approve else {"action": "decline"}
    return answer


def prompts(report, gateway):
    """NM-07: the prompts are listed as the draft and MCP have them, checked, and completed from the device."""
    wire = Modern(gateway.url("r1"))
    listed = {one["name"]: one for one in wire.call("prompts/list").result["prompts"]}
    report.equal("NM-07: the three prompts are listed", set(listed), {shown(PING), shown(VLAN), shown(AUDIT)})
    vlan = {one["name"]: one for one in listed[shown(VLAN)]["arguments"]}
    report.check("NM-07: with type, range and pattern of arguments, required for each and for all",
                 (vlan["vlan_id"]["type"], vlan["vlan_id"]["minimum"], vlan["vlan_id"]["maximum"], vlan["vlan_id"]["required"]) == ("integer", 1, 4094, True)
                 and "pattern" in vlan["name"] and vlan["ports"]["type"] == "array" and listed[shown(VLAN)]["required"] == ["vlan_id", "name"], str(vlan))
    report.equal("NM-07: a prompt without commands on this device says so", listed[shown(VLAN)]["_meta"].get("available"), False)
    refused = wire.call("prompts/get", {"name": shown(VLAN), "arguments": {"vlan_id": "100", "name": "office", "ports": "eth0,eth1"}}).error
    report.check("NM-07: and getting it is refused with the draft's code, its arguments read from texts",
                 refused.get("data", {}).get("networkCode") == -32084 and "VLAN" in refused["data"]["detail"], str(refused))
    refused = wire.call("prompts/get", {"name": shown(VLAN), "arguments": {"vlan_id": "4095", "name": "office"}}).error
    report.equal("NM-08: a VLAN beyond the range is refused as in section 7.2", refused.get("data", {}).get("detail"), "VLAN 4095 > maximum 4094")

    def complete(argument, value, **ref):
        return wire.call("completion/complete", {"ref": ref or {"type": "ref/prompt", "name": shown(PING)}, "argument": {"name": argument, "value": value}}).result["completion"]["values"]
    report.equal("NM-07: addresses are completed from the device", complete("src", "10.0.1"), ["10.0.12.1", "10.0.13.1"])
    report.equal("NM-07: so are VRFs", complete("vrf", ""), ["default"])
    report.equal("NM-07: and the last of several ports", complete("ports", "lan0,eth", type="ref/prompt", name=shown(VLAN)), ["lan0,eth0", "lan0,eth1"])
    report.equal("NM-07: and the names of interfaces in the template", complete("name", "la", type="ref/resource", uri="network:///interface/{+name}"), ["lan0"])


def diagnoses(report, gateway):
    """NM-07: a diagnosis is followed over its steps to the cause, the calls made at the device between them."""
    for era in (Legacy, Modern):
        wire = era(gateway.url("r1"))
        steps = walk(wire, {"src": "10.0.12.1", "dst": "203.0.113.9"})
        report.check(f"NM-07: {era.__name__}: no route is found as the cause", "There is no route to 203.0.113.9" in text(steps[-1]) and OVER in text(steps[-1]), str(steps))
        steps = walk(wire, {"src": "10.0.12.1", "dst": "10.0.12.2"})
        calls = [call["arguments"]["cmd"] for step in steps for call in step["_meta"]["toolCalls"]]
        report.check(f"NM-07: {era.__name__}: where none is, each step is taken", OVER in text(steps[-1]) and "show interface eth0" in calls and
                     "eth0 is up" in text(steps[-1]), str(steps))
        refused = wire.call("prompts/get", {"name": shown(PING), "arguments": {"previousContextId": "nonsense", "results": "x"}}).error
        report.equal(f"NM-07: {era.__name__}: a made-up context is refused", refused.get("code"), -32602)
    steps = walk(wire, {"profile": "detailed"}, name=AUDIT)
    report.check("NM-07: the audit finds what is weak, and shows no secret", "`bgp-policy`" in text(steps[0]) and lab.PASSWORD not in json.dumps(steps), text(steps[0]))
    wire.call("prompts/get", {"name": shown(AUDIT), "arguments": {"profile": "basic"}, "_meta": {"progressToken": "p"}})
    parts = wire.call("prompts/get", {"name": shown(AUDIT), "arguments": {"profile": "basic"}, "_meta": {"progressToken": "p"}}).before
    report.check("NM-07: the text is streamed as progress to who asks for it", [m["method"] for m in parts].count("notifications/progress") >= 2, str(parts))


def repairs(report, gateway):
    """NM-07: a change that a prompt proposes is committed and confirmed only after a person agreed; in both eras, through the gate."""
    before = lab.running("r1")
    for era in (Legacy, Modern):
        lab.vtysh("r1", "configure terminal", "interface lan0", "shutdown")
        asked = []
        declining = era(gateway.url("r1"), capabilities=FORMS, answer=agreeing(asked, approve=False))
        steps = walk(declining, {"src": "10.0.12.1", "dst": "192.168.1.9"})
        report.check(f"NM-07: {era.__name__}: a person who declines is asked once, and nothing is committed",
                     [method for method, _ in asked] == ["elicitation/create"] and "shutdown" in json.dumps(asked), str(asked))
        report.check(f"NM-07: {era.__name__}: the prompt ends there, and the device runs what it ran",
                     OVER in text(steps[-1]) and steps[-1]["_meta"]["toolCalls"] == [] and "shutdown" in lab.running("r1"), text(steps[-1]))
        declining.tool(tools_of(declining)["network.rollback"])
        asked = []
        steps = walk(era(gateway.url("r1"), capabilities=FORMS, answer=agreeing(asked)), {"src": "10.0.12.1", "dst": "192.168.1.9"})
        report.check(f"NM-07: {era.__name__}: commit and confirmation ask one after another", len(asked) == 2 and all(
            step["_meta"].get("approval") == "given" for step in steps if any(call.get("needsApproval") for call in step["_meta"]["toolCalls"])), str(asked))
        report.check(f"NM-07: {era.__name__}: the interface is switched on, and the rest is as before",
                     "is switched on now" in text(steps[-1]) and lab.running("r1") == before, f"{text(steps[-1])}\n{lab.running('r1')}")
    lab.vtysh("r1", "configure terminal", "interface lan0", "shutdown")
    mute = Modern(gateway.url("r1"))
    steps = walk(mute, {"src": "10.0.12.1", "dst": "192.168.1.9"}, most=4)
    report.check("NM-07: a client that can't ask finds the question in the text", steps[-1]["_meta"].get("approval") == "required" and
                 "Ask the user" in text(steps[-1]) and steps[-1]["_meta"]["toolCalls"][0]["needsApproval"], str(steps[-1]))
    mute.tool(tools_of(mute)["network.rollback"])
    lab.vtysh("r1", "configure terminal", "interface lan0", "no shutdown")
    report.equal("NM-07: and the device is as before", lab.running("r1"), before)


def dialects(report, gateway):
    """NM-07: the shapes of either dialect, by switch and by capability, without a gate."""
    cases = ((None, {}, dict), (None, {"network": {}}, str), (None, {"experimental": {"network": {}}}, str), ("draft", {}, str), ("mcp", {"network": {}}, dict))
    for compat, capabilities, shape in cases:
        with Serving(gateway.home.dir, R1, compat, capabilities) as device:
            step = device.call("prompts/get", name=PING, arguments={"src": "10.0.12.1", "dst": "203.0.113.9"})
            report.equal(f"NM-07: compat {compat} with {capabilities}: the content is a {shape.__name__}", type(step["messages"][0]["content"]), shape)
            beside = device.call("prompts/get", name=PING, previousContextId=step["_meta"]["contextId"], results={"stdout": "{}"})
            report.check(f"NM-07: compat {compat}: the context beside the arguments counts as well", "Look for an interface" in text(beside), str(beside))
            told = device.call("prompts/stream", name=PING, arguments={"src": "10.0.12.1", "dst": "203.0.113.9"})
            method = "prompts/stream" if shape is str else "notifications/prompts/stream"
            parts = [device.wait(method, 5)]
            while parts[-1] and parts[-1]["part"] < parts[-1]["parts"]:
                parts.append(device.wait(method, 5))
            report.check(f"NM-07: compat {compat}: a prompt is streamed part by part under its handle", all(part and part["handle"] == told["handle"] for part in parts)
                         and "\n\n".join(part["markdown"] for part in parts) == text(told) and len(parts) >= 2, f"{told} {parts}")
            report.check(f"NM-07: compat {compat}: the last part has the calls, and the context to go on with", parts[-1]["_meta"]["toolCalls"] == told["_meta"]["toolCalls"]
                         and parts[-1]["_meta"]["contextId"], str(parts[-1]))
            refused = device.ask("prompts/stream", name="network.nonsense").get("error", {})
            report.equal(f"NM-07: compat {compat}: only a prompt that is there is streamed", refused.get("code"), -32602)


def sdk(report, gateway):
    """NM-07: the same with the official Python SDK, in both eras."""
    async def declined(context, params):
        return ElicitResult(action="decline")

    async def tour(mode):
        async with Client(gateway.url("r1"), mode=mode, elicitation_callback=declined) as client:
            names = {one.name for one in (await client.list_prompts()).prompts}
            step = await client.get_prompt(shown(PING), {"src": "10.0.12.1", "dst": "203.0.113.9"})
            completed = await client.complete(PromptReference(type="ref/prompt", name=shown(PING)), {"name": "src", "value": "192."})
            return names, step.messages[0].content.text, completed.completion.values
    for mode in ("legacy", "2026-07-28"):
        names, said, values = anyio.run(tour, mode)
        report.check(f"NM-07: Python SDK, {mode}: prompts are listed, got and completed", {shown(PING), shown(AUDIT)} <= names and "show ip route 203.0.113.9" in said and
                     values == ["192.168.1.1"], f"{names} {said} {values}")


UPDATED = "notifications/resources/updated"
INTERFACE, ROUTES, ROUTES6, LOG = (f"network:///{path}" for path in ("interface/lan0", "routing/ipv4/route-table", "routing/ipv6/route-table", "log/syslog/last50"))
FAR = "198.51.100.0/24"


def route(action):
    """A route that comes to r1, or goes away."""
    lab.sh("ip", "-n", "r1", "route", action, FAR, "via", "10.0.12.2")


def make_log_line():
    """Has FRR log something: a session of BGP that is made anew."""
    lab.vtysh("r1", "clear ip bgp 10.0.12.2")


def subscriptions(report, gateway):
    """NM-04, NM-10: what changes on the device is pushed to who follows it, through the gate in both eras."""
    legacy = Legacy(gateway.url("r1"))
    for uri in (INTERFACE, ROUTES, LOG):
        legacy.call("resources/subscribe", {"uri": uri}).result
    report.check("NM-04: a resource that the device does not have is refused", legacy.call("resources/subscribe", {"uri": "network:///nothing"}).error)
    modern = Modern(gateway.url("r1")).listen(resourceSubscriptions=[INTERFACE, ROUTES, ROUTES6, LOG, "network:///nothing"])
    agreed = modern.acknowledged["params"]["notifications"].get("resourceSubscriptions")
    report.equal("NM-04: a listener is told what is followed for it", sorted(agreed or []), sorted([INTERFACE, ROUTES, ROUTES6, LOG]))
    streams = {"initialize": legacy.stream(), "stateless": modern}

    def both(about, uri, holds=lambda params: True):
        for era, stream in streams.items():
            seen = stream.wait(UPDATED, within=8, where=lambda m: m["params"]["uri"] == uri and holds(m["params"]))
            report.check(f"NM-04: {era}: {about}", seen is not None, str(stream.seen[-4:])[:1500])
    # Addresses of a link that came up just before still arrive.
    while modern.wait(UPDATED, within=4):
        pass
    quiet = modern.wait(UPDATED, within=4, where=lambda m: m["params"]["uri"] != LOG)
    report.check("NM-04: nothing is pushed while nothing changes", quiet is None, str(quiet))
    lab.sh("ip", "-n", "r1", "link", "set", "lan0", "down")
    both("an interface that goes down", INTERFACE, lambda params: '"oper-status":"DOWN"' in params["contents"][0]["text"])
    lab.sh("ip", "-n", "r1", "link", "set", "lan0", "up")
    both("and comes up", INTERFACE, lambda params: '"oper-status":"UP"' in params["contents"][0]["text"])
    route("add")
    both("a route that comes", ROUTES, lambda params: FAR in params["contents"][0]["text"])
    route("del")
    both("and goes", ROUTES, lambda params: FAR not in params["contents"][0]["text"])
    make_log_line()
    both("a line of the log", LOG, lambda params: "End-of-RIB" in params["contents"][0]["text"] and params["contents"][0]["data"] == params["contents"][0]["text"])
    legacy.call("resources/unsubscribe", {"uri": INTERFACE}).result
    lab.sh("ip", "-n", "r1", "link", "set", "lan0", "down")
    report.check("NM-04: who still follows hears of the next change", streams["stateless"].wait(UPDATED, within=8, where=lambda m: m["params"]["uri"] == INTERFACE) is not None)
    report.check("NM-04: and who does no more does not", streams["initialize"].wait(UPDATED, within=1, where=lambda m: m["params"]["uri"] == INTERFACE) is None)
    lab.sh("ip", "-n", "r1", "link", "set", "lan0", "up")
    for stream in streams.values():
        stream.close()


def pushed(report, gateway):
    """NM-10: the shapes of both dialects without a gate, a flood of the log, and the bound of what one client follows."""
    for compat in ("draft", "mcp"):
        with Serving(gateway.home.dir, R1, compat) as device:
            report.equal(f"NM-10: {compat}: the stream that is there is announced", device.welcome["capabilities"]["network"]["notificationStream"], ["syslog"])
            result = device.call("resources/subscribe", uri=LOG)
            subscription = result.get("subscriptionId") if compat == "draft" else result["_meta"]["subscriptionId"]
            report.check(f"NM-10: {compat}: the id of the subscription stands where the dialect has it", subscription and ("subscriptionId" in result) == (compat == "draft"), str(result))
            make_log_line()
            seen = device.wait("resources/updated" if compat == "draft" else UPDATED, within=10, where=lambda params: "End-of-RIB" in json.dumps(params)) or {}
            report.check(f"NM-10: {compat}: and in each update, with the lines and the time of the device",
                         seen.get("subscriptionId") == subscription and seen["contents"][0]["_meta"]["sourceTime"], str(seen))
            if compat == "mcp":
                report.check("NM-10: mcp: the draft's own name is not used", device.wait("resources/updated", within=0.5) is None)
            device.call("resources/unsubscribe", subscriptionId=subscription)
            make_log_line()
            report.check(f"NM-10: {compat}: after unsubscribing by id nothing comes", device.wait(UPDATED, within=3) is None)
    with Serving(gateway.home.dir, R1, modern=True) as device:
        device.send("subscriptions/listen", notifications={"resourceSubscriptions": [LOG]})
        device.wait("notifications/subscriptions/acknowledged")
        with open(lab.LOGS / "r1.log", "a") as log:
            log.write("2026/01/01 00:00:00 BGP: a flood\n" * 200_000)
        told, updates = 0, 0
        while told < 200_000 and (seen := device.wait(UPDATED, within=8)):
            updates += 1
            told += seen["dropped"] + seen["contents"][0]["text"].count("\n")
        report.check("NM-10: a flood of 200,000 lines comes as few updates that count what was left out", told >= 200_000 and updates <= 10, f"{told} in {updates}")
    with Serving(gateway.home.dir, R1) as device:
        answers = [device.ask("resources/subscribe", uri=f"network:///log/syslog/last{number}") for number in range(1, 1002)]
        report.equal("NM-04: one client follows a thousand resources and no more", ["error" in answer for answer in answers], [False] * 1000 + [True])


def watching(report, gateway):
    """NM-04: an official SDK hears of a change, in both eras."""
    async def tour(mode):
        heard = anyio.Event()

        async def on_message(message):
            message = getattr(message, "root", message)
            if isinstance(message, ResourceUpdatedNotification) and str(message.params.uri) == ROUTES:
                heard.set()
        async with Client(gateway.url("r1"), mode=mode, message_handler=on_message) as client:
            with anyio.fail_after(10):
                if mode == "legacy":
                    await client.subscribe_resource(ROUTES)
                    await client.read_resource(ROUTES)
                    await anyio.to_thread.run_sync(route, "add")
                    await heard.wait()
                else:
                    async with client.listen(resource_subscriptions=[ROUTES]) as stream:
                        await client.read_resource(ROUTES)
                        await anyio.to_thread.run_sync(route, "add")
                        async for event in stream:
                            return event.uri == ROUTES
            return True
    for mode in ("legacy", "2026-07-28"):
        try:
            report.check(f"NM-04: Python SDK, {mode}: a route that comes is heard of", anyio.run(tour, mode))
        finally:
            route("del")


def described(line, whole):
    """A configuration with `line` where lan0 has its description."""
    return re.sub(r"(?m)(^interface lan0\n(?: .*\n)*?) description .*$", rf"\1 {line}", whole)


def contents(wire, path):
    """The one item of what a resource holds."""
    return wire.call("resources/read", {"uri": f"network:///{path}"}).result["contents"][0]


def pages(report, gateway):
    """NM-04: tables of FRR on this machine are read page by page, by the cursor of the draft and by the one in a URI, while they change."""
    words = [f"route {{}} blackhole 10.81.{number // 250}.{number % 250}/32" for number in range(2500)]
    batch = lambda lines: subprocess.run(["ip", "-n", "r1", "-batch", "-"], input="\n".join(lines), text=True, check=True)
    batch(line.replace("{}", "add") for line in words)
    batch(f"link add name many{number:04} type bridge" for number in range(1100))
    batch(f"link set many{number:04} group 81" for number in range(1100))
    try:
        end = time.monotonic() + 20
        while time.monotonic() < end and not ('"10.81.9.249/32"' in lab.vtysh("r1", "show ip route 10.81.9.249/32 json") and "many1099" in lab.vtysh("r1", "show interface brief")):
            time.sleep(0.2)
        for era, wire in (("initialize", Legacy(gateway.url("r1"))), ("stateless", Modern(gateway.url("r1")))):
            paged(report, wire, f"{era}: routes", "routing/ipv4/route-table", lambda data: [one["destination-prefix"] for one in data["ietf-routing:routes"]["route"]],
                  lambda: set(json.loads(lab.vtysh("r1", "show ip route json"))), 1000,
                  lambda last, round: batch([f"route del blackhole {last}", f"route add blackhole 10.{80 if era == 'initialize' else 79}.{round}.0/24"]))
            paged(report, wire, f"{era}: interfaces", "interfaces", lambda data: [one["name"] for one in data["openconfig-interfaces:interfaces"]["interface"]],
                  lambda: set(json.loads(lab.vtysh("r1", "show interface json"))), 500,
                  lambda last, round: batch([f"link del {last}", f"link add name before{era[0]}{round} group 81 type bridge"]))
    finally:
        lab.sh("ip", "-n", "r1", "link", "del", "group", "81")
        for line in lab.sh("ip", "-n", "r1", "route", "show", "type", "blackhole").splitlines():
            lab.sh("ip", "-n", "r1", "route", "del", *line.split()[:2])


def paged(report, wire, about, path, names, held, most, change):
    """Reads all pages of a table, by a cursor beside the URI and within it in turn; between two pages, what a cursor names goes and something before it comes."""
    seen, sizes, cursor, stays = [], [], None, held()
    while len(sizes) < 9:
        uri = f"network:///{path}" + (f"?cursor={cursor}" if cursor and len(sizes) % 2 else "")
        params = {"uri": uri} if cursor is None or "?" in uri else {"uri": uri, "cursor": cursor}
        result = wire.call("resources/read", params).result
        page = list(dict.fromkeys(names(result["contents"][0]["data"])))
        seen, sizes, cursor = seen + page, [*sizes, len(page)], result.get("_meta", {}).get("nextCursor")
        if cursor is None:
            break
        change(page[-1], len(sizes))
        stays.discard(page[-1])
    report.check(f"NM-04: {about}: the pages hold all that stays, each once", stays <= set(seen) and len(seen) == len(set(seen)), f"{len(stays - set(seen))} {sizes}")
    report.check(f"NM-04: {about}: no page is larger than allowed", len(sizes) >= 3 and max(sizes) == most, str(sizes))
    refused = wire.call("resources/read", {"uri": f"network:///{path}", "cursor": "nonsense"}).error or {}
    report.equal(f"NM-04: {about}: what is no cursor is refused", refused.get("code"), -32602)


def octets(router, interface):
    """Octets that the kernel has counted at an interface, in and out."""
    counted = json.loads(lab.sh("ip", "-n", router, "-j", "-s", "link", "show", interface))[0]["stats64"]
    return counted["rx"]["bytes"], counted["tx"]["bytes"]


def counted(report, wire, router, interface, name):
    """NM-03, NM-06: counters of an interface are those of the kernel below the router, between one look and the next."""
    before = octets(router, interface)
    one = contents(wire, f"interface/{interface}")
    after = octets(router, interface)
    told = one["data"]["openconfig-interfaces:interface"]["state"].get("counters", {})
    held = all(low <= told.get(member, -1) <= high for low, member, high in zip(before, ("in-octets", "out-octets"), after))
    report.check(f"NM-03: {name}: octets are those that the kernel counts", held and before[0] > 0 and {"in-errors", "out-errors"} <= set(told), f"{before} {told} {after}")
    report.equal(f"NM-06: {name}: octets have a unit", one["_meta"]["unit"].get("in-octets"), "bytes")


def resources(report, gateway):
    """NM-03, NM-06: each resource of the draft's table, held against FRR, the kernel and the machine."""
    wire = Modern(gateway.url("r1"))
    listed = {one["uri"]: one for one in wire.call("resources/list").result["resources"]}
    templates = {one["uriTemplate"]: one["mimeType"] for one in wire.call("resources/templates/list").result["resourceTemplates"]}
    kinds = {"interfaces": "application/yang-data+json", "routing/ipv4/route-table": "application/yang-data+json",
             "routing/ipv6/route-table": "application/yang-data+json", "system/cpu-utilization": "application/json",
             "system/memory-summary": "application/json", "file/running-config": "text/plain", "file/startup-config": "text/plain"}
    report.equal("NM-03: the resources of the table are listed with their types", {path: listed[f"network:///{path}"]["mimeType"] for path in kinds}, kinds)
    report.check("NM-03: and the templates", templates.get("network:///interface/{+name}") == "application/yang-data+json" and
                 templates.get("network:///log/syslog/last{count}") == "text/plain;charset=utf-8" and templates.get("network:///file/{slot}/crashinfo") == "application/json", str(templates))
    read = {path: contents(wire, path) for path in kinds}
    report.equal("NM-03: what is read has the type of the list", {path: item["mimeType"] for path, item in read.items()}, kinds)
    report.check("NM-03: data and text say the same", all(item["data"] == (item["text"] if kinds[path] == "text/plain" else json.loads(item["text"])) for path, item in read.items()))
    lab.sh("ip", "-n", "r1", "addr", "add", "2001:db8::1/64", "dev", "lan0", "nodad")
    lab.sh("ip", "-n", "r1", "route", "add", "2001:db8:9::/48", "via", "2001:db8::2")

    def same():
        table = {one["destination-prefix"] for one in contents(wire, "routing/ipv6/route-table")["data"]["ietf-routing:routes"]["route"]}
        return "2001:db8:9::/48" in table and table == set(json.loads(lab.vtysh("r1", "show ipv6 route json")))
    end = time.monotonic() + 5
    while not (held := same()) and time.monotonic() < end:
        time.sleep(0.2)
    report.check("NM-03: the IPv6 table is the one of FRR", held)
    lab.sh("ip", "-n", "r1", "addr", "del", "2001:db8::1/64", "dev", "lan0")
    memory = contents(wire, "system/memory-summary")
    machine = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Mem")}
    report.check("NM-03: the memory is that of the machine", memory["data"]["total"] == machine["MemTotal"] and
                 abs(memory["data"]["available"] - machine["MemAvailable"]) < machine["MemTotal"] / 5, f"{memory} {machine}")
    report.equal("NM-06: with its unit", (memory["_meta"]["unit"], memory["_meta"]["precision"]), ("bytes", 1024))
    burning = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
    try:
        busy = contents(wire, "system/cpu-utilization")
    finally:
        for process in burning:
            process.kill()
            process.wait()
    report.check("NM-03: the load of a machine at work is high", 80 <= busy["data"]["utilization"] <= 100, str(busy))
    report.check("NM-06: with unit, precision and hardware", (busy["_meta"]["unit"], busy["_meta"]["precision"], busy["_meta"]["hardware-cores"]) ==
                 ("percent", 0.1, len(os.sched_getaffinity(0))), str(busy["_meta"]))
    counted(report, wire, "r1", "eth0", "r1")
    meta = contents(wire, "interface/lan0")["_meta"]
    link = json.loads(lab.sh("ip", "-n", "r1", "-j", "link", "show", "lan0"))[0]
    report.equal("NM-06: an interface has the address of its hardware", meta["hardware-address"], link["address"])
    lab.sh("ip", "-n", "r1", "link", "add", "name", "a-b", "type", "bridge")
    missing = wire.call("resources/read", {"uri": "network:///interface/Te0/0/0"}).error
    report.equal("NM-03: a name with slashes is a name", (missing["code"], "Te0/0/0" in missing["message"]), (-32602, True))
    fresh = contents(wire, "interface/a-b")
    report.equal("NM-03: an interface that came just now is read", fresh["data"]["openconfig-interfaces:interface"]["name"], "a-b")
    lines = (lab.LOGS / "r1.log").read_text().splitlines()
    log = contents(wire, "log/syslog/last5")
    report.equal("NM-03: the last lines of the log are those of the file", log["text"].splitlines(), lines[-5:])
    report.check("NM-06: with the time of the device", re.match(r"\d{4}-\d\d-\d\dT", log["_meta"]["sourceTime"] or ""), str(log["_meta"]))
    for count in (0, 10001):
        report.check(f"NM-03: {count} lines are refused", wire.call("resources/read", {"uri": f"network:///log/syslog/last{count}"}).error.get("data", {}).get("networkCode") == -32084)
    report.equal("NM-03: no crash is an empty array", contents(wire, "file/staticd/crashinfo")["data"], [])
    os.kill(int(Path("/run/frr/r2/staticd.pid").read_text()), signal.SIGSEGV)
    end = time.monotonic() + 5
    while not (crashes := contents(wire, "file/staticd/crashinfo")["data"]) and time.monotonic() < end:
        time.sleep(0.2)
    report.check("NM-03: a daemon that crashed has its report", [one["daemon"] for one in crashes] == ["staticd"] and "Received signal 11" in crashes[0]["text"], str(crashes)[:600])
    # All routers of the lab keep their reports in one place, and later checks look there.
    for one in crashes:
        shutil.rmtree(Path("/var/tmp/frr") / one["report"])
    # Later checks give static routes to this router.
    lab.start_daemon("r2", "staticd")
    told = contents(wire, "capabilities")["data"]
    report.equal("NM-01: capabilities are a resource as well", (told["cliDialect"], told["notificationStream"]), ("frr-vtysh", ["syslog"]))


def writes(report, gateway):
    """NM-05: a written resource is a candidate as a pushed file is: checked, shown, committed for some time, confirmed."""
    startup = Path("/etc/frr/r1/frr.conf")
    before = lab.running("r1")
    whole = "\n".join(before.splitlines()[3:])
    for era in (Legacy, Modern):
        wire = era(gateway.url("r1"))
        tools = tools_of(wire)

        def write(name, text):
            return wire.call("resources/write", {"uri": f"network:///file/{name}", "contents": [{"uri": f"network:///file/{name}", "mimeType": "text/plain", "text": text}]})
        bad = write("candidate-config", described("no-such-words x", whole)).error
        number = bad.get("data", {}).get("networkCode", bad.get("code"))
        report.check(f"NM-05: {era.__name__}: bad syntax is refused with its line", number == -32084 and "line" in json.dumps(bad), str(bad))
        refused = write("running-config", whole).error
        report.check(f"NM-05: {era.__name__}: what is read only is not written", refused.get("code") == -32602, str(refused))
        made = write("candidate-config", described(f"description written-{era.__name__}", whole)).result
        report.check(f"NM-05: {era.__name__}: a candidate is shown as a diff", f"+ description written-{era.__name__}" in made["diff"], str(made)[:800])
        report.check(f"NM-05: {era.__name__}: its resource holds it, and the device runs what it ran",
                     f"written-{era.__name__}" in contents(wire, "file/candidate-config")["text"] and lab.running("r1") == before)
        wire.tool(tools["network.rollback"])
    write("startup-config", described("description at-the-start", whole))
    report.check("NM-05: a startup configuration is not written past its commit", "at-the-start" not in startup.read_text() + lab.running("r1"))
    wire.tool(tools["network.commit"], {"confirmed": 30})
    wire.tool(tools["network.commit"], {"confirm": True})
    report.check("NM-05: once confirmed it is what the device starts with", "at-the-start" in startup.read_text() and "at-the-start" in contents(wire, "file/startup-config")["text"])
    write("candidate-config", whole)
    wire.tool(tools["network.commit"], {"confirmed": 30})
    wire.tool(tools["network.commit"], {"confirm": True})
    report.check("NM-05: and back", lab.running("r1") == before and "at-the-start" not in startup.read_text())
    refused = Modern(gateway.url("r2")).call("resources/write", {"uri": "network:///file/candidate-config", "contents": [{"text": whole}]}).error
    report.check("NM-05: a read-only device has no such method", refused.get("code") == -32601, str(refused))
    entries = b"".join(file.read_bytes() for file in Path(gateway.home.dir).glob("record/chain-*/entries/*.jsonl"))
    report.check("NM-05: the gate carries and records it as what it does not know", entries.count(b"resources/write") >= 5 and lab.PASSWORD.encode() not in entries)
