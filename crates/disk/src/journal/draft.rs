//! Lines with a place in the chain but not yet in a file: each call appends its own, with the hash of the line before, and the writing
//! thread takes them in pieces. Neither writes files nor handles failed writes.

use audit::chain::{Chain, Full};
use audit::entry::Entry;
use audit::record::{Gap, Record};
use audit::tile::WIDTH;

use store::JournalError;

use super::queue::Waiter;

/// Lines written together.
pub(super) struct Piece {
    pub(super) text: Vec<u8>,
    /// Number of entries, and the time of the first.
    pub(super) entries: u64,
    pub(super) since: u64,
    /// Chain including these lines.
    pub(super) chain: Chain,
    /// Tiles completed by these lines.
    pub(super) full: Full,
    /// Waiters for any of these lines.
    pub(super) waiting: Vec<Waiter>,
    /// The file is full with this piece, and the next begins.
    pub(super) is_last: bool,
}

/// End of the chain, not yet in a file.
pub(super) struct Draft {
    chain: Chain,
    /// Length of a full file, in bytes.
    segment: u64,
    /// Length of the last file with these lines, in bytes.
    bytes: u64,
    /// Bytes of all lines since the record was opened.
    made: u64,
    text: Vec<u8>,
    entries: u64,
    since: u64,
    full: Full,
    waiting: Vec<Waiter>,
    /// Pieces that complete a file.
    closed: Vec<Piece>,
}

impl Draft {
    /// Begins behind `chain`, the last `bytes` of which are in a file that is full with `segment` bytes.
    pub(super) fn behind(chain: Chain, bytes: u64, segment: u64) -> Self {
        let (text, full, waiting, closed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { chain, segment, bytes, made: 0, text, entries: 0, since: 0, full, waiting, closed }
    }

    /// The same where so many bytes were written since the record was opened.
    pub(super) fn after(self, written: u64) -> Self {
        Self { made: written, ..self }
    }

    /// Appends a line, its facts in pieces. Returns `false` for a line that fits no entry: a gap takes its place, and its waiter hears of
    /// it.
    pub(super) fn append(&mut self, event: &str, time: u64, facts: &[&[u8]], mut waiting: Option<Waiter>) -> bool {
        if self.bytes >= self.segment && self.chain.size().is_multiple_of(WIDTH) {
            let closed = Piece { is_last: true, ..self.open(Vec::new()) };
            self.closed.push(closed);
            self.bytes = 0;
        }
        if self.entries == 0 {
            self.since = time;
        }
        let start = self.text.len();
        let appended = self.chain.append_facts(time, event, facts, &mut self.text);
        let is_whole = appended.is_ok();
        let appended = appended.or_else(|error| {
            tracing::error!(%error, event, "a record could not be written");
            if let Some(waiting) = waiting.take() {
                drop(waiting.send(Err(JournalError(error.to_string()))));
            }
            self.chain.append(time, &Record::Gap(Gap { missing: 1, since: time }), &mut self.text)
        });
        if let Ok(appended) = appended {
            self.full.extend(appended.full);
            self.entries += 1;
        }
        let length = (self.text.len() - start) as u64;
        self.bytes += length;
        self.made += length;
        self.waiting.extend(waiting);
        is_whole
    }

    /// Appends a record.
    pub(super) fn note(&mut self, time: u64, record: &Record<'_>) {
        let mut facts = Vec::new();
        if record.facts(&mut facts).is_ok() {
            self.append(record.event(), time, &[&facts], None);
        }
    }

    /// Adds waiters for the lines so far.
    pub(super) fn wait(&mut self, waiting: Vec<Waiter>) {
        self.waiting.extend(waiting);
    }

    /// Bytes to be written.
    pub(super) fn len(&self) -> usize {
        self.text.len() + self.closed.iter().map(|piece| piece.text.len()).sum::<usize>()
    }

    /// Bytes of all lines since the record was opened.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// Checks for anything to write.
    pub(super) fn has_some(&self) -> bool {
        self.entries > 0 || !self.closed.is_empty()
    }

    /// Takes all pieces in order; `spare` is filled next.
    pub(super) fn take_pieces(&mut self, spare: Vec<u8>) -> Vec<Piece> {
        let mut pieces = std::mem::take(&mut self.closed);
        if self.entries > 0 {
            let open = self.open(spare);
            pieces.push(open);
        }
        pieces
    }

    fn open(&mut self, spare: Vec<u8>) -> Piece {
        Piece {
            text: std::mem::replace(&mut self.text, spare),
            entries: std::mem::take(&mut self.entries),
            since: self.since,
            chain: self.chain.clone(),
            full: std::mem::take(&mut self.full),
            waiting: std::mem::take(&mut self.waiting),
            is_last: false,
        }
    }
}

impl Piece {
    /// Gives event, time and facts of each line.
    pub(super) fn each(&self, mut give: impl FnMut(&'static str, u64, &[u8])) {
        let mut facts = Vec::new();
        for entry in self.text.split(|byte| *byte == b'\n').filter_map(|line| Entry::decode(line).ok()) {
            facts.clear();
            if let Some(event) = entry.record.known().filter(|_| entry.record.facts(&mut facts).is_ok()) {
                give(event, entry.time, &facts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn put(draft: &mut Draft, count: u64) {
        assert!((0..count).all(|number| draft.append("gap", number, &[b"{\"missing\":1,", b"\"since\":0}"], None)));
    }

    #[test]
    fn pieces_end_where_a_file_is_full() {
        let mut draft = Draft::behind(Chain::new(), 0, 1 << 16);
        put(&mut draft, 300);
        let first = draft.take_pieces(Vec::new());
        put(&mut draft, 700);
        let rest = draft.take_pieces(Vec::new());
        assert!(!draft.has_some() && draft.take_pieces(Vec::new()).is_empty());
        let mut chain = Chain::new();
        for piece in first.iter().chain(&rest) {
            let lines = piece.text.split_inclusive(|byte| *byte == b'\n');
            lines.for_each(|line| drop(chain.follow(&line[..line.len() - 1]).unwrap()));
            assert_eq!(chain, piece.chain);
            assert!(!piece.is_last || chain.size().is_multiple_of(WIDTH));
        }
        assert_eq!((chain.size(), first.len() + rest.len()), (1000, 3), "a file of 64 KiB is full with the 512th entry");
        assert_eq!(first.iter().chain(&rest).map(|piece| piece.entries).sum::<u64>(), 1000);
    }

    #[test]
    fn what_a_piece_says_can_be_said_again() {
        let mut draft = Draft::behind(Chain::new(), 0, 1 << 16);
        put(&mut draft, 3);
        let mut again = Vec::new();
        draft.take_pieces(Vec::new())[0].each(|event, time, facts| again.push((event, time, facts.to_vec())));
        assert_eq!(again, [0, 1, 2].map(|time| ("gap", time, br#"{"missing":1,"since":0}"#.to_vec())));
    }

    #[test]
    fn h1_an_overlong_record_leaves_a_gap_and_is_refused() {
        let mut draft = Draft::behind(Chain::new(), 0, 1 << 16);
        let (waiting, mut kept) = oneshot::channel();
        assert!(!draft.append("gap", 7, &[&vec![b'x'; 1 << 17]], Some(waiting)));
        assert!(matches!(kept.try_recv(), Ok(Err(_))));
        let pieces = draft.take_pieces(Vec::new());
        assert!(pieces[0].entries == 1 && pieces[0].text.starts_with(br#"{"event":"gap","facts":{"missing":1,"since":7}"#));
    }
}
