//! Words of a peer, made fit for the log and the status. Judges no meaning.

/// Characters of a peer's words that are shown.
const MOST_SHOWN: usize = 200;

/// Makes one short line of a peer's words: what rules a terminal is shown as its number.
pub(crate) fn plain(words: &str) -> String {
    let mut shown = String::new();
    for (count, character) in words.chars().enumerate() {
        if count == MOST_SHOWN {
            shown.push('…');
            break;
        }
        if character.is_ascii() && !character.is_control() || character.is_alphanumeric() {
            shown.push(character);
        } else {
            shown.extend(character.escape_unicode());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_words_are_one_short_line() {
        assert_eq!(plain("the clock is ahead: größer"), "the clock is ahead: größer");
        assert_eq!(plain("a\nb\u{1b}[2J\u{202e}c"), "a\\u{a}b\\u{1b}[2J\\u{202e}c");
        assert!(plain(&"\n".repeat(1 << 20)).len() < 2000);
    }
}
