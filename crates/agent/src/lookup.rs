//! Look-ups of names, within a reach. Opens no connection.

use std::error::Error;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use reqwest::dns::{Addrs, Name};

/// Looks up a name and leaves the allowed addresses. `held` is dropped with the end of the look-up, which outlives its caller.
///
/// # Errors
/// When the name has no address, or none within reach.
pub async fn look_up(
    name: &Name,
    allows: impl Fn(IpAddr) -> bool,
    held: impl Send + 'static,
) -> Result<Addrs, Box<dyn Error + Send + Sync>> {
    let name = name.as_str().to_owned();
    let found = tokio::task::spawn_blocking(move || {
        let found = (name.as_str(), 0).to_socket_addrs().map(Iterator::collect::<Vec<SocketAddr>>);
        drop(held);
        found
    });
    let within: Vec<SocketAddr> = found.await??.into_iter().filter(|address| allows(address.ip())).collect();
    if within.is_empty() {
        return Err("every address of the name is out of reach".into());
    }
    Ok(Box::new(within.into_iter()))
}
