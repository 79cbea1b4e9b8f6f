"""A secret kept in a real keyring: stored by the command, used by reference, printed nowhere. And machines without a keyring.

Skipped, with the reason, where the keyring's programs are absent and there is no apt to install them with.
"""
import json
import os
import shutil
import subprocess
import time

from gateway import Gateway, binary
from secret_service.session import Session, missing
from trouble import recording
from wire import Legacy, Modern

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 30
VALUE = "kept-in-the-keyring-5d1f"
REFERENCE = "${keyring:up-token}"
SOON = 20


def run(report):
    """Without a keyring, with one that is locked, and with one that is open."""
    with Session(keyring=False) as session:
        report.guard("keyring/none", lambda: without(report, "keyring/none", session))
    absent = missing()
    if absent and not shutil.which("apt-get"):
        print(f"keyring: skipped, {', '.join(absent)} not installed and no apt-get to do it", flush=True)
        return
    if report.check("keyring: its programs are there", not absent, f"{absent} absent; run: apt-get install dbus gnome-keyring"):
        report.guard("keyring/round trip", lambda: round_trip(report))
        report.guard("keyring/locked", lambda: locked(report))


def banyan(env, *arguments, typed=""):
    """Runs one command to its end."""
    return subprocess.run([binary(), *arguments], input=typed, env=env, cwd=env["HOME"], capture_output=True, text=True, timeout=SOON)


def configuration(upstream):
    """One mount that needs the secret."""
    return f'[mount.up]\nurl = "{upstream.url}"\nheaders = {{ Authorization = "Bearer {REFERENCE}" }}\n'


def round_trip(report):
    """`secret set`, a gate that uses it, and every place where it must not appear."""
    with Session() as session, recording.Upstream() as upstream:
        printed = []

        def say(*arguments, typed=""):
            done = banyan(session.env, *arguments, typed=typed)
            printed.append(done.stdout + done.stderr)
            return done

        stored = say("secret", "set", "up-token", "--json", typed=VALUE + "\n")
        report.equal("keyring: set", (stored.returncode, stored.stderr), (0, ""))
        report.equal("keyring: set names the reference", json.loads(stored.stdout), {"name": "up-token", "reference": REFERENCE})
        report.equal("keyring: list", json.loads(say("secret", "list", "--json").stdout), {"secrets": ["up-token"]})
        with Gateway("keyring", {}, session.env, config=configuration(upstream)) as gateway:
            for client in (Legacy, Modern):
                report.equal(f"keyring: {client.__name__} calls", client(gateway.url()).tool("up__act").text, "fine")
            bare = [headers for headers, _ in upstream.seen if f"Bearer {VALUE}" not in headers]
            report.check("keyring: the value goes upstream, with every request", upstream.seen and not bare, bare[:2])
            for arguments in (("status",), ("tools",), ("tree",), ("logs", "up"), ("doctor",), ("check",)):
                say(*arguments)
                say(*arguments, "--json")
            printed += [gateway.get("/metrics")[1], gateway.tail(1 << 20), files(gateway.home.dir)]
        printed.append(files(session.dir))
        leaks = [text[:600] for text in printed if VALUE in text]
        report.check("keyring: the value is printed nowhere", not leaks and len(printed) > 14, leaks)

        gone = [say("secret", "rm", "up-token").returncode for _ in range(2)]
        report.equal("keyring: rm, and rm of what is gone", gone, [0, 3])
        refused(report, "keyring: a secret that is gone", session.env, upstream, "banyan secret set up-token")


def locked(report):
    """A keyring that has the secret, and nobody is there to unlock it."""
    with Session() as session:
        banyan(session.env, "secret", "set", "up-token", typed=VALUE)
        session.lock()
        without(report, "keyring/locked", session)


def without(report, name, session):
    """One clear error that says what to do instead, soon, from the command and from a gate."""
    with recording.Upstream() as upstream:
        began = time.monotonic()
        done = banyan(session.env, "secret", "set", "up-token", typed=VALUE)
        report.check(f"{name}: answers soon", time.monotonic() - began < SOON / 2, f"{time.monotonic() - began:.1f} s")
        report.equal(f"{name}: fails", done.returncode, 1)
        clear = done.stderr.startswith("error: ") and "keyring" in done.stderr and "${env:NAME}" in done.stderr
        report.check(f"{name}: one clear error", clear and len(done.stderr.splitlines()) == 2, done.stderr)
        refused(report, f"{name}: a gate", session.env, upstream, "use ${env:NAME} or ${file:/path} in its place")


def refused(report, name, env, upstream, advice):
    """A gate whose server needs the secret names the place and says what to do."""
    with Gateway(name, {}, env, config=configuration(upstream), wait=False):
        end, error = time.monotonic() + SOON, ""
        while not error and time.monotonic() < end:
            shown = json.loads(banyan(env, "status", "--json").stdout)
            error = shown["mounts"][0]["error"] or ""
            time.sleep(0.1)
        report.check(f"{name}: the place and the remedy", "mount.up.headers.Authorization" in error and advice in error, error)


def files(directory):
    """Every file below a directory as one text."""
    found = []
    for parent, _, names in os.walk(directory):
        for path in (os.path.join(parent, name) for name in names):
            if os.path.isfile(path):
                with open(path, errors="replace") as file:
                    found.append(file.read())
    return "\n".join(found)
