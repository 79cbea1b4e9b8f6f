//! The tree: what is mounted, what it offers, what each caller is shown of it. Whether a call may be made is not decided here.

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
