//! Serial ports: opened raw, and held by a single connection of a single program at a time. A pseudo-terminal is a serial port too. Reads no frame.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::termios::{ioctl_tiocexcl, ioctl_tiocnxcl};
use serial2_tokio::{SerialPort, Settings};
use tokio::sync::{Mutex as Turnstile, OwnedMutexGuard};

/// Time for an older connection to let go of a port.
const TURN: Duration = Duration::from_secs(10);

/// Keys of ports: a changed configuration opens a port anew when the old connection has let go of the port.
#[derive(Debug, Default)]
pub struct PortKeys(Mutex<BTreeMap<String, Arc<Turnstile<()>>>>);

impl PortKeys {
    /// Waits for the key of a place. The error: another part keeps the place.
    pub async fn key(&self, place: String) -> io::Result<OwnedMutexGuard<()>> {
        let key = {
            let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Ports whose key nobody holds or waits for are forgotten.
            keys.retain(|_, key| Arc::strong_count(key) > 1);
            Arc::clone(keys.entry(place).or_default())
        };
        let kept = || io::Error::new(io::ErrorKind::ResourceBusy, "another part of this gate has it, under this name or another");
        tokio::time::timeout(TURN, key.lock_owned()).await.map_err(|_| kept())
    }
}

/// An open port, closed to other programs meanwhile.
#[derive(Debug)]
pub struct HeldPort {
    /// The wire.
    pub wire: SerialPort,
    /// The lock, on a descriptor of its own.
    lock: File,
}

impl Drop for HeldPort {
    fn drop(&mut self) {
        // The mark outlives this descriptor where a pseudo-terminal is open elsewhere.
        if let Err(error) = ioctl_tiocnxcl(&self.lock) {
            tracing::debug!(%error, "a port stays marked as held");
        }
    }
}

/// Place of a port, under whichever of its names; the given name for a port that is absent now.
pub fn place(port: &str) -> String {
    Path::new(port).canonicalize().map_or_else(|_| port.to_owned(), |behind| behind.to_string_lossy().into_owned())
}

/// Place of a part at a broker. Topics are compared to the letter.
pub fn place_at_broker(host: &str, port: u16, topic: &str) -> String {
    format!("{host} {port} {topic}")
}

/// Opens a port raw, and for this program alone: eight bits, no parity, a stop bit, no flow control.
pub fn open(port: &str, speed: u32) -> io::Result<HeldPort> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let lock = OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(port).map_err(explained)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        // Some systems lock files alone.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::INVAL) => {}
        Err(error) => return Err(explained(error.into())),
    }
    let wire = SerialPort::open(port, |mut settings: Settings| {
        settings.set_raw();
        settings.set_baud_rate(speed)?;
        Ok(settings)
    })?;
    // The lock stops programs that lock too, the mark all others but those of root.
    ioctl_tiocexcl(&lock)?;
    // What was sent before belongs to nobody.
    wire.discard_input_buffer()?;
    Ok(HeldPort { wire, lock })
}

fn explained(error: io::Error) -> io::Error {
    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy) {
        return io::Error::new(io::ErrorKind::ResourceBusy, "another program or another gate has it");
    }
    error
}

/// Lists the serial ports of this machine.
pub fn list() -> io::Result<Vec<PathBuf>> {
    let mut ports = SerialPort::available_ports()?;
    ports.sort();
    Ok(ports)
}
