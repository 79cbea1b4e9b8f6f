"""The MCP Inspector's command line through Banyan: what a person types to see whether a server works."""
import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

import install
from conformance.server_scenarios import MOUNT, fixture
from gateway import Gateway, Home, binary

STATIC = "test://static-text"


def run(report):
    """A few methods over HTTP and over stdio."""
    with ExitStack() as stack:
        servers = {MOUNT: fixture("stdio", "both", stack)}
        gateway = stack.enter_context(Gateway("clients-inspector", servers))
        home = Home("clients-inspector-stdio", servers)
        stack.callback(home.remove)
        targets = {
            "http": ("", [gateway.url(MOUNT), "--transport", "http"]),
            # Banyan knows this client and shows it dotted names.
            "http root": (MOUNT + ".", [gateway.url(), "--transport", "http"]),
            "stdio": (MOUNT + ".", [binary(), "stdio", "--from", home.file]),
        }
        for way, (prefix, target) in targets.items():
            for method, arguments, holds in cases(prefix):
                name = f"clients/inspector over {way}: {method}"
                report.guard(name, lambda: one(report, name, target, method, arguments, holds, home.env))


def cases(prefix):
    """(method, further arguments, what must hold of the printed result)."""
    prompt = ["--prompt-name", prefix + "test_prompt_with_arguments", "--prompt-args", "arg1=a", "arg2=b"]
    return (
        ("tools/list", [], lambda r: prefix + "fx_echo" in {t["name"] for t in r["tools"]}),
        ("tools/call", ["--tool-name", prefix + "fx_echo", "--tool-arg", "text=hi"], lambda r: r["content"][0]["text"] == "hi"),
        ("resources/list", [], lambda r: STATIC in {x["uri"] for x in r["resources"]}),
        ("resources/read", ["--uri", STATIC], lambda r: r["contents"][0]["text"].startswith("This is the content")),
        ("resources/templates/list", [], lambda r: r["resourceTemplates"][0]["uriTemplate"] == "test://template/{id}/data"),
        ("prompts/get", prompt, lambda r: r["messages"][0]["content"]["text"] == "Prompt with arguments: arg1='a', arg2='b'"),
        ("logging/setLevel", ["--log-level", "debug"], lambda r: r == {}),
    )


def one(report, name, target, method, arguments, holds, env):
    """One invocation."""
    node = install.node()
    launcher = install.node_modules("@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
    env = {**env, "PATH": str(Path(node).parent) + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(
        [node, launcher, "--cli", *target, "--method", method, *arguments], env=env, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60)
    try:
        ok = holds(json.loads(done.stdout))
    except (ValueError, LookupError, TypeError):
        ok = False
    report.check(name, ok, (done.stdout + done.stderr)[-800:])
