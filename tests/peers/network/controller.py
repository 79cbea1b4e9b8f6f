"""A controller written from the draft's text alone (section 8): TLS with ALPN `mcp`, framed JSON-RPC, and the sequence that is printed there
(NM-11). The device is the FRR of the lab, so that the candidate is made by commands where the text has YANG. Then the same before a gate with
rules, approvals, a budget and a record, none of which a controller passes by (AX-46, NM-12)."""
import hashlib
import json
import os
import re
import socket
import ssl
import struct
import subprocess

from gateway import Gateway, Home, binary, end, free_port
from network import lab
from network.agent import Device, processes, until

HOST = "127.0.0.1"
CALLER = "dns:controller.example"
RULES = f"""@id("all") permit (principal, action, resource);
@id("no-rollback") @remedy("ask the night shift") forbid (principal == Principal::"{CALLER}", action == Action::"call", resource == Tool::"r1.network_rollback");
@id("ask") @effect("gate") forbid (principal, action == Action::"call", resource == Tool::"r1.network_commit")
when {{ principal.kind == "certificate" && context.arguments has confirm }};
@id("no-audit") forbid (principal == Principal::"{CALLER}", action == Action::"prompt", resource == Prompt::"r1.network.security.audit");
@id("no-push") forbid (principal == Principal::"{CALLER}", action == Action::"call", resource == Tool::"r1.network_file_push");
@id("no-log") forbid (principal == Principal::"{CALLER}", action == Action::"read", resource == Resource::"r1.network:///file/running-config");
"""
GATED = f"""
[audit]
path = "record"

[policy]
file = "policy.cedar"

[budget.controllers]
principals = ["dns:*"]
max_mutable_calls_per_session = 3

[device.r1]
pathspace = "r1"
longest_window = "60s"
"""
GROUP = f"""
[device_group.edge]

[device.r1]
pathspace = "r1"
groups = ["edge"]

[device.r2]
pathspace = "r2"
groups = ["edge"]
roles = [{{ callers = ["certificate:{CALLER}"], read_only = true }}]

[device.r3]
pathspace = "r3"
"""
NAME, TOKEN = "controller.example", "canary-token-of-a-controller"
KINDS = f"""
[[token]]
name = "{NAME}"
sha256 = "{hashlib.sha256(TOKEN.encode()).hexdigest()}"

[device.r1]
pathspace = "r1"
longest_window = "60s"
roles = [{{ callers = ["token:{NAME}"] }}, {{ callers = ["certificate:{CALLER}"], deny_lines = ["shutdown"] }}]
"""


class Controller:
    """A connection in one of the three framings."""

    def __init__(self, port, framing, certificate=None, protocols=("mcp",), host=None):
        context = ssl.create_default_context(cafile=f"{lab.WORK}/ca.pem")
        context.check_hostname = False
        if protocols:
            context.set_alpn_protocols(list(protocols))
        if certificate:
            context.load_cert_chain(f"{lab.WORK}/{certificate}.pem", f"{lab.WORK}/{certificate}.key")
        self.stream = context.wrap_socket(socket.create_connection((HOST, port), 10), server_hostname=host)
        self.stream.settimeout(15)
        self.framing, self.bytes, self.pushed, self.last = framing, b"", [], 0

    def raw(self, data):
        """Sends bytes as they are."""
        self.stream.sendall(data)

    def send(self, message, pretty=False):
        """Sends a message."""
        text = json.dumps(message, indent=2 if pretty else None).encode()
        head = {"lines": b"", "lengths": struct.pack(">I", len(text)), "headers": b"Content-Length: %d\r\n\r\n" % len(text)}[self.framing]
        self.raw(head + text + (b"\n" if self.framing == "lines" else b""))

    def some(self):
        more = self.stream.recv(65536)
        if not more:
            raise EOFError
        self.bytes += more

    def read(self):
        """The next message."""
        while True:
            if self.framing == "lines" and b"\n" in self.bytes:
                text, self.bytes = self.bytes.split(b"\n", 1)
                return json.loads(text)
            size, head = None, 0
            if self.framing == "lengths" and len(self.bytes) >= 4:
                size, head = struct.unpack(">I", self.bytes[:4])[0], 4
            if self.framing == "headers" and b"\r\n\r\n" in self.bytes:
                head = self.bytes.index(b"\r\n\r\n") + 4
                size = int(re.search(rb"Content-Length: (\d+)", self.bytes[:head])[1])
            if size is not None and len(self.bytes) >= head + size:
                text, self.bytes = self.bytes[head:head + size], self.bytes[head + size:]
                return json.loads(text)
            self.some()

    def ask(self, method, params=None, pretty=False):
        """The answer to a request; what is pushed before it is kept."""
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method} | ({"params": params} if params else {}), pretty)
        while True:
            message = self.read()
            if message.get("id") == self.last:
                return message
            self.pushed.append(message)

    def initialize(self):
        """The first message of section 8.1."""
        return self.ask("initialize", {
            "protocolVersion": "2025-06-18",
            "capabilities": {"prompts": {"listChanged": True}, "resources": {"subscribe": True}, "tools": {"listChanged": True}},
            "clientInfo": {"name": "ACME-NetCtrl", "version": "4.7.0"}}, pretty=self.framing == "lengths")

    def is_over(self):
        """Has the device closed the connection, in order?"""
        try:
            while True:
                self.some()
        except EOFError:
            return True
        except OSError:
            return False


