//! Names of nodes, sessions, links and requests. Does not know their owners.

use std::fmt;

/// Stable id of a subserver or an aggregator: a UUID that survives sessions and reboots (MCP-AX 6.1, 13.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u128);

impl NodeId {
    /// Makes an id of 128 bits.
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

    /// Gives the 128 bits.
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

/// A session's name, chosen by the parent: opaque text of at most [`SessionId::MAX`] bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// Longest name, in bytes.
    pub const MAX: usize = 128;

    /// Reads a peer's text: 1 to 128 visible ASCII characters.
    pub fn parse(text: &str) -> Option<Self> {
        let legal = !text.is_empty() && text.len() <= Self::MAX && text.bytes().all(|b| b.is_ascii_graphic());
        legal.then(|| Self(text.to_owned()))
    }

    /// Makes a name of 128 bits.
    pub fn of_bits(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }

    /// Gives the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Writes only the beginning: readers of a log shall not be able to speak for a session.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}…", self.0.chars().take(6).collect::<String>())
    }
}

/// Number of a session at its parent, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionKey(pub u64);

/// Number of a connection to a peer, given by the driver and never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u64);

/// Number of a received request, given by the driver for the answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub u64);

/// Number of a sent request, given by the machine for the reply.
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
