//! Judging: rules and budgets, pinned definitions, approvals. What a rule says is not decided here but in the crate `policy`.

pub mod approvals;
pub mod gate;
pub mod pins;
pub mod policy;
