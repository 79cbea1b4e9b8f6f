//! What every door at the listener shares: who comes in, the shape of answers, bodies and connections. What a request means is not known here.

pub mod body;
pub mod connections;
pub mod entrance;
pub mod entry;
pub mod events;
pub mod held;
pub mod known;
pub mod origin;
pub mod port;
pub mod reply;
pub mod rewind;
pub mod sign_in;
pub mod socket;
