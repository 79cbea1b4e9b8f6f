//! An envelope being written: members in order, texts escaped. Decides neither content nor addressees.

use std::time::SystemTime;

use banyan_model::Timestamp;
use bytes::Bytes;
use json::push_quoted;

use crate::envelope::PROTOCOL;

/// Unique ids: as unique as the driver's seed.
#[derive(Debug)]
pub(crate) struct Ids {
    prefix: String,
    given: u64,
}

impl Ids {
    pub(crate) fn new(seed: u128) -> Self {
        Self { prefix: format!("{seed:032x}"), given: 0 }
    }

    pub(crate) fn next(&mut self) -> String {
        self.given += 1;
        format!("{}-{}", self.prefix, self.given)
    }
}

/// Members of an envelope beside the payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DraftHead<'a> {
    pub(crate) id: &'a str,
    pub(crate) at: SystemTime,
    pub(crate) from: &'a str,
    /// Empty: everybody.
    pub(crate) to: &'a [&'a str],
    pub(crate) kind: &'a str,
    pub(crate) correlation_id: Option<&'a str>,
}

/// An envelope up to a place in the payload.
pub(crate) struct Draft(Vec<u8>);

impl Draft {
    /// Begins an envelope; the members of the payload follow.
    pub(crate) fn begin(about: DraftHead<'_>) -> Self {
        Self::begin_in(PROTOCOL, about)
    }

    /// Begins an envelope of another protocol, without a correlation id.
    pub(crate) fn begin_in(protocol: &str, about: DraftHead<'_>) -> Self {
        let mut draft = Self(Vec::with_capacity(400));
        draft.raw("{\"protocol\":\"").raw(protocol).raw("\",\"id\":").text(about.id);
        draft.raw(&format!(",\"ts\":\"{}\",\"from\":", Timestamp(about.at))).text(about.from);
        if !about.to.is_empty() {
            draft.raw(",\"to\":").texts(about.to.iter().copied());
        }
        draft.raw(",\"kind\":").text(about.kind);
        if let Some(id) = about.correlation_id {
            draft.raw(",\"correlation_id\":").text(id);
        }
        draft.raw(",\"payload\":{");
        draft
    }

    /// Appends JSON.
    pub(crate) fn raw(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// Appends JSON bytes unchanged.
    pub(crate) fn bytes(&mut self, json: &[u8]) -> &mut Self {
        self.0.extend_from_slice(json);
        self
    }

    /// Appends a string.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        push_quoted(&mut self.0, text);
        self
    }

    /// Appends a list of strings.
    pub(crate) fn texts<'a>(&mut self, texts: impl Iterator<Item = &'a str>) -> &mut Self {
        self.raw("[");
        for (place, text) in texts.enumerate() {
            self.raw(if place == 0 { "" } else { "," }).text(text);
        }
        self.raw("]")
    }

    /// Ends payload and envelope.
    pub(crate) fn finish(mut self) -> Bytes {
        self.raw("}}");
        self.0.into()
    }
}
