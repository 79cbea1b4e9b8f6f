"""Bytes through Banyan: results, tool schemas and arguments arrive as they were sent (AX-05).

Between eras one difference is documented: a modern answer made from a legacy one has `"resultType":"complete"`
(and, for lists, `ttlMs` and `cacheScope`) spliced in; a legacy answer made from a modern one may keep them.
The definitions of tools are those of their servers but for the annotations of MCP-AX in `_meta` (AX-33), which a profile leaves out.
"""
import json
import re
import sys
from contextlib import ExitStack
from pathlib import Path

from conformance.server_scenarios import fixture
from gateway import Gateway
from wire import Connection, Legacy, Modern, member

RAW_ECHO = str(Path(__file__).resolve().parent / "raw_echo.py")
ERAS = {"legacy": Legacy, "modern": Modern}
ARGUMENTS = '{"z":1.0,"a":12345678901234567890123,"e":1e5,"s":"caf\\u00e9 \\/","n":null,"f":0.10}'
SPLICED = re.compile(rb',"(?:resultType":"complete"|ttlMs":\d+|cacheScope":"\w+")|"(?:resultType":"complete"|ttlMs":\d+|cacheScope":"\w+"),')
MEMBER = r'"x-mcpax-[a-z-]+":(?:"[a-z_]+"|\d+|true|false)'
ADDED = re.compile(rf',"_meta":\{{{MEMBER}(?:,{MEMBER})*\}}|(?:,{MEMBER})+(?=\}})')
ANNOTATED = ("hops", "latency-class", "consistency", "mutable", "reversible", "idempotent", "transport", "auth-scope", "cost-class", "availability")
BARE = {"name": "bare", "version": "1"}
PROFILE = '[profile.bare]\nclients = ["bare"]\nannotations = false\n'
META = re.compile(rb', "_meta": \{[^{}]*\{[^{}]*\}\}')


def run(report):
    """Every pair of eras, over both upstream transports."""
    with ExitStack() as stack:
        direct = fixture("http", "both", stack)["url"]
        upstreams = {f"{era}-{transport}": fixture(transport, era, stack)
                     for era in ("legacy", "modern", "both") for transport in ("stdio", "http")}
        upstreams["raw"] = {"command": sys.executable, "args": [RAW_ECHO]}
        gateway = stack.enter_context(Gateway("clients-fidelity", upstreams, config="".join(map(mounted, upstreams.items())) + PROFILE))
        plain = {era: client(direct) for era, client in ERAS.items()}
        for mount in upstreams:
            for era, client in ERAS.items():
                name = f"clients/fidelity {era} client, upstream {mount}"
                if mount == "raw":
                    report.guard(name, lambda: requests(report, name, client(gateway.url(mount))))
                else:
                    exact = mount.startswith(era) or (era == "modern" and mount.startswith("both"))
                    spoken = plain["legacy" if mount.startswith("legacy") else "modern"]
                    report.guard(name, lambda: answers(report, name, client(gateway.url(mount)), plain[era], exact))
                    report.guard(name, lambda: lists(report, name, client(gateway.url(mount)), spoken, True))
                    bare = f"{name}, without annotations"
                    report.guard(bare, lambda: lists(report, bare, client(gateway.url(mount), info=BARE), spoken, False))
        report.guard("clients/fidelity duplicate keys", lambda: duplicates(report, gateway.url("raw")))


def mounted(entry):
    """A server of an `mcpServers` file, as a section of a banyan.toml."""
    name, server = entry
    return "\n".join([f"[mount.{name}]", *(f"{key} = {json.dumps(server[key])}" for key in ("command", "args", "url") if key in server)]) + "\n"


def answers(report, name, through, direct, exact):
    """The bytes of results, against the fixture asked directly; `exact` within one era."""
    for tool in ("fx_fidelity", "test_multiple_content_types", "test_error_handling"):
        same(report, f"{name}: result of {tool}", through.tool(tool), direct.tool(tool), exact)
    for method, params in (("resources/read", {"uri": "test://static-binary"}), ("prompts/get", {"name": "test_prompt_with_image"}),
                           ("fixture/echo", {"k": [1, 2.5]})):
        same(report, f"{name}: result of {method}", through.call(method, params), direct.call(method, params), exact)
    code = through.tool("fx_url_required").error
    report.equal(f"{name}: error with data", code, direct.tool("fx_url_required").error)


