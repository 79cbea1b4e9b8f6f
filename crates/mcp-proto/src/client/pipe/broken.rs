//! Intention of an unreadable line: an answer or not, and to which id.
//!
//! Guesses from the outermost members only, since ids inside a result belong to somebody else, and never repairs anything.

/// The apparent intention of a broken line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BrokenLine {
    /// An answer without an id, as far as the line goes.
    Answer,
    /// An answer to this id.
    AnswerTo(u64),
    /// Anything else: a log line, a broken question or notification.
    Other,
}

/// The `id` of a broken object.
enum Id {
    /// No id of ours: `null`, a word, or a number cut off.
    Foreign,
    Missing,
    Number(u64),
}

/// Looks at the outermost keys of a broken object, as far as they can be followed.
pub(super) fn meant(text: &[u8]) -> BrokenLine {
    if !text.trim_ascii_start().starts_with(b"{") {
        return BrokenLine::Other;
    }
    let (mut at, mut depth, mut id, mut named, mut answers) = (0, 0_usize, Id::Missing, false, false);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(end) = string_end(text, at) else { break };
                let (key, value) = (&text[at..end], text[end + 1..].trim_ascii_start().strip_prefix(b":"));
                at = end + 1;
                match (depth, key, value) {
                    (1, b"method", Some(_)) => return BrokenLine::Other,
                    (1, b"id", Some(value)) => id = whole_number(value.trim_ascii_start()).map_or(Id::Foreign, Id::Number),
                    (1, b"jsonrpc", Some(_)) => named = true,
                    (1, b"result" | b"error", Some(_)) => answers = true,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    // Where the text breaks off, a `method` may have been on its way.
    match id {
        Id::Number(id) if answers || (named && depth == 0) => BrokenLine::AnswerTo(id),
        Id::Missing if answers => BrokenLine::Answer,
        Id::Foreign | Id::Missing | Id::Number(_) => BrokenLine::Other,
    }
}

/// Finds the closing quote of the string that begins at `from`.
fn string_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Reads a complete number, quoted or not.
fn whole_number(value: &[u8]) -> Option<u64> {
    let (digits, quoted) = value.strip_prefix(b"\"").map_or((value, false), |rest| (rest, true));
    let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let ended = match digits.get(length)? {
        b'"' => quoted,
        b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n' => !quoted,
        _ => false,
    };
    std::str::from_utf8(&digits[..length]).ok().filter(|_| ended)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_id_of_an_answer_is_found() {
        for (text, expected) in [
            (&br#"{"jsonrpc":"2.0","id":12,"result":{"#[..], BrokenLine::AnswerTo(12)),
            (br#"{"id" : "12" ,"result":{"x":1,"x":2}}"#, BrokenLine::AnswerTo(12)),
            (br#"{"jsonrpc":"2.0","result":{"id":7,"x":1,"x":2,"method":"m"},"id":12}"#, BrokenLine::AnswerTo(12)),
            (br#"{"jsonrpc":"2.0","id":12}"#, BrokenLine::AnswerTo(12)),
            (br#"{"jsonrpc":"2.0","result":{"id":7,"#, BrokenLine::Answer),
            (br#"{"jsonrpc":"2.0","id":1"#, BrokenLine::Other),
            (br#"{"jsonrpc":"2.0","id":null,"error":{"#, BrokenLine::Other),
            (br#"{"jsonrpc":"2.0","id":12,"met"#, BrokenLine::Other),
            (br#"{"jsonrpc":"2.0","id":12,"method":"roots/list","params":{"#, BrokenLine::Other),
            (br#"{"level":"info","id":12,"msg":"\"result\":"}"#, BrokenLine::Other),
            (b"listening on \"id\":12,\"result\":1", BrokenLine::Other),
        ] {
            assert_eq!(meant(text), expected, "{}", String::from_utf8_lossy(text));
        }
    }
}
