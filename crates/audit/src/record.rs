//! Recorded events: one shape each. Members stand in the order of RFC 8785, so that plain writing is canonical already.
//! Does not know the chain. Times are microseconds since 1970, durations microseconds.

use std::borrow::Cow;

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::hash::Hash;

/// Text borrowed from the maker of the record where possible.
pub type Text<'a> = Cow<'a, str>;

/// An event.
#[derive(Debug, Clone)]
pub enum Record<'a> {
    /// Somebody has to agree to a call.
    ApprovalAsked(Asked<'a>),
    /// Somebody did, or did not.
    ApprovalDecided(Decided<'a>),
    /// Entries were cut or lost here, and the chain goes on.
    BrokeHere(Broke<'a>),
    /// A call recorded after its end: intent and outcome in one.
    Called(Called<'a>),
    /// A new configuration or policy holds from here on.
    Changed(Changed<'a>),
    /// The end of a call recorded earlier as intended.
    Ended(Ended<'a>),
    /// Calls that could not be recorded.
    Gap(Gap),
    /// A call about to leave for its owner.
    Intended(Intent<'a>),
    /// A call was not made.
    Refused(Refused<'a>),
    /// A server registered itself, or no longer is.
    Registration(Registration<'a>),
    /// The gate began to write here.
    Started(Started<'a>),
    /// The gate ended in order.
    Stopped,
    /// An event of a later version.
    Unknown {
        event: Text<'a>,
        /// The facts, raw.
        facts: &'a RawValue,
    },
}

/// Names of all events written by this version; a record may hold events of later versions.
pub const EVENTS: [&str; 12] = [
    "approval_asked",
    "approval_decided",
    "broke_here",
    "called",
    "changed",
    "ended",
    "gap",
    "intended",
    "refused",
    "registration",
    "started",
    "stopped",
];

impl<'a> Record<'a> {
    /// The name of the event in a line.
    pub fn event(&self) -> &str {
        if let Self::Unknown { event, .. } = self { event } else { self.known().unwrap_or_default() }
    }

    /// Gives the event's name, for events written by this version.
    pub fn known(&self) -> Option<&'static str> {
        Some(match self {
            Self::ApprovalAsked(_) => "approval_asked",
            Self::ApprovalDecided(_) => "approval_decided",
            Self::BrokeHere(_) => "broke_here",
            Self::Called(_) => "called",
            Self::Changed(_) => "changed",
            Self::Ended(_) => "ended",
            Self::Gap(_) => "gap",
            Self::Intended(_) => "intended",
            Self::Refused(_) => "refused",
            Self::Registration(_) => "registration",
            Self::Started(_) => "started",
            Self::Stopped => "stopped",
            Self::Unknown { .. } => return None,
        })
    }

    /// Gives the intent, for events with one.
    pub fn intent(&self) -> Option<&Intent<'a>> {
        if let Self::Called(Called { intent, .. }) | Self::Intended(intent) | Self::Refused(Refused { intent, .. }) = self {
            return Some(intent);
        }
        None
    }

    /// Gives the outcome, for events with one.
    pub fn outcome(&self) -> Option<&Outcome<'a>> {
        if let Self::Called(Called { outcome, .. }) | Self::Ended(Ended { outcome, .. }) = self { Some(outcome) } else { None }
    }
}

/// A wanted call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent<'a> {
    /// The approval, or the grant, that lets the call go out; absent where nobody had to agree.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Text<'a>>,
    /// Absent where no arguments could be read.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Arguments<'a>>,
    /// Time of arrival.
    pub began: u64,
    /// The call's id, shared by all records of the call.
    #[serde(borrow)]
    pub call: Text<'a>,
    /// The policy decision.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Text<'a>>,
    /// Somebody had to agree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    #[serde(borrow)]
    pub method: Text<'a>,
    /// The mount that owns the named thing; absent without an owner.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<Text<'a>>,
    /// The owner's name of a tool, prompt, URI or task; or the caller's name of something without an owner.
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub principal: Text<'a>,
    /// The id of the request, raw JSON in a string.
    #[serde(borrow)]
    pub request: Text<'a>,
    /// The trace (W3C, 32 digits) of the call, over all gates on its way.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Text<'a>>,
}

/// Arguments, without their content unless the configuration asks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments<'a> {
    /// SHA-256 of the canonical form; of the bytes where no canonical form exists.
    pub hash: Hash,
    /// Types, lengths and keys ([`crate::shape`]).
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Raw<'a>>,
    /// The arguments in canonical form.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Raw<'a>>,
}

/// A JSON value as text. The maker answers for canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(pub &'a str);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let checked: &RawValue = serde_json::from_str(self.0).map_err(S::Error::custom)?;
        checked.serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(|raw| Self(raw.get()))
    }
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome<'a> {
    /// Length of the result, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The JSON-RPC code of an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// `done`, `tool_error`, `error`, `cancelled`, `timed_out`, `unknown` (the call may have taken effect), or `refused`.
    #[serde(borrow)]
    pub ending: Text<'a>,
    /// The fault, for people; never the answer of an owner.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
    /// From the request to the answer.
    pub took: u64,
}

/// [`Record::Called`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Called<'a> {
    #[serde(borrow)]
    pub intent: Intent<'a>,
    #[serde(borrow)]
    pub outcome: Outcome<'a>,
}

/// [`Record::Ended`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended<'a> {
    /// The call's id.
    #[serde(borrow)]
    pub call: Text<'a>,
    #[serde(borrow)]
    pub outcome: Outcome<'a>,
}

