//! Network equipment as MCP servers: sessions with devices, the record of changes on the disk, and the processes for restores.
//!
//! Every decision is made in `net-proto`. The gate knows nothing of devices: a device is a server like any other.

mod backend;
mod clock;
mod command;
mod datastore;
mod device;
mod drive;
mod framed;
mod freeze;
mod frr;
mod guard;
mod hosted;
mod intake;
mod log;
mod login;
mod netconf;
mod permission;
mod shell;
mod site;
mod snmp;
mod ssh;
mod store;
mod way;

use std::sync::Arc;

pub use device::Compat;
pub use equipment::{Backend, DeviceSecrets, DeviceSettings, Devices};
pub use freeze::{Freeze, FreezeScope, Freezes};
pub use guard::guard;
pub use net_proto::fault::{Code, Fault};
pub use net_proto::inventory;
pub use site::{ChangeState, Settler, Site};

/// Longest time for a first look at a device.
const FIRST: std::time::Duration = std::time::Duration::from_millis(1500);

/// Serves a device to a client on a pipe, until `input` ends, in the dialect of `compat`.
///
/// # Errors
/// Reading or writing failed.
pub async fn serve<R, W>(site: Site, compat: Compat, input: R, output: W) -> std::io::Result<()>
where
    R: tokio::io::AsyncRead + Unpin,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let site = Arc::new(site);
    // The capabilities of the server are those of the device, so the device is asked first; one that is slow or away is served all the same.
    if let Ok(netconf) = site.backend.netconf() {
        drop(tokio::time::timeout(FIRST, netconf.reach()).await);
    }
    let watching = tokio::spawn(guard::watch(Arc::clone(&site)));
    site.intake.begin();
    let served = mcp_server::run(Arc::new(device::Device::new(site, compat)), input, output).await;
    watching.abort();
    served
}

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
