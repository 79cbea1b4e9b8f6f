//! Lessons in memory. Does not know the content of a lesson.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::{Lesson, Lessons, StoreError};

pub(super) type LessonMap = Mutex<BTreeMap<(String, String), Lesson>>;

struct MemoryLessons(Arc<LessonMap>);

pub(super) fn open(shared: &Arc<LessonMap>) -> Box<dyn Lessons> {
    Box::new(MemoryLessons(Arc::clone(shared)))
}

impl Lessons for MemoryLessons {
    fn all(&self, gate: &str) -> Result<Vec<Lesson>, StoreError> {
        Ok(lock(&self.0).iter().filter(|((own, _), _)| own == gate).map(|(_, lesson)| lesson.clone()).collect())
    }

    fn of_room(&self, gate: &str, room: &str) -> Result<Option<Lesson>, StoreError> {
        Ok(lock(&self.0).get(&(gate.to_owned(), room.to_owned())).cloned())
    }

    fn put(&self, gate: &str, lesson: &Lesson) -> Result<(), StoreError> {
        lock(&self.0).insert((gate.to_owned(), lesson.room.clone()), lesson.clone());
        Ok(())
    }
}
