//! Parts behind a wire as a part of a gate. Opens nothing by itself.

use std::sync::Arc;

use call::tree::port::Family;
use config::Sections;
use door::part::{GatePart, Ground, InstalledPart};

use crate::broker::BrokerGround;
use crate::port::PortKeys;
use crate::section::StubSection;
use crate::upstream::StubFamily;

/// Parts behind a wire, for the list of a gate's parts.
pub struct StubPart;

impl GatePart for StubPart {
    fn sections(&self, known: Sections) -> Sections {
        known.with(StubSection)
    }

    fn install(&self, ground: &Ground) -> Arc<dyn InstalledPart> {
        let ground = BrokerGround { connector: Arc::clone(&ground.connector), sources: Arc::clone(&ground.sources) };
        Arc::new(InstalledStubs { keys: Arc::default(), ground })
    }
}

/// Parts behind the wires of one gate.
struct InstalledStubs {
    keys: Arc<PortKeys>,
    ground: BrokerGround,
}

impl InstalledPart for InstalledStubs {
    fn families(&self) -> Vec<Arc<dyn Family>> {
        vec![Arc::new(StubFamily { keys: Arc::clone(&self.keys), ground: self.ground.clone() })]
    }
}
