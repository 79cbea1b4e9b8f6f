//! Guesses at a meaning: the nearest known word, and the nearest legal segment. Does not change anything.

use banyan_model::Segment;

/// Finds a known word near to `word`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = word.to_lowercase().replace('-', "_");
    let score = |known: &str| strsim::jaro_winkler(&folded, &known.to_lowercase());
    let best = known.into_iter().map(|known| (score(known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.82).map(|(_, known)| known)
}

/// Makes a segment similar to `text`: lower case, with `-` for every run of other characters.
///
/// `My Server` becomes `my-server`. Texts without a single legal character become `server`.
pub fn segment(text: &str) -> Segment {
    let mut name = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' | '_' => name.push(c),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    name.truncate(Segment::MAX);
    let name = name.trim_end_matches('-');
    Segment::new(name).or_else(|_| Segment::new("server")).unwrap_or_else(|_| unreachable!("`server` is a segment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_near_or_none() {
        let known = ["command", "args", "env", "exclude", "include", "timeout"];
        for (word, near) in [("comand", "command"), ("agrs", "args"), ("Timeout", "timeout"), ("excludes", "exclude")] {
            assert_eq!(nearest(word, known), Some(near), "{word}");
        }
        assert_eq!(nearest("colour", known), None);
    }

    #[test]
    fn ax_10_any_text_has_a_legal_segment_that_reads_like_it() {
        for (text, name) in [
            ("My Server", "my-server"),
            ("GitHub", "github"),
            ("@scope/server-x", "scope-server-x"),
            ("a.b", "a-b"),
            ("-x-", "x"),
            ("ÄÖ", "server"),
            ("", "server"),
            ("file_system 2", "file_system-2"),
        ] {
            assert_eq!(segment(text).as_str(), name, "{text:?}");
        }
        assert_eq!(segment(&"x".repeat(80)).as_str().len(), 63);
    }
}
