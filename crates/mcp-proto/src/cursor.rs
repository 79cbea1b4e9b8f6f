//! Cursors of our own lists: list and first entry of the next page. Cursors are no secret and hold no state.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::catalog::Kind;

/// The cursor of a page, counted from 0.
pub fn encode(kind: Kind, page: usize) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{}:{page}", kind.member()))
}

/// Gives the page of a cursor; `None` for a cursor not made by [`encode`] for this list.
pub fn decode(kind: Kind, cursor: &str) -> Option<usize> {
    let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let page = text.strip_prefix(kind.member())?.strip_prefix(':')?.parse().ok()?;
    (encode(kind, page) == cursor).then_some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_page_and_to_no_other_list() {
        for page in [0, 7, usize::MAX] {
            assert_eq!(decode(Kind::Tools, &encode(Kind::Tools, page)), Some(page));
            assert_eq!(decode(Kind::Prompts, &encode(Kind::Tools, page)), None);
        }
    }

    #[test]
    fn what_we_did_not_write_is_no_cursor() {
        let other = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        let beyond = other("tools:99999999999999999999999");
        for cursor in ["", "garbage!", &other("tools:+7"), &other("tools:07"), &other("tools:-1"), &other("tools:"), &beyond] {
            assert_eq!(decode(Kind::Tools, cursor), None, "{cursor}");
        }
    }
}
