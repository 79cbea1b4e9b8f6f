//! An envelope as received: the bytes, and the places of the fields. Decides about no profile and checks no signature.
//!
//! The bytes are never written anew. A relay sends the bytes on, with fields unknown here, and a signature covers the bytes of the signer:
//! two libraries may write the same message in two ways.

use std::ops::Range;

use bytes::Bytes;
use prost::Message as _;
use sha2::{Digest, Sha256};

use crate::error::AxcpError;
use crate::field::{RawContent, RawFields, entries};
use crate::gzip::{MOST_UNPACKED, unpacked_len};
use crate::message::{ATTESTATION, AxcpEnvelope, EnvelopePayload, SIGNATURE};

/// The only version there is.
pub const VERSION: u32 = 1;
/// Bytes of the longest trace id.
pub const MOST_TRACE: usize = 256;
/// Bytes of the longest signature.
pub const MOST_SIGNATURE: usize = 16 * 1024;
/// Operations of all the patches in one envelope.
pub const MOST_OPS: usize = 4096;
/// Patches in one retry.
pub const MOST_PATCHES: usize = 256;
/// Filters of one subscription.
pub const MOST_FILTERS: usize = 64;
/// Bytes of all the filters of one subscription, with what holds them.
pub const MOST_FILTER: usize = 16 * 1024;

/// Beginning of the signed bytes. A signature of the same key in another protocol is no signature of an envelope.
const DOMAIN: &[u8] = b"axcp.v0_1 envelope\0";
/// Highest profile.
const HIGHEST: u64 = 3;

/// A received envelope, unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedEnvelope {
    text: Bytes,
    profile: u32,
    trace_id: Range<usize>,
    /// Number and place of the content.
    payload: Option<(u32, Range<usize>)>,
    signature: Option<(Range<usize>, Range<usize>)>,
    attestation: Range<usize>,
}

impl ReceivedEnvelope {
    /// Reads the fields of an envelope, and the content not yet.
    ///
    /// # Errors
    /// When the bytes are no message, a field or the content stands twice (two readers could differ), a profile is above 3, or the version
    /// is not [`VERSION`].
    pub fn read(text: Bytes) -> Result<Self, AxcpError> {
        let walked = text.clone();
        let mut read = Self { text, profile: 0, trace_id: 0..0, payload: None, signature: None, attestation: 0..0 };
        let mut version = 0;
        let mut before = Vec::new();
        for field in RawFields::new(&walked) {
            let field = field?;
            if is_known(field.number) {
                if before.contains(&field.number) {
                    return Err(AxcpError::Malformed("a field of the envelope stands twice"));
                }
                before.push(field.number);
            }
            match (field.number, field.content) {
                (1, RawContent::Number(number)) => version = number,
                (2, RawContent::Bytes(place)) => read.trace_id = place,
                (3, RawContent::Number(number)) => read.profile = profile(number)?,
                (SIGNATURE, RawContent::Bytes(place)) => read.signature = Some((field.place, place)),
                (ATTESTATION, RawContent::Bytes(place)) => read.attestation = place,
                (number, RawContent::Bytes(place)) if is_payload(number) => {
                    if read.payload.replace((number, place)).is_some() {
                        return Err(AxcpError::Malformed("the envelope has two contents"));
                    }
                }
                (number, _) if is_known(number) => return Err(AxcpError::Malformed("a field of the envelope has another type")),
                (_, _) => {}
            }
        }
        read.check(version)?;
        Ok(read)
    }

    fn check(&self, version: u64) -> Result<(), AxcpError> {
        if version != u64::from(VERSION) {
            return Err(AxcpError::Version(u32::try_from(version).unwrap_or(u32::MAX)));
        }
        if self.trace_id.len() > MOST_TRACE {
            return Err(AxcpError::TooLarge { what: "the bytes of a trace id", most: MOST_TRACE });
        }
        if self.signature().len() > MOST_SIGNATURE {
            return Err(AxcpError::TooLarge { what: "the bytes of a signature", most: MOST_SIGNATURE });
        }
        std::str::from_utf8(self.slice(&self.trace_id)).map_err(|_| AxcpError::Malformed("the trace id is not UTF-8"))?;
        Ok(())
    }

    /// Gives the received bytes, to be sent on.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Gives the profile of the envelope, from 0 to 3.
    pub fn profile(&self) -> u32 {
        self.profile
    }

    /// Gives the id that the sender ties envelopes together with.
    pub fn trace_id(&self) -> &str {
        std::str::from_utf8(self.slice(&self.trace_id)).unwrap_or_default()
    }

    /// Gives the detached signature, or nothing.
    pub fn signature(&self) -> &[u8] {
        self.signature.as_ref().map_or(&[], |(_, place)| self.slice(place))
    }

    /// Gives the evidence of an enclave, or nothing.
    pub fn attestation_proof(&self) -> &[u8] {
        self.slice(&self.attestation)
    }

