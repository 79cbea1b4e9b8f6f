//! The place where the process of a device takes messages from whichever process receives: a port of the loopback, with a token that only the
//! owner of the state directory can read. Messages are numbered, so that lost ones are counted. Knows no protocol.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use runtime::whole::{self, Readers};
use tokio::net::UdpSocket;

use super::drops;
use super::inbox::Inbox;

/// File with the reason for which nothing is received.
pub(super) const FAILURE: &str = "failure";
/// File with the number of datagrams that the system dropped before anybody received them.
pub(super) const DROPS: &str = "drops";
/// Bytes before a message: token, number, address and port of the sender.
pub(super) const TOKEN: usize = 16;
pub(super) const HEAD: usize = TOKEN + 8 + 16 + 2;
/// Largest message that is handed on.
pub(super) const LARGEST: usize = 65_507 - HEAD;
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(5);
/// Pause between two looks at the receiving process.
const LOOK: Duration = Duration::from_secs(1);

/// Receiving end of a device.
pub(super) struct Mailbox {
    socket: UdpSocket,
    token: [u8; TOKEN],
    /// Files by which others find this mailbox.
    files: Vec<PathBuf>,
    dir: PathBuf,
    /// Sender of the last message: the process that receives.
    hub: Option<SocketAddr>,
    next: Option<u64>,
    looked: Instant,
    buffer: Vec<u8>,
}

impl Mailbox {
    /// Opens a mailbox for the messages from these addresses, as soon as that can be done.
    pub(super) async fn open(dir: &Path, device: &str, sources: &[IpAddr], inbox: &Inbox) -> Self {
        loop {
            match Self::opened(dir, device, sources).await {
                Ok(mailbox) => return mailbox,
                Err(error) => inbox.fail(Some(format!("{} can't be used: {error}", dir.display()))),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn opened(dir: &Path, device: &str, sources: &[IpAddr]) -> std::io::Result<Self> {
        whole::make_dirs(dir, 0o700)?;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        drops::make_room(&socket);
        let token = runtime::random::bytes();
        let port = socket.local_addr()?.port();
        let hex: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut files = Vec::new();
        for source in sources {
            // A device that is configured anew in the same process has a mailbox of its own before the old one is gone.
            let file = dir.join(format!("{}@{device}.{}.{}", source.to_canonical(), &hex[..8], std::process::id()));
            whole::replace_for_now(&file, format!("{port} {hex}\n").as_bytes(), Readers::Owner)?;
            files.push(file);
        }
        Ok(Self {
            socket,
            token,
            files,
            dir: dir.to_owned(),
            hub: None,
            next: None,
            looked: Instant::now(),
            buffer: vec![0; HEAD + LARGEST],
        })
    }

    /// The next message with the address of its sender. Lost ones are counted, and so is why nothing can come.
    pub(super) async fn receive(&mut self, inbox: &Inbox) -> Option<(SocketAddr, Vec<u8>)> {
        loop {
            let received = tokio::time::timeout(LOOK, self.socket.recv_from(&mut self.buffer)).await;
            if self.looked.elapsed() >= LOOK {
                self.looked = Instant::now();
                inbox
                    .drop_unseen(std::fs::read_to_string(self.dir.join(DROPS)).ok().and_then(|text| text.parse().ok()).unwrap_or_default());
            }
            let Ok(received) = received else {
                inbox.fail(std::fs::read_to_string(self.dir.join(FAILURE)).ok());
                continue;
            };
            let Ok((length, from)) = received else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Some((head, message)) = self.buffer[..length].split_at_checked(HEAD) else { continue };
            if head[..TOKEN] != self.token || !from.ip().is_loopback() {
                continue;
            }
            let number = u64::from_be_bytes(head[TOKEN..TOKEN + 8].try_into().ok()?);
            if self.hub != Some(from) {
                (self.hub, self.next) = (Some(from), None);
            }
            inbox.lose(self.next.map_or(number, |next| number.saturating_sub(next)));
            self.next = Some(number.saturating_add(1));
            return Some((sender(&head[TOKEN + 8..])?, message.to_vec()));
        }
    }

    /// Lets the receiving process answer the sender of a message.
    pub(super) async fn answer(&self, sender: SocketAddr, reply: Option<&[u8]>) {
        let (Some(reply), Some(hub)) = (reply, self.hub) else { return };
        // An answer that is lost is asked for again.
        drop(self.socket.send_to(&framed(&self.token, 0, sender, reply), hub).await);
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        for file in &self.files {
            drop(std::fs::remove_file(file));
        }
    }
}

/// A message on its way between two processes.
pub(super) fn framed(token: &[u8; TOKEN], number: u64, sender: SocketAddr, message: &[u8]) -> Vec<u8> {
    let ip = match sender.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    [&token[..], &number.to_be_bytes(), &ip.octets(), &sender.port().to_be_bytes(), message].concat()
}

/// Address in a head.
pub(super) fn sender(bytes: &[u8]) -> Option<SocketAddr> {
    let ip: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
    let port: [u8; 2] = bytes.get(16..18)?.try_into().ok()?;
    Some(SocketAddr::new(IpAddr::from(ip).to_canonical(), u16::from_be_bytes(port)))
}
