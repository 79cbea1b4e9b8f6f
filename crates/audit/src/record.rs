//! What is worth a record: one shape an event. Members stand in the order of RFC 8785, so that writing them down is canonical already.
//! Does not know the chain. Times are microseconds since 1970, durations microseconds.

use std::borrow::Cow;

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::hash::Hash;

/// Text that may be borrowed from where the record is made.
pub type Text<'a> = Cow<'a, str>;

/// One event.
#[derive(Debug, Clone)]
pub enum Record<'a> {
    /// Somebody has to agree to a call.
    ApprovalAsked(Asked<'a>),
    /// Somebody did, or did not.
    ApprovalDecided(Decided<'a>),
    /// Entries were cut or lost here, and the chain goes on.
    BrokeHere(Broke<'a>),
    /// A call that was over when it was written down: intent and outcome in one.
    Called(Called<'a>),
    /// The configuration, or the policy, is another one from here on.
    Changed(Changed<'a>),
    /// A call that was written down as intended has ended.
    Ended(Ended<'a>),
    /// Calls that could not be written down.
    Gap(Gap),
    /// A call is about to leave for its owner.
    Intended(Intent<'a>),
    /// A call was not made.
    Refused(Refused<'a>),
    /// A server registered itself, or no longer is.
    Registration(Registration<'a>),
    /// The gate began to write here.
    Started(Started<'a>),
    /// The gate ended in order.
    Stopped,
    /// What a later version writes.
    Unknown {
        /// Its name.
        event: Text<'a>,
        /// What it says, raw.
        facts: &'a RawValue,
    },
}

/// The names of all events that this version writes; a record may hold others, of a later one.
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

    /// The same, where this version writes such events.
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

    /// What somebody wanted done, where it says so.
    pub fn intent(&self) -> Option<&Intent<'a>> {
        if let Self::Called(Called { intent, .. }) | Self::Intended(intent) | Self::Refused(Refused { intent, .. }) = self {
            return Some(intent);
        }
        None
    }

    /// How a call ended, where it says so.
    pub fn outcome(&self) -> Option<&Outcome<'a>> {
        if let Self::Called(Called { outcome, .. }) | Self::Ended(Ended { outcome, .. }) = self { Some(outcome) } else { None }
    }
}

/// What somebody wanted done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent<'a> {
    /// The approval, or the grant, by which it goes out; absent where nobody had to agree.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Text<'a>>,
    /// What it was to be done with; absent where nothing could be read.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Arguments<'a>>,
    /// When it came.
    pub began: u64,
    /// The call's id: its records share it.
    #[serde(borrow)]
    pub call: Text<'a>,
    /// The decision that let it through, or did not.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Text<'a>>,
    /// Whether somebody had to agree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    /// The MCP method.
    #[serde(borrow)]
    pub method: Text<'a>,
    /// The mount that owns what is named; absent where nobody does.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<Text<'a>>,
    /// What the owner calls it: a tool, a prompt, a URI, a task; or what the caller named where nobody owns it.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// For whom.
    #[serde(borrow)]
    pub principal: Text<'a>,
    /// The id of the request, raw JSON in a string.
    #[serde(borrow)]
    pub request: Text<'a>,
    /// The trace (W3C, 32 digits) that it belongs to, over all gates on its way.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Text<'a>>,
}

/// Arguments without what they say, unless that is configured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments<'a> {
    /// SHA-256 of their canonical form; of their bytes where they have none.
    pub hash: Hash,
    /// What they look like ([`crate::shape`]).
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Raw<'a>>,
    /// They themselves, in canonical form.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Raw<'a>>,
}

/// A JSON value as it is written. Whoever makes one answers for it being one, in canonical form.
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

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome<'a> {
    /// The length of the result, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The JSON-RPC code of an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// `done`, `tool_error`, `error`, `cancelled`, `timed_out`, `unknown` (it may have taken effect), or `refused`.
    #[serde(borrow)]
    pub ending: Text<'a>,
    /// What was wrong, for people; never what an owner answered.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
    /// From the request to its answer.
    pub took: u64,
}

/// [`Record::Called`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Called<'a> {
    /// What was wanted.
    #[serde(borrow)]
    pub intent: Intent<'a>,
    /// What became of it.
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
    /// What became of it.
    #[serde(borrow)]
    pub outcome: Outcome<'a>,
}

/// [`Record::Refused`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused<'a> {
    /// The JSON-RPC code that the caller got.
    pub code: i64,
    /// Number of refusals of this principal for this reason that the entry counts, from when the first came until it was written; absent: one.
    /// The intent is that of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// What was wanted.
    #[serde(borrow)]
    pub intent: Intent<'a>,
    /// Why not, in one word of `docs/audit.md`: the caller may have been told less.
    #[serde(borrow)]
    pub reason: Text<'a>,
    /// The rules that said so.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Text<'a>>,
}

/// [`Record::ApprovalAsked`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked<'a> {
    /// The approval's id: the `approval` of the calls that go out by it.
    #[serde(borrow)]
    pub approval: Text<'a>,
    /// Why somebody has to agree: `mode`, `policy` or `below`.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Text<'a>>,
    /// SHA-256 of the challenge that is to be signed.
    pub challenge: Hash,
    /// When it is denied unless somebody agrees.
    pub expires: u64,
    /// The version of the policy that wants it.
    #[serde(borrow)]
    pub policy: Text<'a>,
    /// Who wants the call.
    #[serde(borrow)]
    pub principal: Text<'a>,
    /// How many different people have to agree.
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
    /// Who decided; absent where nobody did, or nobody showed who they are.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Text<'a>>,
    /// SHA-256 of the challenge that was signed.
    pub challenge: Hash,
    /// `approved` (and more have to), `released`, `denied`, `expired`, `withdrawn`, `void` or `outcome_unknown`.
    #[serde(borrow)]
    pub decision: Text<'a>,
    /// The fingerprint of the key that signed, or the service.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Text<'a>>,
    /// SHA-256 of the signature, or of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Hash>,
    /// What whoever decided said.
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
    /// Who it says it is.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<Text<'a>>,
    /// Number of refusals of this principal that the entry counts; absent: one. The other members describe the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Who registered it.
    #[serde(borrow)]
    pub principal: Text<'a>,
    /// Why it was refused or is gone.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
    /// The segment it has or wanted; absent where what it asked can't be read.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Text<'a>>,
    /// Its stable id, where it has one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub subserver: Option<Text<'a>>,
    /// `registered`, `refused`, `lost` or `ended`.
    #[serde(borrow)]
    pub what: Text<'a>,
}

/// [`Record::Changed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed<'a> {
    /// What differs, a line each, without secrets.
    #[serde(borrow)]
    pub lines: Vec<Text<'a>>,
    /// Its number or digest, where it has one.
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
    /// The chain before this one, where this one begins because that one is broken.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After<'a>>,
    /// The gate's id.
    #[serde(borrow)]
    pub node: Text<'a>,
    /// Banyan's version.
    #[serde(borrow)]
    pub version: Text<'a>,
}

/// A chain that is not continued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After<'a> {
    /// Its directory's name.
    #[serde(borrow)]
    pub chain: Text<'a>,
    /// The root of its last signed checkpoint, where that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Hash>,
    /// How many entries that has.
    pub size: u64,
    /// Why it is not continued.
    #[serde(borrow)]
    pub why: Text<'a>,
}

/// [`Record::BrokeHere`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broke<'a> {
    /// How many bytes were cut behind the last whole entry.
    pub cut: u64,
    /// What was found.
    #[serde(borrow)]
    pub why: Text<'a>,
}

/// [`Record::Gap`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// How many records there would have been.
    pub missing: u64,
    /// Since when.
    pub since: u64,
}
