//! Judging: rules and budgets, pinned definitions, approvals. Does not interpret rules; the crate `policy` does.

pub mod approvals;
pub mod gate;
pub mod pins;
pub mod policy;
