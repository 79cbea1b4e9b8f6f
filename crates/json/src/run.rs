//! Length of the run of a JSON string without quotes, escapes or control characters. Nothing here unescapes.

/// Counts the bytes of `text` from `at` on that are ASCII and need no escape in a string. The count may stop early.
#[inline]
pub(super) fn plain_run(text: &[u8], at: usize) -> usize {
    let mut rest = text.get(at..).unwrap_or_default();
    let mut run = 0;
    while run < SHORT {
        let Some((word, behind)) = rest.split_first_chunk() else { return run + plain_bytes(rest) };
        let word = u64::from_le_bytes(*word);
        let stops = stops(word) | word & HIGH;
        if stops != 0 {
            return run + stops.trailing_zeros() as usize / 8;
        }
        (run, rest) = (run + 8, behind);
    }
    run + long_plain_run(rest)
}

#[inline(never)]
fn long_plain_run(rest: &[u8]) -> usize {
    // Without a way out of a block, it becomes a few instructions for sixteen bytes at a time.
    let plain = |block: &&[u8]| !block.iter().fold(false, |stops, b| stops | !is_plain(*b));
    let run = rest.chunks_exact(BLOCK).take_while(plain).count() * BLOCK;
    run + plain_bytes(&rest[run..])
}

#[inline(never)]
fn plain_bytes(rest: &[u8]) -> usize {
    rest.iter().take_while(|b| is_plain(**b)).count()
}

/// So many bytes are looked at together in a long string.
const BLOCK: usize = 64;

/// Tells if a byte is ASCII and needs no escape in a string.
#[inline]
fn is_plain(b: u8) -> bool {
    // Below zero as a signed number is what is not ASCII.
    b.cast_signed() >= 0x20 && b != b'"' && b != b'\\'
}

/// Most strings end within so many bytes, and a call for the rest would cost more than they do.
const SHORT: usize = 48;

/// Counts the bytes of `rest` up to a quote, a backslash or a control character, and tells if all of them are ASCII.
#[inline]
pub(super) fn run(rest: &[u8]) -> (usize, bool) {
    let mut seen = 0;
    for (i, block) in rest.chunks_exact(8).take(SHORT / 8).enumerate() {
        let word = u64::from_le_bytes(block.try_into().unwrap_or_default());
        let stops = stops(word);
        if stops != 0 {
            let stop = stops.trailing_zeros() / 8;
            let before = word & !(u64::MAX << (stop * 8));
            return (i * 8 + stop as usize, (seen | before) & HIGH == 0);
        }
        seen |= word;
    }
    let begun = (rest.len() / 8).min(SHORT / 8) * 8;
    let (more, is_ascii) = long_run(&rest[begun..]);
    (begun + more, is_ascii && seen & HIGH == 0)
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of the first byte of `word` that is a quote, a backslash or below 0x20, and perhaps of later bytes.
fn stops(word: u64) -> u64 {
    // A byte that is zero borrows from its high bit; a borrow can only reach bytes behind the first that is zero.
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

fn long_run(rest: &[u8]) -> (usize, bool) {
    let stop = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    // Whole blocks are looked at together; only one that has a control character is searched for its place.
    let (mut at, mut seen) = (0, 0);
    for block in rest[..stop].chunks(64) {
        let (control, all) = block.iter().fold((false, 0), |(control, all), b| (control | (*b < 0x20), all | *b));
        if control {
            let stop = block.iter().position(|b| *b < 0x20).unwrap_or(0);
            return (at + stop, rest[..at + stop].is_ascii());
        }
        seen |= all;
        at += block.len();
    }
    (stop, seen < 0x80)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// The same, a byte at a time.
    fn slow_run(rest: &[u8]) -> (usize, bool) {
        let stop = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len());
        (stop, rest[..stop].is_ascii())
    }

    proptest! {
        #[test]
        fn a_run_ends_where_a_search_byte_by_byte_ends(mut bytes in vec(any::<u8>(), 0..20), long in 0..200_usize, stop in any::<u8>()) {
            prop_assert_eq!(run(&bytes), slow_run(&bytes));
            // Mostly nothing stops it, so that every block and the rest behind them is reached.
            let edge = [0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xa0, 0xa2, 0xdc, 0xff];
            let mut text: Vec<u8> = edge.iter().copied().cycle().skip(bytes.len()).take(long).collect();
            prop_assert_eq!(run(&text).0, long);
            text.push(stop);
            text.append(&mut bytes);
            prop_assert_eq!(run(&text), slow_run(&text));
        }

        #[test]
        fn a_plain_run_ends_at_the_first_byte_that_must_be_looked_at(before in 0..300_usize, stop in any::<u8>(), behind in vec(any::<u8>(), 0..80)) {
            let mut text = vec![b'x'; before];
            prop_assert_eq!(plain_run(&text, 0), before);
            text.push(stop);
            text.extend(&behind);
            let first = text.iter().position(|b| !b.is_ascii() || matches!(b, b'"' | b'\\' | 0..0x20)).unwrap_or(text.len());
            for at in [0, before / 2, before, text.len(), text.len() + 1] {
                prop_assert_eq!(at + plain_run(&text, at), first.max(at));
            }
        }

        #[test]
        fn a_word_stops_at_its_first_byte_that_ends_a_string(
            word in vec(prop_oneof![any::<u8>(), select(b"\"\\#!][\x00\x1f\x20\x21\x7f\x80\xa2\xdc".to_vec())], 8),
        ) {
            let found = stops(u64::from_le_bytes(word[..].try_into().unwrap_or_default()));
            let first = if found == 0 { 8 } else { (found.trailing_zeros() / 8) as usize };
            prop_assert_eq!(first, slow_run(&word).0);
        }
    }
}
