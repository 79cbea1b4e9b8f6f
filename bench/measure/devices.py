"""Devices behind a gate, each beside its floor. Runs inside namespaces of its own (`bench/devices`); prints a line for each figure."""
import json
import os
import socket
import subprocess
import statistics
import threading
import time
from pathlib import Path

from gateway import Gateway, resident
from network import lab, netconfd
from network.agent import Device, processes, until

AGENT = 1161
COMMUNITY = "bench"


def ber(tag, *parts):
    """An element of BER: a tag, the length, and what is in it."""
    content = b"".join(parts)
    length = bytes([len(content)]) if len(content) < 128 else bytes([0x82]) + len(content).to_bytes(2, "big")
    return bytes([tag]) + length + content


def message(kind, *bindings):
    """A message of SNMP v2c, as any manager or agent sends it."""
    body = ber(kind, ber(2, b"BENC"), ber(2, b"\0"), ber(2, b"\0"), ber(0x30, *(ber(0x30, ber(6, bytes(oid)), value) for oid, value in bindings)))
    return ber(0x30, ber(2, b"\1"), ber(4, COMMUNITY.encode()), body)


SYSTEM = (43, 6, 1, 2, 1, 1)
GET = message(0xA0, ((*SYSTEM, 5, 0), ber(5)))
TRAP = message(0xA7, ((*SYSTEM, 3, 0), ber(0x43, b"\x10")), ((43, 6, 1, 6, 3, 1, 1, 4, 1, 0), ber(6, bytes((43, 6, 1, 6, 3, 1, 1, 5, 1)))))
LINE = b"<165>1 2026-11-25T12:00:00Z r1 bgpd 77 - - %ADJCHANGE: neighbor 10.0.12.2 in vrf default Down"
RATES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
SYSLOG, TRAPS = 5514, 5162


class Rows(list):
    """Figures, told as they come."""

    def add(self, name, value, floor, unit, about="", higher_is_better=False):
        """A figure beside its floor. Where more is better, the ratio is turned over, so that one is always as good as the floor."""
        ratio = (floor / value if higher_is_better else value / floor) if value and floor else None
        self.append({"name": name, "value": value, "floor": floor, "unit": unit, "ratio": ratio, "about": about})
        shown = f"{ratio:8.2f} x" if ratio else "        -"
        print(f"{name:46} {value:12.4g} {floor if floor is not None else float('nan'):12.4g} {unit:6} {shown}  {about}", flush=True)


def took(work):
    """Seconds of some work, and what it answered."""
    began = time.perf_counter()
    answer = work()
    return time.perf_counter() - began, answer


def median(count, work):
    """The median of the seconds of some rounds."""
    return statistics.median(took(work)[0] for _ in range(count))


def measure(options):
    """Starts the lab, and measures what is asked for."""
    rows = Rows()
    wanted = {name: section for name, section in SECTIONS.items() if options.only in name}
    if not wanted:
        return rows
    print(f"{'':46} {'Banyan':>12} {'floor':>12} {'':6} {'ratio':>10}", flush=True)
    lab.start()
    for name, section in wanted.items():
        section(options, rows)
    return rows


def cost(gateway):
    """Resident bytes of the gate, and of the processes of devices."""
    servers = processes("serve") + processes("fleet")
    return resident(gateway.process.pid), sum(resident(pid) for pid in servers)


def routes(options, rows):
    """A full table in pages, and whole, beside one `vtysh` that prints it."""
    batch = lab.WORK / "routes"
    batch.write_text("".join(f"route add 20.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}/32 dev lan0\n" for n in range(options.routes)))
    lab.sh("ip", "-n", "r1", "link", "set", "lan0", "up")
    subprocess.run(["ip", "-n", "r1", "-batch", str(batch)], check=True)
    count = ["vtysh", "-N", "r1", "-c", "show ip route summary json"]
    until(120, lambda: json.loads(lab.sh(*count))["routesTotal"] >= options.routes)
    with Gateway("bench-routes", {}, config='[device.r1]\npathspace = "r1"\ncommand_timeout = "120s"\n') as gateway:
        device, before = Device(gateway, "r1"), cost(gateway)
        show = ["vtysh", "-N", "r1", "-c", "show ip route json"]
        floor, text = took(lambda: subprocess.run(show, capture_output=True, check=True).stdout)
        first, _ = took(lambda: page(device))
        whole, (pages, prefixes) = took(lambda: all_pages(device))
        gate, server = (after - early for after, early in zip(cost(gateway), before))
        about = f"{len(text) / 1e6:.0f} MB of JSON from vtysh"
        rows.add(f"{options.routes} routes: the first page", first, floor, "s", about)
        rows.add(f"{options.routes} routes: all pages", whole, floor, "s", f"{pages} pages, {prefixes} prefixes")
        rows.add(f"{options.routes} routes: memory of the device's process", server / 1e6, len(text) / 1e6, "MB", f"the gate {gate / 1e6:.0f} MB more")
        if prefixes < options.routes:
            raise SystemExit(f"bench/devices: {prefixes} prefixes in the pages, and {options.routes} were set")
    subprocess.run(["ip", "-n", "r1", "-batch", "-"], input=batch.read_text().replace("route add", "route del"), text=True, check=True)


