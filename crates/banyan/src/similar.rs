//! "Did you mean": similar names. Does not print.

/// Lists `candidates` similar to `given`, the nearest first, at most three.
pub(crate) fn similar<'a>(given: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let folded = given.to_lowercase();
    let mut near: Vec<(f64, &str)> = candidates
        .map(|name| {
            let lower = name.to_lowercase();
            let within = if !folded.is_empty() && lower.contains(&folded) { 0.9 } else { 0.0 };
            (strsim::jaro_winkler(&folded, &lower).max(within), name)
        })
        .filter(|(score, _)| *score > 0.85)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.dedup_by_key(|(_, name)| *name);
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// A sentence to put behind "there is no X": the near names, or nothing.
pub(crate) fn did_you_mean<'a>(given: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    match similar(given, candidates).as_slice() {
        [] => String::new(),
        [one] => format!("\n  did you mean `{one}`?"),
        several => format!("\n  did you mean one of `{}`?", several.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        let names = ["files.read_text", "files.write", "time.now"];
        assert_eq!(similar("fles.read_text", names.into_iter()), ["files.read_text"]);
        assert_eq!(similar("now", names.into_iter()), ["time.now"]);
        assert_eq!(similar("zzz", names.into_iter()), [""; 0]);
    }
}
