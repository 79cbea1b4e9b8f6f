//! Serial ports: opened raw, and by one connection at a time. A pseudo-terminal is a serial port too. Reads no frame.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serial2_tokio::{SerialPort, Settings};
use tokio::sync::{Mutex as Turnstile, OwnedMutexGuard};

/// Keys of ports: a changed configuration opens a port anew when the old connection has let go of the port.
#[derive(Debug, Default)]
pub struct PortKeys(Mutex<BTreeMap<String, Arc<Turnstile<()>>>>);

impl PortKeys {
    /// Waits for the key of a port.
    pub async fn key(&self, port: &str) -> OwnedMutexGuard<()> {
        let key = {
            let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Ports whose key nobody holds or waits for are forgotten.
            keys.retain(|_, key| Arc::strong_count(key) > 1);
            Arc::clone(keys.entry(port.to_owned()).or_default())
        };
        key.lock_owned().await
    }
}

/// Opens a port raw: eight bits, no parity, one stop bit, no flow control.
pub fn open(port: &str, speed: u32) -> io::Result<SerialPort> {
    let opened = SerialPort::open(port, |mut settings: Settings| {
        settings.set_raw();
        settings.set_baud_rate(speed)?;
        Ok(settings)
    })?;
    // What was sent before belongs to nobody.
    opened.discard_input_buffer()?;
    Ok(opened)
}

/// Lists the serial ports of this machine.
pub fn list() -> io::Result<Vec<PathBuf>> {
    let mut ports = SerialPort::available_ports()?;
    ports.sort();
    Ok(ports)
}