/// [`Record::Refused`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused<'a> {
    /// The JSON-RPC code sent to the caller.
    pub code: i64,
    /// Number of refusals of this principal for this reason that the entry counts, from the first until the time of writing; absent: one.
    /// The intent is that of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(borrow)]
    pub intent: Intent<'a>,
    /// The cause, in one word of `docs/audit.md`: the caller may have been told less.
    #[serde(borrow)]
    pub reason: Text<'a>,
    /// The refusing rules.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Text<'a>>,
}

/// [`Record::ApprovalAsked`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked<'a> {
    /// The approval's id: the `approval` of the calls sent by it.
    #[serde(borrow)]
    pub approval: Text<'a>,
    /// Causes for asking somebody: `mode`, `policy` or `below`.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Text<'a>>,
    /// SHA-256 of the challenge to be signed.
    pub challenge: Hash,
    /// Time of denial, unless somebody agrees before.
    pub expires: u64,
    /// The version of the policy.
    #[serde(borrow)]
    pub policy: Text<'a>,
    #[serde(borrow)]
    pub principal: Text<'a>,
    /// Number of different people who have to agree.
    pub required: u8,
    /// The dotted name of the tool.
    #[serde(borrow)]
    pub tool: Text<'a>,
}

/// [`Record::ApprovalDecided`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided<'a> {
    /// The approval's id.
    #[serde(borrow)]
    pub approval: Text<'a>,
    /// The person who decided; absent where nobody decided, or nobody identified themselves.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Text<'a>>,
    /// SHA-256 of the signed challenge.
    pub challenge: Hash,
    /// `approved` (and more have to), `released`, `denied`, `expired`, `withdrawn`, `void` or `outcome_unknown`.
    #[serde(borrow)]
    pub decision: Text<'a>,
    /// Fingerprint of the signing key, or the service.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Text<'a>>,
    /// SHA-256 of the signature, or of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Hash>,
    /// The words of the person who decided.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
    /// The dotted name of the tool.
    #[serde(borrow)]
    pub tool: Text<'a>,
}

/// [`Record::Registration`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration<'a> {
    /// The authority claimed by the subserver.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<Text<'a>>,
    /// Number of refusals of this principal that the entry counts; absent: one. The other members describe the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(borrow)]
    pub principal: Text<'a>,
    /// Cause of the refusal or the departure.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
    /// The segment held or wanted; absent where the request can't be read.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Text<'a>>,
    /// The stable id of the subserver, if any.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub subserver: Option<Text<'a>>,
    /// `registered`, `refused`, `lost`, `ended`, or `released` where the owner of the gate frees the segment of an authority.
    #[serde(borrow)]
    pub what: Text<'a>,
}

/// [`Record::Changed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed<'a> {
    /// Differences, a line each, without secrets.
    #[serde(borrow)]
    pub lines: Vec<Text<'a>>,
    /// Number or digest of the version, if any.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Text<'a>>,
    /// `configuration`, `grants`, `operators` or `policy`.
    #[serde(borrow)]
    pub what: Text<'a>,
}

/// [`Record::Started`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started<'a> {
    /// The chain before, where a broken chain made this one begin.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After<'a>>,
    /// The gate's id.
    #[serde(borrow)]
    pub node: Text<'a>,
    #[serde(borrow)]
    pub version: Text<'a>,
}

/// A chain that is not continued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After<'a> {
    /// Name of the directory.
    #[serde(borrow)]
    pub chain: Text<'a>,
    /// Root of the last signed checkpoint, if readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Hash>,
    /// Number of entries under the root.
    pub size: u64,
    #[serde(borrow)]
    pub why: Text<'a>,
}

/// [`Record::BrokeHere`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broke<'a> {
    /// Bytes cut behind the last whole entry.
    pub cut: u64,
    #[serde(borrow)]
    pub why: Text<'a>,
}

/// [`Record::Gap`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// Number of missing records.
    pub missing: u64,
    pub since: u64,
}
