//! Progress in a head that arrives in pieces, so that no bytes are read again with each piece. The content of a head is not known here.

/// Progress in an incomplete head.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Bytes already searched for the end of the head.
    searched: usize,
    /// Something besides the empty lines that may stand before a head has come.
    is_begun: bool,
    /// Bytes parsed last.
    parsed: usize,
}

impl Search {
    /// Tells if nothing was searched yet.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        self.searched == 0
    }

    /// Tells if `buffer`, grown since the last call, is to be parsed: the head may be complete, or is twice as long as at the
    /// last parsing. A faulty head is thus refused before its end, and a head of `n` bytes costs less than three times `n`.
    pub(super) fn is_due(&mut self, buffer: &[u8]) -> bool {
        if buffer.len() < self.searched {
            *self = Self::default();
        }
        let is_due = self.finds_end(buffer) || buffer.len() / 2 >= self.parsed;
        if is_due {
            self.parsed = buffer.len();
        }
        is_due
    }

    /// Finds an empty line behind the first line: two line feeds, perhaps with a carriage return between them.
    fn finds_end(&mut self, buffer: &[u8]) -> bool {
        if !self.is_begun {
            self.searched += buffer[self.searched..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            self.is_begun = self.searched < buffer.len();
        }
        while let Some(at) = memchr::memchr(b'\n', &buffer[self.searched..]) {
            self.searched += at;
            match &buffer[self.searched + 1..] {
                [b'\n', ..] | [b'\r', b'\n', ..] => return true,
                // The next piece tells.
                [] | [b'\r'] => return false,
                _ => self.searched += 1,
            }
        }
        self.searched = buffer.len();
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::MAX_HEAD;

    /// Lists the lengths at which a head arriving byte by byte is parsed.
    fn parsed(head: &[u8]) -> Vec<usize> {
        let mut search = Search::default();
        (1..=head.len()).filter(|end| search.is_due(&head[..*end])).collect()
    }

    #[test]
    fn h5_a_head_in_small_pieces_is_parsed_as_often_as_it_doubles_and_once_when_it_is_whole() {
        let mut head = b"POST /mcp HTTP/1.1\r\n".to_vec();
        while head.len() < MAX_HEAD - 100 {
            head.extend_from_slice(b"x-one: 1\r\n");
        }
        head.extend_from_slice(b"\r\n");
        let lengths = parsed(&head);
        assert_eq!(lengths.last(), Some(&head.len()));
        assert_eq!(lengths[..lengths.len() - 1], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768]);
        assert!(lengths.iter().sum::<usize>() < 3 * head.len());
    }

    #[test]
    fn h5_empty_lines_before_a_head_are_no_end_of_one() {
        let lines = b"\r\n".repeat(MAX_HEAD / 4);
        assert!(parsed(&lines).len() < 20);
        let whole = [&lines[..], b"HTTP/1.1 200 OK\n\r\n"].concat();
        assert_eq!(parsed(&whole).last(), Some(&whole.len()));
    }

    #[test]
    fn an_empty_line_is_found_wherever_pieces_are_cut() {
        for end in ["\r\n\r\n", "\n\n", "\r\n\n", "\n\r\n"] {
            let text = format!("HTTP/1.1 200 OK\r\na: b\nc: d{end}");
            let places = 0..text.len();
            for (first, second) in places.clone().flat_map(|first| places.clone().map(move |second| (first, second))) {
                let mut search = Search::default();
                let found = [first, second.max(first)].map(|end| search.finds_end(&text.as_bytes()[..end]));
                assert_eq!((found, search.finds_end(text.as_bytes())), ([false; 2], true), "{end:?} {first} {second}");
            }
        }
    }
}
