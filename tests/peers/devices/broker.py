"""A part behind a broker of MQTT (AX-70): mosquitto with TLS, passwords and an ACL, and a part on mosquitto's own clients. Nothing of them is Banyan's."""
import json
import random
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

from gateway import ROOT, Gateway, end, free_port
from wire import Modern

# Calls while the network loses, doubles and delays messages, and the messages in a hundred with a fault.
CALLS, RATE = 40, 12
SEED = 20261127
# A mark that no part has here.
STALE = 251
TOPIC = "plant/pump"
CONFIG = """
[stub.pump]
port = "mqtts://localhost:{port}"
heartbeat = "1s"
mqtt = {{ topic = "{topic}", user = "gate", password = "{password}", authority = "{authority}" }}

[stub.pump.tool.calls]
id = 1
description = "Counts the fillings and the texts."
results = [{{ name = "fillings", kind = "int" }}, {{ name = "texts", kind = "int" }}]
read_only = true

[stub.pump.tool.fill]
id = 2
description = "Pumps some litres, and gives the level."
arguments = [{{ name = "litres", kind = "float", minimum = 0, maximum = 50 }}]
results = [{{ name = "level", kind = "float", unit = "l" }}]

[stub.pump.tool.mirror]
id = 3
description = "Gives a text backwards."
arguments = [{{ name = "text", kind = "text" }}]
results = [{{ name = "text", kind = "text" }}]
idempotent = true
"""
TABLE = [[1, "map"], [2, "float", "float"], [3, "text", "text"]]
# As the page for people has it.
DOCUMENTED = re.search(r"```\n(user gate\n.*?)```", (ROOT / "docs/stubs.md").read_text(), re.S).group(1)
ACL = DOCUMENTED + "\nuser stranger\ntopic read other/#\n"


def lacking():
    """What is not installed, if something is not."""
    return ", ".join(tool for tool in ("mosquitto", "mosquitto_pub", "mosquitto_passwd", "openssl") if not shutil.which(tool, path=PATH))


PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Broker:
    """mosquitto in a directory."""

    def __init__(self, home):
        self.home, self.port = Path(home), free_port()
        self.authority = self.certificates()
        self.home.joinpath("acl").write_text(ACL)
        passwords = self.home / "passwords"
        passwords.touch(0o600)
        for user in ("gate", "pump", "stranger"):
            subprocess.run([shutil.which("mosquitto_passwd", path=PATH), "-b", passwords, user, f"{user}-secret"], check=True, timeout=30, capture_output=True)
        lines = [f"listener {self.port} 127.0.0.1", "allow_anonymous false", f"password_file {passwords}", f"acl_file {home}/acl", f"certfile {home}/broker.pem",
                 f"keyfile {home}/broker.key", "set_tcp_nodelay true", "persistence false", "user root"]
        self.home.joinpath("mosquitto.conf").write_text("\n".join(lines) + "\n")

    def certificates(self):
        """An authority, and a certificate for localhost."""
        def openssl(*words):
            subprocess.run(["openssl", *words], cwd=self.home, check=True, timeout=60, capture_output=True)
        new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        openssl(*new, "-x509", "-days", "2", "-subj", "/CN=an authority", "-keyout", "ca.key", "-out", "ca.pem", "-addext", "keyUsage=critical,keyCertSign")
        openssl(*new, "-subj", "/CN=localhost", "-keyout", "broker.key", "-out", "broker.csr")
        self.home.joinpath("names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
        openssl("x509", "-req", "-in", "broker.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "broker.pem")
        return self.home / "ca.pem"

    def start(self):
        """Starts the broker, and waits until it takes connections."""
        log = open(self.home / "mosquitto.log", "ab")
        self.process = subprocess.Popen([shutil.which("mosquitto", path=PATH), "-c", self.home / "mosquitto.conf"], stdout=log, stderr=log)
        for _ in range(100):
            if subprocess.run(self.client("pub", "pump", "-t", "nobody", "-m", "x"), capture_output=True, timeout=30).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(f"mosquitto does not start: {(self.home / 'mosquitto.log').read_text()[-500:]}")

    def client(self, which, user, *words):
        """The command of one of mosquitto's clients."""
        return [f"mosquitto_{which}", "-V", "5", "-h", "localhost", "-p", str(self.port), "--cafile", str(self.authority), "-u", user, "-P", f"{user}-secret", *words]


class PumpPart:
    """What the contract asks of a part, and three tools."""

    def __init__(self, broker, mark):
        self.broker, self.mark, self.last, self.kept = broker, mark, 0, None
        self.level, self.fillings, self.texts = 0.0, 0, 0
        self.rate, self.random, self.counts, self.heard = 0, random.Random(SEED), dict.fromkeys(("drop", "double", "delay"), 0), []

    def __enter__(self):
        self.sub = subprocess.Popen(self.broker.client("sub", "pump", "-t", f"{TOPIC}/req", "-R"), stdout=subprocess.PIPE, text=True)
        self.pub = subprocess.Popen(self.broker.client("pub", "pump", "-t", f"{TOPIC}/rsp", "-l"), stdin=subprocess.PIPE, text=True)
        self.lock, self.thread = threading.Lock(), threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        end(self.sub)
        end(self.pub)
        self.thread.join(5)

    def work(self):
        for line in self.sub.stdout:
            self.heard.append(json.loads(line))
            self.faulty(line, self.take)

    def take(self, line):
        with self.lock:
            answer = self.hear(json.loads(line))
        if answer is not None:
            self.faulty(json.dumps(answer), self.say)

    def say(self, line):
        try:
            self.pub.stdin.write(line.strip() + "\n")
            self.pub.stdin.flush()
        except (OSError, ValueError):
            pass

    def faulty(self, line, then):
        """A network between: most messages go on as they are."""
        if self.random.randrange(100) >= self.rate:
            return then(line)
        fault = self.random.choice(("drop", "double", "delay"))
        self.counts[fault] += 1
        if fault == "delay" or fault == "double":
            threading.Timer(self.random.uniform(0, 3), then, [line]).start()
        if fault == "double":
            then(line)

    def hear(self, message):
        """The answer to a message; nothing to what is late."""
        number = message.get("seq", 0)
        if "heartbeat" in message:
            return {"heartbeat": message["heartbeat"], "boot": self.mark}
        if "ask" in message:
            if message.get("boot") == self.mark and self.is_newer(number):
                self.last = number
            first = message["ask"]
            page = {"table": TABLE[first:first + 2], "boot": self.mark, "first": first}
            return page | ({"seq": self.last} if self.last else {}) | ({"next": first + 2} if first + 2 < len(TABLE) else {})
        if not self.last:
            return {"seq": number, "error": -1}
        if number == self.last and self.kept:
            return self.kept
        if not self.is_newer(number):
            return None
        self.last = number
        self.kept = {"seq": number, **self.run(message["call"], message["arguments"])}
        return self.kept

    def is_newer(self, number):
        return number and (not self.last or 1 <= (number - self.last) % 256 <= 127)

    def run(self, tool, arguments):
        if tool == 1:
            return {"result": {"0": self.fillings, "1": self.texts}}
        if tool == 2:
            self.fillings += 1
            self.level += arguments[0]
            return {"result": self.level}
        self.texts += 1
        # A text that names a length is given as often.
        times = int(arguments[0][1:]) * 50 if re.fullmatch(r"x\d\d", arguments[0]) else 1
        return {"result": arguments[0][::-1] * times}


class Plant:
    """A broker, a part and a gate, as a context manager."""

    def __init__(self, name, user="gate", password="gate-secret", topic=TOPIC, wait=True, retained=None):
        self.name, self.wait, self.words = name, wait, {"topic": topic, "password": password}
        self.user, self.retained = user, retained

    def __enter__(self):
        self.home = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True, timeout=10).stdout.strip())
        self.broker = Broker(self.home)
        self.broker.start()
        self.part = PumpPart(self.broker, random.randrange(1, 200)).__enter__()
        if self.retained:
            self.publish(f"{TOPIC}/rsp", self.retained, "-r")
        text = CONFIG.format(port=self.broker.port, authority=self.broker.authority, **self.words).replace('user = "gate"', f'user = "{self.user}"')
        self.gateway = Gateway(self.name, {}, config=text, wait=self.wait)
        self.client = Modern(self.gateway.url())
        return self

    def __exit__(self, *failure):
        try:
            self.gateway.__exit__(*failure)
        finally:
            self.part.__exit__()
            end(self.broker.process)
            shutil.rmtree(self.home)

    def call(self, tool, **arguments):
        """Calls a tool of the part."""
        return self.client.call("tools/call", {"name": f"pump__{tool}", "arguments": arguments})

    def counted(self):
        """How often the pump ran and a text went through, by the part."""
        for _ in range(100):
            got = self.call("calls")
            if not got.error and not got.result.get("isError"):
                return got.result["structuredContent"]["fillings"], got.result["structuredContent"]["texts"]
            time.sleep(0.2)
        raise RuntimeError(f"the part does not come back: {got.text}")

    def publish(self, topic, text, *words):
        """A message of the part's user that the part did not send."""
        subprocess.run(self.broker.client("pub", "pump", "-t", topic, "-m", text, *words), check=True, timeout=30)


