//! The serving half of A2A: messages of clients as calls of tools, tasks and cards as JSON. Keeps no task, and knows no tool.

pub mod incoming;
pub mod input;
pub mod listing;
mod nesting;
pub mod push;
pub mod rejection;
pub mod steps;
pub mod written;
