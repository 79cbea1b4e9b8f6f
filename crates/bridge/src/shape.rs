//! Shapes of residue from bindings with values that are no JSON, or that stand for their absence. Reads no message.

use crate::binding::BindingId;
use crate::hex;
use crate::message::ResiduePlace;
use crate::raw::RawMember;

/// Values of AINP that are written where a message has no others, and that count as absent.
pub(crate) const SCHEMA: &[u8] = b"\"https://ainp.dev/schemas/intents/request-service/v1\"";
pub(crate) const CONTEXT: &[u8] = b"\"https://ainp.dev/contexts/service/v1\"";
pub(crate) const VERSION: &[u8] = b"\"1.0.0\"";
/// A vector without a meaning: no model stands behind a gate.
pub(crate) const EMBEDDING: &[u8] = br#"{"b64":"AAAAAA==","dim":1,"dtype":"f32","model":"urn:io.banyan:none"}"#;

/// Begin of a token among the attestations of AINP.
pub(crate) const TOKEN: &[u8] = b"\"ect:";
/// Member for the other attestations.
pub(crate) const OTHERS: &str = "others";

/// Members for the header of µACP.
pub(crate) const QOS: &str = "qos";
pub(crate) const CODE: &str = "code";
/// Begin of the member for the options of a type.
const OPTION: &str = "opt-";
/// Options of µACP that the codec reads: ids, topic, form of the payload, and the vendor options of AEPB.
pub(crate) const READ_OPTIONS: [u8; 8] = [0x01, 0x02, 0x03, 0x04, 0x40, 0x41, 0x42, 0x43];
/// Longest value of an option, in bytes.
pub(crate) const MOST_OPTION: usize = 255;

/// Checks residue of a peer: no member may stand for a field, or for nothing.
pub(crate) fn is_shaped(binding: BindingId, place: ResiduePlace, members: &[RawMember<'_>]) -> bool {
    match (binding, place) {
        (BindingId::Ainp, ResiduePlace::Envelope) => !has(members, "schema", SCHEMA),
        (BindingId::Ainp, ResiduePlace::Payload) => {
            !has(members, "@context", CONTEXT) && !has(members, "version", VERSION) && !has(members, "embedding", EMBEDDING)
        }
        (BindingId::Ainp, ResiduePlace::Attestations) => {
            matches!(members, [only] if only.key() == OTHERS && others(only).is_some())
        }
        (BindingId::Uacp, ResiduePlace::Envelope) => matches!(members, [only] if only.key() == QOS && qos(only).is_some()),
        (BindingId::Uacp, ResiduePlace::Result) => matches!(members, [only] if only.key() == CODE && success(only).is_some()),
        (BindingId::Uacp, ResiduePlace::Options) => members.iter().all(|member| options(member).is_some()),
        (BindingId::A2a | BindingId::Mcp | BindingId::Slim | BindingId::Ainp | BindingId::Uacp, _) => true,
    }
}

fn has(members: &[RawMember<'_>], key: &str, value: &[u8]) -> bool {
    members.iter().any(|member| member.key() == key && member.value() == value)
}

/// The raw attestations besides tokens.
pub(crate) fn others<'m>(member: &'m RawMember<'_>) -> Option<Vec<&'m [u8]>> {
    json::elements(member.value()).filter(|found| !found.is_empty() && !found.iter().any(|one| one.starts_with(TOKEN)))
}

fn number(member: &RawMember<'_>) -> Option<u8> {
    std::str::from_utf8(member.value()).ok().and_then(|digits| digits.parse().ok())
}

/// A quality of service other than the usual.
pub(crate) fn qos(member: &RawMember<'_>) -> Option<u8> {
    number(member).filter(|qos| matches!(qos, 0 | 2))
}

/// A code of success without a state of work.
pub(crate) fn success(member: &RawMember<'_>) -> Option<u8> {
    number(member).filter(|code| matches!(code, 1 | 3..=0x3f))
}

/// Names the member for options of a type.
pub(crate) fn option_key(kind: u8) -> String {
    format!("{OPTION}{}", hex::write(&[kind]))
}

/// The type and the values of options.
pub(crate) fn options(member: &RawMember<'_>) -> Option<(u8, Vec<Vec<u8>>)> {
    let digits = member.key().strip_prefix(OPTION)?;
    let kind = match &hex::read(digits)?[..] {
        [kind] if !READ_OPTIONS.contains(kind) => *kind,
        _ => return None,
    };
    let values = json::elements(member.value()).filter(|found| !found.is_empty())?;
    let value = |raw| hex::read(&json::as_str(raw)?).filter(|value: &Vec<u8>| value.len() <= MOST_OPTION);
    Some((kind, values.into_iter().map(value).collect::<Option<_>>()?))
}