def talk(report, name):
    """Values, what a broker retained, a loss of power, and a broker that starts anew (AX-70, AX-74)."""
    with Plant(name, retained=json.dumps({"table": TABLE, "boot": STALE})) as plant:
        kept = subprocess.run(plant.broker.client("sub", "gate", "-t", f"{TOPIC}/rsp", "-C", "1", "-W", "10"), capture_output=True, text=True, timeout=30).stdout
        report.equal(f"{name}: a page of an older start is retained", json.loads(kept or "{}").get("boot"), STALE)
        report.check(f"{name}: and the gate does not hear it", not any(message.get("boot") == STALE for message in plant.part.heard), plant.part.heard)
        tools = {tool["name"]: tool for tool in plant.client.call("tools/list", {}).result["tools"]}
        report.equal(f"{name}: the transport", tools["pump__fill"]["_meta"]["x-mcpax-transport"], "mqtt_json")
        report.equal(f"{name}: a pump", plant.call("fill", litres=2.5).result["structuredContent"], {"level": 2.5})
        report.equal(f"{name}: a whole number as a float", plant.call("fill", litres=1.5).result["structuredContent"], {"level": 4})
        long = plant.call("mirror", text="a" * 150).result["structuredContent"]["text"]
        report.equal(f"{name}: a result of 1,950 bytes", plant.call("mirror", text="x13").result["structuredContent"]["text"], "31x" * 650)
        got = plant.call("mirror", text="x20")
        report.check(f"{name}: one of 3,000 bytes", len(long) == 150 and "ran, but the part's answer is too long" in got.text, got.text)
        text = 'Wörter "in" {"seq":1}\n' * 5
        report.equal(f"{name}: a text", plant.call("mirror", text=text).result["structuredContent"], {"text": text[::-1]})
        report.check(f"{name}: no name of a tool goes to the part", not any("fill" in json.dumps(message) for message in plant.part.heard))
        number = next(message for message in plant.part.heard if message.get("call") == 2)["seq"]
        for word in (f'{{"seq":{number},"result":7.5}}', "no json", '{"seq":1,"result":[[[[[[1]]]]]]}'):
            plant.publish(f"{TOPIC}/rsp", word)
        report.equal(f"{name}: what nobody asked for changes nothing", plant.call("fill", litres=1.5).result["structuredContent"], {"level": 5.5})
        plant.part.__exit__()
        got = plant.call("fill", litres=1)
        report.check(f"{name}: a part that is away", "is not known" in got.text or "did not run" in got.text, got.text)
        plant.part = PumpPart(plant.broker, plant.part.mark + 1).__enter__()
        report.equal(f"{name}: what was sent meanwhile does not run", plant.counted(), (0, 0))
        end(plant.broker.process)
        plant.broker.start()
        plant.part.__exit__()
        plant.part = PumpPart(plant.broker, plant.part.mark + 1).__enter__()
        report.equal(f"{name}: behind another start of the broker", plant.counted(), (0, 0))
        report.equal(f"{name}: it pumps again", plant.call("fill", litres=0.5).result["structuredContent"], {"level": 0.5})


def refusals(report, name):
    """A broker that refuses the gate is named with its reason, and an address that is none before anything is opened."""
    for what, how, why in (("the password", {"password": "Xq7canary9"}, "refuses the user or the password"), ("the topic", {"user": "stranger", "password": "stranger-secret"}, "ACL let the gate publish and hear")):
        with Plant(name, wait=False, **how) as plant:
            got = plant.call("fill", litres=1)
            told = got.text + plant.gateway.told("status")
            for _ in range(50):
                if why in told:
                    break
                time.sleep(0.1)
                told = plant.gateway.told("status") + plant.gateway.tail(1 << 16)
            report.check(f"{name}: {what}", why in told, told[-600:])
            told += plant.gateway.tail(1 << 16)
            report.check(f"{name}: nobody is told the password", how.get("password", "gate-secret") not in told, told[-600:])
            if what == "the password":
                wrong(report, name, plant)


