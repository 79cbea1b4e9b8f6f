//! A device as a server on a pipe, with the look at its deadline beside. Opens no device.

use std::sync::Arc;

use mcp_server::subject;

use crate::device::{Compat, Device};
use crate::guard;
use crate::site::Site;

/// Serves a device to a client on a pipe, until `input` ends, in the dialect of `compat`.
///
/// # Errors
/// Reading or writing failed.
pub async fn serve<R, W>(site: Site, compat: Compat, input: R, output: W) -> std::io::Result<()>
where
    R: tokio::io::AsyncRead + Unpin,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    serve_site(Arc::new(site), compat, input, output).await
}

pub(crate) async fn serve_site<R, W>(site: Arc<Site>, compat: Compat, input: R, output: W) -> std::io::Result<()>
where
    R: tokio::io::AsyncRead + Unpin,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    // The capabilities of the server are those of the device, so the device is asked first; one that is slow or away is served all the same.
    site.look().await;
    let watching = subject::spawn(guard::watch(Arc::clone(&site)));
    site.intake.begin();
    let served = mcp_server::run(Arc::new(Device::new(site, compat)), input, output).await;
    watching.abort();
    served
}
