//! Wires to parts: a serial port, or a topic of a broker. Reads no message.

use std::io;

use crate::broker::{BrokerGround, BrokerText, BrokerWire};
use crate::port::{self, HeldPort};
use crate::settings::StubSettings;
use crate::text::MOST_MADE;

/// Bytes of a port that are read at once.
const READ: usize = 512;

/// News of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireRead {
    /// Bytes, so many of them; of a port that was unplugged none.
    Bytes(usize),
    /// An answer that is longer than a message may be.
    Overlong { seq: u8 },
}

/// An open wire.
pub enum OpenWire {
    Port(HeldPort),
    Broker(Box<BrokerWire>),
}

impl OpenWire {
    /// Opens the wire of a part. The error is a sentence for people.
    pub async fn open(settings: &StubSettings, ground: &BrokerGround) -> Result<Self, String> {
        match &settings.broker {
            Some(broker) => {
                let opened = BrokerWire::open(broker, ground).await;
                opened.map(|wire| Self::Broker(Box::new(wire))).map_err(|why| format!("the broker {} can't be used: {why}", settings.port))
            }
            None => {
                let opened = port::open(&settings.port, settings.speed);
                opened.map(Self::Port).map_err(|error| format!("the port {} can't be opened: {error}", settings.port))
            }
        }
    }

    /// Bytes of a buffer that holds all of a read.
    pub fn most_read(&self) -> usize {
        match self {
            Self::Port(_) => READ,
            Self::Broker(_) => MOST_MADE,
        }
    }

    /// Waits for bytes: any number of a port, a whole message of a broker. Loses nothing where the caller stops waiting.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<WireRead> {
        let wire = match self {
            Self::Port(held) => return held.wire.read(buffer).await.map(WireRead::Bytes),
            Self::Broker(wire) => wire,
        };
        let message = match wire.read().await? {
            BrokerText::Message(message) => message,
            BrokerText::Overlong { seq } => return Ok(WireRead::Overlong { seq }),
        };
        let length = message.len().min(buffer.len());
        buffer.get_mut(..length).zip(message.get(..length)).into_iter().for_each(|(into, from)| into.copy_from_slice(from));
        Ok(WireRead::Bytes(length))
    }

    /// Sentence for people about a wire that is gone.
    pub fn lost(&self, error: &io::Error) -> String {
        match self {
            Self::Port(_) => format!("the port is gone: {error}"),
            Self::Broker(_) => format!("the connection to the broker has ended: {error}"),
        }
    }

    /// Sentence for people about a wire that takes nothing.
    pub fn stuck(&self) -> &'static str {
        match self {
            Self::Port(_) => "the port takes no bytes",
            Self::Broker(_) => "the broker takes no messages",
        }
    }

    /// Sends bytes: of a broker a whole message.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Port(held) => held.wire.write_all(bytes).await,
            Self::Broker(wire) => wire.write(bytes).await,
        }
    }

    /// Closes the wire.
    pub async fn close(self) {
        if let Self::Broker(mut wire) = self {
            wire.close().await;
        }
    }
}
