//! What nodes, sessions, links and requests are called. Nothing here says who may use a name.

use std::fmt;

/// The stable id of a subserver or an aggregator: a UUID that survives sessions and reboots (MCP-AX 6.1, 13.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u128);

impl NodeId {
    /// The id with these 128 bits.
    pub const fn new(bits: u128) -> Self {
        Self(bits)
    }

    /// Reads the text form of a UUID: 8-4-4-4-12 hexadecimal digits, of either case.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return None;
        }
        let mut bits = 0u128;
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if *byte != b'-' {
                    return None;
                }
                continue;
            }
            bits = bits << 4 | u128::from((*byte as char).to_digit(16)?);
        }
        Some(Self(bits))
    }

    /// The 128 bits.
    pub const fn bits(self) -> u128 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            b >> 96,
            b >> 80 & 0xffff,
            b >> 64 & 0xffff,
            b >> 48 & 0xffff,
            b & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A session as its parent named it: opaque text of at most [`SessionId::MAX`] bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// The longest that is taken from a peer, in bytes.
    pub const MAX: usize = 128;

    /// Takes what a peer wrote: 1 to 128 visible ASCII characters.
    pub fn parse(text: &str) -> Option<Self> {
        let legal = !text.is_empty() && text.len() <= Self::MAX && text.bytes().all(|b| b.is_ascii_graphic());
        legal.then(|| Self(text.to_owned()))
    }

    /// The session with these 128 bits for a name.
    pub fn of_bits(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Only its beginning: who reads a log shall not be able to speak for a session.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}…", self.0.chars().take(6).collect::<String>())
    }
}

/// A session as its parent counts them. A number is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionKey(pub u64);

/// One connection to one peer, as the driver counts them. A broken connection's number is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u64);

/// A request that came in, as the driver counts them: the answer names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub u64);

/// A request that a machine sent, as that machine counts them: the driver names it with the answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_in_either_case() {
        let text = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(NodeId::parse(text).unwrap().to_string(), text);
        assert_eq!(NodeId::parse(&text.to_uppercase()), NodeId::parse(text));
        for bad in ["", "550e8400e29b41d4a716446655440000", "550e8400-e29b-41d4-a716-44665544000g", "550e8400-e29b-41d4-a716-4466554400000"]
        {
            assert_eq!(NodeId::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_session_prints_only_its_beginning() {
        let session = SessionId::of_bits(u128::MAX);
        assert_eq!(format!("{session:?}"), "session ffffff…");
        assert!(SessionId::parse(&"x".repeat(129)).is_none() && SessionId::parse("a b").is_none());
    }
}
