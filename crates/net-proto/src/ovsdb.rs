//! Open vSwitch through its database (OVSDB, RFC 7047): messages of the protocol, the rows of a switch as lines and contexts, and a change of
//! these lines as one transaction that holds only for the rows that were seen. Opens no socket.

mod column;
mod config;
mod counters;
mod rows;
mod stream;
mod transaction;

pub use config::{SwitchConfig, canonical_line};
pub use counters::{SwitchInterface, vlans};
pub use rows::{SwitchRows, answers, lacks_column, read_rows, read_whole_rows, tried};
pub use stream::{OvsdbMessage, OvsdbStream, request};
pub use transaction::{Settlement, settle};

use crate::fault::{Code, Fault};

/// Database of Open vSwitch.
pub const DATABASE: &str = "Open_vSwitch";

/// Fault of a line that no configuration of a switch has.
fn refused(line: &str, why: impl Into<String>) -> Fault {
    Fault::new(Code::ConfigIncompatible, format!("`{line}`: {}", why.into())).at("candidate-config")
}

#[cfg(test)]
mod tests;