def certificates():
    """An authority with a certificate for the device and one for a controller, and a stranger's."""
    def openssl(*arguments):
        lab.sh("openssl", *arguments)
    for authority in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={authority}",
                "-keyout", f"{lab.WORK}/{authority}.key", "-out", f"{lab.WORK}/{authority}.pem")
    for name, authority in (("device", "ca"), ("controller", "ca"), ("stranger", "other")):
        files = f"{lab.WORK}/{name}"
        (lab.WORK / f"{name}.ext").write_text(f"subjectAltName=DNS:{name}.example\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{files}.key",
                "-out", f"{files}.csr")
        openssl("x509", "-req", "-in", f"{files}.csr", "-days", "2", "-CA", f"{lab.WORK}/{authority}.pem", "-CAkey", f"{lab.WORK}/{authority}.key",
                "-set_serial", "7", "-extfile", f"{files}.ext", "-out", f"{files}.pem")


def refused(port, *arguments, **named):
    """Is a connection ended, or answered with an error and then ended?"""
    try:
        controller = Controller(port, "lines", *arguments, **named)
        return "error" in controller.initialize() and controller.is_over()
    except (OSError, EOFError):
        return True


def listening(gateway, name="r1"):
    """`banyan device listen` for a device or a group: the process, and its port once it listens."""
    port = free_port()
    command = [binary(), "device", "listen", name, "--config", os.path.join(gateway.home.dir, "banyan.toml"), "--address", f"{HOST}:{port}", "--client-ca",
               f"{lab.WORK}/ca.pem", "--certificate", f"{lab.WORK}/device.pem", "--key", f"{lab.WORK}/device.key"]
    process = subprocess.Popen(command, env=gateway.home.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process, port, process.stdout.readline()


def run(report, gateway, agent):
    """Listens, and lets controllers in that have a certificate."""
    certificates()
    process, port, told = listening(gateway)
    try:
        report.equal("NM-11: the command says where it listens", told.strip(), f"r1 listens on {HOST}:{port}")
        for framing in ("lines", "lengths", "headers"):
            report.guard(f"network/controller/{framing}", lambda framing=framing: reads(report, port, framing))
        report.guard("network/controller/printed", lambda: printed(report, port))
        report.guard("network/controller/session", lambda: session(report, port, gateway, agent))
        report.guard("network/controller/strangers", lambda: strangers(report, port))
    finally:
        end(process)
    report.guard("network/controller/gated", lambda: before_a_gate(report))
    report.guard("network/controller/grouped", lambda: grouped(report))
    report.guard("network/controller/kinds", lambda: kinds(report))
    report.guard("network/controller/alone", lambda: without_a_gate(report))


def grouped(report):
    """One address serves a group: the host name in the handshake says which device, and the roles of each hold."""
    with Gateway("grouped", {}, config=GROUP) as gateway:
        process, port, told = listening(gateway, "edge")
        try:
            report.equal("NM-11: a listener says that it serves a group", told.strip(), f"edge listens on {HOST}:{port}")
            for name, framing in (("r1", "lines"), ("r2", "lengths"), ("r1", "headers")):
                controller = Controller(port, framing, "controller", host=f"{name}.example.net")
                welcome = controller.initialize()
                shown = controller.ask("tools/call", {"name": "network.cli.exec", "arguments": {"cmd": "show running-config"}})
                report.check(f"NM-11: {name} is served to who names it, in {framing}", "network" in welcome["result"]["capabilities"]
                             and f"router-id 1.1.1.{name[1]}" in json.dumps(shown), json.dumps([welcome, shown])[:600])
                changed = controller.ask("tools/call", {"name": "network.cli.configure", "arguments": {"commands": ["interface lan0", "description grouped"]}})
                is_denied = (changed.get("error") or {}).get("code") == -32083
                report.equal(f"NM-12: what its certificate may do is what the roles of {name} say", is_denied, name == "r2")
                controller.ask("tools/call", {"name": "network.rollback", "arguments": {}})
                controller.stream.close()
            for host in (None, "r3.example.net", "edge"):
                lost = Controller(port, "lengths", "controller", host=host)
                error = lost.initialize()["error"]
                report.check(f"NM-11: {host} is no device of the group, and is told so", error["code"] == -32082 and "first label" in error["data"]["detail"] and lost.is_over(), str(error))
        finally:
            end(process)


def before_a_gate(report):
    """The rules, approvals, budgets and record of a gate hold for controllers."""
    with Gateway("controllers", {}, config=GATED, prepare=lambda gate: gate.home.write("policy.cedar", RULES)) as gateway:
        process, port, _ = listening(gateway)
        try:
            gated(report, gateway, port)
        finally:
            end(process)


def gated(report, gateway, port):
    """A change of a controller, before rules that let a person confirm it."""
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    key = os.path.join(gateway.home.dir, "anna")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=30)
    gateway.told("operator", "enroll", "anna", "--key", f"{key}.pub", *config)
    controller = Controller(port, "lengths", "controller")
    controller.initialize()

    def call(tool, **arguments):
        return controller.ask("tools/call", {"name": tool, "arguments": arguments})

    listed = {tool["name"] for tool in controller.ask("tools/list")["result"]["tools"]}
    report.check("NM-12: a tool that the rules of the gate forbid a controller is not listed", {"network.commit", "network.cli.configure"} <= listed and "network.rollback" not in listed, str(listed))
    refused = call("network.rollback")
    report.check("NM-12: nor called", "error" in refused and "result" not in refused, str(refused))
    unread = controller.ask("resources/read", {"uri": "network:///file/running-config"})
    report.check("NM-12: nor is a resource read that they forbid", "error" in unread and "router ospf" not in json.dumps(unread), str(unread)[:300])
    claimed = controller.ask("tools/call", {"name": "network.rollback", "arguments": {}, "_meta": {"io.banyan/caller": {"name": "local", "kind": "local"}}})
    report.check("NM-12: whatever it claims to be", "error" in claimed, str(claimed)[:300])
    audit = {"name": "network.security.audit", "arguments": {"profile": "basic"}}
    told = [controller.ask(method, audit) for method in ("prompts/get", "prompts/stream")]
    report.check("NM-12: nor is a prompt that they forbid, whole or in parts", all("error" in one for one in told) and not controller.pushed, json.dumps(told)[:600])
    write = {"uri": "network:///file/candidate-config", "contents": [{"text": "hostname owned"}]}
    told = controller.ask("resources/write", write)
    report.check("NM-12: nor is a resource written where the tool is forbidden that does the same", "error" in told and "hostname owned" not in json.dumps(told), str(told)[:400])
    ping = {"name": "network.troubleshoot.ping-fail", "arguments": {"src": "10.0.12.1", "dst": "10.0.12.2"}}
    told, parts = controller.ask("prompts/stream", ping), list(controller.pushed)
    report.check("NM-07: a prompt that they let through comes in parts under a handle, before its answer",
                 parts and all(one["method"] == "prompts/stream" and one["params"]["handle"] == told["result"]["handle"] for one in parts)
                 and "\n\n".join(one["params"]["markdown"] for one in parts) == told["result"]["messages"][0]["content"] and "toolCalls" in parts[-1]["params"]["_meta"],
                 json.dumps([told, parts])[:1500])
    before = lab.running("r1")
    call("network.cli.configure", commands=["interface lan0", "description before a gate"])
    committed = call("network.commit", confirmed=40)
    report.check("NM-11: it commits for a time what the rules let through", "description before a gate" in lab.running("r1"), str(committed)[:300])
    held = call("network.commit", confirm=True)
    report.check("AX-46: a controller can't confirm its own change alone where a rule asks for a person", "was not called" in json.dumps(held) and "confirmed" not in str(held.get("result", {}).get("status")), str(held)[:400])
    [one] = [one for one in json.loads(gateway.told("approvals", "--json", *config))["approvals"] if one["standing"] == "pending"]
    report.check("AX-46: the person sees who asks, by the certificate", CALLER in json.dumps(one), json.dumps(one)[:400])
    gateway.told("approve", one["id"], "--key", key, "--yes", *config)
    kept = call("network.commit", confirm=True)
    report.equal("AX-46: and with the agreement of a person it is confirmed", kept.get("result", {}).get("status"), "confirmed")
    over = call("network.cli.configure", commands=["interface lan0", "description over the budget"])
    report.equal("NM-12: a budget of the gate holds for a controller", (over.get("error") or {}).get("data", {}).get("limit"), "max_mutable_calls_per_session")
    lab.vtysh("r1", "configure terminal", "interface lan0", *(line.strip() for line in before.splitlines() if line.strip() == "no description") or ["no description"])
    of = [entry for entry in json.loads(gateway.told("audit", "list", "--json", "--limit", "500", *config))["entries"] if entry.get("principal") == CALLER]
    calls = {entry["route"]: entry["call"] for entry in of if entry["event"] in ("called", "intended")}
    report.check("NM-11: each call of a controller is in the record, with the name in its certificate",
                 {"r1.network.cli.configure", "r1.network.commit"} <= set(calls), json.dumps(of)[:1500])
    shown = gateway.told("audit", "show", calls.get("r1.network.cli.configure", ""), "--json", *config)
    report.check("NM-11: with the hash of its arguments and its outcome", '"outcome": "done"' in shown and '"hash":' in shown and "before a gate" not in shown, shown[:1200])
    report.check("NM-12: and each refusal", any(entry["event"] == "refused" for entry in of), json.dumps(of)[:600])
    gateway.kill()
    report.check("NM-11: a controller whose gate is gone hears no more", controller.is_over())


