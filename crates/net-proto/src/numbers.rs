//! Lists of numbers as lines of configuration have them, such as `10,20-22`. Does not know the meaning of a number.

/// Ranges of a list of numbers, each with the first and the last; `None`: the word is no such list.
pub(crate) fn ranges(list: &str) -> Option<Vec<(u32, u32)>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some((first, last))
    };
    list.split(',').map(range).collect()
}

/// Number in plain digits.
pub(crate) fn number(word: &str) -> Option<u32> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_12_a_list_of_numbers_is_read_as_ranges() {
        assert_eq!(ranges("10,20-22"), Some(vec![(10, 10), (20, 22)]));
        for other in ["", "a", "10-", "-5", "22-20", "10,,11", "10.1", "+1", "1-2-3", "99999999999"] {
            assert_eq!(ranges(other), None, "{other}");
        }
    }
}
