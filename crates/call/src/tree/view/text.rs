//! Entries of one server as sent: joined once, and cut at any entry. Does not choose entries.

use bytes::Bytes;
use mcp_proto::catalog::Kind;
use mcp_proto::cursor::ListCursor;
use mcp_proto::json::Members;

/// Some entries of a list, with commas between them.
#[derive(Debug, Default)]
pub struct Text {
    joined: Bytes,
    /// End of each entry.
    ends: Vec<usize>,
}

impl Text {
    /// Joins raw entries.
    pub fn join(entries: &[Bytes]) -> Self {
        let mut at = 0;
        let end = |entry: &Bytes| {
            let end = at + entry.len();
            at = end + 1;
            end
        };
        Self { ends: entries.iter().map(end).collect(), joined: entries.join(&b',').into() }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Entries from one place to before another.
    pub(super) fn piece(&self, from: usize, to: usize) -> &[u8] {
        let begin = if from == 0 { 0 } else { self.ends.get(from - 1).map_or(0, |end| end + 1) };
        let end = if to == 0 { 0 } else { self.ends.get(to - 1).copied().unwrap_or_default() };
        self.joined.get(begin.min(end)..end).unwrap_or_default()
    }

    /// Name of the entry at a place.
    pub(super) fn name(&self, kind: Kind, place: usize) -> Option<String> {
        let entry = (place < self.len()).then(|| self.piece(place, place + 1))?;
        Some(Members::again(entry).str(kind.key())?.into_owned())
    }

    /// Place behind the entry of a cursor. For a name that is gone all entries come again: some twice rather than one never.
    pub(super) fn behind(&self, kind: Kind, cursor: &ListCursor) -> usize {
        let is_named = |place: &usize| self.name(kind, *place).is_some_and(|name| name == cursor.name);
        let first_look = Some(cursor.place).filter(is_named);
        first_look.or_else(|| (0..self.len()).find(is_named)).map_or(0, |place| place + 1)
    }
}
