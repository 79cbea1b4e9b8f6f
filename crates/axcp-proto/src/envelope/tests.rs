use proptest::prelude::*;

use super::*;
use crate::frame::LengthOrder;
use crate::gzip::{MOST_DATA, pack};
use crate::message::{
    ContextGraphVersion, ContextInvalidation, ContextPatch, DeltaKind, DeltaOp, ErrorMessage, ProfileAck, ProfileDowngrade,
    ProfileNegotiate, RetryEnvelope, SyncRequest, SyncSubscribe,
};

fn envelope(profile: u32, payload: Option<EnvelopePayload>) -> AxcpEnvelope {
    AxcpEnvelope { version: 1, trace_id: "trace-1".into(), profile, payload, ..AxcpEnvelope::default() }
}

fn received(envelope: &AxcpEnvelope) -> ReceivedEnvelope {
    ReceivedEnvelope::read(envelope.encode_to_vec().into()).unwrap()
}

fn refusal(text: &[u8]) -> AxcpError {
    ReceivedEnvelope::read(Bytes::copy_from_slice(text)).unwrap_err()
}

#[test]
fn xc_01_the_frame_of_the_reference_is_met() {
    let frame = LengthOrder::Little.frame(&envelope(2, None).encode_to_vec()).unwrap();
    assert_eq!(frame, b"\x0d\0\0\0\x08\x01\x12\x07trace-1\x18\x02");
    let read = ReceivedEnvelope::read(Bytes::copy_from_slice(&frame[4..])).unwrap();
    assert_eq!((read.profile(), read.trace_id(), read.payload()), (2, "trace-1", Ok(None)));
}

/// Bytes worked out by hand from the numbers and types of the schema.
#[test]
fn xc_01_every_content_has_its_number() {
    let graph = ContextGraphVersion { context_id: "c".into(), version: 42, epoch: 0 };
    let op = DeltaOp { op: DeltaKind::Merge.into(), path: "/a".into(), data: Bytes::from_static(b"1"), ts: 5, node_id: "n".into() };
    let patch = ContextPatch { context_id: "c".into(), base_version: 2, ops: vec![op], ..ContextPatch::default() };
    let patch_text = b"\x0a\x01c\x10\x02\x1a\x0f\x08\x03\x12\x02/a\x1a\x011\x20\x05\xc2\x3e\x01n";
    let cases: [(EnvelopePayload, &[u8]); 12] = [
        (EnvelopePayload::ContextPatch(patch.clone()), &[b"\x22\x16", patch_text.as_slice()].concat()),
        (EnvelopePayload::Capability(Bytes::from_static(b"\x1a\0")), b"\x2a\x02\x1a\0"),
        (EnvelopePayload::Route(Bytes::from_static(b"\x18\x07")), b"\x32\x02\x18\x07"),
        (
            EnvelopePayload::Error(ErrorMessage { code: 12, reason: "r".into(), diagnostics: Bytes::from_static(b"d") }),
            b"\x3a\x08\x08\x0c\x12\x01r\x1a\x01d",
        ),
        (EnvelopePayload::ProfileNegotiate(ProfileNegotiate { supported_mask: 7, min_required: 1 }), b"\x42\x04\x08\x07\x10\x01"),
        (EnvelopePayload::ProfileAck(ProfileAck { agreed_profile: 1 }), b"\x4a\x02\x08\x01"),
        (
            EnvelopePayload::Retry(RetryEnvelope { buffered_patches: vec![patch], ttl_ms: 1 }),
            &[b"\x52\x1a\x0a\x16", patch_text.as_slice(), b"\x10\x01"].concat(),
        ),
        (EnvelopePayload::Telemetry(Bytes::from_static(b"\x08\x01")), b"\x5a\x02\x08\x01"),
        (
            EnvelopePayload::SyncSubscribe(SyncSubscribe { from: Some(graph.clone()), ..SyncSubscribe::default() }),
            b"\xc2\x3e\x07\x0a\x05\x0a\x01c\x10\x2a",
        ),
        (
            EnvelopePayload::SyncRequest(SyncRequest { missing_from: Some(graph), to_version: 45 }),
            b"\xca\x3e\x09\x0a\x05\x0a\x01c\x10\x2a\x10\x2d",
        ),
        (
            EnvelopePayload::ContextInvalidation(ContextInvalidation {
                context_id: "c".into(),
                path: "/a".into(),
                ..ContextInvalidation::default()
            }),
            b"\xd2\x3e\x07\x0a\x01c\x12\x02/a",
        ),
        (EnvelopePayload::ProfileDowngrade(ProfileDowngrade { new_profile: 1, reason: "r".into() }), b"\xda\x3e\x05\x08\x01\x12\x01r"),
    ];
    for (payload, text) in cases {
        let written = AxcpEnvelope { version: 1, payload: Some(payload.clone()), ..AxcpEnvelope::default() };
        assert_eq!(written.encode_to_vec(), [b"\x08\x01", text].concat(), "{payload:?}");
        assert_eq!(received(&written).payload(), Ok(Some(payload)));
    }
}

#[test]
fn xc_01_another_version_is_refused() {
    assert_eq!(refusal(b""), AxcpError::Version(0));
    assert_eq!(refusal(b"\x08\x02"), AxcpError::Version(2));
}

#[test]
fn xc_02_a_profile_above_three_is_malformed() {
    assert_eq!(refusal(b"\x08\x01\x18\x04"), AxcpError::Malformed("a profile is a number from 0 to 3"));
    assert_eq!(refusal(b"\x08\x01\x18\x83\x80\x80\x80\x10"), AxcpError::Malformed("a profile is a number from 0 to 3"));
}

