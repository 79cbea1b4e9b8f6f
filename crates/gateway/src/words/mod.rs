//! Words of a call: who makes it, who came in and how. Nothing here decides or does.

pub(crate) mod entered;
pub(crate) mod granted;
pub(crate) mod party;
pub(crate) mod refusal;
