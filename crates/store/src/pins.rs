//! Definitions that were seen, for all gates of a store. How a definition stands is not decided here.

use std::collections::BTreeMap;

use policy::pin::{Definition, Kind, Known, Standing, Why};

use crate::StoreError;

/// Definitions under one name that may wait; those that came first are forgotten beyond.
pub const MOST_HELD: usize = 8;
/// Definitions of one kind that are remembered of a server.
pub const MOST: usize = 200_000;
/// The same of what comes and goes, and how many of these wait at a time: whoever looks is not to be flooded. Those beyond wait their turn
/// unseen.
pub const MOST_PASSING: usize = 10_000;
pub const MOST_PASSING_HELD: usize = 64;

/// Owner of definitions: the mount, and by what its server is reached, so that another server under that name is another owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    pub mount: String,
    pub server: String,
}

/// Definition that is kept.
#[derive(Debug, Clone)]
pub struct Pin {
    pub source: Source,
    pub kind: Kind,
    /// Name that the server gives: a tool or a prompt by its name, a resource by its URI.
    pub name: String,
    pub standing: Standing,
    pub why: Why,
    /// Time at which it was seen first, or somebody looked at it, in seconds since 1970.
    pub since: u64,
    pub definition: Definition,
}

/// Work on definitions within one go, and within one part of a go.
pub type Together<'a> = &'a mut dyn FnMut(&mut dyn Pins);
/// A piece of work among several in one go.
pub type Apart<'a> = &'a mut dyn FnMut(&mut dyn Pins) -> Result<(), StoreError>;

/// Definitions that are kept. Every method fails when nothing can be read or written.
pub trait Pins: Send {
    /// Does `work` with one go: what it writes lasts when this returns. Nobody else writes meanwhile, and a handle that works go after go leaves
    /// room for others in between.
    ///
    /// # Errors
    /// When nothing of it lasts.
    fn together(&mut self, work: Together<'_>) -> Result<(), StoreError>;

    /// Does `work`, one of several with one go. Where it fails, nothing that it wrote is kept.
    ///
    /// # Errors
    /// Those of `work`.
    fn apart(&mut self, work: Apart<'_>) -> Result<(), StoreError>;

    /// Definitions of one kind that are known of a server, by name.
    ///
    /// # Errors
    /// When they can't be read.
    fn known(&self, source: &Source, kind: Kind) -> Result<BTreeMap<String, Vec<Known>>, StoreError>;

    /// Remembers definitions of a server, of one kind, all or none. Where others may write, within [`Pins::together`].
    ///
    /// # Errors
    /// When they can't be written.
    fn add(&mut self, source: &Source, kind: Kind, pins: &[Pin]) -> Result<(), StoreError>;

    /// Definition of that name that was good last.
    ///
    /// # Errors
    /// When it can't be read.
    fn last_good(&self, source: &Source, kind: Kind, name: &str) -> Result<Option<Definition>, StoreError>;

    /// All that are kept of a mount, or of all of them: tools first, by name, those that stand longest first.
    ///
    /// # Errors
    /// When they can't be read.
    fn all(&self, mount: Option<&str>) -> Result<Vec<Pin>, StoreError>;

    /// Checks whether a server that says that it is a gate said so when it was first seen; remembered from now on, if it was never seen. A server
    /// of which definitions are remembered was seen, and was no gate, unless `is_pinned_as_gate`.
    ///
    /// # Errors
    /// When it can't be read or written.
    fn was_gate(&mut self, source: &Source, is_pinned_as_gate: bool, now: u64) -> Result<bool, StoreError>;

    /// Sets how a definition stands, after somebody looked at it.
    ///
    /// # Errors
    /// When it can't be written.
    fn set(&mut self, pin: &Pin, standing: Standing, now: u64) -> Result<(), StoreError>;

    /// Number of the last look before `since`.
    ///
    /// # Errors
    /// When it can't be read.
    fn looked(&self, since: u64) -> Result<i64, StoreError>;

    /// Looks after the one of that number, whichever gate wrote them down: mounts and kinds, with the last number.
    ///
    /// # Errors
    /// When they can't be read.
    fn looks_after(&self, at: i64) -> Result<(i64, Vec<(String, Kind)>), StoreError>;
}

impl dyn Pins + '_ {
    /// Does work that gives something, as [`Pins::apart`] does.
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
