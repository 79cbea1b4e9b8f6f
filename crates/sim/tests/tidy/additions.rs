//! Times to which something is added: a sum that no clock can hold ends the process. Text only: the type of what is added is not known here.
//!
//! Clippy can't be told: `disallowed-methods` does not see operators, and `arithmetic_side_effects` refuses constants as well.

use crate::tree::sources;

/// Beginnings of sums whose other half may be any time named by a peer.
const CLOCKS: [&str; 3] = ["UNIX_EPOCH + ", "SystemTime::now() + ", "SystemTime::now() - "];
/// Ends of sums in which a number has just become a length of time.
const LENGTHS: [&str; 4] = ["Duration::from_secs(", "Duration::from_millis(", "Duration::from_micros(", "Duration::from_nanos("];

/// Checks whether a line adds anything but a constant to a time.
fn adds_unchecked(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let to_a_clock = CLOCKS.iter().any(|clock| code.split(clock).skip(1).any(|added| !is_constant(added)));
    let from_a_number = LENGTHS.iter().any(|length| {
        ["+ ", "- ", "+= ", "-= "].iter().any(|sign| {
            let made = format!("{sign}{length}");
            code.split(&made).skip(1).any(|number| !is_constant(number))
        })
    });
    to_a_clock || from_a_number
}

/// A literal or the name of a constant, perhaps in a factor.
fn is_constant(code: &str) -> bool {
    let code = LENGTHS.iter().find_map(|length| code.strip_prefix(length)).unwrap_or(code);
    let word: String = code.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
    let name = word.rsplit(':').next().unwrap_or_default();
    !name.is_empty() && !name.contains(char::is_lowercase)
}

#[test]
fn m1_nothing_is_added_to_a_time_unchecked_that_is_no_constant() {
    let mut found = Vec::new();
    for file in sources(&[".rs"]).iter().filter(|file| !file.is_test() && file.path.starts_with("crates/") && !file.path.contains("/sim/"))
    {
        for (number, line) in file.production().lines().enumerate() {
            if adds_unchecked(line) {
                found.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "take `checked_add`, with what is good where it can't be added:\n{}", found.join("\n"));
}

#[test]
fn what_is_added_unchecked_is_seen() {
    for line in [
        "let ends = UNIX_EPOCH + Duration::from_secs(received) + lasts;",
        "until: SystemTime::UNIX_EPOCH + Duration::from_secs(given.until) })",
        "let next = SystemTime::now() + wait;",
        "self.at += Duration::from_millis(self.told);",
        "let end = now + Duration::from_secs(60 * hours) + Duration::from_secs(told);",
    ] {
        assert!(adds_unchecked(line), "{line}");
    }
    for line in [
        "let early = now + Duration::from_secs(60);",
        "if until > SystemTime::now() + GATE_LASTS / 3 {",
        "let ends = UNIX_EPOCH.checked_add(Duration::from_secs(received));",
        "let end = now + Duration::from_secs(super::HOUR);",
        "// SystemTime::now() + wait",
    ] {
        assert!(!adds_unchecked(line), "{line}");
    }
}
