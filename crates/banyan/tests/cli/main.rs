//! The real binary, run as a person or a script runs it: exit codes, standard output, standard error. Nothing here knows the code.

#![expect(clippy::expect_used, reason = "a test whose ground is missing fails loudly")]

mod alone;
mod bridge;
mod ca;
mod check;
mod clients;
mod console;
mod device;
mod doctor;
mod home;
mod join;
mod offline;
mod policy;
mod room;
mod servers;
mod service;
mod serving;
mod shapes;
mod signing;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod synced;
mod terminal;
mod token;
#[cfg(target_os = "linux")]
mod top;
mod tour;
