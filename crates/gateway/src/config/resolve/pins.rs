//! Lowers the section `[pins]`. Whether there are mounts of these names is not asked: they may come later.

use std::collections::BTreeMap;

use banyan_model::Segment;
use policy::pin::Mode;

use super::Lowering;
use crate::config::file::{self, PinMode};
use crate::config::problem::Flaw;
use crate::config::resolved::Pins;
use crate::config::suggest;

impl Lowering<'_> {
    pub(super) fn pins(&mut self, section: &file::Pins) -> Pins {
        let defaults = Pins::default();
        let mut mounts = BTreeMap::new();
        for (name, own) in &section.mounts {
            match Segment::new(name.get()) {
                Ok(segment) => drop(mounts.insert(segment, mode(*own))),
                Err(bad) => {
                    let near = suggest::segment(name.get());
                    self.flaws.push(Flaw::new(name.span(), bad.to_string()).help(format!("for example {near} = \"hold\"")));
                }
            }
        }
        Pins {
            mode: section.mode.map_or(defaults.mode, mode),
            registered: section.registered.map_or(defaults.registered, mode),
            gates: section.gates.map_or(defaults.gates, mode),
            mounts,
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
