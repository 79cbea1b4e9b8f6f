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

/// Words that may stand before the numbers of a list, and the words that mean any number.
const BEFORE: [&str; 3] = ["add", "remove", "batch"];
const ANY: [&str; 3] = ["all", "except", "none"];

/// Numbers of a list at the begin of the words of a line, such as `10-20,30`, `10 to 20`, `[ 10 20 ]` or `add 10-20`, and the count of these
/// words; zero: the line has no list there.
pub(crate) fn listed(words: &[String]) -> (Vec<(u32, u32)>, usize) {
    let (mut all, mut used, mut is_open): (Vec<(u32, u32)>, usize, bool) = (Vec::new(), 0, false);
    for word in words {
        let is_short_for = |known: &[&str]| known.iter().any(|known| known.starts_with(word.as_str()));
        let numbers = ranges(word.trim_end_matches(','));
        match (numbers, all.last_mut()) {
            (Some(numbers), Some((_, last))) if is_open => {
                *last = (*last).max(numbers.first().map_or(0, |(first, _)| *first));
                all.extend(numbers);
                is_open = false;
            }
            (Some(numbers), _) => all.extend(numbers),
            (None, Some(_)) if word == "-" || "to".starts_with(word.as_str()) => is_open = true,
            (None, _) if matches!(word.as_str(), "[" | "]" | ",") => {}
            (None, None) if is_short_for(&ANY) => all.push((0, u32::MAX)),
            (None, None) if is_short_for(&BEFORE) => {}
            (None, _) => break,
        }
        used += 1;
    }
    if all.is_empty() { (all, 0) } else { (all, used) }
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
        let listed = |line: &str| listed(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(listed("10 to 20 30 x 40"), (vec![(10, 20), (20, 20), (30, 30)], 4));
        assert_eq!(listed("[ 10 20-22 ]"), (vec![(10, 10), (20, 22)], 4));
        assert_eq!(listed("add 10, 12"), (vec![(10, 10), (12, 12)], 3));
        assert_eq!(listed("except 5"), (vec![(0, u32::MAX), (5, 5)], 2));
        assert_eq!((listed("add x").1, listed("").1, listed("e1 5").1, listed("to 5").1), (0, 0, 0, 0));
    }
}
