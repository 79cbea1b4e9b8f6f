//! Properties of the mapping over all ordered pairs, and transcripts of messages as peers send them. Opens no connection.

mod fatal;
mod hostile;
mod invented;
mod properties;
mod transcripts;
mod vectors;
