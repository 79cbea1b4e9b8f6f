//! Fixed texts of µACP and AINP: made by hand or by another program from the facts of the bindings, never by a codec.

use std::borrow::Cow;

use bridge::{
    BindingId, BridgeError, EnvelopeKey, EnvelopeSeal, Hop, LossFate, MessageKind, WorkState, decode, did_of_key, encode, key_of_did, seal,
    seal_of, translate,
};

use crate::invented::hop;

/// Asks at least once with the number 0x010203 for the topic `pay`, in CBOR: the header is the example of the author.
const ASK: &str = "640004080c0400000303706179a166616d6f756e74fb3ff8000000000000";
/// Answers with the code 0x02, in JSON, as the Python library does: the same verb, another number, and a Correlation-ID of four bytes.
const ACCEPTED: &str = "640841110c0800000204000102030404000000017b2261223a312e35307d";
/// Refuses with the code 0x43, in words.
const REFUSAL: &str = "650c04080c0800000203010203040400000003616273656e74";

const KEY: &str = "did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
const INTENT: &str = r#"{"version":"0.1.0","msg_type":"INTENT","id":"7b2b1d0e-3c5a-4f6b-8a9c-0d1e2f3a4b5c","timestamp":1700000000000,"ttl":60000,"trace_id":"550e8400-e29b-41d4-a716-446655440000","from_did":"did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd","to_did":"did:web:gate.example","schema":"https://ainp.dev/schemas/intents/request-service/v1","qos":{"urgency":0.5,"importance":0.25,"novelty":0,"ethicalWeight":1,"bid":0},"attestations":["ect:e30.e30.AA","vc:1"],"payload":{"@context":"https://ainp.dev/contexts/service/v1","@type":"RequestService","version":"1.0.0","embedding":{"b64":"AACAPw==","dim":1,"dtype":"f32","model":"m"},"semantics":{"service_type":"pay","details":{"amount":1.5}},"budget":{"max_credits":3}}}"#;
/// Signatures of the intent with the key of the seed 00, 01 … 1f, by another program.
const SPEC: &str = "/lMFW2uDFRSpMOX9lawoMfjrq/jE9f4GkwQFFOuRcXXpyjFxqEkOkHjeALGzYOaHZjXCdz7wBoPikCy9viz+BA==";
const SDK: &str = "Th/Mkt4VNE9jwCShE/P7I7PDjBrEBb+f5X63jqKq5c1eNMoudJDQkIYGBQJfYyIZdYQnkwgR9veutapLatZCCQ==";

fn bytes(digits: &str) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or_default();
    digits.as_bytes().chunks(2).map(|pair| pair.iter().fold(0, |byte, one| byte << 4 | digit(one))).collect()
}

fn key() -> EnvelopeKey {
    let seed = std::array::from_fn(|at| u8::try_from(at).unwrap_or_default());
    EnvelopeKey::of_seed(&seed).unwrap_or_else(|| panic!("every seed makes a key"))
}

#[test]
fn ae_11_a_question_of_uacp_is_a_call_of_mcp() {
    let read = bytes(ASK);
    let incoming = decode(BindingId::Uacp, &read).unwrap();
    assert_eq!((incoming.hop.id.as_deref(), incoming.hop.cbor), (Some(&b"66051"[..]), true));
    let sent = translate((BindingId::Uacp, BindingId::Mcp), &read, &hop(), |_| {}).unwrap();
    let text = String::from_utf8(sent.text).unwrap();
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","arguments":{"amount":1.5}}}"#);
    assert!(sent.losses.is_empty(), "{:?}", sent.losses);
    let again = encode(BindingId::Uacp, &incoming.message, &incoming.hop).unwrap();
    let native = [&read[..13], &[0x04, 0x04, 0, 0, 0, 0], &read[13..]].concat();
    assert_eq!(again.text[8..], native[8..], "the same question, with the form of its payload");
}

#[test]
fn ae_11_a_result_of_mcp_is_an_answer_of_uacp() {
    let result = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"sunny"}]}}"#;
    let to = Hop { id: Some(Cow::Borrowed(b"66051")), ..Hop::default() };
    let sent = translate((BindingId::Mcp, BindingId::Uacp), result.as_bytes(), &to, |_| {}).unwrap();
    assert_eq!(sent.text, bytes("640004080c080000020301020304040000000373756e6e79"));
    let failed = result.replace("]}}", r#"],"isError":true}}"#);
    let sent = translate((BindingId::Mcp, BindingId::Uacp), failed.as_bytes(), &to, |_| {}).unwrap();
    let back = decode(BindingId::Uacp, &sent.text).unwrap();
    assert_eq!((back.message.kind, back.message.state), (MessageKind::Response, Some(WorkState::Failed)));
}

#[test]
fn ae_11_answers_of_uacp_are_read_by_their_codes() {
    let accepted = bytes(ACCEPTED);
    let incoming = decode(BindingId::Uacp, &accepted).unwrap();
    assert_eq!((incoming.message.kind, incoming.message.state), (MessageKind::Response, Some(WorkState::Working)));
    assert_eq!(incoming.hop.id.as_deref(), Some(&b"66051"[..]));
    let refusal = bytes(REFUSAL);
    let message = decode(BindingId::Uacp, &refusal).unwrap().message;
    let failure = message.failure.unwrap();
    assert_eq!((failure.class, &*failure.message.text()), (bridge::FailureClass::NotFound, "absent"));
}

