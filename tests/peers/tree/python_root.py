"""The Python SDK 2.3 as a client of a root, for as long as its standard input lasts.

    python_root.py MODE URL             MODE: auto or legacy

Each line says what there is: `{NAME: TEXT}`, where TEXT is how the tool's answer ends, and null says that its server is lost. All of it
is listed and called; `ok` or `FAIL ...` comes back. What gates offer themselves does not count. The token is in `$BANYAN_TOKEN`.
"""
import json
import os
import sys

import anyio
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

LOST = -32002
OWN = "notifications_dropped"


async def wrong(client, wanted):
    """What is not as it should be."""
    listed, cursor = set(), None
    while True:
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        listed |= {tool.name for tool in page.tools if not tool.name.endswith(OWN)}
        cursor = page.next_cursor
        if not cursor:
            break
    if listed != set(wanted):
        return {"listed": sorted(listed ^ set(wanted))}
    found = {}
    for name, text in wanted.items():
        try:
            got = (await client.call_tool(name, {})).content[0].text
        except MCPError as error:
            got = None if error.code == LOST else str(error)
        if got != text and not (got and text and got.endswith(text)):
            found[name] = got
    return found


async def main():
    mode, url = sys.argv[1:]
    http = create_mcp_http_client({"Authorization": f"Bearer {os.environ['BANYAN_TOKEN']}"})
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        async for line in anyio.wrap_file(sys.stdin):
            found = await wrong(client, json.loads(line))
            print(f"FAIL {json.dumps(found)}" if found else "ok", flush=True)

anyio.run(main)
