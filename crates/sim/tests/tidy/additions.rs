//! Times to which something is added: a sum that no clock can hold ends the process. Text only: the type of what is added is not known here.
//!
//! Clippy can't be told: `disallowed-methods` does not see operators, and `arithmetic_side_effects` refuses constants as well.

use std::collections::BTreeSet;

use crate::tree::sources;

/// Beginnings of sums whose other half may be any time named by a peer.
const CLOCKS: [&str; 3] = ["UNIX_EPOCH + ", "SystemTime::now() + ", "SystemTime::now() - "];
/// Names by which code calls the present time, or a time that was the present one.
const TIMES: [&str; 8] = ["now", "now()", "instant", "wall", "began", "begun", "since", "started"];
/// Sums of such a time and something bounded, by the end of the file's path.
const BOUNDED: [(&str, &[&str]); 20] = [
    // Settings, which are a year at most, and heartbeats, which have a bound in the protocol.
    ("mesh-proto/src/child/joining.rs", &["self.settings.", "self.interval()", "time)"]),
    ("mesh-proto/src/child/living.rs", &["pause)", "interval *", "self.interval()"]),
    ("mesh-proto/src/child/moving.rs", &["pause)", "self.settings."]),
    ("mesh-proto/src/parent.rs", &["session.interval"]),
    ("mesh-proto/src/parent/commit.rs", &["session.interval"]),
    ("mesh-proto/src/parent/ending.rs", &["self.settings."]),
    ("mesh-proto/src/parent/listing.rs", &["self.settings."]),
    ("mesh-proto/src/parent/registering.rs", &["timeout)"]),
    ("tree/mount.rs", &["longest"]),
    ("upstream/pipe.rs", &["probe)"]),
    ("tree/silence.rs", &["first }", "wait"]),
    // Time that has passed.
    ("mount/recent.rs", &["took)"]),
    ("runtime/src/lateness.rs", &["began,", "last >=", "since <"]),
    // Bounded in the line or the function.
    ("bridge/mod.rs", &["patience,"]),
    ("door/src/body.rs", &["patience(ARRIVAL,"]),
    ("mount/agreement.rs", &["good_for.min(LONGEST_FRESH)"]),
    ("runtime/src/alarm.rs", &["longest)"]),
    ("oauth/record.rs", &["left.saturating_sub(margin)"]),
    // Numbers of things.
    ("command/check.rs", &["reached >"]),
    ("json/src/run.rs", &["more,"]),
];
/// Ends of sums in which a number has just become a length of time.
const LENGTHS: [&str; 4] = ["Duration::from_secs(", "Duration::from_millis(", "Duration::from_micros(", "Duration::from_nanos("];

/// Checks whether a line adds anything but a constant to a time.
fn adds_unchecked(line: &str) -> bool {
    adds_to_clock(line) || to_a_name(line).next().is_some()
}

/// Checks whether a line adds anything but a constant to what a clock shows, or a length that has just been made of a number to any time.
fn adds_to_clock(line: &str) -> bool {
    let code = code_of(line);
    let to_a_clock = CLOCKS.iter().any(|clock| code.split(clock).skip(1).any(|added| !is_constant(added)));
    let from_a_number = LENGTHS.iter().any(|length| {
        ["+ ", "- ", "+= ", "-= "].iter().any(|sign| {
            let made = format!("{sign}{length}");
            code.split(&made).skip(1).any(|number| !is_constant(number))
        })
    });
    to_a_clock || from_a_number
}

/// The part of a line before a comment.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// Everything in a line that is added to a time with a name, but for constants.
fn to_a_name(line: &str) -> impl Iterator<Item = &str> {
    let code = code_of(line);
    TIMES.iter().flat_map(move |name| {
        code.match_indices(name).filter_map(move |(place, _)| {
            let is_part = code[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let behind = code[place + name.len()..].strip_prefix(' ').filter(|_| !is_part)?;
            let added = ["+ ", "- ", "+= ", "-= "].iter().find_map(|sign| behind.strip_prefix(sign))?;
            (!is_constant(added)).then_some(added)
        })
    })
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
    let (mut found, mut used) = (Vec::new(), BTreeSet::new());
    for file in sources(&[".rs"]).iter().filter(|file| !file.is_test() && file.path.starts_with("crates/") && !file.path.contains("/sim/"))
    {
        let bounded = BOUNDED.iter().find(|(path, _)| file.path.ends_with(path));
        for (number, line) in file.production().lines().enumerate() {
            let mut is_bounded = |added: &str| {
                let known = bounded.and_then(|(path, sums)| Some((path, sums.iter().find(|sum| added.starts_with(**sum))?)));
                used.extend(known);
                known.is_some()
            };
            if adds_to_clock(line) || !to_a_name(line).all(&mut is_bounded) {
                found.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "take `checked_add`, with what is good where it can't be added:\n{}", found.join("\n"));
    let stale: Vec<_> =
        BOUNDED.iter().flat_map(|(path, sums)| sums.iter().map(move |sum| (path, sum))).filter(|sum| !used.contains(sum)).collect();
    assert!(stale.is_empty(), "nothing is added like this any more: {stale:?}");
}

#[test]
fn what_is_added_unchecked_is_seen() {
    for line in [
        "let ends = UNIX_EPOCH + Duration::from_secs(received) + lasts;",
        "until: SystemTime::UNIX_EPOCH + Duration::from_secs(given.until) })",
        "let next = SystemTime::now() + wait;",
        "self.at += Duration::from_millis(self.told);",
        "let end = now + Duration::from_secs(60 * hours) + Duration::from_secs(told);",
        "let end = now + told;",
        "self.timers.set(Timer::Answer, Instant::now() + told.lasts);",
        "(self.since - lasts, began += told)",
        "self.timers.set(Timer::Answer, now.instant + told.lasts);",
    ] {
        assert!(adds_unchecked(line), "{line}");
    }
    for line in [
        "let early = now + Duration::from_secs(60);",
        "if until > SystemTime::now() + GATE_LASTS / 3 {",
        "let ends = UNIX_EPOCH.checked_add(Duration::from_secs(received));",
        "let end = now + Duration::from_secs(super::HOUR);",
        "// SystemTime::now() + wait",
        "let end = now + HOUR;",
        "if is_known + count > self.known_now + count {",
        "let ends = now.checked_add(told);",
    ] {
        assert!(!adds_unchecked(line), "{line}");
    }
}
