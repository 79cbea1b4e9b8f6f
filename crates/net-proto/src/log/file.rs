//! Lines of a log file as it grows, in pieces of any size. A line that is too long is cut off. Opens no file.

use super::LONGEST;

/// Reader of a growing file.
#[derive(Debug, Default)]
pub struct FileLines {
    partial: Vec<u8>,
}

impl FileLines {
    /// Takes further bytes; answers the lines that are whole now, without their ends. An empty line is none.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let room = LONGEST.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&text[..text.len().min(room)]);
            if is_whole {
                let line = String::from_utf8_lossy(self.partial.trim_ascii_end()).into_owned();
                self.partial.clear();
                lines.extend((!line.is_empty()).then_some(line));
            }
        }
        lines
    }

    /// Forgets a line that has begun: the file is another one now.
    pub fn forget_partial(&mut self) {
        self.partial.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_too_long_is_cut_off() {
        let mut lines = FileLines::default();
        assert_eq!(lines.receive(&[b'x'; 100_000]), [] as [String; 0]);
        assert!(lines.partial.len() == LONGEST);
        assert_eq!(lines.receive(b"y\n\nz\r\n"), ["x".repeat(LONGEST), "z".to_owned()]);
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_lines(text in "[a-c\n]{0,200}", sizes in prop::collection::vec(1_usize..9, 1..50)) {
            let whole = FileLines::default().receive(text.as_bytes());
            let (mut lines, mut rest, mut found) = (FileLines::default(), text.as_bytes(), Vec::new());
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                found.extend(lines.receive(piece));
                rest = after;
            }
            prop_assert_eq!(found, whole);
        }
    }
}
