//! Listeners with room for many connections that come at once. The standard library has the kernel keep 128, and a connection beyond comes
//! again a second later. Accepts no connection.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, ToSocketAddrs, lookup_host};

/// Connections that the kernel keeps until the listener takes them; the bound of the system may be lower.
const BACKLOG: u32 = 4096;

/// Listens on the first address that the system grants.
///
/// # Errors
/// If the system refuses every address.
pub async fn listener(addresses: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let mut refused = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for address in lookup_host(addresses).await? {
        match listener_on(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn listener_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // On Windows the same option lets another program take the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn hundreds_connect_before_the_first_is_taken() {
        let listener = listener("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut streams = Vec::new();
        for _ in 0..400 {
            streams.push(TcpStream::connect(address).await.unwrap());
        }
        assert_eq!(listener.accept().await.unwrap().1, streams[0].local_addr().unwrap());
    }

    #[tokio::test]
    async fn a_taken_address_is_refused_and_the_next_taken() {
        let first = listener("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let held = listener(first).await.unwrap();
        assert_eq!(listener(first).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let second = listener(&[first, "127.0.0.1:0".parse().unwrap()][..]).await.unwrap();
        assert_ne!(second.local_addr().unwrap(), held.local_addr().unwrap());
    }
}
