"""A node of AXCP on aioquic and protobuf, written from the text of the specification; it imports nothing of ours.

    peer.py dial HOST PORT | listen PORT    [--certificate FILE --key FILE] --ca FILE [--order big]

Commands come on standard input and events go to standard output, both as lines of JSON: {"send": ENVELOPE} sends an envelope, {"raw": HEX} bytes
on the stream as they are, {"datagram": HEX} sends a datagram, {"close": true} ends the connection. Events are {"opened": ALPN}, {"frame": HEX, "envelope": ENVELOPE} and
{"closed": CODE, "reason": TEXT}. The members of an envelope are the fields of the schema; bytes are base64.
"""
import argparse
import asyncio
import json
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, StreamDataReceived
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
    "AxcpEnvelope": "1 version uint32, 2 trace_id string, 3 profile uint32, 4 context_patch ContextPatch, 7 error ErrorMessage, "
                    "8 profile_neg ProfileNegotiate, 9 profile_ack ProfileAck, 10 retry_env RetryEnvelope, 1000 sync_subscribe SyncSubscribe, "
                    "1001 sync_request SyncRequest, 1002 invalidation ContextInvalidation, 1003 downgrade ProfileDowngrade",
}


def envelope_type():
    """The class of envelopes, made of `SCHEMA`."""
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
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("axcp.v0_1.AxcpEnvelope"))


Envelope = envelope_type()


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
                tell(frame=frame.hex(), envelope=envelope)
        elif isinstance(event, ConnectionTerminated):
            tell(closed=event.error_code, reason=event.reason_phrase)

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
        elif "raw" in command:
            node.write(bytes.fromhex(command["raw"]))
        else:
            node.close()


async def main():
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