def page(device, cursor=None):
    """One page of the IPv4 table: its prefixes, and the cursor of the next."""
    params = {"uri": "network:///routing/ipv4/route-table", **({"cursor": cursor} if cursor else {})}
    result = device.wire.call("resources/read", params, timeout=180).result
    return result["contents"][0]["text"].count('"destination-prefix"'), result.get("nextCursor") or (result.get("_meta") or {}).get("nextCursor")


def all_pages(device):
    """Number of pages and of prefixes, from the first to the last."""
    pages, (prefixes, cursor) = 1, page(device)
    while cursor:
        more, cursor = page(device, cursor)
        pages, prefixes = pages + 1, prefixes + more
    return pages, prefixes


def lines(options, rows):
    """A large configuration over NETCONF beside `ncclient`, which takes the XML as it comes."""
    netconfd.start()
    oracle = netconfd.Oracle()
    nacm = "urn:ietf:params:xml:ns:yang:ietf-netconf-acm"
    for group in range(max(1, options.lines // 100)):
        users = "".join(f"<user-name>user-{group}-{n}</user-name>" for n in range(100))
        config = f'<config xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><nacm xmlns="{nacm}"><groups><group><name>g{group}</name>{users}</group></groups></nacm></config>'
        oracle.ask("edit", config)
    oracle.ask("commit")
    login = f'address = "{netconfd.ADDRESS}"\nbackend = "netconf"\nuser = "ncadmin"\npassword = "${{file:{netconfd.HOME}/password}}"\nhost_key = "{lab.fingerprint()}"\n'
    with Gateway("bench-lines", {}, config=f"[device.nc]\n{login}command_timeout = \"120s\"\n") as gateway:
        device = Device(gateway, "nc")
        read = lambda: device.call("network.file.pull", filename="running-config")["structuredContent"]["content"]  # noqa: E731
        text = read()
        floor = median(3, lambda: oracle.running())
        rows.add(f"{text.count('<user-name>')} lines over NETCONF: the whole file", median(3, read), floor, "s", f"{len(text) / 1e6:.1f} MB; the floor is ncclient, which sorts nothing and hides nothing")
    oracle.close()


def latency(options, rows):
    """One read of a device behind SSH beside `ssh HOST show`, and of FRR here beside `vtysh`."""
    rounds = 3 if options.smoke else 15
    ssh = ["ssh", "-q", "-i", str(lab.WORK / "login"), "-p", "2222", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "netadm@127.0.0.1",
           "show version"]
    (lab.WORK / "login").chmod(0o600)
    config = (f'[device.remote]\nbackend = "ssh"\naddress = "127.0.0.1:2222"\nuser = "netadm"\nkey = "{lab.WORK}/login"\nhost_key = "{lab.fingerprint()}"\n'
              '[device.r1]\npathspace = "r1"\n')
    with Gateway("bench-latency", {}, config=config) as gateway:
        for name, command in (("remote", ssh), ("r1", ["vtysh", "-N", "r1", "-c", "show version"])):
            device = Device(gateway, name)
            floor = median(rounds, lambda: subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL))
            value = median(rounds, lambda: device.call("network.cli.exec", cmd="show version")["structuredContent"]["stdout"])
            rows.add(f"one read, {'behind SSH' if name == 'remote' else 'on this machine'}", value, floor, "s", command[0])


def addresses(count):
    """Addresses of this machine, at all of which the one agent answers."""
    return [f"127.1.{n >> 8}.{n & 255}" for n in range(1, count + 1)]


def polled(options, rows):
    """Many devices asked by one call of their group, beside the same question sent to each by hand. One real `snmpd` is all of them."""
    (lab.WORK / "many.conf").write_text(f"agentAddress udp:{AGENT}\nrocommunity {COMMUNITY} 127.0.0.0/8\nsysName simulated\n")
    environment = {**os.environ, "MIBS": "", "SNMP_PERSISTENT_DIR": str(lab.WORK)}
    agent = subprocess.Popen(["/usr/sbin/snmpd", "-f", "-C", "-c", str(lab.WORK / "many.conf"), "-Lf", str(lab.LOGS / "many")], env=environment)
    devices = "".join(f'[device.d{n}]\ntemplate = "many"\naddress = "{address}:{AGENT}"\n' for n, address in enumerate(addresses(options.devices)))
    config = (f'[device_group.all]\n[device_template.many]\nbackend = "snmp"\ncommunity = "{COMMUNITY}"\ngroups = ["all"]\n{devices}')
    try:
        until(15, lambda: asked_by_hand(addresses(1)) == 1)
        with Gateway("bench-polled", {}, config=config, wait=False) as gateway:
            file = os.path.join(gateway.home.dir, "banyan.toml")
            ready, _ = took(lambda: until(300, lambda: gateway.told("status", "--json", "--config", file).count('"ready"') > options.devices))
            group = Device(gateway, "all")
            floor, by_hand = took(lambda: asked_by_hand(addresses(options.devices)))
            value, told = took(lambda: poll(group))
            gate, servers = cost(gateway)
            rows.add(f"{options.devices} devices polled once", value, floor, "s", f"{told['answered']} answered, by hand {by_hand}; ready after {ready:.1f} s")
            rows.add(f"{options.devices} devices: memory", (gate + servers) / 1e6, None, "MB", f"the gate {gate / 1e6:.0f}, the devices {servers / 1e6:.0f}")
            if told["answered"] != options.devices:
                raise SystemExit(f"bench/devices: {json.dumps(told)[:2000]}")
    finally:
        agent.terminate()
        agent.wait()


def poll(group):
    """One call of a group."""
    arguments = {"path": "/SNMPv2-MIB:SNMPv2-MIB/system/sysName"}
    return group.wire.call("tools/call", {"name": group.named["network.yang.get"], "arguments": arguments}, timeout=300).result["structuredContent"]


def asked_by_hand(all_addresses):
    """The same question to each, 32 at a time as a group asks; how many answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(2)
        answered, waiting = 0, 0
        for address in all_addresses:
            asking.sendto(GET, (address, AGENT))
            waiting += 1
            while waiting >= 32 or (waiting and address == all_addresses[-1]):
                try:
                    asking.recv(4096)
                except TimeoutError:
                    return answered
                answered, waiting = answered + 1, waiting - 1
        return answered


def received(options, rows):
    """Messages a second: the highest rate at which none is missing, beside a program that only counts them; and what becomes of too many."""
    config = (f'[device.r1]\nbackend = "snmp"\naddress = "127.0.0.1:{AGENT}"\ncommunity = "{COMMUNITY}"\nsyslog = "127.0.0.1:{SYSLOG}"\ntraps = "127.0.0.1:{TRAPS}"\n'
              'sources = ["127.0.0.1"]\n')
    with Gateway("bench-received", {}, config=config) as gateway:
        device = Device(gateway, "r1")
        for what, stream, port, datagram in (("lines of syslog", "syslog", SYSLOG, LINE), ("traps", "snmp-trap", TRAPS, TRAP)):
            highest(options, rows, lambda: counted(device, stream), (what, port, datagram))


def highest(options, rows, counts, about):
    """The highest rate of one kind of message without loss."""
    what, port, datagram = about
    seconds = 0.5 if options.smoke else 3
    rates = RATES[:2] if options.smoke else RATES
    until(10, lambda: counts().get("failure") is None)
    # The process that receives looks for devices each half second.
    time.sleep(1)
    reached = counting = 0
    for rate in rates:
        before, dropped = counts(), kernel_drops(port)
        sent = send(port, datagram, rate, seconds)
        settled(counts)
        # What is missing shows by the number of the next message.
        sent += send(port, datagram, 1_000, 0.01)
        settled(counts)
        after, dropped = counts(), kernel_drops(port) - dropped
        come, lost, told = (after[name] - before[name] for name in ("received", "lost", "droppedBySystem"))
        reached = rate if come == sent else reached
        counting = rate if floor(datagram, rate, seconds) else counting
        print(f"        {rate:6} {what}/s: {come} of {sent} came, {lost} counted as lost, {dropped} dropped by the kernel, {told} of those told", flush=True)
        if come + lost + dropped < sent:
            print(f"        LOOK: {sent - come - lost - dropped} are missing that nobody counted", flush=True)
    rows.add(f"{what} a second without loss", reached, counting, "1/s", "the floor only counts", higher_is_better=True)


def counted(device, stream):
    """Counts of a stream."""
    return device.wire.call("resources/read", {"uri": f"network:///stream/{stream}"}).result["contents"][0]["_meta"]


def settled(counts):
    """Waits until nothing more comes."""
    last = None
    for _ in range(50):
        now = counts()["received"]
        if now == last:
            break
        last = now
        time.sleep(0.2)
    time.sleep(1.2)


def send(port, datagram, rate, seconds):
    """Sends datagrams at a rate; how many."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.connect(("127.0.0.1", port))
        began, sent = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - began) < seconds:
            for _ in range(max(0, int(elapsed * rate) - sent)):
                try:
                    sending.send(datagram)
                except ConnectionRefusedError:
                    pass
                sent += 1
            time.sleep(0.001)
        return sent


def floor(datagram, rate, seconds):
    """Does a program that only counts get every line at this rate?"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiving:
        receiving.bind(("127.0.0.1", 0))
        receiving.settimeout(1)
        port, come = receiving.getsockname()[1], [0]

        def count():
            try:
                while receiving.recv(4096):
                    come[0] += 1
            except OSError:
                pass

        thread = threading.Thread(target=count)
        thread.start()
        sent = send(port, datagram, rate, seconds)
        thread.join()
        return come[0] == sent


def kernel_drops(port):
    """Datagrams that the kernel dropped at the sockets of a port."""
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    return sum(int(row[-1]) for row in rows if row[1].endswith(f":{port:04X}"))


SECTIONS = {"routes": routes, "lines": lines, "latency": latency, "polled": polled, "received": received}
