//! Rules for calls: policies, budgets and approvals as pure decisions.
//!
//! There is no clock, socket, task, lock or `await` in this crate: time and randomness come in as arguments. Nothing is carried out here.

pub mod approval;
pub mod budget;
pub mod decide;
mod effect;
pub mod jws;
pub mod pin;
pub mod share;

pub use effect::Effect;
