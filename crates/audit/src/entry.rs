//! An entry as one line: canonical JSON (RFC 8785) with place, time and the hash of the entry before. Does not check the order of
//! entries.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::AuditError;
use crate::bundle::MAX_ENTRY;
use crate::canonical;
use crate::facts::spell;
use crate::hash::Hash;
use crate::record::Record;

/// An entry read from a line.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    pub record: Record<'a>,
    /// The hash ([`crate::hash::leaf`]) of the entry before; zeros for the first.
    pub previous: Hash,
    /// The place in the chain, from 0.
    pub seq: u64,
    /// Time of writing, in microseconds since 1970.
    pub time: u64,
}

/// Place and time of an entry.
pub(crate) struct Place {
    pub(crate) previous: Hash,
    pub(crate) seq: u64,
    pub(crate) time: u64,
}

/// Writes an entry with facts written by `facts`; failure or excess length leaves `out` unchanged.
pub(crate) fn write(
    event: &str,
    facts: impl FnOnce(&mut Vec<u8>) -> Result<(), AuditError>,
    place: &Place,
    out: &mut Vec<u8>,
) -> Result<(), AuditError> {
    let start = out.len();
    out.extend_from_slice(b"{\"event\":");
    // One that is not known may hold anything.
    json::push_quoted(out, event);
    out.extend_from_slice(b",\"facts\":");
    let written = facts(out).map(|()| {
        out.extend_from_slice(b",\"prev\":");
        spell(&place.previous, out);
        out.extend_from_slice(b",\"seq\":");
        out.extend_from_slice(itoa::Buffer::new().format(place.seq).as_bytes());
        out.extend_from_slice(b",\"time\":");
        out.extend_from_slice(itoa::Buffer::new().format(place.time).as_bytes());
        out.push(b'}');
    });
    let length = out.len() - start;
    let checked = written.and_then(|()| match length {
        0..=MAX_ENTRY => Ok(()),
        _ => Err(wrong(&format!("it would have {length} bytes, and {MAX_ENTRY} are allowed"))),
    });
    checked.inspect_err(|_| out.truncate(start))
}

impl Record<'_> {
    /// Appends the `facts` of the record's line to `out`.
    ///
    /// # Errors
    /// When the record can't be written as JSON.
    pub fn facts(&self, out: &mut Vec<u8>) -> Result<(), AuditError> {
        match self {
            Self::ApprovalAsked(facts) => json(facts, out),
            Self::ApprovalDecided(facts) => json(facts, out),
            Self::BrokeHere(facts) => json(facts, out),
            Self::Called(facts) => json(facts, out),
            Self::Changed(facts) => json(facts, out),
            Self::Ended(facts) => json(facts, out),
            Self::Gap(facts) => json(facts, out),
            Self::Intended(intent) => {
                intent.write(out);
                Ok(())
            }
            Self::Refused(facts) => json(facts, out),
            Self::Registration(facts) => json(facts, out),
            Self::Started(facts) => json(facts, out),
            Self::Stopped => {
                out.extend_from_slice(b"{}");
                Ok(())
            }
            Self::Unknown { facts, .. } => json(facts, out),
        }
    }
}

/// Members in the order of RFC 8785.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    facts: &'a RawValue,
    prev: Hash,
    seq: u64,
    time: u64,
}

impl<'a> Entry<'a> {
    /// Appends the entry to `out`, without end of line.
    ///
    /// # Errors
    /// When the entry is longer than [`MAX_ENTRY`]; `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), AuditError> {
        let facts = |out: &mut Vec<u8>| self.record.facts(out);
        write(self.record.event(), facts, &Place { previous: self.previous, seq: self.seq, time: self.time }, out)
    }

    /// Reads a line without end of line.
    ///
    /// # Errors
    /// When the line is no entry, or not in canonical form.
    pub fn decode(line: &'a [u8]) -> Result<Self, AuditError> {
        let read: Line<'a> = serde_json::from_slice(line).map_err(|e| wrong(&e.to_string()))?;
        let entry = Self { record: record(read.event, read.facts)?, previous: read.prev, seq: read.seq, time: read.time };
        let mut again = Vec::with_capacity(line.len());
        if matches!(entry.record, Record::Unknown { .. }) {
            again = canonical::canonical(line)?;
        } else {
            entry.encode(&mut again)?;
        }
        if again == line { Ok(entry) } else { Err(wrong("it is not in canonical form")) }
    }
}

fn record<'a>(event: Cow<'a, str>, facts: &'a RawValue) -> Result<Record<'a>, AuditError> {
    Ok(match &*event {
        "approval_asked" => Record::ApprovalAsked(read(facts)?),
        "approval_decided" => Record::ApprovalDecided(read(facts)?),
        "broke_here" => Record::BrokeHere(read(facts)?),
        "called" => Record::Called(read(facts)?),
        "changed" => Record::Changed(read(facts)?),
        "ended" => Record::Ended(read(facts)?),
        "gap" => Record::Gap(read(facts)?),
        "intended" => Record::Intended(read(facts)?),
        "refused" => Record::Refused(read(facts)?),
        "registration" => Record::Registration(read(facts)?),
        "started" => Record::Started(read(facts)?),
        "stopped" => Record::Stopped,
        _ => Record::Unknown { event, facts },
    })
}

fn read<'a, T: Deserialize<'a>>(facts: &'a RawValue) -> Result<T, AuditError> {
    serde_json::from_str(facts.get()).map_err(|e| wrong(&e.to_string()))
}

fn json(facts: &impl Serialize, out: &mut Vec<u8>) -> Result<(), AuditError> {
    serde_json::to_writer(out, facts).map_err(|e| wrong(&e.to_string()))
}

fn wrong(why: &str) -> AuditError {
    AuditError::form("an entry", why)
}

#[cfg(test)]
mod tests;
