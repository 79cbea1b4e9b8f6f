//! The configuration for the rest of the gateway: every value checked, every default filled in. Does not read files.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use banyan_model::Segment;

use crate::sections::Sections;
use crate::values::Values;

pub use crate::section::audit::resolved::{AT_LEAST, Audit};
pub use crate::section::gate::resolved::{ApprovalService, Gate, Webhook};
pub use crate::section::join::resolved::{Join, Parent};
pub use crate::section::limits::resolved::Limits;
pub use crate::section::mount::family::{FamilySettings, FamilyTransport};
pub use crate::section::mount::resolved::{Grant, Mount, MountGroup, OAuth, Process, Remote, RemoteAgent, Sharing, Transport};
pub use crate::section::pins::resolved::Pins;
pub use crate::section::policy::resolved::{Budget, Group, Policy};
pub use crate::section::profile::resolved::{NameStyle, Profile, Search};
pub use crate::section::registry::hosts::Hosts;
pub use crate::section::registry::resolved::{Demand, Registry, SegmentPolicy};
pub use crate::section::room::resolved::{MountedRooms, Participant, ROOM_SEGMENT, Room, Rooms, Seats, TokenKey, gate_seat};
pub use crate::section::telemetry::resolved::Telemetry;
pub use crate::section::token::resolved::Token;
pub use crate::section::trust::resolved::{AuthorityKeys, ClientTls, Issuer, Keys, Tls, Trust};

/// A whole, valid configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub listen: SocketAddr,
    /// `Host` (and `Origin` host) names accepted besides loopback ones.
    pub allowed_hosts: Vec<String>,
    /// A proxy stands in front: callers from this machine may be anybody.
    pub behind_proxy: bool,
    /// Bearer tokens. Without any, everybody on this machine may call.
    pub tokens: Vec<Token>,
    pub trust: Trust,
    /// Callers need a credential although none is configured: a refused file took the last away.
    pub shut: bool,
    /// Without rules everybody may call all tools of a view.
    pub policy: Option<Policy>,
    /// Groups of callers in rules.
    pub groups: Vec<Group>,
    pub budgets: Vec<Budget>,
    /// Bounds for callers and servers.
    pub limits: Limits,
    pub mounts: BTreeMap<Segment, Arc<Mount>>,
    /// `None`: no call waits for approval by the word of this gate.
    pub gate: Option<Arc<Gate>>,
    /// `None`: nobody may register servers.
    pub registry: Option<Registry>,
    pub rooms: Arc<Rooms>,
    /// `None`: the gate registers with nobody.
    pub join: Option<Join>,
    /// The first profile with matching `clients` applies.
    pub profiles: Vec<Arc<Profile>>,
    pub telemetry: Telemetry,
    /// Spelling of names for clients without a profile.
    pub names: NameStyle,
    /// Treatment of definitions that nobody has looked at.
    pub pins: Pins,
    pub audit: Audit,
    /// The list of sections, handed-in sections included.
    pub sections: Sections,
    /// The resolved forms of handed-in sections.
    pub values: Values,
}

impl Config {
    /// The default address.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7411);

    /// Lists mounts without the mounted rooms.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<Mount>> {
        let is_rooms = |mount: &Mount| matches!(&mount.transport, Transport::Family(family) if family.family() == MountedRooms::FAMILY);
        self.mounts.values().filter(move |mount| !is_rooms(mount))
    }

    /// Checks whether all callers are the same principal: nobody needs a credential, comes over a link, or comes into a room.
    pub fn is_for_one(&self) -> bool {
        !self.wants_credential() && self.join.is_none() && !self.rooms.are_served()
    }

    /// Share of a principal in free room and the principal's own room together, in percent; all of both for an only principal.
    pub fn share(&self) -> usize {
        let is_alone = self.tokens.len() <= 1 && !self.trust.wants_credential() && self.join.is_none() && !self.rooms.are_served();
        if is_alone { 100 } else { self.limits.share }
    }

    /// Checks whether every caller needs a credential.
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
