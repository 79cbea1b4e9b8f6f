//! The serving half of A2A: messages of clients as calls of tools, tasks and cards as JSON. Keeps no task, and knows no tool.

pub mod incoming;
pub mod listing;
pub mod rejection;
pub mod written;