def kinds(report):
    """The holder of a token is not the holder of a certificate, and no token has the name of one."""
    with Gateway("kinds", {}, config=KINDS, token=TOKEN) as gateway:
        process, port, _ = listening(gateway)
        try:
            one_name(report, gateway, port)
        finally:
            end(process)
        file = os.path.join(gateway.home.dir, "both.toml")
        with open(file, "w", encoding="utf-8") as both:
            both.write(KINDS.replace(NAME, CALLER).replace(f"dns:{CALLER}", CALLER))
        told = subprocess.run([binary(), "check", "--config", file], env=gateway.home.env, capture_output=True, text=True, timeout=30)
        report.check("NM-12: a token named as the holder of a certificate is refused",
                     told.returncode != 0 and f"can't be named `{CALLER}`" in told.stdout + told.stderr, (told.stdout + told.stderr)[-900:])


def one_name(report, gateway, port):
    """A change of the token's holder, which the certificate's holder neither goes on with nor settles."""
    config = ["--config", os.path.join(gateway.home.dir, "banyan.toml")]
    agent, controller = Device(gateway, "r1", token=TOKEN), Controller(port, "lengths", "controller")
    controller.initialize()

    def code(tool, **arguments):
        error = controller.ask("tools/call", {"name": tool, "arguments": arguments}).get("error") or {}
        return error.get("code"), json.dumps(error)

    agent.change("interface lan0", "description of a token")
    lines = ["interface lan0", "description of a certificate"]
    told = code("network.cli.configure", commands=lines)
    report.check("NM-09: a candidate of a token is no certificate's", told[0] == -32083 and f"by `{NAME}` of the tokens" in told[1], told[1][:600])
    agent.call("network.commit", confirmed=40)
    for tool, arguments in (("network.commit", {"confirm": True}), ("network.rollback", {})):
        told = code(tool, **arguments)
        report.check(f"NM-09: nor does {tool} settle it", told[0] == -32083 and f"`{NAME}` of the tokens" in told[1], told[1][:600])
    [own] = json.loads(gateway.told("device", "list", "--json", *config))["devices"]
    report.equal("NM-09: the owner is shown with the kind", (own.get("owner"), own.get("phase")), (f"token:{NAME}", "applied"))
    report.equal("NM-09: whose change it is takes it back", agent.call("network.rollback").get("isError", False), False)
    told = code("network.cli.configure", commands=["interface lan0", "shutdown"])
    report.check("NM-12: a role of the certificate holds for the certificate", told[0] == -32083 and f"certificate:{CALLER}" in told[1] and "forbids this line" in told[1], told[1][:600])
    report.equal("NM-12: and not for the token", agent.call("network.cli.configure", commands=["interface lan0", "shutdown"]).get("isError", False), False)
    agent.call("network.rollback")


