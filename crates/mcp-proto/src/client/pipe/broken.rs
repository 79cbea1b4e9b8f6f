//! What a line was meant to be that can't be read as a message: whether it is an answer, and to which id.
//!
//! It guesses from the outermost members only, since ids inside a result belong to somebody else, and it never repairs anything.

/// What a broken line seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    /// An answer whose id is not there, as far as it goes.
    Answer,
    /// An answer to this id.
    AnswerTo(u64),
    /// Anything else: a log line, a broken question or notification.
    Other,
}

/// What stands under a broken object's `id`.
enum Id {
    /// No id of ours: `null`, a word, or a number that breaks off.
    Foreign,
    Missing,
    Number(u64),
}

/// Looks at the outermost keys of a broken object, as far as they can be followed.
pub(super) fn meant(text: &[u8]) -> Meant {
    if !text.trim_ascii_start().starts_with(b"{") {
        return Meant::Other;
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
                    (1, b"method", Some(_)) => return Meant::Other,
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
        Id::Number(id) if answers || (named && depth == 0) => Meant::AnswerTo(id),
        Id::Missing if answers => Meant::Answer,
        Id::Foreign | Id::Missing | Id::Number(_) => Meant::Other,
    }
}

/// Where the string that begins at `from` has its closing quote.
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

/// A number, quoted or not, of which nothing is cut off.
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
            (&br#"{"jsonrpc":"2.0","id":12,"result":{"#[..], Meant::AnswerTo(12)),
            (br#"{"id" : "12" ,"result":{"x":1,"x":2}}"#, Meant::AnswerTo(12)),
            (br#"{"jsonrpc":"2.0","result":{"id":7,"x":1,"x":2,"method":"m"},"id":12}"#, Meant::AnswerTo(12)),
            (br#"{"jsonrpc":"2.0","id":12}"#, Meant::AnswerTo(12)),
            (br#"{"jsonrpc":"2.0","result":{"id":7,"#, Meant::Answer),
            (br#"{"jsonrpc":"2.0","id":1"#, Meant::Other),
            (br#"{"jsonrpc":"2.0","id":null,"error":{"#, Meant::Other),
            (br#"{"jsonrpc":"2.0","id":12,"met"#, Meant::Other),
            (br#"{"jsonrpc":"2.0","id":12,"method":"roots/list","params":{"#, Meant::Other),
            (br#"{"level":"info","id":12,"msg":"\"result\":"}"#, Meant::Other),
            (b"listening on \"id\":12,\"result\":1", Meant::Other),
        ] {
            assert_eq!(meant(text), expected, "{}", String::from_utf8_lossy(text));
        }
    }
}
