#!/usr/bin/env python3
"""Asks Cisco's scanner, offline, which of the definitions here it finds, and writes the names of its rules beside them.

    pip install cisco-ai-mcp-scanner && scan.py

It is run by hand where definitions are added. The scanner brings a hundred packages of 330 MB, and of those one analyzer is used: the tests ask its
rules alone (tests/peers/pins/floor.py), and hold what is kept here against what they say.
"""
import asyncio
import json
from pathlib import Path

from mcpscanner.core.analyzers.yara_analyzer import YaraAnalyzer

FILE = Path(__file__).with_name("definitions.json")


async def main():
    corpus, analyzer = json.loads(FILE.read_text()), YaraAnalyzer()
    for one in corpus["poisoned"] + corpus["plain"]:
        findings = await analyzer.analyze(one["text"], {"tool_name": one["tool"]})
        one["scanner"] = sorted({finding.details["raw_response"]["rule"] for finding in findings})
    rows = lambda name: ",\n".join("  " + json.dumps(one) for one in corpus[name])  # noqa: E731
    heads = "".join(f" {json.dumps(key)}: {json.dumps(corpus[key])},\n" for key in ("made", "others"))
    FILE.write_text(f"{{\n{heads} \"poisoned\": [\n{rows('poisoned')}\n ],\n \"plain\": [\n{rows('plain')}\n ]\n}}\n")


asyncio.run(main())
