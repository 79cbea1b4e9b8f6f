"""Proxies that keep every byte they pass on, in either direction: of TCP, and of what is protected by TLS on both sides."""
import select
import socket
import ssl
import threading


class Tap:
    """Listens on a loopback port and connects whoever comes to `port`."""

    def __init__(self, port):
        self.seen = bytearray()
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self):
        """The endpoint of the gate behind it."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def text(self):
        """What has passed so far."""
        return bytes(self.seen).decode("utf-8", "replace")

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                near.close()
                continue
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                self.seen += data
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()


class TlsTap:
    """Stands between two who know each other by certificates, with the papers of both: each is what the other takes it for.

    `server` is (certificate, key) of the one at `port`, `client` those of whoever comes, `ca` the authority of both.
    """

    def __init__(self, port, server, client, ca):
        self.seen, self.met = bytearray(), []
        self._to = port
        self._inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._inside.load_cert_chain(*server)
        self._inside.verify_mode = ssl.CERT_REQUIRED
        self._outside = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._outside.check_hostname = False
        self._outside.load_cert_chain(*client)
        for context in (self._inside, self._outside):
            context.load_verify_locations(ca)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def text(self):
        """What has passed so far."""
        return bytes(self.seen).decode("utf-8", "replace")

    def _accept(self):
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain):
        try:
            near = self._inside.wrap_socket(plain, server_side=True)
            far = self._outside.wrap_socket(socket.create_connection(("127.0.0.1", self._to)))
            names = [value for _, value in near.getpeercert().get("subjectAltName", ())]
            self.met.append((near.version(), far.version(), names))
            near.setblocking(False)
            far.setblocking(False)
            # One thread for both: a TLS connection is not read and written at once.
            while self._moved(near, far) and self._moved(far, near):
                if not near.pending() and not far.pending():
                    select.select([near, far], [], [], 1)
            near.close()
            far.close()
        except (OSError, ValueError):
            plain.close()

    def _moved(self, source, sink):
        """Passes on what there is; whether there may be more."""
        try:
            data = source.recv(1 << 16)
        except (ssl.SSLWantReadError, BlockingIOError):
            return True
        self.seen += data
        left = memoryview(data)
        while left:
            try:
                left = left[sink.send(left):]
            except (ssl.SSLWantWriteError, BlockingIOError):
                select.select([], [sink], [], 1)
        return bool(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
