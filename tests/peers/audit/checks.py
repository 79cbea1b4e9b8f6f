"""The record under a gate that is killed at any moment, and under hands that change it."""
from audit import crashes, tampering

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 110


def run(report):
    """All cases, one after another: each of them wants the disk for itself."""
    for module in (crashes, tampering):
        for name, case in module.cases():
            report.guard(f"audit/{name}", lambda n=name, c=case: c(report, f"audit/{n}"))