def lists(report, name, through, direct, annotated):
    """The bytes of the entries of tools/list, against the fixture asked directly in the era that Banyan speaks with it; `annotated`:
    but for the annotations of MCP-AX."""
    listed, wanted = (entries(c.call("tools/list").result_bytes) for c in (through, direct))
    if annotated:
        lacking = [(tool, key) for tool, text in listed.items() for key in ANNOTATED if f'"x-mcpax-{key}":' not in text]
        report.check(f"{name}: annotations of every tool", listed and not lacking, f"lacking: {lacking[:3]}")
        listed = {tool: ADDED.sub("", text) for tool, text in listed.items()}
    changed = [tool for tool in wanted | listed if listed.get(tool) != wanted.get(tool)]
    report.check(f"{name}: entries of tools/list", not changed, f"differ: {[(t, listed.get(t)) for t in changed[:2]]}")


def same(report, name, through, direct, exact):
    """Equal bytes; but for the documented members where the eras differ."""
    if not direct.message or "result" not in direct.message or not through.message or "result" not in through.message:
        report.check(name, False, f"no result: {through.raw[:400]!r} (direct: {direct.raw[:200]!r})")
        return
    got, wanted = through.result_bytes, direct.result_bytes
    ok = got == wanted or (not exact and stripped(got) == stripped(wanted))
    report.check(name, ok, f"got    {got[:600]!r}\nwanted {wanted[:600]!r}")


def stripped(raw):
    """A result without the members that differ by era."""
    spaced = re.sub(rb', "(resultType|ttlMs|cacheScope)": ("\w+"|\d+)', b"", META.sub(b"", raw))
    return SPLICED.sub(b"", spaced)


def entries(raw):
    """The bytes of each tool of a tools/list result, by name."""
    text, decoder, found = member(raw, "tools").decode(), json.JSONDecoder(), {}
    at = 1
    while text[at:].lstrip(" ,").startswith("{"):
        at += len(text[at:]) - len(text[at:].lstrip(" ,"))
        tool, end = decoder.raw_decode(text, at)
        found[tool["name"]] = text[at:end]
        at = end
    return found


def requests(report, name, through):
    """The arguments of a call, as the upstream saw them."""
    through.tools()
    reply = post(through, '{"jsonrpc":"2.0","id":"a\\u00e9-1","method":"tools/call","params":{"name":"raw","arguments":%s,"x-vendor":[1.50]%s}}' % (
        ARGUMENTS, ',"_meta":' + json.dumps(through.meta()) if isinstance(through, Modern) else ""))
    seen = reply["result"]["content"][0]["text"]
    report.check(f"{name}: arguments", f'"arguments":{ARGUMENTS}' in seen, seen)
    report.check(f"{name}: unknown members of params", '"x-vendor":[1.50]' in seen, seen)
    report.equal(f"{name}: the caller's id comes back", reply["id"], "aé-1")
    traced = through.tool("raw", {}, _meta={"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "com.example/k": 1})
    report.check(f"{name}: _meta of the caller", '"com.example/k"' in traced.text and "0af7651916cd43dd8448eb211c80319c" in traced.text, traced.text)


def duplicates(report, url):
    """A message with a duplicate key is refused, and the session goes on."""
    through = Legacy(url)
    twice = post(through, '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"raw","name":"other","arguments":{}}}')
    report.check("clients/fidelity: duplicate key is refused", twice.get("error", {}).get("code") in (-32600, -32700, -32602), twice)
    report.check("clients/fidelity: the session goes on after it", through.tool("raw").text.startswith("{"))


def post(through, body):
    """POSTs a body as it stands and returns the first message."""
    connection = Connection(through.url, "POST", body.encode(), through.headers(json.loads(body)))
    return json.loads(next(connection.events()))
