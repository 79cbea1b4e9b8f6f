"""A controller written from the draft's text alone (section 8): TLS with ALPN `mcp`, framed JSON-RPC, and the sequence that is printed there
(NM-11). The device is the FRR of the lab, so that the candidate is made by commands where the text has YANG."""
import json
import os
import re
import socket
import ssl
import struct
import subprocess

from gateway import binary, end, free_port
from network import lab
from network.agent import until

HOST = "127.0.0.1"


class Controller:
    """A connection in one of the three framings."""

    def __init__(self, port, framing, certificate=None, protocols=("mcp",)):
        context = ssl.create_default_context(cafile=f"{lab.WORK}/ca.pem")
        context.check_hostname = False
        context.set_alpn_protocols(list(protocols))
        if certificate:
            context.load_cert_chain(f"{lab.WORK}/{certificate}.pem", f"{lab.WORK}/{certificate}.key")
        self.stream = context.wrap_socket(socket.create_connection((HOST, port), 10))
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
    """Is a connection ended before it is answered?"""
    try:
        controller = Controller(port, "lines", *arguments, **named)
        controller.initialize()
        return False
    except (OSError, EOFError):
        return True


def listening(gateway):
    """`banyan device listen` for r1: the process, and its port once it listens."""
    port = free_port()
    command = [binary(), "device", "listen", "r1", "--config", os.path.join(gateway.home.dir, "banyan.toml"), "--address", f"{HOST}:{port}", "--client-ca",
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
        report.guard("network/controller/session", lambda: session(report, port, gateway, agent))
        report.guard("network/controller/strangers", lambda: strangers(report, port))
    finally:
        end(process)


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
    other = Controller(port, "lines", "controller")
    other.initialize()
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
    silent = [socket.create_connection((HOST, port), 10) for _ in range(100)]
    report.check("NM-11: connections that say nothing keep no controller out", not refused(port, "controller"))
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
