//! Tools over links: those of this gate for peers, and those of peers for this gate. Opens no connection.

pub(crate) mod changes;
pub(crate) mod ending;
pub(crate) mod ground;
pub(crate) mod link;
pub(crate) mod outgoing;
pub(crate) mod served;
pub(crate) mod shelf;
pub(crate) mod signer;
pub(crate) mod upstream;
