//! Tree: mounts, their catalogs, and each caller's view. Does not decide about calls.

pub mod annotation;
pub mod asks;
pub mod catalog;
pub mod gate;
pub mod hub;
pub mod mount;
pub mod port;
pub mod registration;
pub mod role;
pub mod silence;
pub mod snapshot;
pub mod stderr;
pub mod view;
