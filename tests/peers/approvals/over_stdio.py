"""A client that starts `banyan stdio`: its held call is approved at the one gate of its configuration, and it outlives that gate."""
import threading
import time

import anyio
from mcp import Client, StdioServerParameters

from gateway import binary

DISK = {"disk": "a"}


def over_stdio(report, name, held_at):
    """The Python SDK over stdio, a person at the command line, and a gate that is killed under them."""
    with held_at(name) as held:
        key = held.enroll("anna")
        arguments = ["stdio", "--config", str(held.dir / "banyan.toml")]
        parameters = StdioServerParameters(command=binary(), args=arguments, env=held.gateway.home.env)
        said, killed = {}, threading.Event()

        async def call():
            async def progress(*_):
                pass

            async with Client(parameters, mode="legacy") as client:
                with anyio.fail_after(60):
                    said["held"] = (await client.call_tool("disk__wipe", DISK, progress_callback=progress)).content[0].text
                    await anyio.to_thread.run_sync(killed.wait)
                    said["listed"] = [tool.name for tool in (await client.list_tools()).tools]
                    said["again"] = (await client.call_tool("disk__wipe", DISK)).is_error

        caller = threading.Thread(target=lambda: anyio.run(call))
        caller.start()
        code, printed = held.banyan("approve", held.pending()["id"], "--key", str(key), "--yes")
        report.check(f"{name}: approved, and its caller waits", code == 0 and "goes out now" in printed, printed)
        end = time.monotonic() + 20
        while "held" not in said and time.monotonic() < end:
            time.sleep(0.05)
        report.equal(f"{name}: it went out", (said.get("held"), held.wiped()), ("wiped a", [DISK]))
        callers = {entry.get("principal") for entry in held.json("audit", "list")["entries"] if entry.get("route") == "disk.wipe"}
        report.check(f"{name}: it stands in the record", "local" in callers, callers)
        held.gateway.kill()
        held.gateway.start()
        killed.set()
        caller.join(60)
        report.check(f"{name}: the same session goes on at the next gate", "disk__wipe" in said.get("listed", []), said)
        report.equal(f"{name}: where the call has to be approved anew", said.get("again"), True)
