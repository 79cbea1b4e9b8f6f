//! Walk over the members of JSON text, once and forward, whatever the depth. Checks no text: a strict pass has found it sound before.

use std::borrow::Cow;

/// Place in a text. Objects are entered; any other value is passed over as a whole.
#[derive(Debug, Clone)]
pub(super) struct ValueWalk<'a> {
    text: &'a [u8],
    at: usize,
    /// An object was entered: what follows stands in one.
    is_inside: bool,
}

impl<'a> ValueWalk<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, is_inside: false }
    }

    /// Enters the object at this place; or passes over a value of another kind, and gives its text.
    pub(super) fn enter(&mut self) -> Option<&'a [u8]> {
        self.pass_space();
        let start = self.at;
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                self.is_inside = true;
                return None;
            }
            Some(b'"') => self.pass_string(),
            Some(b'[') => self.pass_array(),
            _ => self.pass_while(|byte| !matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n')),
        }
        Some(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Tells if the walk has entered an object.
    pub(super) fn is_inside(&self) -> bool {
        self.is_inside
    }

    /// Gives the name of the next member of the innermost object, whose value follows; `None` ends the object.
    pub(super) fn member(&mut self) -> Option<Cow<'a, str>> {
        self.pass_while(|byte| matches!(byte, b',' | b' ' | b'\t' | b'\r' | b'\n'));
        let start = self.at;
        if self.peek() != Some(b'"') {
            self.at += 1;
            return None;
        }
        self.pass_string();
        let name = self.text.get(start..self.at).and_then(json::as_str);
        self.pass_while(|byte| matches!(byte, b':' | b' ' | b'\t' | b'\r' | b'\n'));
        name
    }

    /// Passes over the value at this place.
    pub(super) fn skip(&mut self) {
        let mut open = usize::from(self.enter().is_none());
        while open > 0 {
            match self.member() {
                Some(_) => open += usize::from(self.enter().is_none()),
                None => open -= 1,
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn pass_space(&mut self) {
        self.pass_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    }

    fn pass_while(&mut self, is_passed: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_passed) {
            self.at += 1;
        }
    }

    fn pass_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
    }

    fn pass_array(&mut self) {
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.pass_string();
                    continue;
                }
                b'[' | b'{' => open += 1,
                b']' | b'}' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn read(walk: &mut ValueWalk<'_>) -> Value {
        if let Some(text) = walk.enter() {
            return serde_json::from_slice(text).unwrap();
        }
        let mut object = Map::new();
        while let Some(name) = walk.member() {
            let value = read(walk);
            object.insert(name.into_owned(), value);
        }
        Value::Object(object)
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a\"\\\\{}\\[\\],: é\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-c\"\\\\{},:é]{0,3}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn xc_11_a_walk_meets_each_member_once(value in values(), is_pretty in any::<bool>()) {
            let text = if is_pretty { serde_json::to_vec_pretty(&value).unwrap() } else { serde_json::to_vec(&value).unwrap() };
            let mut walk = ValueWalk::new(&text);
            prop_assert_eq!(read(&mut walk), value);
            prop_assert_eq!(walk.at, text.len());
            let mut skipped = ValueWalk::new(&text);
            skipped.skip();
            prop_assert_eq!(skipped.at, text.len());
        }

        #[test]
        fn xc_11_a_walk_over_any_bytes_ends(text in prop::collection::vec(prop::sample::select(b"{}[]\",:\\ a1".to_vec()), 0..40)) {
            let mut walk = ValueWalk::new(&text);
            walk.skip();
            prop_assert!(walk.at <= text.len() + 1 + text.len());
        }
    }
}
