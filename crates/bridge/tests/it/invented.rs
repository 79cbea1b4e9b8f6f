//! Canonical messages for properties, each as a decoder may give them. Holds no assertion.

use std::borrow::Cow;

use bridge::{
    ArtifactHead, BindingId, CanonicalMessage, CanonicalPart, EnvelopeFacts, Failure, FailureClass, Hop, MessageKind, PartContent,
    QuotedText, RawJson, RawMember, Residue, ResiduePlace, Trail, Wants, WorkState,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const A2A: BindingId = BindingId::A2a;
const MCP: BindingId = BindingId::Mcp;
const AINP: BindingId = BindingId::Ainp;
const UACP: BindingId = BindingId::Uacp;

type Message = CanonicalMessage<'static>;

fn text() -> impl Strategy<Value = QuotedText<'static>> {
    let uuid = Just("550e8400-e29b-41d4-a716-446655440000".to_owned());
    prop_oneof![Just(String::new()), "[a-z]{1,8}", "[0-9a-f]{16,20}", uuid, any::<String>()].prop_map(|text| QuotedText::quote(&text))
}

fn raw() -> impl Strategy<Value = RawJson<'static>> {
    let values = [
        "1.0",
        "1e400",
        "-0",
        "12345678901234567890",
        "true",
        "[ 1,2.50 ]",
        "{\"a\" : \"\\u0041\"}",
        "{}",
        "\"\\ud800\"",
        "{\"parts\":[]}",
    ];
    prop::sample::select(values.to_vec()).prop_map(|value| Cow::Borrowed(value.as_bytes()))
}

