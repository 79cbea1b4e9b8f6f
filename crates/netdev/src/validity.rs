//! Checks of a candidate before it is kept: by the device, and for lines of FRR that nothing would take back. Changes nothing on the device.

use net_proto::change::text::Tree;
use net_proto::fault::{Code, Fault};

use crate::site::{Site, forget};
use crate::way::DeviceWay;

impl Site {
    /// Checks that a change from `running` to a candidate could be taken back, and its syntax.
    pub(crate) async fn check_candidate(&self, running: &str, candidate: &str) -> Result<(), Fault> {
        self.check_lasting(running, candidate)?;
        self.validate(candidate).await
    }

    /// Lets the device check the syntax of a candidate, where it can.
    pub(crate) async fn validate(&self, candidate: &str) -> Result<(), Fault> {
        match &self.changes {
            DeviceWay::Frr(frr) => {
                let file = self.written("check.conf", candidate)?;
                let checked = frr.validate(&file).await;
                forget(&file);
                checked
            }
            DeviceWay::Hosted(frr) => frr.validate(candidate).await,
            DeviceWay::Bird(bird) => bird.validate(candidate).await,
            DeviceWay::Ssh(_) | DeviceWay::Netconf(_) | DeviceWay::Snmp(_) | DeviceWay::Ovs(_) => Ok(()),
        }
    }

    /// Refuses lines that FRR could not be brought back from, or to.
    pub(crate) fn check_lasting(&self, running: &str, candidate: &str) -> Result<(), Fault> {
        if !matches!(self.changes, DeviceWay::Frr(_) | DeviceWay::Hosted(_)) {
            return Ok(());
        }
        let (have, wanted) = (Tree::read(running), Tree::read(candidate));
        let Some(line) = have.lasting_difference(&wanted) else { return Ok(()) };
        let detail = format!(
            "a reload of FRR never takes the line `{line}` away, so a change of such a line could not be rolled back: make it by hand"
        );
        Err(Fault::new(Code::RollbackNotSupported, detail))
    }
}
