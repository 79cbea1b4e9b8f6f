//! Terms of a conversation: settings and calls go in, steps and counters come out. Decides nothing.

use alloc::vec::Vec;
use core::time::Duration;

use crate::session::outcome::CallEnd;
use crate::session::wire::{Content, Profile};
use crate::table::{PartTable, TableRow};

/// Settings of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    pub profile: Profile,
    /// Speed of the wire, in bits a second with ten bits a byte.
    pub speed: u32,
    /// Rest after which the part is asked for a sign of life.
    pub heartbeat: Duration,
    /// Calls that may wait for the one under way.
    pub most_waiting: usize,
    /// Random number, another one in each run. The numbers of calls begin so far from those of an earlier conversation.
    pub seed: u8,
}

/// A call for a part.
#[derive(Clone, Debug)]
pub struct Order {
    /// Name of the call for the owner, used once.
    pub id: u64,
    pub tool: u8,
    /// Row of the part's table by which the call was judged; `None` for a part without a table.
    pub row: Option<TableRow>,
    pub content: Content,
    /// Two executions do no more than one, and nobody has agreed to exactly one.
    pub is_repeatable: bool,
    /// Time that the part needs for the work.
    pub work: Duration,
}

/// PartStep for the owner, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum PartStep {
    Send(Vec<u8>),
    Done {
        id: u64,
        outcome: CallEnd,
    },
    /// The part's own table, new or changed.
    Table(PartTable),
    Standing(PartStanding),
}

/// PartStanding of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartStanding {
    /// No answer yet.
    Opening,
    Alive,
    /// Three questions without an answer.
    Silent,
    /// Nothing but noise, and messages without sense or without a question.
    Babbling,
}

/// Counters for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireTally {
    /// Pieces of the wire that were no frame.
    pub noise: u64,
    /// Frames without a sensible message.
    pub nonsense: u64,
    /// Messages without a question before.
    pub stray: u64,
    /// Messages of the gate that came back.
    pub echoes: u64,
    /// Calls sent again.
    pub repeated: u64,
}
