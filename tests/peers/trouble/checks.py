"""One server's trouble is its own: hostile servers beside a good one, each behind a gateway of their own.

While the bad one is at it, every call of the good one answers in time; the caller of the bad one gets one clear
error that names the server and the reason; the gateway's memory stays bounded.
"""
from concurrent.futures import ThreadPoolExecutor

from trouble import canaries, certificates, credentials, hostile_http, hostile_stdio, large, lifecycle, rules, scopes

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 100
AT_ONCE = 2


def run(report):
    """All cases, some at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for module in (lifecycle, canaries, certificates, credentials, rules, scopes, hostile_stdio, hostile_http, large):
            for name, case in module.cases():
                pool.submit(report.guard, f"trouble/{name}", lambda n=name, c=case: c(report, f"trouble/{n}"))
