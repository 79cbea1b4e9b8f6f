#!/usr/bin/env python3
"""The client under test of the suite's client scenarios: Banyan's upstream leg, asked through its endpoint.

    client_command.py --down legacy|modern URL

Starts `banyan up` with URL as its only HTTP upstream and does what the scenario wants as a client of Banyan:
list the tools and call each. `--down` is the era towards Banyan; the suite's server decides the other one.
Exit status 1 when a call failed, as the suite expects of a client that could not do its work.
"""
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from gateway import Gateway
from wire import Legacy, Modern

ERAS = {"legacy": Legacy, "modern": Modern}
CAPABILITIES = {"elicitation": {"form": {"applyDefaults": True}}, "sampling": {}, "roots": {}}
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"


def answer(method, params):
    """What the user, the model and the roots of this client say."""
    if method == "elicitation/create":
        about = params["requestedSchema"].get("properties", {})
        return {"action": "accept", "content": {name: schema.get("default", True) for name, schema in about.items()}}
    if method == "sampling/createMessage":
        return {"role": "assistant", "model": "test", "content": {"type": "text", "text": "four"}}
    return {"roots/list": {"roots": []}}[method]


def entry(url, scenario, context):
    """The upstream as it stands in an `mcpServers` file."""
    server = {"type": "http", "url": url}
    if scenario.startswith("auth/"):
        server["oauth"] = {"clientMetadataUrl": CLIENT_METADATA}
    if "client_id" in context:
        server["oauth"] = {"clientId": context["client_id"], "clientSecret": context.get("client_secret")}
    return server


def arguments(tools, name):
    """What to call a tool with."""
    if name == "add_numbers":
        return {"a": 5, "b": 3}
    if name == "json_schema_echo":
        return {"schema": tools["json_schema_2020_12_tool"]["inputSchema"]}
    return {}


def act(client, down, scenario, context):
    """Lists what there is and uses it; returns what was refused."""
    if down == "legacy":
        client.stream()
    tools = client.tools()
    if scenario == "json-schema-ref-no-deref":
        return []
    calls = context.get("toolCalls") or [{"name": name, "arguments": arguments(tools, name)} for name in tools]
    replies = [client.tool(call["name"], call["arguments"]) for call in calls]
    if scenario == "http-standard-headers":
        for resource in client.call("resources/list").result["resources"]:
            replies.append(client.call("resources/read", {"uri": resource["uri"]}))
        for prompt in client.call("prompts/list").result["prompts"]:
            replies.append(client.call("prompts/get", {"name": prompt["name"]}))
    return [reply.raw.decode() for reply in replies if reply.error or not reply.message]


def main():
    down, url = sys.argv[2], sys.argv[-1]
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    name = f"conformance/client/{down}/{os.environ.get('MCP_CONFORMANCE_PROTOCOL_VERSION')}/{scenario}"
    with Gateway(name, {"up": entry(url, scenario, context)}, env={"BROWSER": str(HERE / "browser.py")}) as gateway:
        try:
            client = ERAS[down](gateway.url("up"), capabilities=CAPABILITIES, answer=answer, timeout=20)
            refused = act(client, down, scenario, context)
        except Exception as error:  # noqa: BLE001 - the suite wants the status, the log wants the reason
            refused = [repr(error)]
        if refused:
            print("\n".join(refused), gateway.tail(), sep="\n", file=sys.stderr)
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