#[test]
fn xc_01_what_two_readers_could_understand_differently_is_refused() {
    for doubtful in [
        b"\x08\x01\x08\x01".as_slice(),
        b"\x08\x01\x18\x01\x18\x02",
        b"\x08\x01\x4a\x02\x08\x01\x4a\x02\x08\x02",
        b"\x08\x01\x4a\x02\x08\x01\x42\x02\x08\x02",
        b"\x08\x01\xa2\x06\x01a\xa2\x06\x01b",
        b"\x0a\x01\x01",
        b"\x08\x01\x12\x02\xff\xfe",
    ] {
        assert!(matches!(refusal(doubtful), AxcpError::Malformed(_)), "{doubtful:?}");
    }
}

#[test]
fn xc_01_more_entries_than_a_node_holds_are_refused() {
    let many = |count: usize| {
        let ops = vec![DeltaOp::default(); count];
        received(&envelope(2, Some(EnvelopePayload::ContextPatch(ContextPatch { ops, ..ContextPatch::default() })))).payload()
    };
    assert!(many(MOST_OPS).is_ok());
    assert_eq!(many(MOST_OPS + 1), Err(AxcpError::TooLarge { what: "the operations of an envelope", most: MOST_OPS }));
    let patch = ContextPatch { ops: vec![DeltaOp::default(); 100], ..ContextPatch::default() };
    for (count, fits) in [(40, true), (41, false)] {
        let retry = RetryEnvelope { buffered_patches: vec![patch.clone(); count], ttl_ms: 1 };
        assert_eq!(received(&envelope(2, Some(EnvelopePayload::Retry(retry)))).payload().is_ok(), fits);
    }
    let retry = RetryEnvelope { buffered_patches: vec![ContextPatch::default(); MOST_PATCHES + 1], ttl_ms: 1 };
    assert!(received(&envelope(2, Some(EnvelopePayload::Retry(retry)))).payload().is_err());
    let subscribed = SyncSubscribe { prefixes: vec![String::new(); 40], tags: vec![String::new(); 25], ..SyncSubscribe::default() };
    assert!(received(&envelope(2, Some(EnvelopePayload::SyncSubscribe(subscribed)))).payload().is_err());
    let subscribed = |length: usize| {
        let wish = SyncSubscribe { prefixes: vec!["x".repeat(length)], tags: vec![String::new()], ..SyncSubscribe::default() };
        received(&envelope(2, Some(EnvelopePayload::SyncSubscribe(wish)))).payload()
    };
    assert!(subscribed(MOST_FILTER).is_ok() && subscribed(MOST_FILTER + 1).is_err());
    let long = AxcpEnvelope { trace_id: "t".repeat(MOST_TRACE + 1), ..envelope(0, None) };
    assert_eq!(refusal(&long.encode_to_vec()).code().number(), 7);
}

#[test]
fn xc_11_the_unpacked_bytes_of_a_retry_are_bounded() {
    let packed = pack(vec![b' '; MOST_DATA].into());
    let retry = |count: usize| {
        let ops = vec![DeltaOp { data: packed.clone(), ..DeltaOp::default() }];
        let patch = ContextPatch { ops, ..ContextPatch::default() };
        let retry = RetryEnvelope { buffered_patches: vec![patch; count], ttl_ms: 1 };
        received(&envelope(2, Some(EnvelopePayload::Retry(retry)))).payload()
    };
    let fits = MOST_UNPACKED / MOST_DATA;
    assert!(retry(fits).is_ok());
    assert_eq!(retry(fits + 1), Err(AxcpError::TooLarge { what: "the unpacked bytes of a retry", most: MOST_UNPACKED }));
}

/// A field that this version does not know, between known ones, is under the signature and leaves as it came.
#[test]
fn xc_01_unknown_fields_stay_under_the_signature() {
    let ack = EnvelopePayload::ProfileAck(ProfileAck { agreed_profile: 1 });
    let written = write(&envelope(1, Some(ack)), |signed| Bytes::copy_from_slice(&signed[signed.len() - 4..])).unwrap();
    let newer = [written.as_ref(), b"\xa2\x7d\x03new"].concat();
    let relayed = ReceivedEnvelope::read(newer.clone().into()).unwrap();
    assert_eq!(relayed.text(), &newer);
    assert_ne!(relayed.signed(), ReceivedEnvelope::read(written.clone()).unwrap().signed());
    let again = ReceivedEnvelope::read(written).unwrap();
    assert!(again.signed().ends_with(again.signature()));
    assert_eq!(again.signed().len(), DOMAIN.len() + 32);
}

proptest! {
    #[test]
    fn xc_01_a_signature_is_over_the_bytes_wherever_it_stands(
        trace in "[a-z]{0,20}", profile in 0_u32..4, evidence in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let bare = AxcpEnvelope { trace_id: trace, attestation_proof: evidence.into(), ..envelope(profile, None) };
        let signed = AxcpEnvelope { signature: Bytes::from_static(b"sig"), ..bare.clone() };
        let appended = write(&bare, |_| Bytes::from_static(b"sig")).unwrap();
        prop_assert_eq!(received(&bare).signed(), received(&signed).signed());
        prop_assert_eq!(received(&bare).signed(), ReceivedEnvelope::read(appended).unwrap().signed());
    }

    #[test]
    fn xc_01_any_bytes_are_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(read) = ReceivedEnvelope::read(Bytes::from(text.clone())) {
            prop_assert_eq!(read.text(), &text);
            // What the library reads is what was found in the bytes.
            let reference = AxcpEnvelope::decode(text.as_slice());
            if let Ok(reference) = reference {
                prop_assert_eq!(reference.profile, read.profile());
                prop_assert_eq!(reference.trace_id.as_str(), read.trace_id());
                prop_assert_eq!(reference.signature.as_ref(), read.signature());
            }
        }
    }
}
