"""Prints rows for people while they come, and keeps all of them for `latest.json`."""
import json
import platform

from .bounds import said
from .machine import BENCH, CORES, busy
from .workload import floor

HEAD = ("target", "calls/s", "/floor", "/direct", "p50 us", "/floor", "p99 us", "/floor", "1st byte us", "CPU us", "user", "system", "/floor",
        "verdict")
WIDTHS = (12, 9, 7, 8, 9, 7, 10, 7, 12, 8, 7, 7, 7, 0)


class Report:
    def __init__(self, options, builds):
        self.options, self.builds = options, builds
        self.rows, self.facts = [], []
        self.headed = False
        self.others = busy()

    def add_rows(self, rows):
        """A workload's rows, as one block."""
        if not self.headed:
            print(line(HEAD))
            self.headed = True
        print(f"\n{rows[0].workload.name} ({rows[0].era})")
        for row in rows:
            print(line(cells(row, rows)).rstrip(), flush=True)
        self.rows += rows

    def add(self, section, build, name, shown, value, verdict=None):
        """A figure that is no row: `shown` is how people read it."""
        if not any(fact["section"] == section for fact in self.facts):
            print(f"\n{section}")
        verdicts = [verdict] if verdict else []
        print(f"  {name + ', ' + build:58} {shown:>34}   {said(verdicts)}".rstrip(), flush=True)
        fact = {"section": section, "build": build, "name": name, "value": value}
        self.facts.append({**fact, "verdict": verdict.json() if verdict else None})

    def end(self, seconds):
        verdicts = [v for row in self.rows for v in row.json()["verdicts"]] + [f["verdict"] for f in self.facts if f["verdict"]]
        held = sum(verdict["holds"] for verdict in verdicts)
        if self.others > 0.2:
            print(f"\nOthers were using {self.others:.1f} cores when this began: trust the CPU figures more than the others.")
        print(f"\n{held} of {len(verdicts)} bounds hold. Measured in {seconds:.0f} s on {len(CORES)} cores.")
        out = {"machine": platform.machine(), "cores": len(CORES), "rounds": self.options.rounds, "seconds": self.options.seconds,
               "smoke": self.options.smoke, "cores_used_by_others": self.others, "builds": list(self.builds), "rows": [row.json() for row in self.rows], "facts": self.facts}
        results = BENCH / "results"
        results.mkdir(exist_ok=True)
        (results / "latest.json").write_text(json.dumps(out, indent=1) + "\n")


def cells(row, rows):
    least, direct = floor(rows).figures, rows[0].figures if rows[0].target == "direct" else None
    own = row.figures
    ratio = lambda key, to: f"{own[key] / to[key]:.2f}" if to and to[key] else "-"
    cpu = ("-",) * 4 if row.target == "direct" else (*(f"{own[k]:.1f}" for k in ("cpu_us", "user_us", "system_us")), ratio("cpu_us", least))
    return (row.target, f"{own['rate']:,.0f}", ratio("rate", least), ratio("rate", direct), f"{own['p50_us']:,.0f}", ratio("p50_us", least),
            f"{own['p99_us']:,.0f}", ratio("p99_us", least), f"{own['first_byte_us']:,.0f}", *cpu, said(row.verdicts))


def line(cells):
    first, *others = zip(cells, WIDTHS)
    return "  " + first[0].ljust(first[1]) + "".join(cell.rjust(width) for cell, width in others[:-1]) + "  " + cells[-1]