def without_a_gate(report):
    """Where no gate runs, the listener starts one with its configuration; a device that it has not is named at once."""
    home = Home("controllers-alone", {})
    try:
        home.write("banyan.toml", "[audit]\npath = \"record\"\n[device.r1]\npathspace = \"r1\"\n")
        alone = type("Alone", (), {"home": home})
        process, port, told = listening(alone)
        try:
            report.check("NM-11: without a gate it listens too", "listens on" in told, told)
            controller = Controller(port, "lines", "controller")
            network = controller.initialize()["result"]["capabilities"]["network"]
            report.check("NM-11: with the capabilities of the device in the first answer", network["maxBulkEdit"] > 0, str(network))
            errors = [controller.ask("tools/call", {"name": name, "arguments": arguments}).get("error", {}).get("code")
                      for name, arguments in (("network.cli.exec", {"cmd": "reload"}), ("network.commit", {"confirm": True}))]
            report.equal("NM-08: an error has its number, as in the draft", errors, [-32083, -32602])
            followed = controller.ask("resources/subscribe", {"uri": "network:///interfaces"})["result"]
            ended = controller.ask("resources/unsubscribe", {"subscriptionId": followed.get("subscriptionId")})
            report.check("NM-04: a subscription has an id, which ends it", followed.get("subscriptionId") and "result" in ended, f"{followed} {ended}")
            controller.ask("close")
            found = subprocess.run([binary(), "audit", "list", "--json", "--config", os.path.join(home.dir, "banyan.toml")], env=home.env, capture_output=True, text=True, timeout=30)
            report.check("NM-11: and with a record", CALLER in found.stdout, found.stdout[:400] + found.stderr[:400])
        finally:
            end(process)
        report.check("NM-11: the gate ends when no controller uses it", until(20, lambda: not processes("--while-used", alone)))
        lost = subprocess.run([binary(), "device", "listen", "r7", "--config", os.path.join(home.dir, "banyan.toml"), "--client-ca", f"{lab.WORK}/ca.pem",
                               "--certificate", f"{lab.WORK}/device.pem", "--key", f"{lab.WORK}/device.key"], env=home.env, capture_output=True, text=True, timeout=30)
        report.check("NM-11: a device that is not configured is named", lost.returncode == 3 and "`r7`" in lost.stderr, lost.stderr[:300])
    finally:
        home.remove()


