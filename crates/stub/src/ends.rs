//! Sentences for people about calls that ended without a result of use. Decides nothing.

use stub_proto::session::{NeverRan, Unknown};

use crate::text::MOST_TEXT;

/// Sentence about a call that has certainly not run.
pub fn never_ran(name: &str, why: NeverRan) -> String {
    let why = match why {
        NeverRan::Silent => "the part does not answer".to_owned(),
        NeverRan::Full { waiting } => format!("{waiting} calls wait for the part already. Call again later"),
        NeverRan::OwnFull { waiting } => format!("{waiting} calls of yours wait for the part already. Let one end first"),
        NeverRan::OtherTable => {
            "the part has started anew and lists its tools otherwise. List the tools again, and call again if it still fits".to_owned()
        }
        NeverRan::TooLong { most } => format!("the arguments are too long: the part takes messages of {most} bytes"),
        NeverRan::Cancelled => "the call was taken back".to_owned(),
    };
    format!("`{name}` did not run: {why}")
}

/// Sentence about a call of unknown outcome.
pub fn unknown(name: &str, why: Unknown) -> String {
    let why = match why {
        Unknown::NoAnswer { tries: 1 } => "the part did not answer".to_owned(),
        Unknown::NoAnswer { tries } => format!("the part did not answer {tries} times"),
        Unknown::StartedAnew => "the part started anew before it answered".to_owned(),
        Unknown::WireLost => "the line ended before the answer".to_owned(),
    };
    format!("whether `{name}` ran is not known: {why}. Look before you call again")
}

/// Sentence about a call that ran, and whose answer was not read.
pub fn too_long(name: &str) -> String {
    format!("`{name}` ran, but the part's answer is too long: a message has {MOST_TEXT} bytes at most. Let the part send less")
}
