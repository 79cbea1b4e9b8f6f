//! The `_meta` repeated by every request of a client, read once.
//!
//! Revision 2026-07-28 has each request say who asks and with which capabilities, and most clients say so in the same bytes every time.
//! The meaning of a `_meta` is not known here.

use std::sync::Arc;

use super::Object;
use super::member::{Member, place};

/// Bytes of the longest `_meta` kept, since every connection keeps a copy. Longer ones are read each time.
const LONGEST: usize = 1 << 10;

/// The `_meta` in the params of the last message. Bytes found sound are sound again. Clones share the bytes.
#[derive(Debug, Clone, Default)]
pub struct Before {
    said: Arc<MetaText>,
    count: u64,
}

/// Nothing stands for none.
#[derive(Debug, Clone, Default)]
struct MetaText {
    text: Vec<u8>,
    /// Places count from the opening brace.
    members: Vec<Member>,
}

impl Before {
    /// Number of changes of the `_meta`. An unchanged count means unchanged bytes.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Keeps one copy together with another connection, so that many connections touch the same cache lines.
    pub fn share(&mut self, other: &Self) {
        if self.said.text == other.said.text {
            self.said = Arc::clone(&other.said);
        }
    }

    #[inline]
    pub(super) fn stands_at(&self, rest: &[u8]) -> bool {
        // Nothing stands everywhere.
        !self.said.text.is_empty() && rest.starts_with(&self.said.text)
    }

    pub(super) fn len(&self) -> usize {
        self.said.text.len()
    }

    /// Gives the members of the `_meta`, for an object beginning at `start`.
    pub(super) fn members(&self, start: usize) -> impl Iterator<Item = Member> {
        self.said.members.iter().map(move |member| member.behind(place(start)))
    }

    /// Keeps the `_meta` of `params`, already read.
    pub(super) fn keep(&mut self, params: Option<&Object>) {
        let Some((text, members)) = params.and_then(Object::meta_members) else {
            self.begun();
            return;
        };
        if text == self.said.text {
            return;
        }
        let said = self.begun();
        if text.len() <= LONGEST {
            said.text.extend_from_slice(text);
            said.members.extend(members);
        }
    }

    /// Makes room for the next `_meta`.
    fn begun(&mut self) -> &mut MetaText {
        self.count += 1;
        if Arc::get_mut(&mut self.said).is_none() {
            self.said = Arc::default();
        }
        let said = Arc::make_mut(&mut self.said);
        said.text.clear();
        said.members.clear();
        said
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::{Duplicates, message, message_after};

    fn read(text: &str, before: &mut Before) -> (bool, Option<Object>) {
        let text = Bytes::copy_from_slice(text.as_bytes());
        let alone = message(&text, Duplicates::RefuseDeep).map(|parts| format!("{parts:?}"));
        let after = message_after(&text, before);
        assert_eq!(after.as_ref().map(|parts| format!("{parts:?}")).map_err(Clone::clone), alone);
        (alone.is_ok(), after.ok().and_then(|parts| parts.params?.1))
    }

    #[test]
    fn what_stood_before_is_taken_with_its_members_wherever_it_stands() {
        let mut before = Before::default();
        let meta = r#"{"a/b":{"name":"x"},"c":[1]}"#;
        for params in [format!(r#"{{"_meta":{meta},"name":"t"}}"#), format!(r#"{{"name":"tool", "_meta" : {meta} ,"z":1}}"#)] {
            let (_, object) = read(&format!(r#"{{"id":1,"params":{params}}}"#), &mut before);
            let object = object.unwrap();
            let found = object.meta().unwrap();
            assert_eq!((found.get("a/b"), found.get("c"), found.len()), (Some(&br#"{"name":"x"}"#[..]), Some(&b"[1]"[..]), 2));
            assert_eq!((before.count(), before.len()), (1, meta.len()));
        }
        read(r#"{"id":1,"params":{"_meta":{}}}"#, &mut before);
        assert_eq!((before.count(), before.len()), (2, 2));
        read(r#"{"id":1,"params":{}}"#, &mut before);
        assert_eq!((before.count(), before.len()), (3, 0));
    }

    #[test]
    fn the_same_is_kept_once_and_what_comes_then_is_each_ones_own() {
        let message = |meta: &str| format!(r#"{{"id":1,"params":{{"_meta":{meta}}}}}"#);
        let (mut one, mut other) = (Before::default(), Before::default());
        read(&message(r#"{"a":1}"#), &mut one);
        read(&message(r#"{"a":2}"#), &mut other);
        other.share(&one);
        assert!(!Arc::ptr_eq(&one.said, &other.said));
        read(&message(r#"{"a":1}"#), &mut other);
        other.share(&one);
        assert!(Arc::ptr_eq(&one.said, &other.said));
        read(&message(r#"{"b":3}"#), &mut other);
        assert_eq!((&*one.said.text, &*other.said.text), (&br#"{"a":1}"#[..], &br#"{"b":3}"#[..]));
        assert_eq!((one.count(), other.count()), (1, 3));
    }

    #[test]
    fn a_long_one_is_not_kept() {
        let mut before = Before::default();
        let long = format!(r#"{{"params":{{"_meta":{{"a":"{}"}}}}}}"#, "x".repeat(LONGEST));
        read(&long, &mut before);
        assert_eq!(before.len(), 0);
    }

    proptest! {
        /// Covers a `_meta` that continues the one before, or stands where `_meta` means something else.
        #[test]
        fn nothing_is_read_otherwise_after_something_than_alone(
            metas in proptest::collection::vec("(\\{\\}|\\{\"a\":1\\}|\\{\"a\":\\{\"b\":2\\}\\}|\\{\"a\":1,\"a\":2\\}|\\{\"a\":1\\}\\}|\\{\"a\":1|1|\"x\")", 1..12),
            tails in proptest::collection::vec("(|,\"b\":1|,\"_meta\":\\{\"a\":1\\}|,\"_meta\":\\{\\}| |x)", 12),
        ) {
            let mut before = Before::default();
            for (meta, tail) in metas.iter().zip(&tails) {
                read(&format!(r#"{{"id":7,"params":{{"_meta":{meta}{tail}}},"method":"m"}}"#), &mut before);
                read(&format!(r#"{{"result":{{"_meta":{meta}{tail}}}}}"#), &mut before);
            }
        }
    }
}
