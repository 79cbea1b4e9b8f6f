"""What goes wrong around a node: trust that is taken away, a disk that takes nothing, a patch that is refused, and a peer without its disk."""
import base64
import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

from context.nodes import Peer, micros, op, read, section, wait
from gateway import Gateway, free_port
from wire import Legacy


def run(report, place):
    """All of it, with the certificates in `place`."""
    for name, job in {"trust": trusted, "asked again": asked_again, "epoch": reborn, "disk": stuck, "snapshot": unshortened,
                      "late": late}.items():
        report.guard(f"context/{name}", lambda job=job: job(report, place))


def closed(peer, within=15):
    """The code that ended the connection; None while it lasts."""
    return peer.until("closed", within).get("closed")


def trusted(report, place):
    """A peer whose authority or section is taken away is out at once, and stays out."""
    name, port = "context/trust", free_port()
    with tempfile.TemporaryDirectory(prefix="banyan-contexts-") as own:
        for file in ("one.pem", "one.key", "ca.pem"):
            shutil.copy(f"{place}/{file}", own)
        with Gateway(name, {}, config=section(own, "one", port, python=None)) as gateway:
            dial = lambda **more: Peer(place, "dial", "127.0.0.1", port, **more)
            with dial() as peer:
                peer.hello()
                report.check(f"{name}: a peer of the authority is let in", peer.until("sync_subscribe"), peer.seen)
                os.replace(shutil.copy(f"{place}/other-ca.pem", f"{own}/next.pem"), f"{own}/ca.pem")
                report.check(f"{name}: XC-01: another authority ends the connection", closed(peer) is not None, peer.seen)
            with dial() as peer:
                report.check(f"{name}: the peer does not come back", (closed(peer) or 0) > 16, peer.seen)
            Path(own, "ca.pem").write_text("nothing")
            trouble = lambda: json.loads(gateway.told("axcp", "status", "--json"))["trouble"]
            report.check(f"{name}: files that cannot be read are told", wait(trouble), gateway.told("axcp", "status"))
            with dial(name="other-python") as peer:
                peer.hello()
                report.check(f"{name}: and change nothing", peer.until("sync_subscribe"), peer.seen)
                gateway.home.write("banyan.toml", section(own, "one", port, two=None))
                gateway.asked("reload")
                report.check(f"{name}: a peer taken out of the configuration is out", closed(peer) is not None, peer.seen)
            shutil.copy(f"{place}/ca.pem", own)
            wait(lambda: not trouble())
            with dial() as peer:
                report.equal(f"{name}: and is UNAUTHORIZED", closed(peer), 2)
            for end in ("pem", "key"):
                shutil.copy(f"{place}/two.{end}", f"{own}/one.{end}")
            report.check(f"{name}: a certificate with another name is told", wait(lambda: "dns:two" in (trouble() or "")), trouble())


def asked_again(report, place):
    name, port = "context/asked again", free_port()
    with Gateway(name, {}, config=section(place, "one", port, python=None)) as gateway:
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            peer.until("sync_subscribe")
            peer.patch([op("/late", 1, ts=micros() + 3_600_000_000)])
            report.equal(f"{name}: a clock an hour ahead is BAD_DELTA", peer.until("error").get("code"), 6)
            lacks = lambda: json.loads(gateway.told("axcp", "status", "--json"))["contexts"][0]["peers"][0]["lacks"]
            report.check(f"{name}: the status says that something is lacking", lacks(), gateway.told("axcp", "status"))
            asked = peer.until("sync_subscribe")
            report.equal(f"{name}: XC-12: a refused patch is asked for again on the same connection", asked.get("from", {}).get("context_id"), "chat")
            peer.patch([op("/late", 2)])
            report.check(f"{name}: and is taken with another time", wait(lambda: read(gateway, "/late") == 2), read(gateway))
            peer.until("sync_subscribe", 3)
            report.check(f"{name}: then nothing is lacking", wait(lambda: not lacks()), gateway.told("axcp", "status"))


def reborn(report, place):
    """A peer that lost its disk begins at version 1 in another epoch, and is asked from the first version on."""
    name, port = "context/epoch", free_port()
    patch = lambda peer, epoch, base, *ops: peer.send(context_patch={"context_id": "chat", "base_version": base, "epoch": epoch, "ops": ops})
    with Gateway(name, {}, config=section(place, "one", port, python=None)) as gateway:
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            patch(peer, 7, 0, op("/first/a", 1), op("/first/b", 2))
            wait(lambda: read(gateway, "/first/b"))
        gateway.kill()
        gateway.start()
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            report.equal(f"{name}: XC-12: the epoch of a peer is known after a restart", peer.until("sync_subscribe").get("from"),
                         {"context_id": "chat", "version": "2", "epoch": "7"})
            patch(peer, 8, 5, op("/second/f", 6))
            asked = peer.until("sync_request")
            report.equal(f"{name}: XC-12: versions of another epoch are asked for from the first", (asked.get("missing_from"), asked.get("to_version")),
                         ({"context_id": "chat", "epoch": "8"}, "5"))
            peer.subscribe()
            own = int(peer.until("context_patch").get("epoch", 0))
            peer.send(sync_subscribe={"from": {"context_id": "chat", "version": 2, "epoch": own}})
            report.equal(f"{name}: versions in the gate's epoch go on", peer.until("context_patch").get("base_version"), "2")
            peer.send(sync_subscribe={"from": {"context_id": "chat", "version": 2, "epoch": own ^ 1}})
            report.equal(f"{name}: XC-12: versions in any other begin anew", peer.until("context_patch").get("base_version", "0"), "0")