    /// Reads the content. `None`: no content has a number known here.
    ///
    /// # Errors
    /// When the content is no message of its type, or has more entries than a node holds.
    pub fn payload(&self) -> Result<Option<EnvelopePayload>, AxcpError> {
        let Some((number, place)) = &self.payload else { return Ok(None) };
        let content = self.text.slice(place.clone());
        check_counts(*number, &content)?;
        let read = match number {
            4 => prost::Message::decode(content).map(EnvelopePayload::ContextPatch),
            5 => Ok(EnvelopePayload::Capability(content)),
            6 => Ok(EnvelopePayload::Route(content)),
            7 => prost::Message::decode(content).map(EnvelopePayload::Error),
            8 => prost::Message::decode(content).map(EnvelopePayload::ProfileNegotiate),
            9 => prost::Message::decode(content).map(EnvelopePayload::ProfileAck),
            10 => prost::Message::decode(content).map(EnvelopePayload::Retry),
            11 => Ok(EnvelopePayload::Telemetry(content)),
            1000 => prost::Message::decode(content).map(EnvelopePayload::SyncSubscribe),
            1001 => prost::Message::decode(content).map(EnvelopePayload::SyncRequest),
            1002 => prost::Message::decode(content).map(EnvelopePayload::ContextInvalidation),
            1003 => prost::Message::decode(content).map(EnvelopePayload::ProfileDowngrade),
            1005 => prost::Message::decode(content).map(EnvelopePayload::ToolInvoke),
            1006 => prost::Message::decode(content).map(EnvelopePayload::ToolResult),
            1009 => prost::Message::decode(content).map(EnvelopePayload::ToolCancel),
            _ => return Ok(None),
        };
        let read = read.map_err(|_| AxcpError::Malformed("the content of the envelope is not of its type"))?;
        check_retry(&read)?;
        Ok(Some(read))
    }

    /// Gives the signed bytes: a tag, and the SHA-256 of the received bytes without the field of the signature.
    pub fn signed(&self) -> Vec<u8> {
        let cut = self.signature.as_ref().map_or(self.text.len()..self.text.len(), |(place, _)| place.clone());
        let mut hash = Sha256::new();
        hash.update(self.slice(&(0..cut.start)));
        hash.update(self.slice(&(cut.end..self.text.len())));
        [DOMAIN, hash.finalize().as_slice()].concat()
    }

    /// Gives the SHA-256 of all the received bytes, the name of an envelope in records.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.text).into()
    }

    fn slice(&self, place: &Range<usize>) -> &[u8] {
        self.text.get(place.clone()).unwrap_or_default()
    }
}

/// Writes an envelope, and adds the signature by `sign` over [`ReceivedEnvelope::signed`].
///
/// # Errors
/// When the receiver could not read the envelope.
pub fn write(envelope: &AxcpEnvelope, sign: impl FnOnce(&[u8]) -> Bytes) -> Result<Bytes, AxcpError> {
    let bare = AxcpEnvelope { signature: Bytes::new(), ..envelope.clone() };
    let unsigned = ReceivedEnvelope::read(bare.encode_to_vec().into())?;
    let signature = sign(&unsigned.signed());
    let only = AxcpEnvelope { signature, ..AxcpEnvelope::default() };
    let whole = [unsigned.text.as_ref(), only.encode_to_vec().as_slice()].concat();
    Ok(ReceivedEnvelope::read(whole.into())?.text)
}

/// Tells the numbers of contents.
const fn is_payload(number: u32) -> bool {
    matches!(number, 4..=11 | 1000..=1003 | 1005 | 1006 | 1009)
}

/// Tells the numbers of fields allowed once.
const fn is_known(number: u32) -> bool {
    matches!(number, 1..=3 | SIGNATURE | ATTESTATION) || is_payload(number)
}

fn profile(number: u64) -> Result<u32, AxcpError> {
    let known = u32::try_from(number).ok().filter(|_| number <= HIGHEST);
    known.ok_or(AxcpError::Malformed("a profile is a number from 0 to 3"))
}

/// Counts the entries of lists before they are read: an empty entry has two bytes on the wire, and a hundred in memory.
fn check_counts(number: u32, content: &[u8]) -> Result<(), AxcpError> {
    let mut ops = Count { left: MOST_OPS, too_many: AxcpError::TooLarge { what: "the operations of an envelope", most: MOST_OPS } };
    let mut patches = Count { left: MOST_PATCHES, too_many: AxcpError::TooLarge { what: "the patches of a retry", most: MOST_PATCHES } };
    let mut filters =
        Count { left: MOST_FILTERS, too_many: AxcpError::TooLarge { what: "the filters of a subscription", most: MOST_FILTERS } };
    let mut bytes =
        Count { left: MOST_FILTER, too_many: AxcpError::TooLarge { what: "the bytes of a subscription's filters", most: MOST_FILTER } };
    match number {
        4 => entries(content, 3, |_| ops.one_more()),
        10 => entries(content, 1, |patch| {
            patches.one_more()?;
            entries(patch, 3, |_| ops.one_more())
        }),
        1000 => [1000, 1001].into_iter().try_for_each(|list| {
            entries(content, list, |text| {
                filters.one_more()?;
                bytes.allow(text.len())
            })
        }),
        _ => Ok(()),
    }
}

/// Sums up the unpacked bytes in a retry: many short patches may stand for much. A false length makes a single operation be unpacked in vain.
fn check_retry(payload: &EnvelopePayload) -> Result<(), AxcpError> {
    let EnvelopePayload::Retry(retry) = payload else { return Ok(()) };
    let ops = retry.buffered_patches.iter().flat_map(|patch| &patch.ops);
    let unpacked = ops.fold(0_usize, |sum, op| sum.saturating_add(unpacked_len(&op.data)));
    if unpacked > MOST_UNPACKED {
        return Err(AxcpError::TooLarge { what: "the unpacked bytes of a retry", most: MOST_UNPACKED });
    }
    Ok(())
}

/// Number of entries or bytes still allowed.
struct Count {
    left: usize,
    too_many: AxcpError,
}

impl Count {
    fn one_more(&mut self) -> Result<(), AxcpError> {
        self.allow(1)
    }

    fn allow(&mut self, count: usize) -> Result<(), AxcpError> {
        self.left = self.left.checked_sub(count).ok_or_else(|| self.too_many.clone())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
