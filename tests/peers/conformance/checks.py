"""The official conformance suite through Banyan, on both legs."""
from conformance import client_scenarios, server_scenarios

# Seconds that all of it may take; `run.py` says so where it took longer.
BUDGET = 190


def run(report):
    """Server scenarios first: they are the bar."""
    server_scenarios.run(report)
    client_scenarios.run(report)
