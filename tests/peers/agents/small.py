"""Programs of the two small protocols, from the facts of their documents alone: frames of µACP and envelopes of AINP."""
import base64
import hashlib
import json
import struct
import time
import uuid

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PING, TELL, ASK, OBSERVE = range(4)
CORRELATION, TOPIC, CONTENT, EXTENSION = 0x02, 0x03, 0x04, 0x43
CBOR, JSON, TEXT = 0, 1, 3
DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def frame(verb, number, options=(), payload=b"", code=0, qos=1):
    """A frame: eight bytes of header, options, payload."""
    bits = 1 << 62 | verb << 60 | qos << 58 | code << 50 | number << 26 | len(options) << 18
    return struct.pack(">Q", bits) + b"".join(bytes((kind, len(value))) + value for kind, value in options) + payload


def unframed(raw):
    """Verb, code, number, options and payload of a frame."""
    bits, = struct.unpack(">Q", raw[:8])
    options, rest = {}, raw[8:]
    for _ in range(bits >> 18 & 0xff):
        kind, size = rest[0], rest[1]
        options.setdefault(kind, []).append(rest[2:2 + size])
        rest = rest[2 + size:]
    return {"verb": bits >> 60 & 3, "code": bits >> 50 & 0xff, "number": bits >> 26 & 0xffffff, "options": options, "payload": rest}


def told(answer):
    """The extension of an answer: pieces of JSON."""
    return json.loads(b"".join(piece[2:] for piece in answer["options"].get(EXTENSION, [])) or b"{}")


def streamed(raw):
    """Frames behind each other, each with its length."""
    frames = []
    while raw:
        size, = struct.unpack(">H", raw[:2])
        frames.append(unframed(raw[2:2 + size]))
        raw = raw[2 + size:]
    return frames


def cbor_map(key, text):
    """A map of one short text in CBOR."""
    return b"\xa1" + bytes((0x60 + len(key),)) + key.encode() + bytes((0x60 + len(text),)) + text.encode()


class Signer:
    """An agent of AINP with a key of its own, for a receiver; `pre-hash` is the mode of the specification."""

    def __init__(self, receiver, prehash=True):
        self.key, self.receiver, self.prehash = Ed25519PrivateKey.generate(), receiver, prehash
        self.did = did(self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def intent(self, service, details, **more):
        """A signed call of a service."""
        semantics = {"service_type": service, "details": details}
        payload = {"@context": "https://ainp.dev/contexts/service/v1", "@type": "RequestService", "version": "1.0.0", "semantics": semantics,
                   "embedding": {"b64": "AACAPw==", "dim": 1, "dtype": "f32", "model": "m"}, "budget": {"max_credits": 3}, **more.pop("payload", {})}
        envelope = {"version": "0.1.0", "msg_type": "INTENT", "id": str(uuid.uuid4()), "timestamp": int(time.time() * 1000), "from_did": self.did,
                    "to_did": self.receiver, "schema": "https://ainp.dev/schemas/intents/request-service/v1", "payload": payload, **more}
        return self.signed(envelope)

    def signed(self, envelope):
        sig = base64.b64encode(self.key.sign(signed_bytes(envelope, self.prehash))).decode()
        return {**envelope, "sig": sig}


def signed_bytes(envelope, prehash):
    form = json.dumps({key: value for key, value in envelope.items() if key != "sig"}, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return hashlib.sha256(form).digest() if prehash else form


def holds(envelope):
    """Whether the sender that an envelope names has signed it, as the specification says."""
    try:
        Ed25519PublicKey.from_public_bytes(key_of(envelope["from_did"])).verify(base64.b64decode(envelope["sig"]), signed_bytes(envelope, True))
    except InvalidSignature:
        return False
    return True


def did(key):
    number, digits = int.from_bytes(b"\xed\x01" + key, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        digits = DIGITS[digit] + digits
    return f"did:key:z{digits}"


def key_of(name):
    number = 0
    for digit in name.removeprefix("did:key:z"):
        number = number * 58 + DIGITS.index(digit)
    return number.to_bytes(34, "big")[2:]
