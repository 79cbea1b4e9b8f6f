//! One file a command: its arguments, what it does, what it prints. What several commands share is a noun of its own elsewhere, not here.

pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod ca;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod import;
pub(crate) mod join;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod names;
pub(crate) mod policy;
pub(crate) mod reload;
pub(crate) mod schema;
pub(crate) mod secret;
pub(crate) mod status;
pub(crate) mod stdio;
pub(crate) mod token;
pub(crate) mod tools;
pub(crate) mod trace;
pub(crate) mod tree;
pub(crate) mod up;
