//! An aggregator with registrants, one case at a time.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing fails loudly")]
#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

mod losses;
mod segments;
mod sessions;
mod world;
