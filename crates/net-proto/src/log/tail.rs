//! The last messages of a device, for readers and followers. Bounded in lines and bytes: the oldest give way. Not on disk.

use std::collections::VecDeque;

use super::LogMessage;

/// A kept message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Place among all messages that ever came, from 0.
    pub number: u64,
    /// Milliseconds since 1970 at which the message came.
    pub arrived: i64,
    pub message: LogMessage,
    /// The line as it was sent, without its priority.
    pub line: String,
}

/// The last messages.
#[derive(Debug)]
pub struct LogTail {
    lines: VecDeque<LogLine>,
    most_lines: usize,
    most_bytes: usize,
    bytes: usize,
    next: u64,
}

impl LogTail {
    /// Keeps at most so many lines, and so many bytes of them.
    pub fn new(most_lines: usize, most_bytes: usize) -> Self {
        Self { lines: VecDeque::new(), most_lines, most_bytes, bytes: 0, next: 0 }
    }

    /// Keeps a message. A message larger than all room is counted and not kept.
    pub fn push(&mut self, arrived: i64, message: LogMessage, line: String) -> u64 {
        let line = LogLine { number: self.next, arrived, message, line };
        self.next += 1;
        self.bytes += size(&line);
        self.lines.push_back(line);
        while self.lines.len() > self.most_lines || self.bytes > self.most_bytes {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= size(&oldest);
        }
        self.next - 1
    }

    /// The last `count` lines, the oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = &LogLine> {
        self.lines.iter().skip(self.lines.len().saturating_sub(count))
    }

    /// Lines from `number` on, and how many of them were given way already.
    pub fn since(&self, number: u64) -> (u64, impl Iterator<Item = &LogLine>) {
        let first = self.lines.front().map_or(self.next, |line| line.number);
        let skipped = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
        (first.saturating_sub(number), self.lines.iter().skip(skipped))
    }

    /// Number of the next message.
    pub fn next_number(&self) -> u64 {
        self.next
    }
}

/// Bytes that a line takes.
fn size(line: &LogLine) -> usize {
    let message = &line.message;
    let texts = [&message.host, &message.program, &message.id].into_iter().flatten().map(String::len).sum::<usize>();
    let fields = message.fields.iter().map(|(element, name, value)| element.len() + name.len() + value.len() + 72).sum::<usize>();
    size_of::<LogLine>() + line.line.len() + message.text.len() + texts + fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(tail: &mut LogTail, text: &str) {
        tail.push(0, LogMessage { text: text.to_owned(), ..LogMessage::default() }, text.to_owned());
    }

    fn texts<'a>(lines: impl Iterator<Item = &'a LogLine>) -> Vec<&'a str> {
        lines.map(|line| line.line.as_str()).collect()
    }

    #[test]
    fn nm_03_the_last_lines_are_kept() {
        let mut tail = LogTail::new(3, 1 << 20);
        for text in ["a", "b", "c", "d"] {
            push(&mut tail, text);
        }
        assert_eq!(texts(tail.last(2)), ["c", "d"]);
        assert_eq!(texts(tail.last(99)), ["b", "c", "d"]);
        assert_eq!(texts(tail.last(0)), [] as [&str; 0]);
    }

    #[test]
    fn a_follower_learns_of_lines_that_gave_way() {
        let mut tail = LogTail::new(2, 1 << 20);
        for text in ["a", "b", "c"] {
            push(&mut tail, text);
        }
        let (lost, lines) = tail.since(0);
        assert_eq!((lost, texts(lines)), (1, vec!["b", "c"]));
        let (lost, lines) = tail.since(2);
        assert_eq!((lost, texts(lines)), (0, vec!["c"]));
        let (lost, lines) = tail.since(tail.next_number());
        assert_eq!((lost, lines.count()), (0, 0));
    }

    #[test]
    fn bytes_are_bounded() {
        let mut tail = LogTail::new(1000, 10_000);
        for _ in 0..100 {
            push(&mut tail, &"x".repeat(500));
            assert!(tail.bytes <= 10_000);
        }
        assert!(tail.last(1000).count() > 3);
        push(&mut tail, &"x".repeat(20_000));
        assert_eq!((tail.bytes, tail.last(9).count(), tail.next_number()), (0, 0, 101));
    }
}
