"""Changes the record of a gate in every way that leaves it readable, and looks whether `banyan audit verify` says where."""
import json
import shutil
import subprocess
from pathlib import Path

from audit.crashes import CONFIG, verify
from gateway import Gateway, binary, end
from wire import Modern

# More than a tile holds.
CALLS = 300


def cases():
    """(name, function) pairs."""
    yield "whatever is changed is found where it was changed", tamper
    yield "a call is found, shown and proved", shown


def made(gateway):
    """A record with some calls, and the gate ended; its directory."""
    client = Modern(gateway.url())
    tool = next(name for name in client.tools() if name.endswith("test_simple_text"))
    for _ in range(CALLS):
        client.tool(tool)
    client.tool("there_is_no_such_tool")
    end(gateway.process, 30)
    return Path(gateway.home.dir) / "record"


def edited(change):
    """Lines of the only file, changed."""
    def edit(chain):
        file = next((chain / "entries").glob("*.jsonl"))
        lines = file.read_bytes().split(b"\n")[:-1]
        change(lines)
        file.write_bytes(b"".join(line + b"\n" for line in lines))
    return edit


def flip(lines):
    lines[10] = lines[10].replace(b'"time":1', b'"time":2')


def replaced(name, change):
    """A file beside the lines, changed."""
    def edit(chain):
        file = next(chain.glob(name))
        file.write_bytes(change(file.read_bytes()))
    return edit


LAST = "last"
# What is done, and at which entry and in which file it has to be found.
WAYS = {
    "a value changed": (edited(flip), 11, ".jsonl"),
    "an entry taken out": (edited(lambda lines: lines.pop(10)), 10, ".jsonl"),
    "two entries swapped": (edited(lambda lines: lines.insert(10, lines.pop(11))), 10, ".jsonl"),
    "an entry twice": (edited(lambda lines: lines.insert(10, lines[10])), 11, ".jsonl"),
    "the end cut off": (edited(lambda lines: lines.pop()), LAST, ".jsonl"),
    "the last entry changed": (edited(lambda lines: lines.append(lines.pop().replace(b'"time":1', b'"time":2'))), LAST, ".jsonl"),
    "the size in the checkpoint": (replaced("checkpoint", lambda text: text.replace(b"\n", b"\n9", 1)), None, "checkpoint"),
    "the root in the checkpoint": (replaced("checkpoint", lambda text: text.replace(text.split(b"\n")[2], b"A" * 43 + b"=")), None, "checkpoint"),
    "the key": (replaced("key.pub", lambda text: text[:-10] + b"AAAAAAAA=\n"), None, "key.pub"),
    "a tile": (replaced("tile/1/000.p/*", lambda content: bytes(32) + content[32:]), None, ""),
}


def tamper(report, name):
    """One change after another, each in a copy."""
    with Gateway(name, {}, config=CONFIG) as gateway:
        record = made(gateway)
        found = verify(record)
        size = found["chains"][0]["size"]
        report.check(f"{name}: untouched it is sound", found["sound"] and size >= CALLS + 3, found)
        for way, (change, seq, file) in WAYS.items():
            copy = record.with_name("copy")
            shutil.copytree(record, copy)
            change(copy / "chain-0001")
            found = verify(copy)
            at = found["breaks"][0] if found["breaks"] else {}
            is_found = not found["sound"] and at.get("seq") == (size - 1 if seq == LAST else seq) and file in at.get("file", "")
            report.check(f"{name}: {way}", is_found, found)
            told = subprocess.run([binary(), "audit", "verify", copy], capture_output=True, text=True, timeout=60)
            is_told = told.returncode == 1 and found["breaks"][0]["what"] in told.stdout and "is not what was written" in told.stderr
            report.check(f"{name}: {way}, and people are told", is_told, told)
            shutil.rmtree(copy)


def asked(*words):
    """What a command prints as JSON."""
    done = subprocess.run([binary(), "audit", *words, "--json"], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout or "null"), done.returncode


def shown(report, name):
    """By principal and outcome, by id, and with a proof."""
    with Gateway(name, {}, config=CONFIG) as gateway:
        record = str(made(gateway))
        entries = asked("list", "--dir", record, "--limit", "1000")[0]["entries"]
        events = [entry["event"] for entry in reversed(entries)]
        report.check(f"{name}: every call is there", events[0] == "started" and events[-2:] == ["refused", "stopped"], events)
        refused = asked("list", "--dir", record, "--outcome", "refused")[0]["entries"]
        report.equal(f"{name}: why it was refused", [e["outcome"] for e in refused], ["refused: unknown_tool"])
        done = next(entry for entry in entries if entry["event"] == "called")
        report.equal(f"{name}: as whom and what", (done["principal"], done["outcome"]), ("local", "done"))
        one, code = asked("show", "--dir", record, done["call"])
        report.check(f"{name}: a call is shown", code == 0 and one["entries"][0]["seq"] == done["seq"], one)
        proof, code = asked("prove", "--dir", record, done["call"])
        report.check(f"{name}: and proved", code == 0 and proof["proof"].startswith("c2sp.org/tlog-proof@v1\n"), proof)
        report.equal(f"{name}: what is not there is not found", asked("show", "--dir", record, "no-such-call")[1], 3)
