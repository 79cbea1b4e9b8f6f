//! Cursors of our own lists: each names the last entry of a page, so that the next page is right whatever came and went meanwhile. Cursors are
//! no secret and hold no state.

use banyan_model::Segment;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::catalog::Kind;

/// The last entry of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListCursor {
    /// Server that lists the entry.
    pub mount: Segment,
    /// Place among the entries of the server when the page was made.
    pub place: usize,
    /// Name, URI or URI template, as shown.
    pub name: String,
}

impl ListCursor {
    /// Writes the cursor for a list of a kind.
    pub fn encode(&self, kind: Kind) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("{}:{}:{}:{}", kind.member(), self.mount, self.place, self.name))
    }

    /// Reads a cursor; `None` for a text that no [`ListCursor::encode`] for this list wrote.
    pub fn decode(kind: Kind, cursor: &str) -> Option<Self> {
        let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let [mount, place, name] =
            text.strip_prefix(kind.member())?.strip_prefix(':')?.splitn(3, ':').collect::<Vec<_>>().try_into().ok()?;
        let read = Self { mount: Segment::new(mount).ok()?, place: place.parse().ok()?, name: name.to_owned() };
        (read.encode(kind) == cursor).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_entry_and_to_no_other_list() {
        for (place, name) in [(0, "a.b"), (7, "file:///a:b"), (usize::MAX, "")] {
            let cursor = ListCursor { mount: Segment::nearest("fs"), place, name: name.to_owned() };
            assert_eq!(ListCursor::decode(Kind::Tools, &cursor.encode(Kind::Tools)), Some(cursor.clone()));
            assert_eq!(ListCursor::decode(Kind::Prompts, &cursor.encode(Kind::Tools)), None);
        }
    }

    #[test]
    fn what_we_did_not_write_is_no_cursor() {
        let other = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        let texts = ["tools:7", "tools:fs:7", "tools:fs:+7:a", "tools:fs:07:a", "tools:fs:-1:a", "tools::7:a", "tools:Fs:7:a"];
        let encoded = texts.iter().map(|text| other(text));
        let beyond = other("tools:fs:99999999999999999999999:a");
        for cursor in encoded.chain([String::new(), "garbage!".to_owned(), beyond]) {
            assert_eq!(ListCursor::decode(Kind::Tools, &cursor), None, "{cursor}");
        }
    }
}
