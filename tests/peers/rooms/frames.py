"""The WebSocket edge by the cases of the Autobahn test suite, sections 1 to 7 and 10, as a table.

The suite itself wants a server that echoes whatever it is sent, and a room does not: its messages are envelopes. So the cases are played
here on a bare socket, with an envelope where the suite has any text, and a room's echo where it has its own. Sections 9 (limits) and 12, 13
(compression, which is not agreed to) have no counterpart.
"""
import base64
import json
import os
import socket
import struct

from rooms.party import PATIENCE

TEXT, BINARY, CLOSE, PING, PONG, MORE = 1, 2, 8, 9, 10, 0


class Bare:
    """A connection on which frames are sent as they stand."""

    def __init__(self, gateway, topic="ops", token="bob-secret"):
        self.socket = socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /ws?topic={topic} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nAuthorization: Bearer {token}\r\n\r\n").encode())
        self.read = b""
        while b"\r\n\r\n" not in self.read:
            self.fill()
        self.read = self.read.split(b"\r\n\r\n", 1)[1]
        self.next(), self.next()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def fill(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError
        self.read += piece

    def take(self, count):
        while len(self.read) < count:
            self.fill()
        taken, self.read = self.read[:count], self.read[count:]
        return taken

    def next(self):
        """The next frame: its first byte and its payload; None where the connection has ended."""
        try:
            first, length = self.take(2)
            if length == 126:
                length, = struct.unpack(">H", self.take(2))
            elif length == 127:
                length, = struct.unpack(">Q", self.take(8))
            return first, self.take(length)
        except (EOFError, ConnectionError):
            return None

    def send(self, frames, chop=None):
        """Sends frames, in one piece or chopped."""
        data = b"".join(frames)
        for start in range(0, len(data), chop or len(data)):
            self.socket.sendall(data[start:start + (chop or len(data))])


def frame(opcode, payload=b"", last=True, reserved=0, masked=True, length=None):
    """One frame of a client."""
    size = len(payload) if length is None else length
    if size < 126:
        head = bytes([size | 0x80 * masked])
    elif size < 65536:
        head = bytes([126 | 0x80 * masked]) + struct.pack(">H", size)
    else:
        head = bytes([127 | 0x80 * masked]) + struct.pack(">Q", size)
    key = os.urandom(4)
    body = bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))
    return bytes([0x80 * last | reserved << 4 | opcode]) + head + (key + body if masked else payload)


def said(text, size=None):
    """An envelope with this text, filled up to a size."""
    envelope = {"protocol": "mcpx/v0.1", "id": "1", "from": "bob", "kind": "chat", "payload": {"text": text}}
    made = json.dumps(envelope, ensure_ascii=False).encode()
    return made + b" " * max(0, (size or 0) - len(made))


def close(code=None, reason=b""):
    """A close frame."""
    return frame(CLOSE, b"" if code is None else struct.pack(">H", code) + reason)


