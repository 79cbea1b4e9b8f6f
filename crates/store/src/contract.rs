//! Promises of the stores as tests that every implementation runs. An implementation hands in how one is made; nothing here knows which it is.

#![expect(clippy::unwrap_used, reason = "a promise that is not kept fails loudly")]

pub mod budget;
mod bus;
mod claims;
pub mod journal;
mod lessons;
mod pending;
mod pins;
pub mod stores;
