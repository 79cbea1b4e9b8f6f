//! Contexts that nodes share: a tree of registers, in which the last writer wins. Keeps nothing on a disk and sends nothing.
//!
//! Each write has a time of a hybrid clock and an author, and both together order all writes ([`clock`]). An operation becomes writes by its
//! own content alone ([`path`] says where), never by the present state, so that [`tree`] joins writes in any order to one result.
//! [`operation`] reads the operations of a patch, and [`replica`] holds a context, its versions and its bounds. [`follow`] finds the gaps in
//! the versions of a sender, [`retry`] keeps patches for a peer that is away, [`kept`] writes what a store keeps, and [`peers`] is a context
//! with its peers: `subscriber` makes the patches for one of them, `timely` divides a patch with operations from the future, and
//! `again` says when to ask one for what is lacking.

mod again;
mod ages;
pub mod clock;
pub mod follow;
pub mod kept;
#[cfg(test)]
mod nodes;
pub mod operation;
mod part;
pub mod path;
pub mod peers;
pub mod replica;
pub mod retry;
mod subscriber;
mod timely;
pub mod tree;
mod value;
