//! Rules that are learnt in rooms, with what they are learnt from. What stands in a lesson is not known here.

use crate::StoreError;

/// Lesson of one room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    pub room: String,
    /// Name under which the gate learns there.
    pub name: String,
    /// Set while the gate learns there.
    pub is_on: bool,
    /// JSON.
    pub kept: String,
}

/// Lessons of all gates of a store: one a gate and a room.
pub trait Lessons: Send {
    /// Lessons of a gate.
    ///
    /// # Errors
    /// When they can't be read.
    fn all(&self, gate: &str) -> Result<Vec<Lesson>, StoreError>;

    /// Lesson of a room.
    ///
    /// # Errors
    /// When it can't be read.
    fn of_room(&self, gate: &str, room: &str) -> Result<Option<Lesson>, StoreError>;

    /// Keeps a lesson, in place of the one of its room.
    ///
    /// # Errors
    /// When it can't be written.
    fn put(&self, gate: &str, lesson: &Lesson) -> Result<(), StoreError>;
}
