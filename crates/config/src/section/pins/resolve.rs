//! Resolves `[pins]`. Asks for no mount: a client's file may bring the mount later.

use policy::pin::Mode;

use super::file::{self, PinMode};
use super::resolved::Pins;
use crate::reading::FileReading;

impl FileReading<'_> {
    pub(super) fn pins(&mut self, section: &file::Pins) -> Pins {
        let defaults = Pins::default();
        Pins {
            mode: section.mode.map_or(defaults.mode, mode),
            registered: section.registered.map_or(defaults.registered, mode),
            gates: section.gates.map_or(defaults.gates, mode),
            resources: section.resources.map(mode),
            mounts: self.by_mount(&section.mounts, "hold", mode),
        }
    }
}

fn mode(written: PinMode) -> Mode {
    match written {
        PinMode::Hold => Mode::Hold,
        PinMode::Pin => Mode::Pin,
        PinMode::Trust => Mode::Trust,
    }
}
