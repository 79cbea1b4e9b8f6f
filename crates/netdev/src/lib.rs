//! Network equipment as MCP servers: sessions with devices, the record of changes on the disk, and the processes for restores.
//!
//! Every decision is made in `net-proto`. The gate knows nothing of devices: a device is a server like any other.

mod backend;
mod clock;
mod command;
mod device;
mod drive;
mod guard;
mod site;
mod ssh;
mod store;
mod way;

use std::sync::Arc;

pub use equipment::{DeviceSettings, Devices};
pub use guard::guard;
pub use net_proto::fault::Fault;
pub use site::{ChangeState, Site};

/// Serves a device to a client on a pipe, until `input` ends.
///
/// # Errors
/// Reading or writing failed.
pub async fn serve<R, W>(site: Site, input: R, output: W) -> std::io::Result<()>
where
    R: tokio::io::AsyncRead + Unpin,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let site = Arc::new(site);
    let watching = tokio::spawn(guard::watch(Arc::clone(&site)));
    let served = mcp_server::run(Arc::new(device::Device::new(site)), input, output).await;
    watching.abort();
    served
}
