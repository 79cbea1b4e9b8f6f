//! A proposal as seen by rules. Does not match rules.

use std::collections::BTreeMap;

use json::{Duplicates, Members};
use serde::{Deserialize, Serialize};

use crate::envelope::Envelope;
use crate::participant::named;

/// Bound on bytes of arguments. Longer arguments are neither learnt from nor covered by rules.
const MAX_BYTES: usize = 16 << 10;
/// The same bound for values.
const MAX_LEAVES: usize = 64;

/// Proposer, audience and operation: every rule has one subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    pub proposer: String,
    /// Addressees of the proposal, in order; empty: everybody.
    pub to: Vec<String>,
    pub method: String,
    /// The tool, resource or prompt, where the method has one.
    pub name: Option<String>,
}

/// A value within the arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leaf {
    /// `{}`, `[]`, `null`, `true` or `false`, in the original spelling.
    Fixed(String),
    /// In the original spelling.
    Number(String),
    /// Unescaped.
    Text(String),
}

/// A proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub subject: Subject,
    /// Values of `params` except `_meta`, by their place, such as `/arguments/paths[0]`; `None`: too many, or legible in two ways.
    pub arguments: Option<BTreeMap<String, Leaf>>,
}

impl Case {
    /// Reads a proposal.
    pub fn of_proposal(proposal: &Envelope<'_>) -> Self {
        let to = ordered(proposal);
        Self::read(proposal, proposal.from.to_string(), to)
    }

    /// Reads a request as if the proposer of this case had proposed the same call; gives the addressees of the request too.
    pub(super) fn asked_by(&self, request: &Envelope<'_>) -> (Self, Vec<String>) {
        (Self::read(request, self.subject.proposer.clone(), self.subject.to.clone()), ordered(request))
    }

    fn read(envelope: &Envelope<'_>, proposer: String, to: Vec<String>) -> Self {
        let payload = Members::again(envelope.payload);
        let (method, params) = (payload.str("method").unwrap_or_default().into_owned(), payload.object("params").unwrap_or_default());
        let name = named(&method, &params).map(|name| name.into_owned());
        let arguments = payload.get("params").map_or_else(|| Some(BTreeMap::new()), leaves);
        Self { subject: Subject { proposer, to, method, name }, arguments }
    }
}

fn ordered(envelope: &Envelope<'_>) -> Vec<String> {
    let mut to: Vec<String> = envelope.to.iter().map(ToString::to_string).collect();
    to.sort();
    to.dedup();
    to
}

fn leaves(params: &[u8]) -> Option<BTreeMap<String, Leaf>> {
    let mut found = BTreeMap::new();
    let is_sound = params.len() <= MAX_BYTES && json::check(params, Duplicates::RefuseDeep).is_ok();
    let taken = is_sound && add(params, String::new(), &mut found);
    found.retain(|place, _| place != "/_meta" && !place.starts_with("/_meta/"));
    taken.then_some(found)
}

/// Adds the values of `raw`; `false`: some could not be taken.
fn add(raw: &[u8], place: String, found: &mut BTreeMap<String, Leaf>) -> bool {
    let text = || String::from_utf8_lossy(raw).into_owned();
    let leaf = match raw.first() {
        Some(b'{') => {
            let members = Members::again(raw);
            if !members.is_empty() {
                return members.iter().all(|(key, value)| add(value, format!("{place}/{}", escaped(&key)), found));
            }
            Leaf::Fixed("{}".to_owned())
        }
        Some(b'[') => {
            let elements = json::elements(raw).unwrap_or_default();
            if !elements.is_empty() {
                return elements.iter().enumerate().all(|(at, value)| add(value, format!("{place}[{at}]"), found));
            }
            Leaf::Fixed("[]".to_owned())
        }
        // Half a character, and what some make of it, cannot be told apart any more.
        Some(b'"') => match json::as_str(raw).filter(|text| !text.contains(char::REPLACEMENT_CHARACTER)) {
            Some(text) => Leaf::Text(text.into_owned()),
            None => return false,
        },
        Some(b'-' | b'0'..=b'9') => Leaf::Number(text()),
        _ => Leaf::Fixed(text()),
    };
    found.insert(place, leaf);
    found.len() <= MAX_LEAVES
}

/// Escapes a key as a JSON pointer does (RFC 6901), and brackets too, lest a list be taken for an object with numbers for keys.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1").replace('[', "~2")
}
