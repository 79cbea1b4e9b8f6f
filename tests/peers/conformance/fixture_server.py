#!/usr/bin/env python3
"""Fixture MCP server for black-box gateway tests (own code, no MCP SDK inside).

Serves everything the official conformance suite's *server* scenarios ask for, over
  stdio:  fixture_server.py stdio
  HTTP :  fixture_server.py http --port N [--host 127.0.0.1]     (endpoint /mcp)
and speaks both eras on the same endpoint: `initialize` based (2024-11-05 .. 2025-11-25)
and stateless 2026-07-28.  `--era legacy|modern|both` restricts it.
The parts are in `fixture/`. `--page-size N` paginates every list, `--extra-tools N` adds N dummy tools, `--rename P` puts P in front of
all tool and prompt names (to test the test scripts).
HTTP needs `pip install starlette uvicorn`; stdio needs only the standard library.
"""
import argparse
import asyncio

from fixture.server import Server


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("transport", choices=["stdio", "http"])
    ap.add_argument("--port", type=int, default=0)
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--era", choices=["both", "legacy", "modern"], default="both")
    ap.add_argument("--page-size", type=int, default=0)
    ap.add_argument("--extra-tools", type=int, default=0)
    ap.add_argument("--rename", default="")
    a = ap.parse_args()
    srv = Server(a)
    if a.transport == "stdio":
        from fixture.stdio import run_stdio
        asyncio.run(run_stdio(srv))
    else:
        import uvicorn
        from fixture.http import make_app
        uvicorn.run(make_app(srv), host=a.host, port=a.port, log_level="warning")


if __name__ == "__main__":
    main()