def reads(report, port, framing):
    """The same in each framing."""
    controller = Controller(port, framing, "controller")
    report.equal(f"NM-11: the handshake agrees on mcp ({framing})", controller.stream.selected_alpn_protocol(), "mcp")
    network = controller.initialize()["result"]["capabilities"]["network"]
    report.check(f"NM-11: the capabilities of the device come in the same framing ({framing})",
                 network["supportsRollback"] is True and network["maxBulkEdit"] > 0 and network["rollbackTimeout"] > 0, str(network))
    shown = controller.ask("tools/call", {"name": "network.cli.exec", "arguments": {"cmd": "show ip route 192.168.3.0/24"}})
    report.check(f"NM-11: a tool has its name of the draft and answers ({framing})", "192.168.3.0/24" in shown["result"]["stdout"], str(shown)[:400])
    report.equal(f"NM-11: `close` is answered ({framing})", controller.ask("close").get("result"), {})
    report.check(f"NM-11: and ends the connection ({framing})", controller.is_over())


def printed(report, port):
    """Sections 8.3, 8.5 and 8.6 as printed, with the addresses of the lab: a diagnosis step by step, lines of the log that are pushed, the end."""
    controller = Controller(port, "lengths", "controller")
    controller.initialize()
    asked = {"name": "network.troubleshoot.ping-fail", "arguments": {"src": "10.0.12.1", "dst": "192.168.3.1"}}
    step = controller.ask("prompts/get", asked)["result"]
    calls = step["_meta"]["toolCalls"]
    report.check("NM-11: 8.3, a diagnosis says what to look at, and with which calls",
                 "192.168.3.1" in json.dumps(step["messages"]) and calls and calls[0]["tool"].startswith("network."), str(step)[:600])
    found = controller.ask("tools/call", {"name": calls[0]["tool"], "arguments": calls[0]["arguments"]})
    report.check("NM-11: 8.3, the call goes out as it stands there", found.get("result", {}).get("stdout"), str(found)[:400])
    uri = "network:///log/syslog/last200"
    followed = controller.ask("resources/subscribe", {"uri": uri})["result"].get("subscriptionId")
    report.check("NM-11: 8.5, a subscription has an id", isinstance(followed, str) and followed, str(followed))
    # What the log has already may be announced first.
    lab.vtysh("r1", "clear bgp *")
    while (pushed := controller.read()).get("method") != "resources/updated" or "10.0.12.2" not in json.dumps(pushed):
        pass
    told = pushed["params"]
    report.equal("NM-11: 8.5, lines of the log are pushed under it", (told["subscriptionId"], told["uri"], told["contents"][0]["mimeType"].split(";")[0]),
                 (followed, uri, "text/plain"))
    report.equal("NM-11: 8.6, it is ended by its id", controller.ask("resources/unsubscribe", {"subscriptionId": followed}).get("result"), {})
    report.equal("NM-11: 8.6, and then the session", (controller.ask("close").get("result"), controller.is_over()), ({}, True))
    until(40, lambda: lab.vtysh("r1", "show bgp neighbors").count("BGP state = Established") == 2)


