//! Tree: mounts, their catalogs, and each caller's view. Does not decide about calls.

pub mod annotation;
pub mod asks;
pub mod back;
pub mod by_session;
pub mod caller;
pub mod catalog;
pub mod desk;
pub mod gate;
pub mod hub;
pub mod mount;
pub mod own;
pub mod port;
pub mod registration;
pub mod remembered;
pub mod role;
pub mod silence;
pub mod snapshot;
pub mod sourced;
pub mod standing;
pub mod stderr;
pub mod view;
