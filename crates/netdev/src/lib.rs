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
mod hosted;
mod intake;
mod log;
mod login;
mod netconf;
mod ovs;
mod permission;
mod room;
mod served;
mod serving;
mod share;
mod shell;
mod site;
mod snmp;
mod ssh;
mod store;
mod way;

use std::sync::Arc;

pub use device::Compat;
pub use equipment::{Backend, DeviceLimits, DeviceSecrets, DeviceSettings, Devices};
pub use fleet::serve_fleet;
pub use freeze::{Freeze, FreezeScope, Freezes};
pub use guard::guard;
pub use net_proto::fault::{Code, Fault};
pub use net_proto::inventory;
pub use serving::serve;
pub use site::{ChangeState, Settler, Site};

/// Serves a device to a controller over the draft's transport (section 8.1), until `stream` ends or the controller says `close`.
///
/// # Errors
/// Reading failed.
pub async fn serve_controller<S>(site: Site, compat: Compat, stream: S) -> std::io::Result<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + 'static,
{
    framed::serve(device::Device::new(Arc::new(site), compat), stream).await
}

/// Restores a device whenever the deadline of a change has passed, and receives what the device sends by itself. Never ends.
pub async fn restore_when_due(site: Site) {
    site.intake.begin();
    guard::watch(Arc::new(site)).await;
}
