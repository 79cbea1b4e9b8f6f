"""What a client sends to authenticate itself never reaches an upstream (AX-40);
what the configuration says does."""
from gateway import Gateway
from trouble import recording
from wire import Connection, Legacy, Modern

SECRETS = {"authorization": "Bearer downstream-secret-1", "cookie": "session=downstream-secret-2",
           "proxy-authorization": "Basic downstream-secret-3", "x-api-key": "downstream-secret-4"}
OWN = "Bearer the-upstreams-own"


def cases():
    """(name, function) pairs."""
    yield "no credential goes through", passes_nothing
    yield "oversized and broken bodies", bodies


def passes_nothing(report, name):
    """Both eras, tools and resources: the upstream sees its own credential and nobody else's."""
    with recording.Upstream() as upstream:
        entry = {"type": "http", "url": upstream.url, "headers": {"Authorization": OWN}}
        with Gateway(name, {"up": entry}) as gateway:
            for client in (Legacy, Modern):
                for mount in (None, "up"):
                    peer = client(gateway.url(mount), headers=SECRETS)
                    tool = next(iter(peer.tools()))
                    report.equal(f"{name}: {client.__name__} at {mount or 'the root'} calls", peer.tool(tool).text, "fine")
        sent = "\n".join(headers + body for headers, body in upstream.seen)
        report.check(f"{name}: the upstream got calls", sent.count("tools/call") >= 4, len(upstream.seen))
        report.check(f"{name}: nothing of the client's", "downstream-secret" not in sent, sent[:2000])
        missing = [headers for headers, _ in upstream.seen if OWN not in headers]
        report.check(f"{name}: the configured credential on every request", not missing, missing[:2])


def bodies(report, name):
    """Bodies that no gateway should swallow: refused, and the next request is served."""
    with recording.Upstream() as upstream, Gateway(name, {"up": {"type": "http", "url": upstream.url}}) as gateway:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        cases = {"deep": b"[" * 1_000_000, "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', "empty": b"",
                 "not JSON": b"hello", "100 MB": b" " * 100_000_000}
        for what, body in cases.items():
            try:
                status = Connection(gateway.url(), "POST", body, headers, timeout=20).status
            except (ConnectionError, TimeoutError) as error:
                status = 413 if isinstance(error, ConnectionError) and what == "100 MB" else repr(error)
            report.check(f"{name}: {what} is refused", status in (400, 413), status)
        report.check(f"{name}: memory", gateway.memory() < 200 << 20, f"{gateway.memory() >> 20} MB")
        report.check(f"{name}: the next one is served", "up__act" in Legacy(gateway.url()).tools())
