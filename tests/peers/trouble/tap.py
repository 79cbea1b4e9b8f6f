"""A TCP proxy that keeps every byte it passes on, in either direction."""
import socket
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