def session(report, port, gateway, agent):
    """Sections 8.2 to 8.6, and who owns the change."""
    controller = Controller(port, "lengths", "controller")
    controller.initialize()
    item = controller.ask("resources/read", {"uri": "network:///interface/lan0"})["result"]["contents"][0]
    report.check("NM-11: 8.2, an interface is read", "UP" in json.dumps(item["data"]), str(item)[:400])
    made = controller.ask("tools/call", {"name": "network.cli.configure", "arguments": {"commands": ["interface lan0", "description by the controller"]}})
    report.check("NM-11: 8.4, a candidate is made", "by the controller" in json.dumps(made["result"]), str(made)[:400])
    code, detail = agent.code("network.cli.configure", commands=["interface lan0", "description by the agent"])
    report.check("NM-11: its owner is the name in the certificate, and nobody else goes on with it", code == -32083 and "controller.example" in detail,
                 f"{code} {detail}")
    committed = controller.ask("tools/call", {"name": "network.commit", "arguments": {"confirmed": 30}})
    report.check("NM-11: 8.4, it is committed for a time", "description by the controller" in lab.running("r1"), str(committed)[:400])
    code, detail = agent.code("network.commit", confirm=True)
    report.check("NM-09: nobody else confirms it", code == -32083 and "controller.example" in detail, f"{code} {detail}")
    code, detail = agent.code("network.rollback")
    report.check("NM-09: nor takes it back", code == -32083 and "controller.example" in detail, f"{code} {detail}")
    kept = controller.ask("tools/call", {"name": "network.commit", "arguments": {"confirm": True}})
    report.equal("NM-11: 8.4, and confirmed", kept["result"].get("status"), "confirmed")
    report.check("NM-11: it is in the status of the device", "controller.example: confirmed" in gateway.told("device", "status", "r1", "--config", os.path.join(gateway.home.dir, "banyan.toml")))
    controller.ask("tools/call", {"name": "network.cli.configure", "arguments": {"commands": ["interface lan0", "description left behind"]}})
    left = controller.ask("tools/call", {"name": "network.commit", "arguments": {"confirmed": 3}})
    report.equal("NM-11: another change is committed for a time", left["result"].get("status", left), "committed")
    controller.stream.close()
    report.check("NM-09: a change of a controller that is gone comes back", until(10, lambda: "by the controller" in lab.running("r1")))


