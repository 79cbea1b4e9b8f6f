//! Addresses that are really tried: a connection is opened and closed again, and nothing is sent over it. All are tried at once, each for two
//! seconds at most.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longest time for an address to answer.
const LONGEST: Duration = Duration::from_secs(2);

/// An attempt under way.
pub(crate) struct Attempt {
    end: Receiver<io::Result<()>>,
    until: Instant,
    place: String,
}

impl Attempt {
    /// Begins to connect to the host and port of an address.
    pub(crate) fn begin(host: Option<&str>, port: Option<u16>) -> Self {
        let (host, port) = (host.unwrap_or_default(), port.unwrap_or_default());
        let place = format!("{host}:{port}");
        let host = host.trim_matches(['[', ']']).to_owned();
        let (tell, end) = channel();
        // A name server may take longer than anybody waits for it, and can't be interrupted.
        std::thread::spawn(move || _ = tell.send(connect(&host, port)));
        Self { end, until: Instant::now() + LONGEST, place }
    }

    /// Gives the address of an accepted connection, or the reason for having none.
    pub(crate) fn outcome(self) -> Result<String, String> {
        let Self { end, until, place } = self;
        match end.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Ok(())) => Ok(place),
            Ok(Err(error)) => Err(format!("{place} takes no connection: {error}")),
            Err(_) => Err(format!("{place} did not answer within {} seconds", LONGEST.as_secs())),
        }
    }
}

fn connect(host: &str, port: u16) -> io::Result<()> {
    let mut last = io::Error::other("the name stands for no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, LONGEST) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_is_opened_or_it_is_said_why_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let tried = |host: &str, port| Attempt::begin(Some(host), Some(port)).outcome();
        assert_eq!(tried("127.0.0.1", port), Ok(format!("127.0.0.1:{port}")));
        drop(listener);
        assert!(tried("127.0.0.1", port).unwrap_err().contains("takes no connection"));
        assert!(tried("no-such-name.invalid", 443).unwrap_err().starts_with("no-such-name.invalid:443 "));
    }
}
