//! Definitions seen, for all gates of a store. Does not judge definitions.

use std::collections::BTreeMap;

use policy::pin::{Definition, Kind, Known, Standing, Why};

use crate::StoreError;

/// Waiting definitions under one name; beyond, the oldest are forgotten.
pub const MOST_HELD: usize = 8;
/// Definitions of one kind remembered of a server.
pub const MOST: usize = 200_000;
/// The same for passing kinds, and the bound of waiting ones at a time, lest reviewers be flooded. Those beyond wait their turn unseen.
pub const MOST_PASSING: usize = 10_000;
pub const MOST_PASSING_HELD: usize = 64;

/// Owner of definitions: the mount, and the address of its server, so that another server under the same mount is another owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    pub mount: String,
    pub server: String,
}

/// A kept definition.
#[derive(Debug, Clone)]
pub struct Pin {
    pub source: Source,
    pub kind: Kind,
    /// The server's own name: of a tool or a prompt its name, of a resource its URI.
    pub name: String,
    pub standing: Standing,
    pub why: Why,
    /// First sight, or last look, in seconds since 1970.
    pub since: u64,
    pub definition: Definition,
}

/// Work on definitions in one go.
pub type Together<'a> = &'a mut dyn FnMut(&mut dyn Pins);
/// A part of the work of one go.
pub type Apart<'a> = &'a mut dyn FnMut(&mut dyn Pins) -> Result<(), StoreError>;

/// Kept definitions. Every method fails when nothing can be read or written.
pub trait Pins: Send {
    /// Does `work` in one go: written definitions last on return. Nobody else writes meanwhile, and a handle with go after go leaves room
    /// for others in between.
    ///
    /// # Errors
    /// When nothing of the work lasts.
    fn together(&mut self, work: Together<'_>) -> Result<(), StoreError>;

    /// Does `work`, a part of one go. A failure undoes all its writes.
    ///
    /// # Errors
    /// Those of `work`.
    fn apart(&mut self, work: Apart<'_>) -> Result<(), StoreError>;

    /// Known definitions of a server of one kind, by name.
    ///
    /// # Errors
    /// When they can't be read.
    fn known(&self, source: &Source, kind: Kind) -> Result<BTreeMap<String, Vec<Known>>, StoreError>;

    /// Remembers definitions of a server, of one kind, all or none. Within [`Pins::together`] where others may write.
    ///
    /// # Errors
    /// When they can't be written.
    fn add(&mut self, source: &Source, kind: Kind, pins: &[Pin]) -> Result<(), StoreError>;

    /// Last good definition of a name.
    ///
    /// # Errors
    /// When it can't be read.
    fn last_good(&self, source: &Source, kind: Kind, name: &str) -> Result<Option<Definition>, StoreError>;

    /// Kept definitions of a mount, or of all: tools first, by name, the oldest first.
    ///
    /// # Errors
    /// When they can't be read.
    fn all(&self, mount: Option<&str>) -> Result<Vec<Pin>, StoreError>;

    /// Checks whether a self-styled gate was one at first sight; a server never seen before is remembered as a gate from now on. A server
    /// with remembered definitions was seen, and was no gate, unless `is_pinned_as_gate`.
    ///
    /// # Errors
    /// When it can't be read or written.
    fn was_gate(&mut self, source: &Source, is_pinned_as_gate: bool, now: u64) -> Result<bool, StoreError>;

    /// Sets the standing of a definition after a look.
    ///
    /// # Errors
    /// When it can't be written.
    fn set(&mut self, pin: &Pin, standing: Standing, now: u64) -> Result<(), StoreError>;

    /// Number of the last look before `since`.
    ///
    /// # Errors
    /// When it can't be read.
    fn looked(&self, since: u64) -> Result<i64, StoreError>;

    /// Later looks than this number, of all gates: mounts and kinds, with the last number.
    ///
    /// # Errors
    /// When they can't be read.
    fn looks_after(&self, at: i64) -> Result<(i64, Vec<(String, Kind)>), StoreError>;
}

impl dyn Pins + '_ {
    /// Does work with a result, as [`Pins::apart`] does.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn apart_with<T>(&mut self, work: impl FnOnce(&mut dyn Pins) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let (mut work, mut given) = (Some(work), None);
        self.apart(&mut |pins| {
            if let Some(work) = work.take() {
                given = Some(work(pins)?);
            }
            Ok(())
        })?;
        given.ok_or_else(|| StoreError::Failed("the store did not do its work".to_owned()))
    }
}
