"""Texts that cost readers more than they should: what is repeated, and within what. Says nothing of how much they may cost."""
from dataclasses import dataclass

CLEANERS = ["cleaned", "device", "event", "events", "names", "shown", "template", "screen", "without"]


def again(unit):
    """A text that is made of one piece."""
    raw = unit if isinstance(unit, bytes) else unit.encode()
    return lambda size: (raw * (size // len(raw) + 1))[:max(size - size % len(raw), len(raw))]


def numbered(piece, between=b""):
    """A text of pieces that differ by a number."""
    def make(size):
        out, number = [], 0
        while size > 0:
            out.append(piece.replace(b"#", b"%06d" % number))
            size -= len(out[-1]) + len(between)
            number += 1
        return between.join(out)
    return make


# Within a string of JSON, and legal there.
STRINGS = {
    "U+009D": again("\u009d"), "U+0090": again("\u0090"), "U+009B": again("\u009b"), "U+009B 1": again("\u009b1"),
    "U+009D and an end": again("\u009d\u009c"), "combining": again("e\u0301"), "joiners": again("\u200d\ufe0f"), "tags": again("\U000e0041"),
    "bidi": again("\u202e"), "escaped OSC": again("\\u001b]"), "escaped CSI": again("\\u001b[1;"), "escaped U+009D": again("\\u009d"),
    "backslashes": again("\\\\"), "quotes": again('\\"'), "half pairs": again("\\ud83d"), "brackets": again("[{"), "digits": again("9"),
    "stars": again("*a"), "questions": again("?"), "braces": again("{a}"), "open braces": again("{"), "percents": again("%41"),
    "dots": again("a."), "slashes": again("/.."), "spaces": again(" "), "base64": again("QUFB"), "dollars": again("${env:A}"),
    "comments": again("<!--"), "colons": again("a:"), "commas": again("a,"), "words": again("ignore previous "), "underscores": again("__"),
}
# A long text that each of many short ones repeats.
REPEATED = {"long id": lambda size: b"id: " + b"x" * (size // 2) + b"\n" + b"data\n\n" * (size // 12)}
# As they come.
BYTES = {
    "ESC ]": again(b"\x1b]"), "ESC [": again(b"\x1b["), "ESC P": again(b"\x1bP"), "CRLF": again(b"\r\n"), "CR": again(b"\r"),
    "LF": again(b"\n"), "[": again(b"["), "objects": again(b'{"a":'), "quote": again(b'"'), "backslash": again(b"\\"), "zeros": again(b"\0"),
    "0xff": again(b"\xff"), "half UTF-8": again(b"\xe2\x82"), "exponents": again(b"1e"), "block comments": again(b"/*"),
    "line comments": again(b"//\n"), "hashes": again(b"#\n"), "equals": again(b"=\n"), "sections": numbered(b"[a#]\n"),
}
KEYS = {
    "keys": numbered(b'"k#":1', b","), "escaped keys": numbered(b'"\\u006b#":1', b","), "like keys": numbered(b'"a#aaaaaaaaaaaaab":{}', b","),
    "long keys": numbered(b'"' + b"k" * 200 + b'#":1', b","), "objects with keys": numbered(b'"k#":{"description":"\xc2\x9d"}', b","),
}
ITEMS = {
    "numbers": again("1,"), "strings": numbered(b'"s#"', b","), "towers": again("[" * 90 + "]" * 90 + ","), "object towers": again('{"a":' * 90 + "1" + "}" * 90 + ","),
    "entries": numbered(b'{"name":"n#","uri":"x:#","uriTemplate":"x:{a#}","description":"\xc2\x9d"}', b","), "like entries": numbered(b'{"name":"n"}', b","),
}
LINES = {
    "names": numbered(b"mname#\n"), "like names": again(b"mname\n"), "names of a gate": numbered(b"ga.b#\n"), "URIs": numbered(b"ax:#\n"),
    "templates": numbered(b"ax:{v#}\n"), "headers": numbered(b"x-#: y\r\n"), "like headers": again(b"x: y\r\n"), "data": again(b"data: x\n"),
    "events": again(b"data: x\n\n"), "chunks": again(b"1\r\nx\r\n"), "long fields": again(b"id: x\nevent: y\nretry: 1\n"),
    "policies": numbered(b"permit(principal, action, resource);\n"), "signatures": numbered(b"\xe2\x80\x94 a# AAAA\n"),
}
SCHEMAS = {"mirrored parameters": numbered(b'"p#":{"type":"string","x-mcp-header":"H#"}', b",")}
RULES = {"ands": again(b" && true"), "parentheses": again(b"(((((((((((((((((((("), "nots": again(b"!"), "additions": again(b" && 1 + 1 == 2")}
# Of network equipment.
XML = {
    "elements": again("<a></a>"), "open elements": again("<a>"), "entities": again("&lt;"), "ampersands": again("&"), "comments": again("<!---->"),
    "sections": again("<![CDATA[]]>"), "open sections": again("<![CDATA["), "attributes": numbered(b'<a b#="c"/>'), "angles": again("<"),
    "texts": again("a "), "errors": again("<rpc-error><error-tag>a</error-tag></rpc-error>"), "other names": numbered(b"<e#/>"),
    "capabilities": numbered(b"<capability>urn:c#</capability>"), "marks": again("]]>]]"), "instructions": again("<?a?>"),
}
ATTRIBUTES = {"attributes": numbered(b' a#="x"'), "namespaces": numbered(b' xmlns:n#="u"'), "like attributes": again(b' a="x"'), "spaces": again(" ")}
SECRETS = {
    "communities": numbered(b"snmp-server community c# RO\n"), "passwords": again("password a "), "bare words": again("password "), "keys": again(b"key-string a\n"),
    "blocks": again(b"-----BEGIN RSA PRIVATE KEY-----\n"), "key chains": again(b"key chain K\n key 1\n"), "members": numbered(b'"password":"p#",'),
    "escaped members": numbered(b'\\"password\\":\\"p#\\",'), "URLs": again("scp://a:b@c/"), "predicates": again("/c[auth-key='a']"), "open predicates": again("/c[key='"),
    "hexadecimal": again(b"3082022B 30820194 A0030201 02020101\n"), "elements": again("<password>a</password>"), "hashes": again("$1$a$b "),
}
TERMINAL = {"pagers": again(b" --More-- "), "wiped pagers": again(b" --More-- \r        \r"), "prompts": again(b"r1#\n"), "backspaces": again(b"a\x08"),
            "cursors": again(b"a\x1b[1D"), "titles": again(b"\x1b]0;a"), "ends": again(b"a\x1b[K"), "questions": again(b"Sure? [confirm]")}
TOOLS = {"tools": numbered(b'{"name":"m.n#","description":"opens w# of many"}\n'), "long words": again(b'{"name":"a","description":"' + b"opens " * 50 + b'"}\n')}

def field(tag, content):
    """A field of protobuf with its length."""
    length, out = len(content), b""
    while length > 0x7f:
        out, length = out + bytes([length & 0x7f | 0x80]), length >> 7
    return tag + out + bytes([length]) + content


def patched(ops):
    """An envelope with a patch of the operations that `ops` makes of a size: kinds, paths, texts and times."""
    def make(size):
        made = (field(b"\x12", path) + field(b"\x1a", text) + b"\x08" + bytes([kind]) + b"\x20" + bytes([at & 0x7f | 0x80, at >> 7 & 0x7f | 0x80, at >> 14])
                for kind, path, text, at in ops(size))
        return b"\x08\x01" + field(b"\x22", field(b"\x0a", b"c") + b"".join(field(b"\x1a", op) for op in made))
    return make


def nested(size):
    """One object, at the bottom of as many as may be within each other."""
    return [(0, b"/a", b'{"a":' * 60 + b"{" + numbered(b'"k#":1', b",")(size - 400) + b"}" + b"}" * 60, 5)]


def survived(size):
    """Removals that many younger values outlive."""
    young = [(3, b"/a", b"{" + numbered(b'"k#":1', b",")(size // 2) + b"}", 1 << 20)]
    return young + [(2, b"/a", b"", 2 + at) for at in range(size // 2 // 16)]


# Within what a text stands: so that a decoder gets to it, and does not refuse what is before.
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
RESULT = b'{"jsonrpc":"2.0","id":1,"result":'
ROOM = b'{"protocol":"mcpx/v0.1","id":"e","from":"ann","to":["files","gate","boss"],"kind":"%s","payload":'
MEW = b'{"protocol":"mew/v0.4","id":"e","from":"ann","to":["x"],"kind":"%s","payload":'
KEY = b"banyan/a\n3\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"


def member(before, after, name="a"):
    """Texts as a string, members and elements of one member."""
    return {
        f"{name} string": (STRINGS, before + b'"', b'"' + after),
        f"{name} members": (KEYS, before + b"{", b"}" + after),
        f"{name} elements": (ITEMS, before + b"[", b"1]" + after),
    }


SENT = b'{"message":{"messageId":"m","role":"ROLE_USER","parts":['
QUESTION = b'{"message":"which?","requestedSchema":{"type":"object","properties":{'
SEND = b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":['
AINP = (b'{"version":"0.1.0","msg_type":"INTENT","id":"7b2b1d0e-3c5a-4f6b-8a9c-0d1e2f3a4b5c","timestamp":1700000000000,"ttl":60000,'
        b'"from_did":"did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd","to_did":"did:web:gate.example",'
        b'"schema":"https://ainp.dev/schemas/intents/request-service/v1","attestations":["vc:1"],'
        b'"payload":{"@context":"https://ainp.dev/contexts/service/v1","@type":"RequestService","version":"1.0.0","semantics":{"service_type":"pay","details":')
CLAIMS = (b'{"iss":"i","aud":["b"],"iat":1772064150,"exp":1772064450,"jti":"550e8400-e29b-41d4-a716-446655440001","exec_act":"a",'
          b'"pred":["550e8400-e29b-41d4-a716-446655440000"]')
AEPB = b'{"aepb_version":"1.0","agent_id":"a://b","ect_assurance_level":"L1","lifecycle":{"status":"active","version":"1.0.0"},'
FRAMES = {
    "a2a_served": member(SENT + b'{"data":', b"}]}}", "data") | member(SENT + b'{"text":', b"}]}}", "text")
        | member(b'{"content":[{"type":"text","text":', b"}]}", "result") | member(b'{"name":"a","inputSchema":', b"}", "definition") | {
        "parts": ({"parts": again(b'{"text":"b"},')}, SENT, b'{"text":"a"}]}}'),
        "questions": ({"questions": again(QUESTION + b'"a":{"type":"string"}}}}\n'), "answers": again(SENT + b'{"text":"1"}]}}\n')}, b"", b""),
        "fields": (KEYS | {"texts": numbered(b'"k#":{"type":"string"}', b",")}, QUESTION, b"}}}")},
    "aepb_a2a": member(SEND + b'{"data":', b"}]}}}", "data") | member(SEND + b'{"text":"a"}],"metadata":', b"}}}", "metadata") | {
        "parts": ({"parts": again(b'{"text":"b"},'), "files": again(b'{"url":"https://a/b"},')}, SEND, b'{"text":"a"}]}}}'),
        "hops": ({"hops": numbered(b'"g#"', b",")}, SEND + b'{"text":"a"}],"metadata":{"io.banyan/aepb":{"hops":[', b"]}}}}}")},
    "aepb_ainp": member(AINP, b"}}}", "details") | {"did": (STRINGS, b"did:key:z", b""), "long did": ({"ones": again(b"1"), "letters": again(b"z")}, b"did:key:z", b"")},
    "aepb_mcp": member(CALL + b'{"name":"n","arguments":', b"}}", "arguments") | member(CALL + b'{"name":"n","_meta":', b"}}", "_meta")
        | member(CALL + b'{"name":"n","_meta":{"io.banyan/aepb":{"residue":[{"binding":"a2a-v1","at":"meta","members":', b"}]}}}}", "residue")
        | member(RESULT + b'{"content":', b"}}", "content"),
    "aepb_uacp": {"json": (ITEMS, b"\x64\x08\x41\x11\x0c\x08\0\0\x02\x04\0\1\2\3\4\4\0\0\0\1[", b"1]"),
                  "cbor": ({"arrays": again(b"\x81"), "texts": again(b"\x61a"), "maps": again(b"\xa1\0"), "ends": again(b"\xff")},
                           b"\x64\0\4\x08\x0c\4\0\0\3\3pay\x9f", b"\xff"),
                  "options": ({"options": again(b"\3\1t"), "empty": again(b"\3\0")}, b"\x50\0\0\0\x24\x10\0\0", b"")},
    "controller": member(b'00{"jsonrpc":"2.0","id":1,"method":"tools/call","params":', b"}\n", "params") | member(b'01{"jsonrpc":"2.0","id":1,"result":', b"}\n", "result") | {
        "lines": ({"requests": numbered(b'0{"jsonrpc":"2.0","id":1#,"method":"resources/read","params":{"uri":"x"}}\n'),
                   "subscriptions": numbered(b'0{"jsonrpc":"2.0","id":1#,"method":"resources/subscribe","params":{"uri":"x:#"}}\n'),
                   "answers": numbered(b'1{"jsonrpc":"2.0","id":1#,"result":{}}\n'), "like requests": again(b'0{"jsonrpc":"2.0","id":1,"method":"ping"}\n')}, b"0", b"")},
    "ect": member(CLAIMS + b',"ect_ext":', b"}", "extension") | {
        "predecessors": ({"predecessors": numbered(b'"550e8400-e29b-41d4-a716-446655#"', b",")}, CLAIMS[:-1] + b",", b"]}"),
        "field": ({"tokens": again(b"e30.e30.AA, "), "commas": again(b","), "dots": again(b".")}, b"", b"")},
    "inventory": {"ini": (LINES | BYTES | {"hosts": numbered(b"h# ansible_host=10.0.0.1\n"), "children": numbered(b"[g#:children]\ng\n"), "ranges": again(b"r[1:2].")}, b"\0[all]\n", b""),
                  "yaml": (LINES | {"hosts": numbered(b"r#: {hostname: a}\n"), "flows": again(b"[{"), "aliases": numbered(b"a#: &a# [*a]\n")}, b"\1a: &a x\n", b""),
                  "netbox": ({"devices": numbered(b'{"name":"r#","primary_ip":{"address":"10.0.0.1/24"}},')}, b'\2{"results":[', b"{}]}"),
                  "csv": ({"rows": numbered(b"r#,ams,Cisco IOS,10.0.0.1/24\n"), "quotes": again(b'"a""b",'), "fields": again(b"a,")}, b"\3Name,Site,Platform,IP Address\n", b"")},
    "prompt": member(b'\x01{"prompt":"network.config.add-vlan","vlan_id":"100","name":', b'}\n-\n1 default\n{"stdout":"+ vlan"}\nok', "name") | {
        "routes": ({"routes": numbered(b'"10.#.0.0/24":[{"interfaceName":"eth0"}]', b",")}, b'\0{"src":"10.0.0.1","dst":"10.0.0.5"}\n-\n{', b"}\nInterface eth0 is down"),
        "steps": (LINES, b'\0{"src":"10.0.0.1","dst":"10.0.0.5"}\n-\n', b"")},
    "syslog": {"structured": ({"elements": numbered(b'[e# a="b"]'), "quotes": again(b'[e a="\\"'), "brackets": again(b"[")}, b"\0<165>1 2025-10-19T03:29:01.123Z r1 b 7 A ", b" x"),
               "counted": ({"messages": again(b"11 <189>%A-1-B "), "digits": again(b"1")}, b"\xff", b""), "text": (STRINGS | LINES | BYTES, b"\xff<34>", b"")},
    "aepb_document": member(AEPB + b'"protocols":[{"id":"a","version":"1","endpoint":"a://b"}],"x":', b"}") | {
        "protocols": ({"protocols": numbered(b'{"id":"p#","version":"1","endpoint":"https://a/#"}', b",")}, AEPB + b'"protocols":[', b"]}"),
        "endpoint": (STRINGS, AEPB + b'"protocols":[{"id":"a","version":"1","endpoint":"https://a/', b'"}]}')},
    "axcp_data": {"gzip": (BYTES, b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xff", b"")},
    "axcp_envelope": {"fields": ({"unknown": again(b"\xfa\xff\x03\x00"), "numbers": again(b"\x60\x01"), "long numbers": again(b"\xe0\x80\x80\x00\x01")}, b"\x08\x01", b"")},
    "axcp_frames": {"frames": ({"empty": again(b"\0\0\0\0"), "short": again(b"\x01\0\0\0a")}, b"\x01", b"")},
    "axcp_patch": {"operations": ({"operations": again(b"\x1a\x0a\x08\x00\x12\x02/a\x1a\x00 \x05"), "unknown": again(b"\xfa\xff\x03\x00")}, b"\x08\x01\x22\x80\x80\x01\x0a\x01c", b""),
                   "wholes": ({"nested": patched(nested), "survived": patched(survived)}, b"", b"")},
    "axcp_session": {"frames": ({"negotiate": again(b"\x08\0\0\0\x08\x01\x42\x04\x08\x07\x10\x02"), "empty": again(b"\0\0\0\0")}, b"", b""),
                     "open": ({"subscribe": again(b"\x0c\0\0\0\x08\x01\x18\x02\xc2\x3e\x05\x0a\x03\x0a\x01c"),
                               "request": again(b"\x0c\0\0\0\x08\x01\x18\x02\xca\x3e\x05\x0a\x03\x0a\x01c"),
                               "patch": again(b"\x14\0\0\0\x08\x01\x18\x02\x22\x0e\x0a\x01c\x1a\x09\x12\x02/a\x1a\x011 \x05")},
                              b"\x08\0\0\0\x08\x01\x42\x04\x08\x07\x10\x02\x06\0\0\0\x08\x01\x4a\x02\x08\x02", b"")},
    "axcp_tools": {"frames": ({"requests": again(b"\x0b\0\0\0\x08\x01\x2a\x07\x12\x05\x0a\x03a.b"), "cancels": again(b"\x08\0\0\0\x08\x01\x12\x01t\xfa\x3e\x00")}, b"", b"")},
    "annotation": member(b'{"name":"a","_meta":', b"}", "_meta") | member(b'{"name":"a","annotations":{"title":', b"}}", "title"),
    "arguments": member(b'{"path":', b"}"),
    "bird": {"answer": (BYTES | LINES | {"lines": again("/etc/bird.conf:1:1 a\n"), "waits": again("Configuration unconfirmed\n")}, b"BIRD 2.0.12 ready.\n", b"")},
    "canonical": member(b'{"b":1,"a":', b"}"),
    "capability": {"pattern": (STRINGS, b"chat/", b"\nchat/x"), "kind": (STRINGS, b"*\nchat/", b""), "both": (STRINGS, b"mcp/*:", b"\nmcp/request:a")},
    "card": member(b'{"name":"a","supportedInterfaces":[{"url":"u","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"skills":[],"description":', b"}", "description") | {
        "skills": ({"skills": numbered(b'{"id":"s#"}', b",")}, b'{"name":"a","supportedInterfaces":[{"url":"u","protocolBinding":"JSONRPC"}],"skills":[', b"]}"),
        "interfaces": ({"interfaces": numbered(b'{"url":"u#","protocolBinding":"x"}', b",")}, b'{"name":"a","skills":[],"supportedInterfaces":[', b"]}")},
    "challenge": {"error": (STRINGS, b'\x01\x91Bearer error="', b'"'), "scope": (STRINGS, b'\x01\x91Bearer scope="', b'"')},
    "checkpoint": {"text": (LINES, KEY, b"\n"), "signatures": (LINES, KEY + b"\n", b"")},
    "claim": member(b'{"segment":"net","authority":', b"}"),
    "cleaned": member(b'{"name":"a","description":', b"}", "description") | member(b'{"name":"a","inputSchema":', b"}", "schema"),
    "config": {"command": (STRINGS, b'[mount.a]\ncommand = "', b'"\n'), "args": (ITEMS, b'[mount.a]\ncommand = "x"\nargs = [', b"]\n"),
               "name": (STRINGS, b'[mount."', b'"]\ncommand = "x"\n'), "keys": ({"keys": numbered(b"k# = 1\n")}, b"", b""),
               "mounts": ({"mounts": numbered(b'[mount.m#]\ncommand = "x"\n')}, b"", b""), "lines": (BYTES, b"\n", b"")},
    "command": {"line": (STRINGS, b"\x00show ", b""), "configuration": (STRINGS, b"\x01", b""), "fault": (LINES | BYTES, b"\x00show\n^\nError: ", b"")},
    "confirm": member(b'{"id":"a","proof":', b"}"),
    "connect": member(b'\x00{"mcpServers":{"a":{"command":"x","args":', b"}}}", "args") | {
        "comment": (STRINGS, b"\x03{/*", b'*/"servers":{}}'), "servers": ({"servers": numbered(b'"s#":{"command":"x"}', b",")}, b'\x00{"mcpServers":{', b"}}")},
    "definition": member(b'{"name":"a","description":', b"}", "description") | member(b'{"name":"a","inputSchema":{"properties":{"p":', b"}}}", "schema"),
    "device": {"children": (XML, b'<rpc-reply message-id="3">', b"</rpc-reply>"), "attributes": (ATTRIBUTES, b"<rpc-reply", b"><ok/></rpc-reply>"),
               "hello": (XML, b'<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities>', b"</capabilities><session-id>4</session-id></hello>"),
               "notification": (XML, b"<notification><eventTime>t</eventTime>", b"</notification>")},
    "dialect": {"title": (STRINGS, b'name = "x"\ntitle = "', b'"\n'), "start": (ITEMS, b'name = "x"\n[session]\nstart = [', b'"a"]\n'),
                "prompt": (STRINGS, b"name = \"x\"\n[prompt]\nexec = '", b"'\n"), "keys": ({"keys": numbered(b"k# = 1\n")}, b"", b""), "lines": (BYTES, b"\n", b"")},
    "envelope": member(CALL, b"}", "params") | member(CALL + b'{"_meta":', b"}}", "_meta") | member(RESULT, b"}", "result"),
    "event": {"children": (XML, b"<notification>", b"</notification>"), "attributes": (ATTRIBUTES, b"<notification><e", b"/></notification>")},
    "events": {"events": (REPEATED | LINES | BYTES, b"", b"")},
    "frames": {"pieces": (LINES | BYTES | {"messages": again(b"Content-Length: 2\r\n\r\n{}"), "objects": again(b"{}\n")}, b"\xff", b"")},
    "gate": member(b'{"extensions":{"io.banyan/mcpax":{"aggregator_id":"g"},"x":', b'}}\n["a"]', "extension") | member(b"{}\n", b"", "ids"),
    "header": {"encoded": (STRINGS, b"=?base64?", b"?="), "schema": (SCHEMAS, b'v\n{"type":"object","properties":{', b'}}\n{"p000001":"x"}'),
               "params": (KEYS, b'v\n{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"P"}}}\n{', b"}")},
    "http1": {"request": (LINES | BYTES, b"\x40POST /mcp HTTP/1.1\r\n", b"content-length: 0\r\n\r\n"), "target": (STRINGS, b"\x40POST /", b" HTTP/1.1\r\n\r\n"),
              "response": (LINES | BYTES, b"\x40HTTP/1.1 200 OK\r\n", b"\r\n"), "chunks": (LINES, b"\x40HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"0\r\n\r\n"),
              "trailers": (LINES, b"\x40HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"\r\n")},
    "import": member(b'\x00{"mcpServers":{"a":{"command":"x","args":', b"}}}", "args") | {
        "servers": ({"servers": numbered(b'"s#":{"command":"x"}', b","), "like servers": numbered(b'"S.#":{"url":"http://a"}', b",")}, b'\x00{"mcpServers":{', b"}}")},
    "jcs": member(b'{"b":1,"a":', b"}"),
    "join": {"secret": (STRINGS, b"banyan1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.J6aEZZ00.", b"")},
    "json": member(b'{"name":', b"}") | {"members": (KEYS, b"{", b',"name":1,"_meta":{}}')},
    "key": {"ssh": (STRINGS, b"ssh-ed25519 ", b""), "pem": (STRINGS | BYTES, b"-----BEGIN PUBLIC KEY-----\n", b"\n-----END PUBLIC KEY-----"), "jwk": (STRINGS, b'{"kty":"OKP","crv":"Ed25519","x":"', b'"}')},
    "lines": {"limit 255": (LINES | BYTES, b"\xff\x40", b"")},
    "machine": {"counters": ({"lines": again("e:1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"), "names": numbered(b"e#:1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", b"\n"), "colons": again(":"), "digits": again("9 ")}, b"", b"\n"),
                "load": ({"looks": again("cpu  1 1 1 1\n"), "numbers": again("1 ")}, b"cpu ", b"\n"), "memory": ({"totals": again("MemTotal: x\n"), "blanks": again(" ")}, b"MemTotal:", b"\n"),
                "processors": ({"models": again("model name : x\n"), "colons": again(": ")}, b"model name", b"\n"), "reports": ({"reports": again("=a\n>b\n"), "lines": again(">x at 1 \n"), "times": again(" at ")}, b"=a\n>", b"\n")},
    "mesh": member(b'{"subserver_id":"550e8400-e29b-41d4-a716-446655440000","segment":"a","heartbeat_interval_ms":5000,"version":"2026-05-01","x-mcpax-subtree-ids":', b"}", "ids")
        | member(b'{"code":-32013,"message":"registration_cycle","data":', b"}", "data") | {"ids": ({"ids": numbered(b'"550e8400-e29b-41d4-a716-446655#"', b",")}, b'{"subserver_id":"550e8400-e29b-41d4-a716-446655440000","segment":"a","heartbeat_interval_ms":5000,"version":"2026-05-01","x-mcpax-subtree-ids":[', b"]}")},
    "mew": member(MEW % b"chat", b"}", "payload") | {"lines": (LINES, b"", b""), "pattern": (STRINGS, b'{"kind":"', b'"}'),
        "requests": ({"requests": numbered(MEW % b"mcp/request" + b'{"jsonrpc":"2.0","id":#1,"method":"tools/list"}}\n')}, b"", b"")},
    "names": {"lines": (LINES, b"", b"")},
    "netconf": {"marks": (XML | BYTES, b"\x00\xff<rpc-reply>", b"</rpc-reply>]]>]]>"), "small pieces": (XML | BYTES, b"\x00\x01", b"]]>]]>"),
                "replies": ({"replies": again(b'<rpc-reply message-id="3"><ok/></rpc-reply>]]>]]>')}, b"\x00\xff", b""),
                "chunks": ({"chunks": again(b"\n#1\nx"), "messages": again(b"\n#1\nx\n##\n")}, b"\x01\xff", b"\n##\n")},
    "netdata": {"children": (XML, b"<a>", b"</a>"), "attributes": (ATTRIBUTES, b"<a", b"/>"), "leaves": ({"leaves": again(b"<b>p:x</b>")}, b'<a xmlns:p="u">', b"</a>")},
    "netedit": {"path": (STRINGS, b"/if:a[b='", b"']\n1"), "steps": ({"steps": again(b"/b[c='d']")}, b"/if:a", b"\n1")} | member(b"/if:a\n{\"b\":", b"}"),
    "snmp": {"bytes": (BYTES | STRINGS, b"\x30", b""), "community": (STRINGS, b"\x30\x82\x10\x00\x02\x01\x01\x04\x82\x08\x00", b"")},
    "snmpset": {"index": (STRINGS, b"/IF-MIB:ifTable/ifEntry[ifIndex='", b"']/ifAlias \"x\""), "steps": ({"steps": again(b"/a[b='c']")}, b"/IF-MIB:ifTable", b" 1"),
                "value": (STRINGS, b'/SNMPv2-MIB:system/sysName "', b'"'), "number": ({"numbers": again(b".1")}, b"/1.3", b" 1"),
                "edits": ({"edits": numbered(b'/SNMPv2-MIB:system/sysName "#"\n')}, b"", b"")},
    "snmpwalk": {"rows": (BYTES | STRINGS, b"", b"")},
    "ovsdb": member(b'\x40{"id":1,"error":null,"result":', b"}", "result") | {"messages": ({"answers": again(b'{"id":1,"result":[],"error":null}'), "blanks": again(" "), "quotes": again(b'["\\""]')}, b"\x40", b""),
              "ports": ({"ports": numbered(b'{"_uuid":["uuid","u#"],"name":"p#","tag":1,"interfaces":["uuid","i#"]},')},
                        b'\x40{"id":1,"error":null,"result":[{"rows":[{"_uuid":["uuid","r"]}]},{"rows":[]},{"rows":[', b'{}]},{"rows":[]},{"rows":[]}]}')},
    "page": member(b'\x00{"nextCursor":"c","tools":', b"}", "tools"),
    "pipe": member(b'{"jsonrpc":"2.0","id":0,"result":', b"}", "result") | {
        "lines": ({"answers": numbered(b'{"jsonrpc":"2.0","id":1#,"result":{}}\n'), "questions": numbered(b'{"jsonrpc":"2.0","id":1#,"method":"sampling/createMessage","params":{}}\n'),
                   "progress": numbered(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1#}}\n')},
                  b'{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}}\n', b"")},
    "poured": member(b"\x40" + RESULT + b'{"content":[],"a":', b"}}", "result"),
    "projection": {"lines": (LINES, b"", b"")},
    "proof": {"extra": (STRINGS, b"c2sp.org/tlog-proof@v1\nextra ", b"\nindex 0\n"), "hashes": ({"hashes": again(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")}, b"c2sp.org/tlog-proof@v1\nindex 0\n", b"\n" + KEY)},
    "record": member(b'{"event":"later","facts":', b',"prev":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","seq":1,"time":2}', "facts"),
    "redact": member(b'{"password":', b"}", "password") | {"lines": (SECRETS | LINES | BYTES, b"", b""), "line": (SECRETS, b"neighbor 10.0.0.2 ", b"")},
    # Not many templates: the check asks each line of each that begins alike, up to the bound of one read, which is far above these texts.
    "resources": {"lines": ({name: text for name, text in LINES.items() if name != "templates"}, b"", b""), "template": (STRINGS, b"ax:{", b"}\nax:b")},
    "response": {"fields": (LINES | BYTES, b"\x40HTTP/1.1 200 OK\r\n", b"\r\n")},
    "room": member(ROOM % b"chat", b"}", "payload"),
    "route": {"cursor": (STRINGS, b"x\n", b""), "route": (STRINGS, b"", b"\nYWZ0ZXI6YS5i")},
    "rules": {"conditions": (RULES, b"permit (principal, action, resource) when { true", b"};"), "policies": (LINES, b"", b""),
              "pattern": (STRINGS, b'permit (principal, action, resource) when { context.arguments.path like "', b'"};')},
    "search": {"query": (STRINGS, b'{"query":"', b'"}\n{"name":"a","description":"opens"}'), "tools": (TOOLS, b'{"query":"opens w000007","limit":5}\n', b""),
               "description": (STRINGS, b'{"query":"a"}\n{"name":"a","description":"', b'"}'), "parameters": (KEYS, b'{"query":"a"}\n{"name":"a","inputSchema":{"properties":{', b"}}}")},
    "screen": {"pieces": (TERMINAL | BYTES | LINES, b"\x00\x40", b"\nr1#"), "bytes": (TERMINAL | BYTES, b"\x00\x01", b"\nr1#")},
    "seat": member(ROOM % b"mcp/request:tools/call:rm" + b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm","arguments":', b"}}}", "arguments") | {
        "calls": ({"calls": numbered(b'{"protocol":"mcpx/v0.1","id":"r#","from":"ann","to":["files","gate","boss"],"kind":"mcp/request:tools/list","payload":{"jsonrpc":"2.0","id":"#","method":"tools/list"}}\n'),
                   "joined": numbered(b'{"protocol":"mcpx/v0.1","id":"p#","from":"system:gateway","kind":"system/presence","payload":{"event":"join","participant":{"id":"b#","capabilities":["*"]}}}\n')}, b"", b"")},
    "secret": {"name": (STRINGS, b"${env:", b"}")},
    "stub_cbor": {"items": ({"numbers": again(b"\0"), "texts": again(b"\x61a"), "arrays": again(b"\x81\x81\0"), "maps": again(b"\xa1\0\0")}, b"\x9a\0\0\x0f\xff", b"")},
    "stub_fixed": {"frames": (BYTES | {"starts": again(b"\xa5"), "open frames": again(b"\xa5\x0c\x01"), "bad sums": again(b"\xa5\0\1\1\5\0\0"), "beats": again(bytes.fromhex("a50004000af94a"))}, b"\x40", b"")},
    "stub_message": {"rows": ({"rows": again(b"\x82\1\5"), "other rows": numbered(b"\x82\1\5")}, b"\x03\xa2\6\x18\x60\7\x9a\0\0\x0f\xff", b"")},
    "stub_packets": {"packets": ({"messages": again(b"\x30\5\0\1a\0x"), "pongs": again(b"\xd0\0"), "open packets": again(b"\x30\x80\x20")}, b"\x40", b"")},
    "stub_text": {"values": ({"arrays": again(b"["), "numbers": again(b"1,"), "rows": again(b"[2,\"bool\"],")}, b'{"boot":7,"table":[', b"")},
    "stub_session": {"wire": (BYTES | {"answers": again(bytes.fromhex("02a2020804a000")), "tables": again(bytes.fromhex("03a4020706186007818201050b0900")), "beats": again(bytes.fromhex("04a202010b0900"))}, b"", b"")},
    "switch": {"ports": ({"ports": numbered(b"port p#\n in-bridge b\n tag 1\n"), "interfaces": numbered(b"port p#\n in-bridge b\ninterface p#\n type internal\n"), "bridges": numbered(b"bridge b#\n"),
                          "vlans": again(b"vlan 9\n name a\n"), "keys": numbered(b"bridge b\n external_ids k# v\n")}, b"bridge b\n", b""),
               "list": ({"vlans": again("1,"), "ranges": again("1-9,")}, b"bridge b\nport p\n in-bridge b\n trunks ", b"1\n"), "word": (STRINGS, b'bridge b\n external_ids a "', b'"\n')},
    "sse": {"limit 255": (LINES | BYTES, b"\xff\x40", b"")},
    "template": {"template": (STRINGS, b"ax:", b"\nax:" + b"b" * 100), "URI": (STRINGS, b"a{b}c{d}e{f}g\na", b"")},
    "terminal": {"pieces": (TERMINAL | BYTES | LINES, b"\x00\x40", b"\nr1#"), "bytes": (TERMINAL | BYTES, b"\x00\x01", b"\nr1#")},
    "tile": {"path": (STRINGS, b"tile/0/", b"\nx")},
    "token": {"claims": (STRINGS, b'x\n{"sub":"a","exp":1,"aud":"gate","scope":"', b'"}\n{}'), "groups": (ITEMS, b'x\n{"sub":"a","exp":1,"aud":"gate","groups":[', b'"x"]}\n{}'),
              "token": (STRINGS, b"eyJhbGciOiJFZERTQSJ9.", b".AAAA\n{}\n{}"), "keys": ({"keys": numbered(b'{"kty":"OKP","crv":"Ed25519","kid":"k#","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}', b",")}, b'x\n{}\n{"keys":[', b"]}")},
    "turn": {
        "pieces": ({"pieces": again(b'{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":"b"}]},"append":true}}\n'),
                    "artifacts": numbered(b'{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a#","parts":[]}}}\n'),
                    "replaced": again(b'{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":"b"}]}}}\n')}, b"", b""),
        "parts": ({"parts": again(b'{"text":"b"},'), "unknown parts": again(b'{"b":1},')},
                  b'{"message":{"parts":[', b'{"text":"a"}]}}')},
    "trace": {"state": (STRINGS, b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n", b""), "members": ({"members": numbered(b"k#=v", b",")}, b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n", b"")},
    "websocket": {"pings": ({"pings": again(b"\x89\x80\x00\x00\x00\x00"), "fragments": again(b"\x00\x80\x00\x00\x00\x00"), "texts": again(b"\x81\x81\x00\x00\x00\x00a")}, b"\x40\x01\x80\x00\x00\x00\x00", b"")},
}
# Every reader gets these, whatever it makes of them.
RAW = {name: BYTES[name] for name in ("ESC ]", "CRLF", "[", "objects", "0xff", "zeros")} | {name: STRINGS[name] for name in ("U+009D", "digits", "dots", "base64")}


@dataclass(frozen=True)
class Case:
    """One text within one frame, for one reader."""
    decoder: str
    frame: str
    text: str

    def bytes(self, size):
        texts, before, after = (RAW, b"", b"") if self.frame == "alone" else FRAMES[self.decoder][self.frame]
        if self.frame == "alone" and self.decoder in ("shown", "without"):
            texts = STRINGS | BYTES
        made = texts[self.text](max(size - len(before) - len(after), 1))
        # Elements end with one that needs a comma before it.
        joint = b"," if texts is ITEMS and not made.endswith(b",") else b""
        return before + made + joint + after


def cases(decoders):
    """Every case of these readers."""
    every = []
    for decoder in decoders:
        alone = STRINGS | BYTES if decoder in ("shown", "without") else RAW
        every += [Case(decoder, "alone", text) for text in alone]
        every += [Case(decoder, frame, text) for frame, (texts, _, _) in FRAMES.get(decoder, {}).items() for text in texts]
    return every
