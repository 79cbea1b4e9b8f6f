"""FRR 10 for the checks of `frr10.py`: by hand and as root, no part of the group. `trixie.py`

Puts Debian trixie into `.peers/trixie` with `debootstrap` the first time (two minutes, 600 MB), and runs the checks inside, in namespaces of their own.
The binary under test is the one that the other checks use. Checks nothing itself.
"""
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent))

import install  # noqa: E402
from gateway import binary  # noqa: E402

ROOT = HERE.parents[3]
TREE = install.PEERS.resolve() / "trixie"
PACKAGES = ("frr", "frr-pythontools", "iproute2", "iputils-ping", "openssh-server", "openssh-client", "openssl", "procps", "util-linux",
            # For the Python of this machine, which has the SDKs.
            "libexpat1", "libffi8", "libssl3t64", "zlib1g", "libbz2-1.0", "liblzma5", "libsqlite3-0", "libreadline8t64")
SPACES = ("unshare", "--mount", "--net", "--pid", "--propagation", "private", "--fork", "--kill-child", "--mount-proc")


def make():
    """Installs trixie with FRR 10, once. No service is started."""
    made = TREE / "made"
    if made.exists():
        return
    shutil.rmtree(TREE, ignore_errors=True)
    subprocess.run(["debootstrap", "--variant=minbase", "trixie", str(TREE)], check=True)
    policy = TREE / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    for file in Path("/etc/apt/apt.conf.d").iterdir():
        shutil.copy(file, TREE / "etc/apt/apt.conf.d")
    within(f"exec chroot {TREE} apt-get install -y -qq --no-install-recommends {' '.join(PACKAGES)}", DEBIAN_FRONTEND="noninteractive").check_returncode()
    # A router lets its operators ping.
    (TREE / "usr/bin/ping").chmod(0o4755)
    made.touch()


def within(steps, **env):
    """Runs commands of a shell in namespaces of their own, with the kernel's files in the tree."""
    mounts = f"set -e\nmount --rbind {TREE} {TREE}\nmount --rbind /dev {TREE}/dev\nmount -t proc proc {TREE}/proc\n"
    return subprocess.run([*SPACES, "sh", "-c", mounts + steps], env={**os.environ, **env})


def check():
    """Runs the checks inside the tree, with the checkout, the binary and this Python where they are here; answers their status."""
    program = Path(binary()).resolve()
    steps = [f"mount -t sysfs sysfs {TREE}/sys"] + [f"mount -t tmpfs none {TREE}/{name}" for name in ("run", "tmp")]
    own = [Path(sysconfig.get_path("stdlib")), Path(sys.executable).resolve()] if sys.base_prefix == "/usr" else [Path(sys.base_prefix)]
    for path in (ROOT, install.PEERS.resolve(), program.parent, *own):
        place = f"mkdir -p {TREE}{path.parent} && touch {TREE}{path}" if path.is_file() else f"mkdir -p {TREE}{path}"
        steps.append(f"{place}\nmount --bind {path} {TREE}{path}")
    steps.append(f"exec chroot {TREE} {install.venv_bin('modern')} {HERE.with_name('frr10.py')}")
    return within("\n".join(steps), BANYAN_BIN=str(program)).returncode


if __name__ == "__main__":
    install.install()
    make()
    sys.exit(check())