fn residue(places: &'static [(BindingId, ResiduePlace)]) -> impl Strategy<Value = Vec<Residue<'static>>> {
    let members = vec((0..3_u8, raw()), 1..3);
    vec((prop::sample::select(places.to_vec()), members), 0..3).prop_map(|found| {
        let mut kept: Vec<Residue<'static>> = Vec::new();
        for ((binding, place), members) in found {
            if kept.iter().any(|other| (other.binding, other.place) == (binding, place)) {
                continue;
            }
            if let Some(members) = shaped(binding, place, &members) {
                kept.push(Residue { binding, place, members });
                continue;
            }
            let members = members.iter().enumerate().map(|(at, (name, raw))| RawMember::new(&format!("x-{at}-{name}é"), raw)).collect();
            kept.push(Residue { binding, place, members });
        }
        kept.sort_by_key(|found| (found.binding, found.place));
        kept
    })
}

/// Members of places that take no others; `None`: the place takes any.
fn shaped(binding: BindingId, place: ResiduePlace, members: &[(u8, RawJson<'static>)]) -> Option<Vec<RawMember<'static>>> {
    let first = members.first().map_or(0, |(name, _)| *name);
    Some(match (binding, place) {
        (AINP, ResiduePlace::Attestations) => vec![RawMember::new("others", br#"[{"a":1.0},"vc:x"]"#)],
        (AINP, ResiduePlace::Payload) if first == 1 => vec![RawMember::new("@context", b"\"https://a.example/own\"")],
        (UACP, ResiduePlace::Envelope) => vec![RawMember::new("qos", if first == 0 { b"0" } else { b"2" })],
        (UACP, ResiduePlace::Result) => vec![RawMember::new("code", if first == 0 { b"1" } else { b"63" })],
        (UACP, ResiduePlace::Options) => vec![RawMember::new("opt-05", br#"["","00ff"]"#), RawMember::new("opt-f0", br#"["61"]"#)],
        _ => return None,
    })
}

fn content() -> impl Strategy<Value = PartContent<'static>> {
    let foreign = prop::sample::select(vec![
        (A2A, &br#"{"hologram":[1.0],"x":{"text":"in"}}"#[..]),
        (MCP, &br#"{"type":"hologram","text":7,"_meta":{"a":1}}"#[..]),
    ]);
    prop_oneof![
        text().prop_map(PartContent::Text),
        text().prop_map(PartContent::Bytes),
        text().prop_map(PartContent::Uri),
        raw().prop_map(PartContent::Json),
        foreign.prop_map(|(binding, raw)| PartContent::Native(binding, Cow::Borrowed(raw))),
    ]
}

fn part(artifacts: usize) -> impl Strategy<Value = CanonicalPart<'static>> {
    const PLACES: &[(BindingId, ResiduePlace)] = &[
        (A2A, ResiduePlace::Part),
        (A2A, ResiduePlace::PartMeta),
        (MCP, ResiduePlace::Part),
        (MCP, ResiduePlace::PartMeta),
        (MCP, ResiduePlace::Resource),
    ];
    let media = prop_oneof![Just("image/png".to_owned()), Just("audio/ogg".to_owned()), Just("text/csv".to_owned()), any::<String>()];
    let media = option::of(media.prop_map(|media| QuotedText::quote(&media)));
    (content(), media, option::of(text()), 0..=artifacts, residue(PLACES)).prop_map(|(content, media_type, filename, artifact, residue)| {
        // A part of an unknown kind comes as one raw object, and has nothing beside.
        if matches!(content, PartContent::Native(..)) {
            return CanonicalPart { artifact: artifact.checked_sub(1), ..CanonicalPart::new(content) };
        }
        CanonicalPart { content, media_type, filename, artifact: artifact.checked_sub(1), residue }
    })
}

fn parts() -> impl Strategy<Value = (Vec<ArtifactHead<'static>>, Vec<CanonicalPart<'static>>)> {
    let rest =
        vec(raw(), 0..2).prop_map(|found| found.iter().enumerate().map(|(at, raw)| RawMember::new(&format!("y{at}"), raw)).collect());
    let head = (text(), option::of(text()), option::of(text()), rest);
    let head = head.prop_map(|(id, name, description, rest)| ArtifactHead { id, name, description, rest });
    vec(head, 0..3).prop_flat_map(|heads| {
        let most = heads.len();
        (Just(heads), vec(part(most), 0..5)).prop_map(|(heads, mut parts)| {
            parts.sort_by_key(|part| part.artifact.map_or(0, |index| index + 1));
            (heads, parts)
        })
    })
}

fn wants() -> impl Strategy<Value = Wants<'static>> {
    let modes = option::of(Just(Cow::Borrowed(&br#"["text/plain", "image/png"]"#[..])));
    let push = option::of((text(), any::<bool>()));
    (any::<bool>(), any::<bool>(), modes, push).prop_map(|(stream, immediate, modes, push)| {
        let (push, push_secret) = push.map_or((None, false), |(push, secret)| (Some(push), secret));
        Wants { stream, immediate, modes, push, push_secret }
    })
}

fn failure() -> impl Strategy<Value = Failure<'static>> {
    use FailureClass as C;
    let classes = vec![
        C::BadRequest,
        C::NotFound,
        C::Unauthorized,
        C::Forbidden,
        C::Conflict,
        C::Unsupported,
        C::Timeout,
        C::RateLimited,
        C::Unavailable,
        C::Internal,
    ];
    let code = prop::sample::select(vec![
        (A2A, "-32001"),
        (MCP, "-32022"),
        (A2A, "-1"),
        (MCP, "7e2"),
        (A2A, "-32602"),
        (AINP, "\"TIMEOUT\""),
        (AINP, "7"),
        (UACP, "131"),
        (UACP, "1"),
    ]);
    let code = option::of(code.prop_map(|(binding, code)| (binding, Cow::Borrowed(code.as_bytes()))));
    (prop::sample::select(classes), text(), code, option::of(any::<u64>())).prop_map(|(class, message, code, retry_after)| Failure {
        class,
        message,
        code,
        retry_after,
    })
}

fn trail() -> impl Strategy<Value = Trail<'static>> {
    let tokens = prop_oneof![vec(text(), 0..3), Just(vec![QuotedText::quote("e30.e30.AA"), QuotedText::quote("e30")])];
    let hops = vec(text(), 0..3);
    (tokens, option::of(text()), option::of(text()), hops).prop_map(|(ects, parent, callback, hops)| Trail { ects, parent, callback, hops })
}

fn state() -> impl Strategy<Value = WorkState> {
    use WorkState as S;
    let all = vec![S::Submitted, S::Working, S::Completed, S::Failed, S::Canceled, S::InputRequired, S::Rejected, S::AuthRequired];
    prop::sample::select(all)
}

/// A message with all that any binding may have given, at places of its own and of others.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    use ResiduePlace as P;
    const PLACES: &[(BindingId, ResiduePlace)] = &[
        (A2A, P::Envelope),
        (A2A, P::Params),
        (A2A, P::Cancel),
        (A2A, P::Configuration),
        (A2A, P::Push),
        (A2A, P::Message),
        (A2A, P::MessageMeta),
        (A2A, P::Meta),
        (A2A, P::Result),
        (A2A, P::Task),
        (A2A, P::Status),
        (A2A, P::StatusMessage),
        (A2A, P::Update),
        (A2A, P::Error),
        (MCP, P::Envelope),
        (MCP, P::Params),
        (MCP, P::Update),
        (MCP, P::Cancel),
        (MCP, P::Probe),
        (MCP, P::Meta),
        (MCP, P::Result),
        (MCP, P::Error),
        (AINP, P::Envelope),
        (AINP, P::Attestations),
        (AINP, P::Payload),
        (AINP, P::Semantics),
        (AINP, P::Result),
        (AINP, P::Error),
        (UACP, P::Envelope),
        (UACP, P::Result),
        (UACP, P::Options),
    ];
    use MessageKind as K;
    let kind = prop::sample::select(vec![K::Request, K::Response, K::Event, K::Failure, K::Cancel, K::Probe]);
    let ids = (text(), option::of(text()), option::of(text()), text(), option::of(state()));
    let numbers = option::of(Just(Cow::Borrowed(&b"1.50"[..])));
    let rest = (parts(), wants(), failure(), numbers, trail(), residue(PLACES));
    (kind, ids, rest).prop_map(
        |(kind, (op, id, conversation, task, state), ((artifacts, parts), wants, failure, progress, trail, residue))| Message {
            op: Some(op),
            id,
            conversation,
            task: Some(task),
            state,
            parts,
            artifacts,
            wants,
            failure: (kind == K::Failure).then_some(failure),
            total: progress.clone(),
            progress,
            trail,
            residue,
            ..Message::new(kind)
        },
    )
}

/// A hop with every fact that a binding asks for.
pub(crate) fn hop() -> Hop<'static> {
    let raw = |text: &'static str| Some(Cow::Borrowed(text.as_bytes()));
    let name = |text| Some(QuotedText::quote(text));
    let id = name("2f1e4fc0-81fd-4a9b-8b0e-6f1b2a3c4d5e");
    let envelope = EnvelopeFacts { id, from: name("did:web:a.example"), to: name("did:web:b.example"), time: 7, lifetime: Some(9) };
    Hop { id: raw("7"), token: raw("1.0"), target: raw("3"), count: 4, stateless: true, envelope, ..Hop::default() }
}
