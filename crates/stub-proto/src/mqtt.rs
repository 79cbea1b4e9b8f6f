//! Packets of MQTT 5 (OASIS, March 2019) for a client that sends and hears without acknowledgement: quality of service 0. Opens no connection.
//!
//! A message leaves once and nobody sends it again, so the conversation above alone decides about a second try.

use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of the longest packet from a broker. The broker is told, and drops what is longer.
pub const MOST_PACKET: usize = 4096;
/// Seconds of silence after which a broker may take the client for lost.
pub const KEEP_ALIVE: u16 = 60;

/// Seconds for which a broker may keep a message back.
const EXPIRY: u32 = 5;
/// Number of the only subscription.
const SUBSCRIPTION: u16 = 1;

/// First bytes of packets, with their fixed flags.
mod kind {
    pub(super) const CONNECT: u8 = 0x10;
    pub(super) const ACCEPTED: u8 = 0x20;
    pub(super) const PUBLISH: u8 = 0x30;
    pub(super) const SUBSCRIBE: u8 = 0x82;
    pub(super) const SUBSCRIBED: u8 = 0x90;
    pub(super) const PING: [u8; 2] = [0xc0, 0];
    pub(super) const PONG: u8 = 0xd0;
    pub(super) const GOODBYE: u8 = 0xe0;
}

/// Numbers of properties that are written or read here.
mod property {
    pub(super) const EXPIRY: u8 = 0x02;
    pub(super) const KEEP_ALIVE: u8 = 0x13;
    pub(super) const MOST_PACKET: u8 = 0x27;
}

/// Greeting of a client.
#[derive(Clone, Copy, Debug)]
pub struct Greeting<'a> {
    /// Name at the broker, which ends an older connection of the same name.
    pub client: &'a str,
    pub user: Option<&'a str>,
    pub password: Option<&'a str>,
}

/// Packet of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Answer to the greeting. From 0x80 on the reason is a refusal.
    Accepted {
        reason: u8,
        /// Seconds of silence that the broker grants instead of [`KEEP_ALIVE`].
        keep_alive: Option<u16>,
    },
    /// Answer to the subscription. From 0x80 on the reason is a refusal.
    Subscribed {
        reason: u8,
    },
    Message {
        topic: String,
        payload: Vec<u8>,
        /// Kept by the broker from some time before.
        is_retained: bool,
    },
    Pong,
    /// End of the connection by the broker.
    Goodbye {
        reason: u8,
    },
}

/// Refusal of bytes that are no packet for this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError {
    /// Longer than the broker was told.
    TooLong,
    /// No packet of MQTT 5, or one that a broker must not send to this client.
    Malformed,
}

/// Writes the packet that opens a connection: with nothing left of an earlier one, and nothing kept for a later one.
pub fn greet(greeting: Greeting<'_>) -> Vec<u8> {
    let flags = 0x02 | if greeting.user.is_some() { 0x80 } else { 0 } | if greeting.password.is_some() { 0x40 } else { 0 };
    let mut body = Vec::new();
    push_text(&mut body, "MQTT");
    body.extend([5, flags]);
    body.extend(KEEP_ALIVE.to_be_bytes());
    body.extend([5, property::MOST_PACKET]);
    body.extend((MOST_PACKET as u32).to_be_bytes());
    for text in [Some(greeting.client), greeting.user, greeting.password].into_iter().flatten() {
        push_text(&mut body, text);
    }
    packet(kind::CONNECT, &body)
}

/// Writes the packet that asks for the messages of a topic, without those that the broker retained.
pub fn subscribe(topic: &str) -> Vec<u8> {
    const NO_RETAINED: u8 = 0x20;
    let mut body = SUBSCRIPTION.to_be_bytes().to_vec();
    body.push(0);
    push_text(&mut body, topic);
    body.push(NO_RETAINED);
    packet(kind::SUBSCRIBE, &body)
}

/// Writes a message: not to be retained, and not to be kept for a part that is away for longer than a few seconds.
pub fn publish(topic: &str, payload: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    push_text(&mut body, topic);
    body.extend([5, property::EXPIRY]);
    body.extend(EXPIRY.to_be_bytes());
    body.extend_from_slice(payload);
    packet(kind::PUBLISH, &body)
}

/// Writes a sign of life.
pub fn ping() -> Vec<u8> {
    kind::PING.to_vec()
}

/// Writes the packet that ends a connection in order.
pub fn goodbye() -> Vec<u8> {
    packet(kind::GOODBYE, &[])
}

/// Bytes of a connection on their way to packets. Holds one packet at most.
#[derive(Clone, Debug, Default)]
pub struct PacketReader {
    held: Vec<u8>,
}

