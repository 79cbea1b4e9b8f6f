//! Person or caller who confirms a change or takes it back. Does not know the device.

use net_proto::change::{ChangeRecord, DeviceChange, Phase, owner_in_words};
use net_proto::fault::{Code, Fault};

/// Name of whoever confirms a change or takes it back.
#[derive(Clone, Copy, Debug)]
pub enum Settler<'a> {
    /// Somebody who comes over MCP, by kind and name, and settles changes of that kind and name alone.
    Caller(&'a str),
    /// Somebody at the command line or in the console of the owner, who settles any.
    Person(&'a str),
}

impl Settler<'_> {
    /// Checks if a confirmation means the save of a change that is confirmed already: the present one, with this hash where one is given.
    pub(super) fn may_save(self, record: &ChangeRecord, hash: Option<&str>) -> bool {
        let is_own = |change: &DeviceChange| match self {
            Self::Caller(caller) => change.owner == caller,
            Self::Person(_) => true,
        };
        let is_it =
            |change: &DeviceChange| change.phase == Phase::Confirmed && hash.is_none_or(|hash| hash == change.hash) && is_own(change);
        record.unsaved.is_some() && record.change.as_ref().is_some_and(is_it)
    }

    pub(super) fn check_owner(self, record: &ChangeRecord) -> Result<(), Fault> {
        match (record.pending(), self) {
            (Some(change), Self::Caller(caller)) if change.owner != caller => {
                let owner = &change.owner;
                // Kept by a release without kinds, or a person's: the name alone proves nothing.
                let is_bare = caller.split_once(':').is_some_and(|(_, name)| name == owner);
                let why = if is_bare { ", which is no kind of caller" } else { "" };
                let owner = owner_in_words(owner);
                let detail = format!("the change belongs to {owner}{why}: only its owner or a person settles it");
                Err(Fault::new(Code::AccessDenied, detail))
            }
            _ => Ok(()),
        }
    }
}
