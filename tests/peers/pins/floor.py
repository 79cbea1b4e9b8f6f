"""What Cisco's scanner finds offline: the YARA rules that it brings, over the description of each definition, as its analyzer asks them.

    floor.py DEFINITIONS      prints {TOOL: [RULE, ...]}

It runs in an environment of its own (manifests/python/scanner.txt), without the hundred packages that the scanner's other analyzers want.
"""
import importlib.metadata
import json
import sys

import yara

SCANNER = "cisco-ai-mcp-scanner"


def rules():
    """All of its rules, compiled."""
    files = [file for file in importlib.metadata.files(SCANNER) if file.suffix in (".yar", ".yara")]
    return yara.compile(sources={file.name: file.read_text() for file in files})


def main():
    with open(sys.argv[1]) as file:
        corpus = json.load(file)
    found, scanner = {}, rules()
    for one in corpus["poisoned"] + corpus["plain"]:
        found[one["tool"]] = sorted({match.rule for match in scanner.match(data=one["text"])})
    print(json.dumps({"version": importlib.metadata.version(SCANNER), "found": found}))


if __name__ == "__main__":
    main()
