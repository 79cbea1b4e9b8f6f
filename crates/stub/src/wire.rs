//! Wires to parts: a serial port, or a topic of a broker. Reads no message.

use std::io;

use crate::broker::{BrokerGround, BrokerWire};
use crate::port::{self, HeldPort};
use crate::settings::StubSettings;

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

    /// Waits for bytes: any number of a port, a whole message of a broker. Loses nothing where the caller stops waiting.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Port(held) => held.wire.read(buffer).await,
            Self::Broker(wire) => {
                let message = wire.read().await?;
                // Longer than every message of a part: the conversation takes a part of it for none.
                let length = message.len().min(buffer.len());
                buffer.get_mut(..length).zip(message.get(..length)).into_iter().for_each(|(into, from)| into.copy_from_slice(from));
                Ok(length)
            }
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
