//! Person or caller who confirms a change or takes it back. Does not know the device.

use net_proto::change::ChangeRecord;
use net_proto::fault::{Code, Fault};

/// Name of whoever confirms a change or takes it back.
#[derive(Clone, Copy, Debug)]
pub enum Settler<'a> {
    /// Somebody who comes over MCP, and settles changes of that name alone.
    Caller(&'a str),
    /// Somebody at the command line or in the console of the owner, who settles any.
    Person(&'a str),
}

impl Settler<'_> {
    pub(super) fn check_owner(self, record: &ChangeRecord) -> Result<(), Fault> {
        match (record.pending(), self) {
            (Some(change), Self::Caller(caller)) if change.owner != caller => {
                let detail = format!("the change belongs to {}: only its owner or a person settles it", change.owner);
                Err(Fault::new(Code::AccessDenied, detail))
            }
            _ => Ok(()),
        }
    }
}
