//! News for a service manager: the datagrams of `sd_notify`. Without a manager that wants them, nothing is sent.

use std::os::unix::net::UnixDatagram;

/// Tells the service manager, if any, of a state: `READY=1`, `STOPPING=1`. A manager that does not listen is no reason to stop.
pub(crate) fn tell(state: &str) {
    if let Some(place) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(state, &place.to_string_lossy())
    {
        tracing::warn!(%error, "the service manager can't be told");
    }
}

#[cfg(target_os = "linux")]
fn send(state: &str, place: &str) -> std::io::Result<usize> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let address = match place.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(place)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
}

#[cfg(not(target_os = "linux"))]
fn send(state: &str, place: &str) -> std::io::Result<usize> {
    UnixDatagram::unbound()?.send_to(state.as_bytes(), place)
}