#[test]
fn ae_11_frames_without_sense_are_refused() {
    let ask = bytes(ASK);
    for broken in ["24000408", "6c00040800000001", "64000408", "640004080c040000030570617900"] {
        assert!(decode(BindingId::Uacp, &bytes(broken)).is_err(), "{broken}");
    }
    let twice = [&bytes("640004080c080000")[..], &ask[8..13], &ask[8..13]].concat();
    assert!(matches!(decode(BindingId::Uacp, &twice), Err(BridgeError::Malformed { at: "options", .. })));
    let long = [&ask[..], &[b' '; 65_536]].concat();
    assert_eq!(decode(BindingId::Uacp, &long).err(), Some(BridgeError::TooLarge));
}

#[test]
fn ae_11_an_intent_of_ainp_is_a_call_of_mcp() {
    let incoming = decode(BindingId::Ainp, INTENT.as_bytes()).unwrap();
    assert_eq!(incoming.hop.envelope.from.as_ref().unwrap().text(), KEY);
    assert_eq!((incoming.hop.envelope.time, incoming.hop.envelope.lifetime), (1_700_000_000_000, Some(60_000)));
    assert_eq!(incoming.message.trail.ects[0].text(), "e30.e30.AA");
    let sent = translate((BindingId::Ainp, BindingId::Mcp), INTENT.as_bytes(), &hop(), |_| {}).unwrap();
    let text = String::from_utf8(sent.text).unwrap();
    let native = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","arguments":{"amount":1.5},"_meta":{"#;
    assert!(text.starts_with(native), "{text}");
    assert!(sent.losses.iter().all(|loss| loss.fate == LossFate::Carried));
}

#[test]
fn ae_11_a_result_of_mcp_is_a_result_of_ainp() {
    let result = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"sunny"}]}}"#;
    let to = Hop { id: Some(Cow::Borrowed(b"\"7b2b1d0e-3c5a-4f6b-8a9c-0d1e2f3a4b5c\"")), ..hop() };
    let sent = translate((BindingId::Mcp, BindingId::Ainp), result.as_bytes(), &to, |_| {}).unwrap();
    let expected = r#"{"version":"0.1.0","msg_type":"RESULT","id":"2f1e4fc0-81fd-4a9b-8b0e-6f1b2a3c4d5e","timestamp":7,"ttl":9,"from_did":"did:web:a.example","to_did":"did:web:b.example","schema":"https://ainp.dev/schemas/intents/request-service/v1","payload":{"intent_id":"7b2b1d0e-3c5a-4f6b-8a9c-0d1e2f3a4b5c","status":"success","result":"sunny","io.banyan/aepb":{"made":["id"]}}}"#;
    assert_eq!(String::from_utf8(sent.text).unwrap(), expected);
}

#[test]
fn ae_11_envelopes_are_signed_in_either_mode() {
    let public = key_of_did(KEY).unwrap();
    assert_eq!((did_of_key(&public), key().did()), (KEY.to_owned(), KEY.to_owned()));
    for (mode, sig) in [(EnvelopeSeal::Spec, SPEC), (EnvelopeSeal::Sdk, SDK)] {
        let sealed = seal(INTENT.as_bytes(), mode, &key()).unwrap();
        let expected = format!("{},\"sig\":\"{sig}\"}}", &INTENT[..INTENT.len() - 1]);
        assert_eq!(String::from_utf8(sealed.clone()).unwrap(), expected);
        assert_eq!(seal_of(&sealed, &public), Ok(Some(mode)));
        let spaced = expected.replace(",\"payload\"", " , \"payload\"");
        assert_eq!(seal_of(spaced.as_bytes(), &public), Ok(Some(mode)), "the form is canonical");
        assert_eq!(seal_of(expected.replace("1.5", "2.5").as_bytes(), &public), Ok(None));
        assert_eq!(seal_of(&sealed, &[1; 32]), Ok(None));
        assert!(seal(&sealed, mode, &key()).is_err(), "no envelope is signed twice");
    }
    assert_eq!(seal_of(INTENT.as_bytes(), &public), Ok(None));
    assert_eq!((key_of_did("did:web:a.example"), key_of_did("did:key:z0"), key_of_did("did:key:z6Mk")), (None, None, None));
}

#[test]
fn ae_11_a_peer_that_writes_cbor_is_answered_in_cbor() {
    let value = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"b" : [1.5,-7,true,null],"a":"\u00e9"}}}"#;
    let to = Hop { id: Some(Cow::Borrowed(b"1")), cbor: true, ..Hop::default() };
    let sent = translate((BindingId::Mcp, BindingId::Uacp), value.as_bytes(), &to, |_| {}).unwrap();
    let back = translate((BindingId::Uacp, BindingId::Mcp), &sent.text, &hop(), |_| {}).unwrap();
    assert!(String::from_utf8(back.text).unwrap().contains(r#""structuredContent":{"a":"é","b":[1.5,-7,true,null]}"#));
    let exact = value.replace("1.5", "12345678901234567890123");
    let sent = translate((BindingId::Mcp, BindingId::Uacp), exact.as_bytes(), &to, |_| {}).unwrap();
    assert!(String::from_utf8_lossy(&sent.text).contains("12345678901234567890123"), "no number is rounded: JSON goes out instead");
}
