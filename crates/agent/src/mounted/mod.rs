//! An agent in the tree: skills are tools, and a call is a turn of a conversation. Serves no agent of this gate.
//!
//! [`family`] opens a mount, [`wire`] sends requests, [`skill`] turns skills into tools and arguments into messages, [`conversation`]
//! waits for the end of a turn with its [`steps`], [`owners`] knows whose conversations are whose, [`answer`] turns what the agent said into a
//! result, and [`upstream`] is the mount for callers.

pub mod answer;
pub mod conversation;
pub mod family;
pub mod owners;
pub mod skill;
pub mod steps;
pub mod upstream;
pub mod wire;