impl PacketReader {
    /// Takes bytes in and gives the completed packets. After an error the connection is of no use.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Packet>, PacketError> {
        self.held.extend_from_slice(bytes);
        let (mut packets, mut rest) = (Vec::new(), self.held.as_slice());
        while let Some((first, body, behind)) = split(rest)? {
            packets.push(read(first, body)?);
            rest = behind;
        }
        let done = self.held.len().saturating_sub(rest.len());
        self.held.drain(..done);
        Ok(packets)
    }
}

/// First byte of a packet, its body, and the bytes behind.
type Cut<'a> = (u8, &'a [u8], &'a [u8]);

/// Splits the first packet off; `None` where it has not all come.
fn split(bytes: &[u8]) -> Result<Option<Cut<'_>>, PacketError> {
    let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
    let Some((length, rest)) = length(rest)? else { return Ok(None) };
    if length > MOST_PACKET {
        return Err(PacketError::TooLong);
    }
    Ok(rest.split_at_checked(length).map(|(body, behind)| (*first, body, behind)))
}

/// Reads a length of one to four bytes, seven bits each.
fn length(bytes: &[u8]) -> Result<Option<(usize, &[u8])>, PacketError> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(4).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((value, bytes.get(at + 1..).unwrap_or_default())));
        }
    }
    if bytes.len() < 4 { Ok(None) } else { Err(PacketError::Malformed) }
}

fn read(first: u8, body: &[u8]) -> Result<Packet, PacketError> {
    let read = match first {
        kind::ACCEPTED => accepted(body),
        kind::SUBSCRIBED => subscribed(body),
        kind::PONG => body.is_empty().then_some(Packet::Pong),
        kind::GOODBYE => Some(Packet::Goodbye { reason: body.first().copied().unwrap_or(0) }),
        // Other qualities of service take an answer, and were not asked for. The lowest bit says that the broker had retained it.
        _ if first & !1 == kind::PUBLISH => message(first & 1 != 0, body),
        _ => None,
    };
    read.ok_or(PacketError::Malformed)
}

fn accepted(body: &[u8]) -> Option<Packet> {
    let (_, [reason, rest @ ..]) = body.split_first()? else { return None };
    // A refusal may end here.
    let keep_alive = if rest.is_empty() { None } else { keep_alive(properties(rest)?.0)? };
    Some(Packet::Accepted { reason: *reason, keep_alive })
}

fn subscribed(body: &[u8]) -> Option<Packet> {
    let (number, rest) = body.split_first_chunk()?;
    let [reason] = properties(rest)?.1 else { return None };
    (u16::from_be_bytes(*number) == SUBSCRIPTION).then_some(Packet::Subscribed { reason: *reason })
}

fn message(is_retained: bool, body: &[u8]) -> Option<Packet> {
    let (topic, rest) = text(body)?;
    let payload = properties(rest)?.1.to_vec();
    Some(Packet::Message { topic: core::str::from_utf8(topic).ok()?.into(), payload, is_retained })
}

/// Splits properties off: their bytes, and what is behind.
fn properties(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = length(bytes).ok()??;
    rest.split_at_checked(length)
}

/// Looks for the silence that a broker grants; the outer `None` is a list that is none.
fn keep_alive(mut properties: &[u8]) -> Option<Option<u16>> {
    let mut found = None;
    while let Some((number, rest)) = properties.split_first() {
        properties = match number {
            0x24 | 0x25 | 0x28..=0x2a => rest.get(1..)?,
            0x21 | 0x22 => rest.get(2..)?,
            0x11 | &property::MOST_PACKET => rest.get(4..)?,
            0x12 | 0x15 | 0x16 | 0x1a | 0x1c | 0x1f => text(rest)?.1,
            0x26 => text(text(rest)?.1)?.1,
            &property::KEEP_ALIVE => {
                let (seconds, behind) = rest.split_first_chunk()?;
                found = Some(u16::from_be_bytes(*seconds));
                behind
            }
            _ => return None,
        };
    }
    Some(found)
}

/// Splits a text with its length in front off.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

fn push_text(into: &mut Vec<u8>, text: &str) {
    let most = text.get(..text.floor_char_boundary(usize::from(u16::MAX))).unwrap_or_default();
    into.extend(u16::try_from(most.len()).unwrap_or(u16::MAX).to_be_bytes());
    into.extend_from_slice(most.as_bytes());
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let (mut bytes, mut length) = (alloc::vec![first], body.len());
    loop {
        let low = u8::try_from(length & 0x7f).unwrap_or(0);
        length >>= 7;
        bytes.push(if length > 0 { low | 0x80 } else { low });
        if length == 0 {
            break;
        }
    }
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests;
