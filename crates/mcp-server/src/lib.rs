//! The serving half of MCP, for servers of ours: both eras over one pipe, with progress, cancelling, questions to the client and resources
//! that change. Messages are trees of values here; no part of the gateway's own path.

mod connection;
mod line;
mod protocol;
mod request;
mod server;
pub mod subject;
mod subscriptions;

pub use connection::{Connection, run};
pub use line::LONGEST_MESSAGE;
pub use request::{Era, Question, Reply, Request};
pub use server::{About, Arguments, Keeping, Refusal, Server, arguments, failed, number_of, structured, text, text_of};
pub use subscriptions::{Change, UpdateExtras};
