//! Names of rooms, participants and connections. Does not know their owners.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The sender of all messages by the gateway itself (MCPx v0.1, 3.4).
pub const GATEWAY: &str = "system:gateway";

/// Longest name, in bytes.
const MAX_LENGTH: usize = 128;

/// Reasons for refusing a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name can't be shown.
    #[error("it is empty or holds a control character: choose a name that can be read")]
    Illegible,
    /// The name would be taken for the gateway's.
    #[error("names that begin with `system` and a colon or a slash are the gateway's own: choose another")]
    Reserved,
    #[error("a name has at most {MAX_LENGTH} bytes: choose a shorter one")]
    TooLong,
}

fn checked(text: &str) -> Result<Arc<str>, NameError> {
    if text.len() > MAX_LENGTH {
        return Err(NameError::TooLong);
    }
    if text.trim().is_empty() || text.contains(char::is_control) {
        return Err(NameError::Illegible);
    }
    Ok(text.into())
}

/// A participant's id, stable within a topic (3). Clones share the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParticipantId(Arc<str>);

impl ParticipantId {
    /// Checks an id. The gateway's own are refused.
    pub fn new(text: &str) -> Result<Self, NameError> {
        if text.split([':', '/']).next() == Some("system") {
            return Err(NameError::Reserved);
        }
        checked(text).map(Self)
    }

    /// Gives the original text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Compares by text.
impl Borrow<str> for ParticipantId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The name of a topic: a room. Clones share the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

impl Topic {
    /// Checks a name.
    pub fn new(text: &str) -> Result<Self, NameError> {
        checked(text).map(Self)
    }

    /// Gives the original text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Number of a connection, unique for the life of the driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

impl fmt::Debug for ParticipantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_legible_and_not_the_gateways() {
        for good in ["agent-1", "Ömer Ğ", "a:b", "systems", "user@example.com"] {
            assert_eq!(ParticipantId::new(good).unwrap().as_str(), good);
        }
        let refused = |text: &str| ParticipantId::new(text).unwrap_err();
        assert_eq!([GATEWAY, "system", "system/x"].map(refused), [NameError::Reserved; 3]);
        assert_eq!(["", " ", "a\nb", "\u{7f}"].map(refused), [NameError::Illegible; 4]);
        assert_eq!(refused(&"a".repeat(129)), NameError::TooLong);
        assert!(Topic::new("system").is_ok() && Topic::new("a\0").is_err());
    }
}
