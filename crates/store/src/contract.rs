//! Promises of the stores, as tests that every implementation runs. An implementation hands in a constructor; nothing here knows which
//! implementation runs.

#![expect(clippy::unwrap_used, reason = "a promise that is not kept fails loudly")]

pub mod budget;
mod bus;
mod claims;
mod contexts;
pub mod journal;
mod lessons;
mod pending;
mod pins;
pub mod stores;
