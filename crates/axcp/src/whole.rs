//! The text of a whole context for readers, kept until the next version. Does not know where the text comes from.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// Text of a version: many readers of a large context share a single one.
#[derive(Debug, Default)]
pub(crate) struct WholeText(Mutex<Option<(u64, Bytes)>>);

impl WholeText {
    /// Gives the text of `version`, which `make` makes once.
    pub(crate) fn of_version(&self, version: u64, make: impl FnOnce() -> Bytes) -> Bytes {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = kept.as_ref().filter(|(of, _)| *of == version) {
            return text.clone();
        }
        let text = make();
        *kept = Some((version, text.clone()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_version_is_made_once() {
        let whole = WholeText::default();
        let mut made = Vec::new();
        for version in [0, 0, 1, 1, 1, 2] {
            let text = whole.of_version(version, || {
                made.push(version);
                version.to_string().into()
            });
            assert_eq!(text, version.to_string());
        }
        assert_eq!(made, [0, 1, 2]);
    }
}