def strangers(report, port):
    """Nobody else is let in, and bytes that are no message end their connection alone."""
    report.check("NM-11: nobody is let in without a certificate", refused(port))
    report.check("NM-11: nor with one of another authority", refused(port, "stranger"))
    report.check("NM-11: nor with another protocol", refused(port, "controller", protocols=("h2",)))
    report.check("NM-11: nor with none", refused(port, "controller", protocols=()))
    bare = Controller(port, "headers")
    error = bare.initialize()["error"]
    report.check("NM-11: who has no certificate is told so", error["code"] == -32083 and "certificate" in error["data"]["detail"] and bare.is_over(), str(error))
    other = Controller(port, "lines", "controller")
    other.initialize()
    for first, second in ((b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b"\0\0\0\2{}"), (b"\0\0\0\2{}", b"Content-Length: 2\r\n\r\n{}"), (b"Content-Length: 2\r\n\r\n{}", b"{}\n")):
        mixed = Controller(port, {b"{": "lines", b"\0": "lengths", b"C": "headers"}[first[:1]], "controller")
        mixed.raw(first + second)
        told = [mixed.read()]
        while "another framing" not in json.dumps(told[-1]) and len(told) < 4:
            told.append(mixed.read())
        report.check("NM-11: a change of framing is refused, and ends the connection", "another framing" in json.dumps(told[-1]) and mixed.is_over(), str(told))
    for name, data in (("an unknown framing", b"\x16\x03\x01"), ("a length of 16 MiB", b"\x00\xff\xff\xff"), ("a header without a length", b"Content-Type: x\r\n\r\n")):
        bad = Controller(port, "headers" if data[:1] == b"C" else "lengths" if data[:1] == b"\0" else "lines", "controller")
        bad.raw(data)
        error = bad.read()
        report.check(f"NM-11: {name} is refused with a reason", error["error"]["code"] == -32700 and len(error["error"]["message"]) > 20, str(error))
        report.check(f"NM-11: and {name} ends the connection", bad.is_over())
    full = [Controller(port, "lines", "controller") for _ in range(7)]
    report.check("NM-11: a controller has eight connections", all("result" in one.initialize() for one in full) and refused(port, "controller"))
    report.check("NM-11: none of this touched another connection", "result" in other.ask("ping"))
    for one in full:
        one.stream.close()
    report.check("NM-11: who leaves makes room", until(10, lambda: not refused(port, "controller")))
    silent = [socket.create_connection((HOST, port), 10) for _ in range(1000)]
    report.check("NM-11: a thousand connections that say nothing keep no controller out", not refused(port, "controller"))
    for one in silent:
        one.close()
    greedy = Controller(port, "lines", "controller")
    greedy.initialize()
    ping = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "network.cli.exec", "arguments": {"cmd": "ping 127.0.0.1"}}})
    greedy.raw(((ping + "\n") * 50).encode())
    refusals = [greedy.read() for _ in range(49)]
    report.check("NM-11: requests of one id do not pile up", all(one.get("error", {}).get("code") == -32600 for one in refusals), str(refusals[:2]))
    shown = other.ask("tools/call", {"name": "network.cli.exec", "arguments": {"cmd": "show version"}})
    report.check("NM-11: and leave others their turn", "FRR" in json.dumps(shown), str(shown)[:400])
    greedy.stream.close()
    other.stream.close()