def wrong(report, name, plant):
    """Settings that no broker has."""
    tool = '[stub.pump.tool.fill]\nid = 1\ndescription = "Fills."\n'

    def check(lines, more=""):
        with open(f"{plant.gateway.home.dir}/wrong.toml", "w") as file:
            file.write(f"[stub.pump]\n{lines}\n{tool}{more}")
        return plant.gateway.asked("check", f"{plant.gateway.home.dir}/wrong.toml")
    for lines, why in {'port = "mqtt://h"': "has a topic", 'port = "/dev/null"\nmqtt = { topic = "a" }': "no address of a broker", 'port = "mqtt://h"\nmqtt = { topic = "a/#" }': "no part has this topic",
                       'port = "mqtt://h:0"\nmqtt = { topic = "a" }': "no address of a broker", 'port = "mqtt://h"\nmqtt = { topic = "a", authority = "ca.pem" }': "`authority` has no meaning",
                       'port = "mqtt://h"\nmqtt = { topic = "a", user = "u", password = "Xq7canary9" }': "does not go over plain", 'port = "mqtt://h:x"\nmqtt = { topic = "a" }': "no address of a broker", 'port = "mqtt://h"\nspeed = 9600\nmqtt = { topic = "a" }': "no speed",
                       'port = "mqtt://h"\nmqtt = { topic = "a", password = "x" }': "has a `user`"}.items():
        checked = check(lines)
        report.check(f"{name}: {why}", checked.returncode and why in checked.stderr and "Xq7canary9" not in checked.stderr, checked.stderr)
    for port, topic, is_one in (("mqtt://H:1883/", "a/b", True), ("mqtt://h", "a//b", False), ("mqtt://h:1884", "a/b", False)):
        checked = check('port = "mqtt://h"\nmqtt = { topic = "a/b" }', f'[stub.other]\nport = "{port}"\nmqtt = {{ topic = "{topic}" }}\n{tool.replace("pump", "other")}')
        report.check(f"{name}: {port} with {topic}", ("as well" in checked.stderr) == is_one and bool(checked.returncode) == is_one, checked.stderr)
    checked = check('port = "mqtts://h"\nmqtt = { topic = "a", authority = "missing/ca.pem" }')
    shown = checked.stdout + checked.stderr
    report.check(f"{name}: an authority that is not there", f"{plant.gateway.home.dir}/missing/ca.pem" in shown and "mqtt.authority" in shown, shown)
    for words in (["add", "p", "--port", "mqtts://h"], ["watch", "--port", "mqtt://h"]):
        told = plant.gateway.asked("stub", *words)
        report.check(f"{name}: stub {words[0]} at a broker", told.returncode and "takes a serial port" in told.stderr, told.stderr)


def faults(report, name):
    """Calls over a network that loses, doubles and delays messages run once, or are of unknown outcome: each is judged by the part's counter."""
    with Plant(name) as plant:
        before, ends, wrong_ones = plant.counted(), {"done": 0, "unknown": 0, "never": 0}, []
        plant.part.rate = RATE
        for number in range(CALLS):
            got = plant.call("mirror", text="abc") if number % 2 else plant.call("fill", litres=0.5)
            is_done = not got.error and not got.result.get("isError")
            ended = "done" if is_done else "unknown" if "is not known" in got.text else "never"
            after = plant.counted()
            filled, mirrored = (now - then for now, then in zip(after, before))
            ran, other = (mirrored, filled) if number % 2 else (filled, mirrored)
            if ran not in {"done": (1,), "unknown": (0, 1), "never": (0,)}[ended] or other:
                wrong_ones.append((number, ended, before, after, got.text[:200]))
            ends[ended] += 1
            before = after
        plant.part.rate = 0
        time.sleep(3.2)
        print(f"--- devices: broker {ends}, faults {plant.part.counts}")
        report.equal(f"{name}: calls that did not run as their end says", wrong_ones[:3], [])
        report.equal(f"{name}: nothing runs afterwards", plant.counted(), before)
        report.check(f"{name}: messages were lost, came twice and late", all(plant.part.counts.values()), plant.part.counts)
        report.check(f"{name}: most calls were done", ends["done"] > CALLS // 2, ends)