@contextlib.contextmanager
def refusing(gateway, table):
    """The store of the gate, which takes no row of `table` meanwhile: what a full disk answers comes from the same place."""
    [file] = Path(gateway.home.dir).rglob("banyan.db")
    with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as store:
        store.execute(f"CREATE TRIGGER refusing BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
        try:
            yield
        finally:
            store.execute("DROP TRIGGER refusing")


def patched(gateway, *ops):
    """The error of a call that writes; None where it is acknowledged."""
    reply = Legacy(gateway.url("chat")).tool("patch", {"ops": [{"op": "replace", "path": path, "value": value} for path, value in ops]})
    return reply.error or (reply.text if reply.result.get("isError") else None)


def trouble(gateway):
    return json.loads(gateway.told("axcp", "status", "--json"))["contexts"][0]["trouble"]


def stuck(report, place):
    """Nothing is acknowledged that is not on the disk, and nothing piles up in memory."""
    name, port = "context/disk", free_port()
    with Gateway(name, {}, config=section(place, "one", port, python=None)) as gateway:
        report.equal(f"{name}: a write is acknowledged", patched(gateway, ("/a", 1)), None)
        with refusing(gateway, "context_versions"):
            report.check(f"{name}: XC-14: a write that the disk refuses is not acknowledged", patched(gateway, ("/b", 2)))
            report.check(f"{name}: the status says why", "the disk is full" in (trouble(gateway) or ""), gateway.told("axcp", "status"))
            report.check(f"{name}: XC-14: nothing is written behind it", patched(gateway, ("/c", 3)) and read(gateway, "/c") is None, read(gateway))
        report.equal(f"{name}: a write is acknowledged again", patched(gateway, ("/d", 4)), None)
        report.equal(f"{name}: the trouble is over", trouble(gateway), None)
        gateway.kill()
        gateway.start()
        report.equal(f"{name}: XC-14: memory and disk agree", read(gateway), {"a": 1, "b": 2, "d": 4})


def unshortened(report, place):
    """A disk that takes versions and no snapshot does not fill without end."""
    name, port = "context/snapshot", free_port()
    large = lambda: [(f"/s{at}", base64.b64encode(os.urandom(45_000)).decode()) for at in range(16)]
    with Gateway(name, {}, config=section(place, "one", port, python=None)) as gateway:
        [file] = wait(lambda: list(Path(gateway.home.dir).rglob("banyan.db")))
        held = lambda: sqlite3.connect(f"file:{file}?mode=ro", uri=True).execute("SELECT SUM(LENGTH(kept)) FROM context_versions").fetchone()[0] or 0
        with refusing(gateway, "context_snapshots"):
            told = None
            for _ in range(40):
                if patched(gateway, *large()):
                    break
                told = told or trouble(gateway)
            report.check(f"{name}: a refused snapshot is told while writes go on", told and "the disk is full" in told, told)
            before = held()
            report.check(f"{name}: XC-14: the versions behind a snapshot are bounded", 16 << 20 < before < 18 << 20, before)
            report.check(f"{name}: then no write is taken", patched(gateway, ("/more", 1)) and read(gateway, "/more") is None and held() == before, before)
        report.equal(f"{name}: with room for a snapshot a write is acknowledged", patched(gateway, ("/more", 1)), None)
        report.check(f"{name}: and the versions are put together", held() < before, held())


def late(report, place):
    """A context that cannot be opened at the start is shared once it can be, with peers that are here too."""
    name, port = "context/late", free_port()
    status = lambda: json.loads(gateway.told("axcp", "status", "--json"))
    with Gateway(name, {}, config=section(place, "one", port, python=None)) as gateway:
        report.equal(f"{name}: a write is acknowledged", patched(gateway, ("/a", 1)), None)
        gateway.kill()
        [file] = Path(gateway.home.dir).rglob("banyan.db")
        with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as store:
            store.execute("INSERT INTO context_versions SELECT gate, context, 9, x'ff' FROM context_versions LIMIT 1")
            gateway.start(wait=False)
            told = wait(lambda: status()["trouble"])
            report.check(f"{name}: the status says that it is not open", "the context chat cannot be opened" in (told or ""), told)
            with Peer(place, "dial", "127.0.0.1", port) as peer:
                peer.hello()
                wait(lambda: status()["peers"][0]["connected"])
                store.execute("DELETE FROM context_versions WHERE version = 9")
                report.check(f"{name}: XC-12: a peer that is here has to come again", closed(peer, 40) is not None, peer.seen)
        with Peer(place, "dial", "127.0.0.1", port) as peer:
            peer.hello()
            report.equal(f"{name}: XC-12: and then is asked for its versions", peer.until("sync_subscribe").get("from", {}).get("context_id"), "chat")
        report.equal(f"{name}: the trouble is over", status()["trouble"], None)
