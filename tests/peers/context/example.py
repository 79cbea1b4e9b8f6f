"""Runs the commands of `examples/axcp/README.md` as they stand there, at ports that are free, and looks for the lines that the text shows."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from gateway import binary, free_port
from network.walk import commands, said, shows

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/axcp"
WITHIN = 90


def run(report, _place):
    """Walks through the text in one shell."""
    with tempfile.TemporaryDirectory(prefix="walk-", ignore_cleanup_errors=True) as place:
        home = Path(place) / "plant"
        shutil.copytree(EXAMPLE, home)
        ports = {port: str(free_port()) for port in ("7501", "7503", "7511", "7521")}
        fitted = lambda text: [text := text.replace(port, free) for port, free in ports.items()][-1]
        for file in home.glob("*/banyan.toml"):
            file.write_text(fitted(file.read_text()))
        (home / "bin").mkdir()
        (home / "bin/banyan").symlink_to(binary())
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BANYAN_")} | {"PATH": f"{home}/bin:{os.environ['PATH']}"}
        shell = subprocess.Popen(["timeout", str(WITHIN), "bash"], cwd=home, env=environment, text=True, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for command, lines in commands(EXAMPLE):
            output = said(shell, command)
            missing = [line for line in lines if not shows(output, fitted(line))]
            report.check(f"context/example: `{command[:60]}` shows what its text says", not missing, f"{missing}\n{output[-1500:]}")
        said(shell, "for name in hall cloud sensor; do node $name stop; done; wait")
        shell.stdin.close()
        shell.wait(WITHIN)
