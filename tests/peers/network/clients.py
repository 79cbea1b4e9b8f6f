"""A device behind a gate with official SDK clients: TypeScript 1.32 and 2.4, Python 2.3 and Rust (rmcp) 3.9, in the eras that each has (NM-09).

Each lists the tools, reads, follows an interface, changes it for some time and confirms, and is told an error with its code.
"""
import re
import subprocess
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp_types import ResourceUpdatedNotification

import install
from gateway import beside
from network import lab

LAN = "network:///interface/lan0"
TYPESCRIPT = (("v1", "legacy"), ("v2", "legacy"), ("v2", "2026-07-28"))
CHECKS = 7
MODERN = "2026-07-28"


def typescript(report, gateway, kind, mode):
    """One tour of a TypeScript client."""
    name = f"TypeScript SDK {kind}, {mode}"
    tour = [install.node(), str(Path(__file__).with_name("device_tour.mjs")), kind, mode, gateway.url("r1"), f"by-typescript-{kind}-{mode}"]
    env = {**gateway.home.env, "PEERS_NODE_MODULES": install.node_modules()}
    done = subprocess.run(tour, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    ended = [line.split(" ", 2)[:2] for line in done.stdout.splitlines()]
    for verdict, step in ended:
        report.check(f"NM-09: {name}: {step}", verdict == "ok", done.stdout + done.stderr[-1500:])
    report.check(f"NM-09: {name}: the tour came to its end", len(ended) >= CHECKS and done.returncode == 0, done.stdout + done.stderr[-1500:])
    report.check(f"NM-09: {name}: the device runs what was confirmed", f"by-typescript-{kind}-{mode}" in lab.running("r1"))


def rust(report, gateway, mode):
    """One tour of the Rust client."""
    tour = [beside("rmcp-peer"), mode, "device", gateway.url("r1"), f"by-rmcp-{mode}"]
    done = subprocess.run(tour, env=gateway.home.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    ended = [line.removeprefix("ok ") for line in done.stdout.splitlines()]
    report.equal(f"NM-09: Rust SDK, {mode}: the tour", ended, ["tools", "read", "diff", "commit", "subscribe", "confirm", "error"])
    report.check(f"NM-09: Rust SDK, {mode}: the device runs what was confirmed", f"by-rmcp-{mode}" in lab.running("r1"), done.stderr[-1500:])


async def python(url, mode):
    """One tour of the Python client: each step with its findings."""
    found, updated = {}, anyio.Event()

    async def heard(message):
        if isinstance(message, ResourceUpdatedNotification):
            updated.set()
    async with Client(url, mode=mode, message_handler=heard) as client:
        named = {re.sub(r"[_.]+", ".", tool.name): tool.name for tool in (await client.list_tools()).tools}
        found["tools"] = "network.cli.exec" in named
        found["read"] = "router ospf" in (await client.read_resource("network:///file/running-config")).contents[0].text

        async def change():
            shown = await client.call_tool(named["network.cli.configure"], {"commands": ["interface lan0", f"description by-python-{mode}"]})
            await client.call_tool(named["network.commit"], {"confirmed": 30, "hash": shown.structured_content["hash"]})
        if mode == MODERN:
            async with client.listen(resource_subscriptions=[LAN]) as stream:
                await change()
                with anyio.move_on_after(6):
                    async for event in stream:
                        if isinstance(event, ResourceUpdated):
                            updated.set()
                            break
        else:
            await client.subscribe_resource(LAN)
            await change()
            with anyio.move_on_after(6):
                await updated.wait()
        found["subscribe"] = updated.is_set()
        kept = await client.call_tool(named["network.commit"], {"confirm": True})
        found["confirm"] = kept.structured_content["status"] == "confirmed"
        try:
            failed = await client.call_tool(named["network.cli.exec"], {"cmd": "show nonsense"})
            found["error"] = failed.is_error and failed.structured_content["code"] == -32084
        except Exception as error:  # noqa: BLE001 - the error of the SDK holds the code
            found["error"] = getattr(getattr(error, "error", None), "code", None) == -32084 or "-32084" in repr(error)
    return found


def run(report, gateway):
    """One client after another, since one change at a time is made of a device."""
    for kind, mode in TYPESCRIPT:
        report.guard(f"network/typescript {kind} {mode}", lambda kind=kind, mode=mode: typescript(report, gateway, kind, mode))
    for mode in ("legacy", MODERN):
        found = report.guard(f"network/python {mode}", lambda mode=mode: anyio.run(python, gateway.url("r1"), mode)) or {}
        for step, holds in found.items():
            report.check(f"NM-09: Python SDK, {mode}: {step}", holds, str(found))
        report.check(f"NM-09: Python SDK, {mode}: the device runs what was confirmed", f"by-python-{mode}" in lab.running("r1"))
    for mode in ("legacy", MODERN):
        report.guard(f"network/rmcp {mode}", lambda mode=mode: rust(report, gateway, mode))
    lab.vtysh("r1", "configure terminal", "interface lan0", "description customer-lan")
