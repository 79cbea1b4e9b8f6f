//! A family that no gate ships with: lamps on a made-up bus, one kind of upstream, one door and one section. A test hands it to a gate as one
//! more part, and so shows what a real family takes. No file of the gate knows it.

mod bus;
mod section;
mod status;
mod upstream;

use std::sync::Arc;

use call::tree::port::Family;
use config::Sections;
use door::entrance::Entrance;
use door::part::{GatePart, Ground, InstalledPart};
use door::port::Door;

pub use crate::bus::Bus;
pub use crate::section::{Colour, LampSection, LampSettings};
pub use crate::status::LampDoor;
pub use crate::upstream::LampFamily;

/// Lamps, for the list of parts.
pub struct LampPart;

impl GatePart for LampPart {
    fn sections(&self, known: Sections) -> Sections {
        known.with(LampSection)
    }

    fn install(&self, ground: &Ground) -> Arc<dyn InstalledPart> {
        Arc::new(InstalledLamps { bus: Arc::default(), entrance: Arc::clone(&ground.entrance) })
    }
}

/// Lamps at one gate.
struct InstalledLamps {
    bus: Arc<Bus>,
    entrance: Arc<Entrance>,
}

impl InstalledPart for InstalledLamps {
    fn families(&self) -> Vec<Arc<dyn Family>> {
        vec![Arc::new(LampFamily(Arc::clone(&self.bus)))]
    }

    fn doors(&self) -> Vec<Arc<dyn Door>> {
        vec![Arc::new(LampDoor { bus: Arc::clone(&self.bus), entrance: Arc::clone(&self.entrance) })]
    }
}
