"""Runs the commands of `examples/network/README.md` in the lab as they stand there, and looks for the lines that the text shows.

A line of output is found where the shown one is part of it; `…` stands for any text. `ID` in a command is the first column of the newest
list of approvals, and `HASH` is that of the newest candidate.
"""
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/network"
WITHIN = 90
END = "walk-step-ended"


def commands(example=EXAMPLE):
    """Each command of the text, with the lines that it shows."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", (example / "README.md").read_text(), re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def shows(output, line):
    """Is the line part of the output?"""
    return re.search(r"[^\n]*".join(map(re.escape, line.split("…"))), output) is not None


def run(report, banyan):
    """Walks through the text in one shell."""
    with tempfile.TemporaryDirectory(prefix="walk-", ignore_cleanup_errors=True) as home:
        shutil.copy(EXAMPLE / "banyan.toml", home)
        (Path(home) / "bin").mkdir()
        (Path(home) / "bin/banyan").symlink_to(banyan)
        environment = os.environ | {"HOME": home, "XDG_STATE_HOME": f"{home}/state", "PATH": f"{home}/bin:{os.environ['PATH']}"}
        shell = subprocess.Popen(["timeout", str(WITHIN), "bash"], cwd=home, env=environment, text=True, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        waiting, made = "", ""
        for command, lines in commands():
            output = said(shell, command.replace(" ID", f" {waiting}").replace("=HASH", f"={made}"))
            if found := re.search(r'and hash: "(\w+)" applies', output):
                made = found[1]
            if "banyan approvals" in command:
                waiting = next((line.split()[0] for line in output.splitlines() if "pending" in line), "")
            missing = [line for line in lines if not shows(output, line)]
            report.check(f"network: the example's `{command[:60]}` shows what its text says", not missing, f"{missing}\n{output[-1500:]}")
        said(shell, "banyan stop; wait")
        shell.stdin.close()
        shell.wait(WITHIN)


def said(shell, command):
    """The output of one command."""
    try:
        shell.stdin.write(f"{command}\necho {END}\n")
        shell.stdin.flush()
    except BrokenPipeError:
        return "the shell has ended"
    lines = []
    for line in shell.stdout:
        if line.strip() == END:
            break
        lines.append(line)
    return "".join(lines)
