"""A node of AXCP on aioquic and protobuf, written from the text of the specification; it imports nothing of ours.

    peer.py dial HOST PORT | listen PORT    [--certificate FILE --key FILE] --ca FILE [--order big]

Commands come on standard input and events go to standard output, both as lines of JSON: {"send": ENVELOPE} sends an envelope, {"raw": HEX} bytes
on the stream as they are, {"datagram": HEX} sends a datagram, {"offer": OFFER} a signed offer, {"close": true} ends the connection. Events are {"opened": ALPN},
{"frame": HEX, "envelope": ENVELOPE}, {"datagram": HEX, "body": TELEMETRY} and {"closed": CODE, "reason": TEXT}; with an offer comes "holds", which says that the offer is signed by the key of the
other end's certificate and made for the connection. An OFFER has the fields of the schema besides "trace_id"; what it leaves out is right, and "unsigned" leaves out
the signature. The members of an envelope are the fields of the schema; bytes are base64.
"""
import argparse
import asyncio
import hashlib
import json
import ssl
import sys
import time

from aioquic import tls
from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, DatagramFrameReceived, HandshakeCompleted, StreamDataReceived
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

# Numbers and types as the specification's schema has them; from 1000 up ours.
SCHEMA = {
    "DeltaOp": "1 op int32, 2 path string, 3 data bytes, 4 ts uint64, 1000 node_id string",
    "ContextPatch": "1 context_id string, 2 base_version uint64, 3 ops *DeltaOp, 1000 new_version uint64, 1001 is_part bool, 1002 part uint64, 1003 epoch uint64",
    "ContextGraphVersion": "1 context_id string, 2 version uint64, 1000 epoch uint64",
    "SyncSubscribe": "1 from ContextGraphVersion, 1000 prefixes *string, 1001 tags *string, 1002 after_ts uint64",
    "SyncRequest": "1 missing_from ContextGraphVersion, 2 to_version uint64",
    "ContextInvalidation": "1 context_id string, 2 path string, 3 reason string, 4 ts uint64, 5 node_id string",
    "RetryEnvelope": "1 buffered_patches *ContextPatch, 2 ttl_ms uint32",
    "ProfileNegotiate": "1 supported_mask uint32, 2 min_required uint32",
    "ProfileAck": "1 agreed_profile uint32",
    "ProfileDowngrade": "1 new_profile uint32, 2 reason string",
    "ErrorMessage": "1 code uint32, 2 reason string, 3 diagnostics bytes",
    "CapabilityDescriptor": "1 tool_id string, 2 input_schema string, 3 output_schema string, 4 timeout_ms uint32, 5 resource_hint string, 6 auth_scope *string, "
                            "7 descriptor_version string, 1000 description string, 1001 annotations string",
    "CapabilityOffer": "1 desc CapabilityDescriptor, 1000 sender_did string, 1001 created_ms uint64, 1002 session bytes, 1003 list_size uint32",
    "CapabilityRequest": "1 ids *string",
    "CapabilityAck": "1 accepted *string",
    "CapabilityMessage": "1 offer CapabilityOffer, 2 request CapabilityRequest, 3 ack CapabilityAck",
    "ToolInvoke": "1 tool_id string, 2 arguments bytes, 3 timeout_ms uint32, 4 idempotency_key string",
    "ToolResult": "1 outcome int32, 2 result bytes, 3 words string",
    "ToolCancel": "1 reason string",
    "SystemStats": "1 cpu_percent uint32, 2 mem_bytes uint64, 3 temperature_c uint32",
    "TelemetryDatagram": "1 timestamp_ms uint64, 10 system SystemStats",
    "AxcpEnvelope": "1 version uint32, 2 trace_id string, 3 profile uint32, 4 context_patch ContextPatch, 5 capability_msg CapabilityMessage, 7 error ErrorMessage, "
                    "8 profile_neg ProfileNegotiate, 9 profile_ack ProfileAck, 10 retry_env RetryEnvelope, 1000 sync_subscribe SyncSubscribe, "
                    "1001 sync_request SyncRequest, 1002 invalidation ContextInvalidation, 1003 downgrade ProfileDowngrade, "
                    "1005 tool_invoke ToolInvoke, 1006 tool_result ToolResult, 1009 tool_cancel ToolCancel, 100 signature bytes",
}


def message_types():
    """The classes of envelopes and of telemetry, made of `SCHEMA`."""
    file = descriptor_pb2.FileDescriptorProto(name="axcp.proto", package="axcp.v0_1", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        for number, field, kind in (entry.split() for entry in fields.split(", ")):
            label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            one = message.field.add(name=field, number=int(number), label=label)
            if kind in SCHEMA:
                one.type, one.type_name = kinds.TYPE_MESSAGE, f".axcp.v0_1.{kind}"
            else:
                one.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(f"axcp.v0_1.{name}")) for name in ("AxcpEnvelope", "TelemetryDatagram")]


Envelope, Telemetry = message_types()


DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def did(key):
    """The name of a P-256 key by the method did:key."""
    number, text = int.from_bytes(b"\x80\x24" + key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)), ""
    while number:
        number, digit = divmod(number, 58)
        text = DIGITS[digit] + text
    return "did:key:z" + text


def signed(envelope):
    """The bytes under a signature: a tag, and the hash of the envelope without field 100."""
    kept, at = b"", 0
    while at < len(envelope):
        begin, (tag, at) = at, varint(envelope, at)
        if tag & 7 == 0:
            at = varint(envelope, at)[1]
        else:
            length, at = varint(envelope, at)
            at += length
        kept += envelope[begin:at] if tag >> 3 != 100 else b""
    return b"axcp.v0_1 envelope\0" + hashlib.sha256(kept).digest()


def varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7f) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at


def keep_exporter():
    """Has each TLS context keep the secret from which ids of connections are made (RFC 8446, section 7.5): the library makes none."""
    plain = tls.Context._setup_traffic_protection

    def kept(context, direction, epoch, label):
        if label == b"s ap traffic":
            context.exporter = context.key_schedule.derive_secret(b"exp master")
            context.exporter_algorithm = context.key_schedule.algorithm
        plain(context, direction, epoch, label)

    tls.Context._setup_traffic_protection = kept


def session(context):
    """The id of a connection, which both ends compute."""
    algorithm, empty = context.exporter_algorithm, hashes.Hash(context.exporter_algorithm)
    nothing = empty.finalize()
    derived = tls.hkdf_expand_label(algorithm=algorithm, secret=context.exporter, label=b"EXPORTER-axcp-session", hash_value=nothing, length=algorithm.digest_size)
    return tls.hkdf_expand_label(algorithm=algorithm, secret=derived, label=b"exporter", hash_value=nothing, length=32)


def tell(**event):
    print(json.dumps(event), flush=True)


class Node(QuicConnectionProtocol):
    """One connection, with one stream of frames."""

    order, is_dialler = "little", True

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.stream, self.held = (0 if self.is_dialler else None), b""
        Node.current = self

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            tell(opened=event.alpn_protocol)
        elif isinstance(event, StreamDataReceived):
            self.stream = event.stream_id
            self.held += event.data
            while len(self.held) >= 4 and len(self.held) >= 4 + int.from_bytes(self.held[:4], self.order):
                end = 4 + int.from_bytes(self.held[:4], self.order)
                frame, self.held = self.held[:end], self.held[end:]
                envelope = json_format.MessageToDict(Envelope.FromString(frame[4:]), preserving_proto_field_name=True)
                offered = {"holds": self.holds(frame[4:])} if "offer" in envelope.get("capability_msg", {}) else {}
                tell(frame=frame.hex(), envelope=envelope, **offered)
        elif isinstance(event, DatagramFrameReceived):
            body = json_format.MessageToDict(Telemetry.FromString(event.data[3:]), preserving_proto_field_name=True)
            tell(datagram=event.data[:3].hex(), body=body)
        elif isinstance(event, ConnectionTerminated):
            tell(closed=event.error_code, reason=event.reason_phrase)

    def holds(self, raw):
        """Whether an offer of the other end is signed by the key of its certificate, and for this connection."""
        envelope, key = Envelope.FromString(raw), self._quic.tls._peer_certificate.public_key()
        r, s = (int.from_bytes(envelope.signature[half:half + 32]) for half in (0, 32))
        try:
            key.verify(encode_dss_signature(r, s), signed(raw), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        offer = envelope.capability_msg.offer
        return offer.sender_did == did(key) and offer.session == session(self._quic.tls)

    def offer(self, offer):
        key = self._quic.configuration.private_key
        trace_id, unsigned = offer.pop("trace_id", "offers"), offer.pop("unsigned", False)
        made = Envelope(version=1, profile=2, trace_id=trace_id)
        content = made.capability_msg.offer
        content.sender_did, content.created_ms, content.session = did(key.public_key()), time.time_ns() // 1_000_000, session(self._quic.tls)
        json_format.ParseDict(offer, content)
        whole = made.SerializeToString()
        if not unsigned:
            r, s = decode_dss_signature(key.sign(signed(whole), ec.ECDSA(hashes.SHA256())))
            whole += Envelope(signature=r.to_bytes(32) + s.to_bytes(32)).SerializeToString()
        self.write(len(whole).to_bytes(4, self.order) + whole)

    def send(self, envelope):
        whole = json_format.ParseDict({"version": 1, **envelope}, Envelope()).SerializeToString()
        self.write(len(whole).to_bytes(4, self.order) + whole)

    def write(self, data):
        self._quic.send_stream_data(self.stream if self.stream is not None else 0, data)
        self.transmit()


async def commanded():
    reader = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command, node = json.loads(line), Node.current
        if "send" in command:
            node.send(command["send"])
        elif "datagram" in command:
            node._quic.send_datagram_frame(bytes.fromhex(command["datagram"]))
            node.transmit()
        elif "offer" in command:
            node.offer(command["offer"])
        elif "raw" in command:
            node.write(bytes.fromhex(command["raw"]))
        else:
            node.close()


async def main():
    keep_exporter()
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=("dial", "listen"))
    parser.add_argument("place", nargs="+")
    for option in ("--certificate", "--key", "--ca", "--order"):
        parser.add_argument(option)
    options = parser.parse_args()
    Node.order, Node.is_dialler = options.order or "little", options.way == "dial"
    configuration = QuicConfiguration(is_client=Node.is_dialler, alpn_protocols=["axcp/1"], max_datagram_frame_size=65536)
    configuration.load_verify_locations(options.ca)
    if options.certificate:
        configuration.load_cert_chain(options.certificate, options.key)
    if Node.is_dialler:
        host, port = options.place
        try:
            async with connect(host, int(port), configuration=configuration, create_protocol=Node):
                await commanded()
        except ConnectionError as error:
            tell(closed=-1, reason=str(error))
    else:
        configuration.verify_mode = ssl.CERT_NONE
        await serve("127.0.0.1", int(options.place[0]), configuration=configuration, create_protocol=Node)
        tell(listening=True)
        await commanded()


asyncio.run(main())