def parts(payload, count, opcode=TEXT):
    """A message in so many frames."""
    size = -(-len(payload) // count)
    pieces = [payload[at:at + size] for at in range(0, len(payload), size)]
    return [frame(opcode if at == 0 else MORE, piece, last=at == len(pieces) - 1) for at, piece in enumerate(pieces)]


# What is to come: a message as it was sent, pongs with their payloads, or a close frame with a code (None: without one).
def echo(payload):
    return 0x81, payload


def pong(payload):
    return 0x8A, payload


def ended(code=None):
    return CLOSE, code


HELLO = said("κόσμε 🌳")
# RFC 3629: overlong forms, surrogates, what is beyond U+10FFFF, lone and missing continuations.
NOT_UTF8 = ["ceba e1bdb9cf83cebcceb5 eda080 656469746564", "c0af", "e080af", "f08080af", "f8808080af", "eda080", "edbfbf", "f4908080", "80", "bf",
            "8081", "c0", "e1bd", "f09f8c", "fe", "ff", "fefeffff", "c0 20", "e0 a0 20"]
TEXTS = ["", "ab", "\u0000".replace("\u0000", "�"), "퟿", "\ue000", "￿", "\U00010000", "\U0010ffff", "ö", "ࠀ"]


def table():
    """Name, frames, what is to come, and in what pieces the bytes go out."""
    sizes = [None, 126, 127, 128, 65535, 65536]
    for number, size in enumerate(sizes, 1):
        yield f"1.1.{number}", [frame(TEXT, said("x", size))], [echo(said("x", size))], None
    yield "1.1.8", [frame(TEXT, said("x", 65536))], [echo(said("x", 65536))], 997
    for number, size in enumerate((0, 125, 126), 1):
        yield f"1.2.{number}", [frame(BINARY, b"\xfe" * size)], [ended(1003)], None
    for number, payload in enumerate((b"", b"Hello, world!", b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff", b"\xfe" * 125), 1):
        yield f"2.{number}", [frame(PING, payload)], [pong(payload)], None
    yield "2.5", [frame(PING, b"\xfe" * 126)], [ended(1002)], None
    yield "2.6", [frame(PING, b"\xfe" * 125)], [pong(b"\xfe" * 125)], 1
    yield "2.7", [frame(PONG)], [], None
    yield "2.8", [frame(PONG, b"unsolicited")], [], None
    yield "2.9", [frame(PONG, b"unsolicited"), frame(PING, b"x")], [pong(b"x")], None
    many = [str(number).encode() for number in range(10)]
    yield "2.10", [frame(PING, one) for one in many], [pong(one) for one in many], None
    yield "2.11", [frame(PING, one) for one in many], [pong(one) for one in many], 1
    for reserved in range(1, 8):
        yield f"3.{reserved}", [frame(TEXT, HELLO, reserved=reserved)], [ended(1002)], 1 if reserved == 4 else None
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        yield f"4.{opcode}", [frame(opcode, b"x" if opcode % 2 else b"")], [ended(1002)], None
    yield "5.1", [frame(PING, b"a", last=False), frame(MORE, b"b")], [ended(1002)], None
    yield "5.2", [frame(PONG, b"a", last=False), frame(MORE, b"b")], [ended(1002)], None
    yield "5.3", parts(HELLO, 2), [echo(HELLO)], None
    yield "5.5", parts(HELLO, 2), [echo(HELLO)], 1
    first, second = parts(HELLO, 2)
    yield "5.6", [first, frame(PING, b"between"), second], [pong(b"between"), echo(HELLO)], None
    yield "5.8", [first, frame(PING, b"between"), second], [pong(b"between"), echo(HELLO)], 1
    yield "5.9", [frame(MORE, HELLO), frame(TEXT, HELLO)], [ended(1002)], None
    yield "5.12", [frame(MORE, HELLO, last=False), frame(TEXT, HELLO)], [ended(1002)], None
    yield "5.15", [*parts(HELLO, 2), frame(MORE, b"x", last=False), frame(TEXT, HELLO)], [echo(HELLO), ended(1002)], None
    yield "5.18", [frame(TEXT, b"a", last=False), frame(TEXT, b"b")], [ended(1002)], None
    pieces = parts(HELLO, 5)
    yield "5.19", [*pieces[:2], frame(PING, b"1"), *pieces[2:4], frame(PING, b"2"), pieces[4]], [pong(b"1"), pong(b"2"), echo(HELLO)], None
    yield "5.20", [*pieces[:2], frame(PING, b"1"), *pieces[2:4], frame(PING, b"2"), pieces[4]], [pong(b"1"), pong(b"2"), echo(HELLO)], 1
    yield "6.1.2", [frame(TEXT, b"", last=False), frame(MORE, HELLO, last=False), frame(MORE, b"")], [echo(HELLO)], None
    yield "6.2.2", parts(HELLO, len(HELLO)), [echo(HELLO)], None
    for number, text in enumerate(TEXTS):
        yield f"6.5-23 {number}", [frame(TEXT, said(text))], [echo(said(text))], None
    for number, wrong in enumerate(NOT_UTF8):
        yield f"6.3-21 {number}", [frame(TEXT, bytes.fromhex(wrong))], [ended(1007)], None
        yield f"6.3-21 {number} in parts", parts(bytes.fromhex(wrong) + b"    ", 3), [ended(1007)], None
    yield "7.1.1", [frame(TEXT, HELLO), close(1000)], [echo(HELLO), ended(1000)], None
    yield "7.1.2", [close(1000), close(1000)], [ended(1000)], None
    yield "7.1.3", [close(1000), frame(PING, b"late")], [ended(1000)], None
    yield "7.1.5", [frame(TEXT, HELLO[:5], last=False), close(1000), frame(MORE, HELLO[5:])], [ended(1000)], None
    yield "7.3.1", [close()], [ended()], None
    yield "7.3.2", [frame(CLOSE, b"\x03")], [ended(1002)], None
    yield "7.3.4", [close(1000, b"Hello")], [ended(1000)], None
    yield "7.3.5", [close(1000, b"*" * 123)], [ended(1000)], None
    yield "7.3.6", [close(1000, b"*" * 124)], [ended(1002)], None
    yield "7.5.1", [close(1000, bytes.fromhex("ceba eda080"))], [ended(1007)], None
    for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999):
        yield f"7.7 {code}", [close(code)], [ended(code)], None
    for code in (0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535):
        yield f"7.9 {code}", [close(code)], [ended(1002)], None
    long = said("x", 65536)
    yield "10.1", parts(long, 51), [echo(long)], None
    yield "unmasked", [frame(TEXT, HELLO, masked=False)], [ended(1002)], None
    yield "longest", [frame(TEXT, b"", length=1 << 62)], [ended(1009)], None


def came(bare, wanted):
    """What came, up to as much as was wanted."""
    got = []
    for _ in wanted:
        one = bare.next()
        if one and one[0] == 0x88:
            payload = one[1]
            one = CLOSE, struct.unpack(">H", payload[:2])[0] if payload else None
        got.append(one)
    return got


def cases():
    """One case, of many frames."""
    return {"autobahn": autobahn}.items()


def autobahn(report, name, gateway):
    """Every line of the table, on a connection of its own; what is closed is then hung up, and what is not still answers."""
    passed, wrong = 0, []
    for case, frames, wanted, chop in table():
        with Bare(gateway) as bare:
            bare.send(frames, chop)
            got = came(bare, wanted)
            over = bool(wanted) and wanted[-1][0] == CLOSE
            if over:
                end = bare.next()
            else:
                bare.send([frame(PING, b"still there?")])
                end = bare.next() == pong(b"still there?") or "no answer"
            if got == wanted and (end is None) == over:
                passed += 1
            else:
                wrong.append(f"{case}: got {got!r:.120}, wanted {wanted!r:.120}, then {end!r:.40}")
    report.count(name, passed, len(wrong), "\n".join(wrong))
