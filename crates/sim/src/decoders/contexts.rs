//! Checks for what a node of AXCP sends: frames, envelopes, packed data, and whole sessions. Opens no connection.

use axcp_proto::capability::offers::{MOST_OFFERED, OfferProof, PeerOffers};
use axcp_proto::capability::{CapabilityDescriptor, CapabilityKind, CapabilityMessage, MOST_TOOLS};
use axcp_proto::context::peers::{ContextMoment, KnownVersion, SharedContext};
use axcp_proto::context::replica::Replica;
use axcp_proto::envelope::ReceivedEnvelope;
use axcp_proto::error::AxcpError;
use axcp_proto::frame::{FrameReader, LengthOrder, MOST_FRAME};
use axcp_proto::gzip::{MOST_DATA, pack, unpack};
use axcp_proto::invocation::{KeptCalls, KeptEnd, KeyedCall};
use axcp_proto::message::{EnvelopePayload, ErrorMessage, SyncSubscribe, ToolResult};
use axcp_proto::profile::ProfileOffer;
use axcp_proto::session::{AxcpSession, SessionEvent, is_fatal};
use bytes::Bytes;

/// A field that no version knows.
const UNKNOWN: &[u8] = b"\xfa\xff\x03\x01x";

/// Milliseconds at which nothing is put off any more.
const LATER: u64 = 3_600_000;
/// A moment before which all times of the inputs are.
const AT: ContextMoment = ContextMoment { wall: 1 << 50, now: 0 };

/// Data that is unpacked is as long as a segment at most, and is unpacked again after packing.
pub(super) fn data(data: &[u8]) {
    match unpack(data) {
        Ok(text) => {
            assert!(text.len() <= MOST_DATA);
            let packed = pack(Bytes::copy_from_slice(&text));
            assert!(packed.len() <= text.len());
            assert!(text.starts_with(&[0x1f, 0x8b]) || unpack(&packed) == Ok(text));
        }
        Err(refused) => holds(&refused.message()),
    }
}

/// An envelope leaves as it came, an unknown field changes only what is signed, and a refusal is a message.
pub(super) fn envelope(data: &[u8]) {
    match ReceivedEnvelope::read(Bytes::copy_from_slice(data)) {
        Ok(read) => {
            assert_eq!(read.text(), data);
            assert!(read.profile() <= 3);
            let newer = ReceivedEnvelope::read([data, UNKNOWN].concat().into());
            assert!(newer.as_ref().is_ok_and(|newer| newer.signed() != read.signed() && newer.signature() == read.signature()));
            match read.payload() {
                Ok(payload) => assert_eq!(Ok(payload), newer.and_then(|newer| newer.payload())),
                Err(refused) => holds(&refused.message()),
            }
        }
        Err(refused) => holds(&refused.message()),
    }
}

/// A stream in pieces holds the same frames as the stream at once, and its frames make the stream.
pub(super) fn frames(data: &[u8]) {
    let (&[size, ..], stream) = (data.first_chunk::<1>().unwrap_or(&[0]), data.get(1..).unwrap_or_default());
    let whole = read(std::iter::once(stream));
    assert_eq!(read(stream.chunks(usize::from(size).max(1))), whole);
    let (frames, order, is_over) = whole;
    let written: Vec<u8> = frames.iter().flat_map(|frame| order.frame(frame).unwrap_or_default()).collect();
    assert!(stream.starts_with(&written));
    assert!(is_over || stream.len() - written.len() < MOST_FRAME);
}

/// A patch is applied once: again, and backwards, to the same replica. A refused patch changes nothing, and a snapshot makes the replica again.
pub(super) fn patch(data: &[u8]) {
    let read = ReceivedEnvelope::read(Bytes::copy_from_slice(data)).and_then(|read| read.payload());
    let Ok(Some(EnvelopePayload::ContextPatch(mut patch))) = read else { return };
    let Ok(mut replica) = Replica::new(&patch.context_id, "me") else { return };
    let empty = replica.clone();
    if let Err(refused) = replica.apply(&patch, "peer", 1 << 50) {
        holds(&refused.message());
        assert_eq!(replica.snapshot(), empty.snapshot());
        assert_eq!(replica.version(), 0);
        return;
    }
    let snapshot = replica.snapshot();
    assert_eq!(replica.apply(&patch, "peer", 1 << 50), Ok(0));
    assert_eq!(
        Replica::restore(&snapshot, "me", 1).map(|restored| (restored.snapshot(), restored.json())),
        Ok((snapshot.clone(), replica.json()))
    );
    assert!(is_json(&replica.json()), "the context is JSON");
    patch.ops.reverse();
    let mut backwards = empty;
    assert!(backwards.apply(&patch, "peer", 1 << 50).is_ok());
    assert_eq!(backwards.snapshot(), snapshot);
}

