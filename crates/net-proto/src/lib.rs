//! Network equipment behind MCP, as the draft `mcp-network-mgmt` has it: every decision about devices, over bytes.
//!
//! No clock, socket, task, lock or `await` stands in this crate: time comes in as an argument. The driver (`netdev`) has the sessions.
//!
//! [`change`] is a change of a device as a transaction. [`fault`] gives each failure of a device one of the draft's ten codes. [`dialect`]
//! knows the command lines, [`netconf`], [`snmp`], [`bird`] and [`ovsdb`] the other ways in, [`role`] says who may do what, and [`redact`] hides secrets in all output.
//! [`interfaces`] is the table of them in pages, [`inventory`] reads lists of devices, [`log`] reads syslog, [`machine`] the facts of the machine below a device,
//! [`prompt`] has the steps of the prompts, [`routes`] reads tables in pages, and [`stream`] frames messages on the draft's own transport, and
//! [`controller`] has the draft's words of these messages.

pub mod bird;
pub mod change;
pub mod controller;
pub mod dialect;
pub mod fault;
pub mod interfaces;
pub mod inventory;
pub mod log;
pub mod machine;
pub mod netconf;
mod numbers;
pub mod ovsdb;
pub mod prompt;
pub mod redact;
pub mod role;
pub mod routes;
pub mod snmp;
pub mod stream;
