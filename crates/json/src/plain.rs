//! Bytes allowed unescaped in a JSON string, in any script. The ends of a string are not known here.

/// So many bytes of a string are looked at together.
const BLOCK: usize = 32;

/// Counts the bytes at the beginning of `text` that stand for themselves in a string.
pub(super) fn plain(text: &[u8]) -> usize {
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    // Without a way out of a block, the compiler takes all of it at a time.
    let is_whole = |block: &&[u8]| block.iter().fold(true, |so_far, byte| so_far & is_plain(byte));
    // Most strings are short; long ones may not be ASCII.
    words(text, 0, BLOCK)
        .and_then(|at| words(text, at + text[at..].chunks_exact(BLOCK).take_while(is_whole).count() * BLOCK, text.len()))
        .map_or_else(|found| found, |at| at + text[at..].iter().take_while(|byte| is_plain(byte)).count())
}

/// Skips plain text in `text` from `at`, word by word, up to `end` or a word that needs a closer look.
///
/// # Errors
/// The place of the first byte that needs an escape.
fn words(text: &[u8], mut at: usize, end: usize) -> Result<usize, usize> {
    while at < end
        && let Some(word) = text[at..].first_chunk()
    {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            let first = at + special.trailing_zeros() as usize / 8;
            return if text[first].is_ascii() { Err(first) } else { Ok(at) };
        }
        at += 8;
    }
    Ok(at)
}

/// Tells if all of a text may stand in a string unescaped. `false` may be too careful for text beyond ASCII.
pub(super) fn is_plain(text: &[u8]) -> bool {
    if text.len() > BLOCK {
        return plain(text) == text.len();
    }
    let word = |at: usize| text[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let short = |at: usize| text[at..].first_chunk().map_or(0, |half| u32::from_le_bytes(*half));
    let seen = match text.len() {
        0 => 0,
        // Both ends, which may overlap.
        length @ 8.. => (8..length).step_by(8).fold(special(word(length - 8)), |seen, at| seen | special(word(at - 8))),
        length @ 4.. => special(u64::from(short(0)) << 32 | u64::from(short(length - 4))),
        length => special(u64::from_le_bytes([text[0], text[length / 2], text[length - 1], b' ', b' ', b' ', b' ', b' '])),
    };
    seen == 0
}

/// The highest bit of each byte that does not stand for itself, or is not ASCII. Above the lowest of them, bits may be set for nothing.
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    let below = |limit: u8| word.wrapping_sub(ONES * u64::from(limit));
    let is = |byte: u8| (word ^ (ONES * u64::from(byte))).wrapping_sub(ONES);
    (word | below(0x20) | is(b'"') | is(b'\\')) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_need_an_escape_are_found_wherever_they_stand() {
        for length in 0..80 {
            for special in (0..=0x1f).chain([b'"', b'\\']) {
                for at in 0..length {
                    let mut text = "é~ aZ\u{7f}".bytes().cycle().take(length).collect::<Vec<_>>();
                    text[at] = special;
                    assert_eq!(plain(&text), at, "{special} at {at} of {length}");
                    assert!(!is_plain(&text), "{special} at {at} of {length}");
                    let text = text.iter().map(|byte| if byte.is_ascii() { *byte } else { b'a' }).collect::<Vec<_>>();
                    assert!(plain(&text) == at && !is_plain(&text), "{special} at {at} of {length}");
                }
            }
            let text = "é~ !#[]aZ\u{7f}".bytes().cycle().take(length).collect::<Vec<_>>();
            assert_eq!(plain(&text), length);
            let text = text.iter().map(|byte| if byte.is_ascii() { *byte } else { b'a' }).collect::<Vec<_>>();
            assert!(plain(&text) == length && is_plain(&text), "{length}");
        }
    }
}
