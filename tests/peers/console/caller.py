"""A program that calls one tool with the Python SDK, and prints what it is told as JSON.

    caller.py URL TOOL ARGUMENTS
"""
import json
import sys

import anyio
from mcp import Client


async def heard(*_):
    """Whoever listens to progress is kept waiting."""


async def call(url, tool, arguments):
    async with Client(url) as client:
        with anyio.fail_after(120):
            told = await client.call_tool(tool, json.loads(arguments), progress_callback=heard)
    print(json.dumps({"text": told.content[0].text, "is_error": bool(told.is_error)}))


async def main():
    try:
        await call(*sys.argv[1:])
    except Exception as error:  # noqa: BLE001: whatever it is, it is what the program is told
        # Task groups wrap what went wrong in them.
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        data = getattr(getattr(error, "error", None), "data", None)
        print(json.dumps({"text": str(error), "is_error": True, "data": data}))


anyio.run(main)
