//! A quick look at a request about to be refused for want of time: enough for the refusal, at a fraction of the cost of reading.
//!
//! Checks nothing. A message to be carried is read by [`super::Message::parse`].

use memchr::memchr2;

use super::usable_id;

/// The parts of a request needed for its refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance<'a> {
    /// The raw id: a string or a number, as spelled by the sender.
    pub id: &'a [u8],
    /// The method, if spelled without escapes; else empty.
    pub method: &'a str,
}

/// Looks at a text. `None`: no request, as far as can be told without reading.
///
/// A text that [`super::Message::parse`] takes for a notification or a response always gives `None`; a request gives
/// its id and method. A text that is no message may give anything.
pub fn glance(text: &[u8]) -> Option<Glance<'_>> {
    let mut walk = Walk { text, at: 0 };
    walk.expect(b'{')?;
    let (mut id, mut method) = (None, None);
    loop {
        let key = walk.value()?;
        walk.expect(b':')?;
        let value = walk.value()?;
        match key {
            b"\"id\"" => id = Some(value).filter(|raw| usable_id(raw)),
            b"\"method\"" => method = Some(value),
            // One of the two may hide behind an escape.
            key if key.contains(&b'\\') => return None,
            _ => {}
        }
        if let (Some(id), Some(method)) = (id, method) {
            return Some(Glance { id, method: plain(method) });
        }
        walk.expect(b',')?;
    }
}

fn plain(raw: &[u8]) -> &str {
    let inner = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).filter(|inner| !inner.contains(&b'\\'));
    inner.and_then(|inner| std::str::from_utf8(inner).ok()).unwrap_or_default()
}

struct Walk<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    fn expect(&mut self, byte: u8) -> Option<()> {
        self.space();
        (self.text.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Skips the next value.
    fn value(&mut self) -> Option<&'a [u8]> {
        self.space();
        let (text, from) = (self.text, self.at);
        match text.get(from)? {
            b'"' => self.string()?,
            b'{' | b'[' => self.nested()?,
            _ => {
                let rest = &text[from..];
                self.at += rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b':') || byte.is_ascii_whitespace())?;
            }
        }
        Some(&text[from..self.at])
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at += memchr2(b'"', b'\\', self.text.get(self.at..)?)?;
            if self.text[self.at] == b'"' {
                self.at += 1;
                return Some(());
            }
            self.at += 2;
        }
    }

    fn nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.text.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::envelope::Message;
    use crate::json::Duplicates;

    fn agrees(text: &Bytes) {
        let glanced = glance(text);
        match Message::parse(text, Duplicates::RefuseDeep) {
            Ok(Message::Request(request)) => {
                // Only a key with escapes may hide a request.
                let Some(glanced) = glanced else { return assert!(text.contains(&b'\\'), "{text:?}") };
                assert_eq!(glanced.id, &request.id[..]);
                assert!(glanced.method == request.method || glanced.method.is_empty(), "{text:?}");
            }
            Ok(Message::Notification(_) | Message::Response(_)) => assert_eq!(glanced, None, "{text:?}"),
            Err(_) => {}
        }
    }

    #[test]
    fn a_request_shows_its_id_and_method_wherever_they_stand() {
        for (text, found) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":8}}"#, Some(("7", "tools/call"))),
            (
                r#" { "method" : "ping" , "params" : {"a":["}",{"id":"\"]"}]} , "jsonrpc":"2.0" , "id" : "a,\"b" } "#,
                Some(("\"a,\\\"b\"", "ping")),
            ),
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"id":1}}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"method":"x"}}"#, None),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, None),
            (r#"[{"id":1,"method":"x"}]"#, None),
            (r#"{"id":1,"method":"x"#, None),
            ("", None),
        ] {
            let glanced = glance(text.as_bytes()).map(|g| (std::str::from_utf8(g.id).unwrap(), g.method));
            assert_eq!(glanced, found, "{text}");
            agrees(&text.as_bytes().to_vec().into());
        }
    }

    proptest! {
        #[test]
        fn a_glance_finds_what_reading_finds(
            members in proptest::collection::vec((
                prop_oneof![Just("id"), Just("method"), Just("params"), Just("result"), Just("\\u0069d"), Just("x")],
                prop_oneof![Just("1"), Just("\"a\""), Just("\"\\\"\""), Just("null"), Just("{}"), Just("{\"id\":[2,\"]\"]}"), Just("-1.5e3")],
            ), 0..6),
            space in prop_oneof![Just(""), Just(" "), Just("\n\t")],
        ) {
            let members: Vec<String> = members.iter().map(|(key, value)| format!("{space}\"{key}\"{space}:{space}{value}{space}")).collect();
            agrees(&format!("{space}{{\"jsonrpc\":\"2.0\"{}{}}}{space}", if members.is_empty() { "" } else { "," }, members.join(",")).into());
        }

        #[test]
        fn whatever_comes_is_looked_at_without_a_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            agrees(&text.into());
        }

        #[test]
        fn what_is_cut_off_is_looked_at_without_a_panic(cut in 0_usize..80) {
            let text = br#"{"jsonrpc":"2.0","x":{"a":["\\\"",{}]},"id":"\\\"","method":"tools/call","p":[]}"#;
            agrees(&Bytes::copy_from_slice(&text[..cut.min(text.len())]));
        }
    }
}
