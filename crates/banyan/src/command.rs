//! One file a command: its arguments, what it does, what it prints. What several commands share is a noun of its own elsewhere, not here.

pub(crate) mod completions;
pub(crate) mod man;
