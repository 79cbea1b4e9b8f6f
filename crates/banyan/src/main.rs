//! Banyan.
fn main() {}
