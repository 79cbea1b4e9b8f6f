//! Rooms for people and agents. Opens none.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;
mod revoke;

use std::sync::Arc;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::revoked::RefusedFile;
use crate::section::Section;

/// Rooms: `[rooms]`, `[room.NAME]`, `[participant.NAME]`.
pub(crate) struct RoomSection;

impl Section for RoomSection {
    type Form = file::RoomForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        let rooms = reading.rooms(form);
        config.mounts.extend(reading.mounted(form, &rooms));
        config.rooms = Arc::new(rooms);
    }

    fn check(&self, form: &Self::Form, config: &Config, reading: &mut FileReading<'_>) {
        reading.dev_tokens(form, config);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }

    fn revoke(&self, refused: &RefusedFile<'_>, left: &mut Config) {
        revoke::keep(Arc::make_mut(&mut left.rooms), refused);
    }
}
