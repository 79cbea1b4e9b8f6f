//! Nesting of JSON that a task takes in: what a tool says stands deeper there, and must not pass the depth that readers allow. Changes no text.

use json::Duplicates;

/// Levels around a value in an event of a stream over JSON-RPC, with some to spare for clients of more layers.
const LEVELS: usize = 12;

/// Checks that a sound value is no deeper than readers allow once it stands in a task.
pub(super) fn fits(raw: &[u8]) -> bool {
    let opening = raw.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if opening < json::MAX_DEPTH - LEVELS {
        return true;
    }
    let within = [&[b'['; LEVELS], raw, &[b']'; LEVELS]].concat();
    json::check(&within, Duplicates::RefuseTop).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_and_breadth_does_not() {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let most = json::MAX_DEPTH - LEVELS;
        assert!(fits(deep(most).as_bytes()) && !fits(deep(most + 1).as_bytes()));
        assert!(fits(format!("[{}[]]", "[],".repeat(1_000)).as_bytes()));
    }
}
