//! Network equipment as MCP servers: sessions with devices, the record of changes on the disk, and the processes for restores.
//!
//! Every decision is made in `net-proto`. The gate knows nothing of devices: a device is a server like any other.

mod backend;
mod bird;
mod bulk;
mod caller;
mod changing;
mod clock;
mod command;
mod datastore;
mod device;
mod drive;
mod fleet;
mod framed;
mod freeze;
mod frr;
mod group;
mod guard;
mod health;
mod host_key;
mod hosted;
mod intake;
mod log;
mod login;
mod netconf;
mod ovs;
mod pause;
mod permission;
mod room;
mod saving;
mod served;
mod serving;
mod share;
mod shell;
mod site;
mod snmp;
mod ssh;
mod store;
mod undo;
mod validity;
mod way;

pub use device::Compat;
pub use equipment::{Backend, DeviceLimits, DeviceSecrets, DeviceSettings, Devices};
pub use fleet::serve_fleet;
pub use framed::{carry_controller, refuse_controller};
pub use freeze::{Freeze, FreezeScope, Freezes};
pub use guard::guard;
pub use host_key::shown_host_key;
pub use net_proto::controller::ControllerShapes;
pub use net_proto::fault::{Code, Fault};
pub use net_proto::inventory;
pub use serving::serve;
pub use site::{ChangeState, Settler, Site};