/// A node that says anything gets answers that it can read, or is refused; and whatever it wrote, it is sent all that it lacks.
pub(super) fn session(data: &[u8]) {
    let (mut talk, _) = AxcpSession::new(ProfileOffer::of_sync());
    let Ok(replica) = Replica::new("c", "me") else { return };
    let mut context = SharedContext::new(replica, 7, 1000, [("peer".into(), KnownVersion::default())]);
    for frame in read(std::iter::once(data)).0 {
        let event = ReceivedEnvelope::read(frame).and_then(|envelope| talk.receive(&envelope));
        let done = match event {
            Ok(SessionEvent::Content(payload)) => apply(&mut context, payload),
            Ok(SessionEvent::Answer(payload)) => talk.envelope("", payload).map(drop),
            Ok(SessionEvent::Opened | SessionEvent::Refused { .. } | SessionEvent::Passed) => Ok(()),
            Err(refused) => Err(refused),
        };
        if let Err(refused) = done {
            holds(&refused.message());
            if is_fatal(&refused) {
                break;
            }
        }
        context.note_kept(context.replica().version(), 0);
    }
    let Ok(mut other) = Replica::new("c", "other") else { return };
    // A second subscription on a connection is put off for a moment.
    assert!(context.subscribe("peer", SyncSubscribe::default(), LATER).is_ok());
    while let Some(payload) = context.next("peer", LATER) {
        assert!(talk.envelope("", payload.clone()).is_ok_and(|envelope| envelope.len() <= MOST_FRAME));
        if let EnvelopePayload::ContextPatch(patch) = payload {
            assert!(other.apply(&patch, "me", 1 << 50).is_ok());
        }
    }
    assert_eq!(other.snapshot(), context.replica().snapshot());
}

/// Words about tools stay within their bounds, a taken descriptor is a definition of MCP, and a key stands for one call.
pub(super) fn tools(data: &[u8]) {
    let (mut offers, mut keys) = (PeerOffers::default(), KeptCalls::default());
    for frame in read(std::iter::once(data)).0 {
        let Ok(envelope) = ReceivedEnvelope::read(frame) else { continue };
        let done = match envelope.payload() {
            Ok(Some(EnvelopePayload::Capability(content))) => capability(&mut offers, envelope.trace_id(), &content),
            Ok(Some(EnvelopePayload::ToolInvoke(invoke))) => invoke.check(envelope.trace_id()).and_then(|()| {
                let is_new = matches!(keys.begin(&invoke, (), 0)?, KeyedCall::Begins(()));
                let end = KeptEnd::Result(invoke.arguments.clone());
                assert!(!is_new || keys.end_call(&invoke.idempotency_key, &end, 0).is_empty());
                assert_eq!(keys.begin(&invoke, (), 0), Ok(KeyedCall::Ended((), end)), "a key runs its call once");
                Ok(())
            }),
            Ok(Some(EnvelopePayload::ToolResult(result))) => {
                result.check().inspect(|()| assert!(is_json(&ToolResult::done(result.result.clone()).result)))
            }
            Ok(_) => Ok(()),
            Err(refused) => Err(refused),
        };
        if let Err(refused) = done {
            holds(&refused.message());
        }
    }
}

fn capability(offers: &mut PeerOffers, trace_id: &str, content: &Bytes) -> Result<(), AxcpError> {
    let Some(CapabilityKind::Offer(offer)) = CapabilityMessage::read(content)? else { return Ok(()) };
    let (did, session) = (offer.sender_did.clone(), offer.session.clone());
    let proof = OfferProof { signer: Some(&did), session: &session, wall: offer.created_ms, room: usize::MAX };
    offers.take_offer(trace_id, *offer, &proof)?;
    assert!(offers.held() <= MOST_OFFERED && offers.tools().len() <= MOST_TOOLS);
    for (id, tool) in &**offers.tools() {
        let definition = tool.definition();
        assert!(is_json(definition.as_bytes()), "a definition is JSON");
        let again = CapabilityDescriptor::of_tool(definition.as_bytes());
        assert!(again.is_none_or(|again| again.tool_id == *id && again.input_schema == tool.input_schema.trim()));
    }
    Ok(())
}

fn apply(context: &mut SharedContext, payload: EnvelopePayload) -> Result<(), AxcpError> {
    if let EnvelopePayload::ContextPatch(patch) = &payload {
        context.patch("peer", patch, AT)?;
    }
    if let EnvelopePayload::Retry(retry) = &payload {
        retry.buffered_patches.iter().try_for_each(|patch| context.patch("peer", patch, AT).map(drop))?;
    }
    if let EnvelopePayload::SyncRequest(wish) = &payload {
        context.request("peer", wish)?;
    }
    if let EnvelopePayload::ContextInvalidation(news) = &payload {
        context.invalidate("peer", news, 1 << 50)?;
    }
    if let EnvelopePayload::SyncSubscribe(wish) = payload {
        context.subscribe("peer", wish, 0)?;
    }
    Ok(())
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(text).is_ok()
}

/// Gives the frames of a stream, the order of its lengths, and if the stream is over.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Bytes>, LengthOrder, bool) {
    let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(refused) => {
                    holds(&refused.message());
                    return (frames, reader.order(), true);
                }
            }
        }
    }
    (frames, reader.order(), false)
}

fn holds(refusal: &ErrorMessage) {
    assert!(refusal.code != 0 && !refusal.reason.is_empty() && refusal.reason.len() < 1000, "{refusal:?}");
}
