//! Pages of a list as they come, bounded in number and in bytes. Knows neither the sender nor the use of the list.

use mcp_proto::catalog::{Entry, Kind, Page};

/// Most bytes of all pages of a list together, since entries keep their pages in memory.
const MOST_BYTES: usize = 64 << 20;
/// Longest definition listed, in bytes.
pub const LONGEST: usize = 256 << 10;
/// Longest instructions passed on, in bytes.
const LONGEST_INSTRUCTIONS: usize = 64 << 10;
/// Most characters of a name in a note.
const NAMED: usize = 100;

/// Pages of a list so far.
pub struct Pages {
    kind: Kind,
    /// Most entries.
    most: usize,
    bytes: usize,
    entries: Vec<Entry>,
    unreadable: usize,
    /// Number of definitions too long, and the name of the first.
    long: Option<(usize, String)>,
    notes: Vec<String>,
}

impl Pages {
    /// Begins a list of `kind`, with a bound on its bytes.
    pub fn new(kind: Kind, most: usize) -> Self {
        Self { kind, most, bytes: 0, entries: Vec::new(), unreadable: 0, long: None, notes: Vec::new() }
    }

    /// Adds a page of `length` bytes; `false` once no further page is wanted.
    pub fn add(&mut self, page: Page, length: usize) -> bool {
        let method = self.kind.method();
        self.bytes = self.bytes.saturating_add(length);
        if self.bytes > MOST_BYTES {
            self.notes.push(format!("{method} gives more than {} MiB; the rest is left out", MOST_BYTES >> 20));
            return false;
        }
        self.unreadable += page.unreadable;
        for entry in page.entries {
            if entry.raw.len() <= LONGEST {
                self.entries.push(entry);
            } else {
                let (count, _) = self.long.get_or_insert_with(|| (0, entry.key.chars().take(NAMED).collect()));
                *count += 1;
            }
        }
        if self.entries.len() > self.most {
            self.notes.push(format!("{method} lists more than {} entries; the rest is left out (limits.tools_per_mount)", self.most));
            self.entries.truncate(self.most);
            return false;
        }
        true
    }

    /// Notes that the next page has the cursor of an earlier one.
    pub fn circles(&mut self) {
        self.notes.push(format!("{} gives the same cursor twice; the rest is left out", self.kind.method()));
    }

    /// Notes that a list has too many pages.
    pub(super) fn goes_on(&mut self, most: usize) {
        self.notes.push(format!("{} gives more than {most} pages; the rest is left out", self.kind.method()));
    }

    /// Entries, and notes for people on missing ones.
    pub fn finish(self) -> (Vec<Entry>, Vec<String>) {
        let Self { kind, entries, unreadable, long, mut notes, .. } = self;
        let method = kind.method();
        if unreadable > 0 {
            notes.push(format!("{unreadable} entries of {method} can't be read and are left out"));
        }
        if let Some((count, first)) = long {
            notes.push(format!("{count} entries of {method} are longer than {} KiB and are left out, `{first}` among them", LONGEST >> 10));
        }
        (entries, notes)
    }
}

/// Part of a server's instructions that is passed on, and a note on the rest.
pub fn instructions(said: &str) -> (&str, Option<String>) {
    let end = said.floor_char_boundary(LONGEST_INSTRUCTIONS);
    let note = || format!("its instructions are longer than {} KiB; the rest is left out", LONGEST_INSTRUCTIONS >> 10);
    (&said[..end], (end < said.len()).then(note))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(names: &[(&str, usize)]) -> (Page, usize) {
        let entry = |(name, length): &(&str, usize)| Entry { key: (*name).to_owned(), raw: vec![b' '; *length].into() };
        let entries: Vec<Entry> = names.iter().map(entry).collect();
        let length = entries.iter().map(|entry| entry.raw.len()).sum();
        (Page { entries, ..Page::default() }, length)
    }

    #[test]
    fn m17_pages_are_counted_in_bytes_while_they_come() {
        let mut pages = Pages::new(Kind::Tools, 10);
        let (first, _) = page(&[("a", 10)]);
        assert!(pages.add(first.clone(), MOST_BYTES / 2));
        assert!(pages.add(first.clone(), MOST_BYTES / 2));
        assert!(!pages.add(first, 1));
        let (entries, notes) = pages.finish();
        assert_eq!((entries.len(), notes.as_slice()), (2, &["tools/list gives more than 64 MiB; the rest is left out".to_owned()][..]));
    }

    #[test]
    fn m17_only_the_definition_too_long_is_left_out() {
        let mut pages = Pages::new(Kind::Prompts, 10);
        let (one, length) = page(&[("a", LONGEST), ("b", LONGEST + 1), ("c", 1), ("d", LONGEST + 2)]);
        assert!(pages.add(Page { unreadable: 3, ..one }, length));
        let (entries, notes) = pages.finish();
        assert_eq!(entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(
            notes,
            [
                "3 entries of prompts/list can't be read and are left out",
                "2 entries of prompts/list are longer than 256 KiB and are left out, `b` among them"
            ]
        );
    }

    #[test]
    fn instructions_are_cut_between_characters() {
        let long = "ä".repeat(LONGEST_INSTRUCTIONS);
        let (kept, note) = instructions(&long[..long.len() - 2]);
        assert_eq!((kept.len(), note.is_some()), (LONGEST_INSTRUCTIONS, true));
        assert_eq!(instructions("short"), ("short", None));
    }
}
