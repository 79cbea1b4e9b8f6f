//! Lists as sent: entries joined once, and pages made of pieces. Does not choose entries.

use bytes::Bytes;

/// Most entries of a page; many clients read only the first page.
pub const PAGE: usize = 20_000;

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

    /// Entries from one place to before another.
    fn piece(&self, from: usize, to: usize) -> Bytes {
        let begin = if from == 0 { 0 } else { self.ends.get(from - 1).map_or(0, |end| end + 1) };
        let end = if to == 0 { 0 } else { self.ends.get(to - 1).copied().unwrap_or_default() };
        self.joined.slice(begin.min(end)..end)
    }
}

/// Page of a list: pieces without commas in between yet.
#[derive(Debug, Default)]
pub struct Page {
    pieces: Vec<Bytes>,
    entries: usize,
}

impl Page {
    /// Makes pages of at most [`PAGE`] entries, at least one page.
    pub fn all<'a>(texts: impl Iterator<Item = &'a Text>) -> Vec<Self> {
        let mut pages = vec![Self::default()];
        for text in texts {
            let mut from = 0;
            while from < text.ends.len() {
                if pages.last().is_none_or(|page| page.entries >= PAGE) {
                    pages.push(Self::default());
                }
                let Some(page) = pages.last_mut() else { break };
                let to = text.ends.len().min(from + PAGE - page.entries);
                page.pieces.push(text.piece(from, to));
                page.entries += to - from;
                from = to;
            }
        }
        pages
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len() + 1).sum::<usize>() + 2
    }

    /// Writes the page as a raw array.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, piece) in self.pieces.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(piece);
        }
        out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pages: &[Page]) -> Vec<String> {
        let text = |page: &Page| {
            let mut out = Vec::new();
            page.write(&mut out);
            assert!(out.len() <= page.size());
            String::from_utf8_lossy(&out).into_owned()
        };
        pages.iter().map(text).collect()
    }

    #[test]
    fn a_list_of_nothing_has_one_page() {
        assert_eq!(written(&Page::all([&Text::default(), &Text::join(&[])].into_iter())), ["[]"]);
    }

    #[test]
    fn ax_03_pages_hold_every_entry_once() {
        for sizes in [vec![3, 0, 2], vec![PAGE], vec![PAGE - 1, 3], vec![2 * PAGE + 1, 1], vec![1, 2 * PAGE - 1]] {
            let all: usize = sizes.iter().sum();
            let mut numbers = 0..all;
            let texts: Vec<Text> = sizes
                .iter()
                .map(|size| Text::join(&numbers.by_ref().take(*size).map(|n| n.to_string().into()).collect::<Vec<_>>()))
                .collect();
            let pages: Vec<Vec<usize>> = written(&Page::all(texts.iter())).iter().map(|page| serde_json::from_str(page).unwrap()).collect();
            assert!(pages.iter().rev().skip(1).all(|page| page.len() == PAGE), "{sizes:?}");
            assert_eq!(pages.concat(), (0..all).collect::<Vec<_>>(), "{sizes:?}");
        }
    }
}
