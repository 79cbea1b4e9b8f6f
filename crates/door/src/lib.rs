//! Everything that doors at the listener share: admission, answers, bodies and connections. Knows no request's meaning.

pub mod body;
pub mod connections;
pub mod entrance;
pub mod entry;
pub mod events;
pub mod held;
pub mod known;
pub mod origin;
pub mod part;
pub mod port;
pub mod reply;
pub mod rewind;
pub mod sign_in;
pub mod socket;
