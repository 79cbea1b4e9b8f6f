//! Arguments as recorded: the hash, the shape, and the value where the configuration asks for it. Nothing here knows a call.

use json::canonical::{Numbers, form};
use json::tree;

use crate::hash::{Hash, sha256};
use crate::record::{Arguments, Raw};
use crate::shape;

/// Longer canonical forms are not recorded themselves, in bytes: an entry has to fit into a bundle.
pub const MAX_VALUE: usize = 32 << 10;

/// Detail of arguments to be recorded beside their hash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArgumentDetail {
    pub shape: bool,
    /// The arguments, up to [`MAX_VALUE`].
    pub value: bool,
}

/// Arguments read once, in the forms that a record takes.
#[derive(Debug, Clone)]
pub struct ArgumentForms {
    hash: Hash,
    shape: Option<String>,
    value: Option<String>,
}

impl ArgumentForms {
    /// Reads a raw JSON value. Text without a canonical form is hashed raw, without shape and value.
    pub fn of(raw: &[u8], wanted: ArgumentDetail) -> Self {
        let bare = || Self { hash: sha256(raw), shape: None, value: None };
        let Ok(written) = tree::read(raw) else { return bare() };
        let Ok(form) = form(raw, &written, Numbers::Kept) else { return bare() };
        let hash = sha256(&form);
        let shape = wanted.shape.then(|| shape::of_json(&written.value));
        let keeps = wanted.value && form.len() <= MAX_VALUE;
        let value = keeps.then(|| String::from_utf8(form.into_owned()).ok()).flatten();
        Self { hash, shape, value }
    }

    /// Gives the arguments as they stand in a record.
    pub fn recorded(&self) -> Arguments<'_> {
        Arguments { hash: self.hash, shape: self.shape.as_deref().map(Raw), value: self.value.as_deref().map(Raw) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wanted_is_recorded() {
        let raw = br#"{"b":"secret", "a":1.0}"#;
        let wanted = |shape, value| ArgumentForms::of(raw, ArgumentDetail { shape, value });
        let text = |value: Option<Raw<'_>>| value.map(|raw| raw.0.to_owned());
        let of = |formed: &ArgumentForms| (text(formed.recorded().shape), text(formed.recorded().value));
        assert_eq!(of(&wanted(false, false)), (None, None));
        let (shape, value) = (r#"{"a":"number","b":"string:6"}"#.to_owned(), r#"{"a":1,"b":"secret"}"#.to_owned());
        assert_eq!(of(&wanted(true, true)), (Some(shape), Some(value)));
        assert_eq!(wanted(true, true).recorded().hash, crate::canonical::digest(raw).unwrap());
        let long = format!("\"{}\"", "x".repeat(MAX_VALUE));
        assert_eq!(
            of(&ArgumentForms::of(long.as_bytes(), ArgumentDetail { shape: true, value: true })),
            (Some(format!("\"string:{MAX_VALUE}\"")), None)
        );
        assert_eq!(ArgumentForms::of(b"{", ArgumentDetail { shape: true, value: true }).recorded().hash, sha256(b"{"));
    }
}
