//! Lines of a client, each a message. Reads no message.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Bytes of the longest message that a client may send.
pub const LONGEST_MESSAGE: usize = (4 << 20) - 1;

/// End of a reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    /// No line is left.
    End,
    Whole,
    /// Only the beginning of the line is kept. Its rest is no message, whatever it looks like: the writer of a text within a message is not
    /// the client.
    TooLong,
}

/// Reads a line to its end, whatever its length.
pub(crate) async fn read<R: AsyncBufRead + Unpin>(input: &mut R, line: &mut Vec<u8>) -> io::Result<LineRead> {
    line.clear();
    let most = LONGEST_MESSAGE as u64 + 1;
    if (&mut *input).take(most).read_until(b'\n', line).await? == 0 {
        return Ok(LineRead::End);
    }
    if line.len() <= LONGEST_MESSAGE || line.ends_with(b"\n") {
        return Ok(LineRead::Whole);
    }
    loop {
        let piece = input.fill_buf().await?;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let (length, is_over) = end.map_or((piece.len(), piece.is_empty()), |end| (end + 1, true));
        input.consume(length);
        if is_over {
            return Ok(LineRead::TooLong);
        }
    }
}

/// Id of a message that begins with the first two members of JSON-RPC, as those of most clients do; `null` for any other.
pub(crate) fn id_at_front(line: &[u8]) -> Value {
    const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
    let id = line.strip_prefix(HEAD).map(|rest| &rest[..rest.len().min(256)]);
    let id = id.and_then(|rest| serde_json::Deserializer::from_slice(rest).into_iter::<Value>().next()?.ok());
    id.filter(|id| id.is_number() || id.is_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn a_message_within_a_long_line_is_none() {
        let smuggled = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"network.commit"}}"#;
        let spaces = vec![b' '; LONGEST_MESSAGE];
        let text = [&br#"{"jsonrpc":"2.0","id":3,"x":"#[..], &spaces, smuggled, &spaces, &spaces, b"}\n{\"id\":4}\n"].concat();
        let (mut input, mut line) = (BufReader::new(&text[..]), Vec::new());
        assert_eq!(read(&mut input, &mut line).await.unwrap(), LineRead::TooLong);
        assert_eq!(id_at_front(&line), json!(3));
        assert_eq!(read(&mut input, &mut line).await.unwrap(), LineRead::Whole);
        assert_eq!(line, b"{\"id\":4}\n");
        assert_eq!(read(&mut input, &mut line).await.unwrap(), LineRead::End);
    }

    #[tokio::test]
    async fn the_longest_message_is_read_whole() {
        let text = [vec![b' '; LONGEST_MESSAGE], b"\n".to_vec()].concat();
        let (mut input, mut line) = (BufReader::new(&text[..]), Vec::new());
        assert_eq!(read(&mut input, &mut line).await.unwrap(), LineRead::Whole);
        assert_eq!(line.len(), LONGEST_MESSAGE + 1);
    }

    #[test]
    fn an_id_is_found_at_the_front_alone() {
        assert_eq!(id_at_front(br#"{"jsonrpc":"2.0","id":"a b","method":"x"}"#), json!("a b"));
        for line in [&br#"{"method":"x","id":1}"#[..], br#"{"jsonrpc":"2.0","id":{"a":1}}"#, b""] {
            assert_eq!(id_at_front(line), Value::Null);
        }
    }
}
