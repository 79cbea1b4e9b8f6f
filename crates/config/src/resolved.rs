//! The configuration as the rest of the gateway reads it: every value checked, every default filled in. Does not read files.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use banyan_model::Segment;

use crate::sections::Sections;
use crate::values::Values;

pub use crate::section::audit::resolved::{AT_LEAST, Audit, FULL};
pub use crate::section::gate::resolved::{ApprovalService, Gate, Webhook};
pub use crate::section::join::resolved::{Join, Parent};
pub use crate::section::limits::resolved::Limits;
pub use crate::section::mount::resolved::{Grant, Mount, OAuth, Process, Remote, Sharing, Transport};
pub use crate::section::pins::resolved::Pins;
pub use crate::section::policy::resolved::{Budget, Group, Policy};
pub use crate::section::profile::resolved::{NameStyle, Profile, Search};
pub use crate::section::registry::hosts::Hosts;
pub use crate::section::registry::resolved::{Demand, Registry, SegmentPolicy};
pub use crate::section::room::resolved::{Participant, ROOM_SEGMENT, Room, Rooms, Seats, TokenKey, gate_seat};
pub use crate::section::telemetry::resolved::Telemetry;
pub use crate::section::token::resolved::Token;
pub use crate::section::trust::resolved::{AuthorityKeys, ClientTls, Issuer, Keys, Tls, Trust};

/// One whole, valid configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where the gate listens.
    pub listen: SocketAddr,
    /// `Host` (and `Origin` host) names accepted besides loopback ones.
    pub allowed_hosts: Vec<String>,
    /// Set if a proxy stands in front, so that whoever comes from this machine may be anybody.
    pub behind_proxy: bool,
    /// Who may call. Empty: anybody who reaches a loopback listener.
    pub tokens: Vec<Token>,
    /// Who else is known, and by what.
    pub trust: Trust,
    /// Callers need a credential although none is configured: the last one was taken away by a file that is not in force.
    pub shut: bool,
    /// Who may call what; `None`: everybody whatever is shown.
    pub policy: Option<Policy>,
    /// Callers that rules speak of as one.
    pub groups: Vec<Group>,
    /// How much callers may do.
    pub budgets: Vec<Budget>,
    /// Bounds on what a caller may ask for.
    pub limits: Limits,
    /// The servers, by the segment they are mounted under.
    pub mounts: BTreeMap<Segment, Arc<Mount>>,
    /// Which calls wait for somebody to agree; `None`: none by the word of this gate.
    pub gate: Option<Arc<Gate>>,
    /// Who may register servers here; `None`: nobody.
    pub registry: Option<Registry>,
    /// Its rooms, and who may come into them.
    pub rooms: Arc<Rooms>,
    /// Whom it registers with; `None`: nobody.
    pub join: Option<Join>,
    /// What particular clients are shown. The first whose `clients` match applies.
    pub profiles: Vec<Arc<Profile>>,
    /// Where spans go.
    pub telemetry: Telemetry,
    /// Whether an unmatched client is shown dotted names.
    pub names: NameStyle,
    /// What is done with definitions that nobody has looked at.
    pub pins: Pins,
    /// What is recorded.
    pub audit: Audit,
    /// The sections of the file, with those that other crates handed in.
    pub sections: Sections,
    /// The resolved forms of handed-in sections.
    pub values: Values,
}

impl Config {
    /// Where the gate listens unless told otherwise.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7411);

    /// What is mounted and is no room.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<Mount>> {
        self.mounts.values().filter(|mount| !matches!(mount.transport, Transport::Rooms))
    }

    /// Checks whether all that come are one principal: nobody is asked who it is, and nobody comes over a link or into a room.
    pub fn is_for_one(&self) -> bool {
        !self.wants_credential() && self.join.is_none() && !self.rooms.are_served()
    }

    /// Share of one principal in what is free and what the principal holds, in percent: all, where there can't be another principal.
    pub fn share(&self) -> usize {
        let is_alone = self.tokens.len() <= 1 && !self.trust.wants_credential() && self.join.is_none() && !self.rooms.are_served();
        if is_alone { 100 } else { self.limits.share }
    }

    /// Whether nobody comes in without a credential.
    pub fn wants_credential(&self) -> bool {
        self.shut || !self.tokens.is_empty() || self.trust.wants_credential()
    }
}

/// No servers, nobody needs a token, loopback only.
impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Self::DEFAULT_LISTEN,
            allowed_hosts: Vec::new(),
            behind_proxy: false,
            tokens: Vec::new(),
            trust: Trust::default(),
            shut: false,
            policy: None,
            groups: Vec::new(),
            budgets: Vec::new(),
            limits: Limits::default(),
            mounts: BTreeMap::new(),
            gate: None,
            registry: None,
            rooms: Arc::default(),
            join: None,
            profiles: Vec::new(),
            telemetry: Telemetry::default(),
            names: NameStyle::Safe,
            pins: Pins::default(),
            audit: Audit::default(),
            sections: Sections::default(),
            values: Values::default(),
        }
    }
}
