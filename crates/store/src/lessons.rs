//! Rules learnt in rooms, with their evidence. Does not know the content of a lesson.

use crate::StoreError;

/// Lesson of one room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    pub room: String,
    /// The gate's name in the room.
    pub name: String,
    /// Set while the gate learns.
    pub is_on: bool,
    /// JSON.
    pub kept: String,
}

/// Lessons of all gates of a store: one a gate and room.
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

    /// Stores a lesson, in place of any of the same room.
    ///
    /// # Errors
    /// When it can't be written.
    fn put(&self, gate: &str, lesson: &Lesson) -> Result<(), StoreError>;
}
