"""Installs the pinned peers into `.peers/` of the checkout: virtual environments and one node_modules.

Standard library only, because it runs before anything is installed. Does not install Python, npm or a
Rust toolchain; `scripts/test` says what to do when one of those is absent.
"""
import concurrent.futures
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEERS = ROOT / ".peers"
PYTHON = HERE / "manifests" / "python"
NPM = HERE / "manifests" / "npm"
VENVS = ("lint", "modern", "legacy", "scanner", "network", "agents", "context", "bus")
# Of it only the rules are used: what the rest of it wants is 330 MB.
ALONE = ("scanner",)


class InstallError(Exception):
    """What could not be installed, and what to do about it."""


def venv_bin(name, program="python"):
    """The path of a program inside the virtual environment `name`."""
    return str(PEERS / name / "bin" / program)


def node_modules(*parts):
    """A path below the installed `node_modules`."""
    return str(PEERS.joinpath("npm", "node_modules", *parts))


def node():
    """A Node of version 22.19 or newer: the pinned one, or the one on PATH where npm has no build."""
    for arch in ("x64", "arm64"):
        pinned = Path(node_modules(f"node-linux-{arch}", "bin", "node"))
        if pinned.exists():
            return str(pinned)
    found = shutil.which("node")
    if found and _node_version(found) >= (22, 19):
        return found
    raise InstallError("no Node >= 22.19: install one and put it on PATH")


def install(names=VENVS, with_npm=True):
    """Brings the named environments up to date, side by side; a finished one costs nothing."""
    PEERS.mkdir(exist_ok=True)
    jobs = [(f"python/{n}", lambda n=n: _venv(n)) for n in names]
    if with_npm:
        jobs.append(("npm", _npm))
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        futures = [(name, pool.submit(job)) for name, job in jobs]
    for name, future in futures:
        if future.exception():
            raise InstallError(f"{name}: {future.exception()}")


def _venv(name):
    wanted = PYTHON / f"{name}.txt"
    target = PEERS / name
    if _is_current(target, [wanted]):
        return
    shutil.rmtree(target, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(target)], hint="install python3-venv")
    pip = [venv_bin(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, *(["--no-deps"] if name in ALONE else []), "-r", str(wanted)], hint="is the Python package index reachable?")
    _mark_current(target, [wanted])


def console():
    """What the console is built with, beside its sources; answers the path of a program in it."""
    target = ROOT / "console"
    wanted = [target / "package.json", target / "package-lock.json"]
    if not _is_current(target / "node_modules", wanted):
        _npm_ci(target)
        _mark_current(target / "node_modules", wanted)
    return lambda *parts: str(target.joinpath("node_modules", *parts))


def chromium():
    """The browser that the console is tried in; None where there is none."""
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


def _npm():
    target = PEERS / "npm"
    wanted = [NPM / "package.json", NPM / "package-lock.json"]
    if _is_current(target, wanted):
        return
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in wanted:
        shutil.copy(file, target)
    _npm_ci(target)
    _mark_current(target, wanted)


def _npm_ci(target):
    # No package's install script runs: none of the peers needs one.
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run(command, cwd=target, hint="is the npm registry reachable, and npm >= 10?")


def _run(command, cwd=None, hint=""):
    """Runs a command, once more if it fails."""
    for last in (False, True):
        try:
            done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
        except FileNotFoundError as absent:
            raise InstallError(f"{command[0]} is not installed") from absent
        if done.returncode == 0:
            return
        if last:
            raise InstallError(f"`{' '.join(command)}` failed ({hint}):\n{(done.stdout + done.stderr)[-2000:]}")


def _stamp(files):
    digest = hashlib.sha256(sys.version.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _is_current(target, files):
    mark = target / ".installed"
    return mark.exists() and mark.read_text() == _stamp(files)


def _mark_current(target, files):
    (target / ".installed").write_text(_stamp(files))


def _node_version(program):
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return tuple(int(part) for part in text.strip().lstrip("v").split(".")[:2])


if __name__ == "__main__":
    wanted = sys.argv[1:]
    try:
        install(tuple(n for n in wanted if n != "npm") or (() if wanted else VENVS), not wanted or "npm" in wanted)
    except InstallError as error:
        sys.exit(f"install: {error}")
