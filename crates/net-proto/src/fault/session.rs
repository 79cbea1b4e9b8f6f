//! Failures of the session with a device, before any operation has an answer. Knows no SSH library: its driver says what happened.

use std::time::Duration;

use super::{Code, Fault};

/// Failure between here and a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The host key is not the one that was accepted. Holds fingerprints, which are no secrets.
    HostKeyChanged { expected: String, shown: String },
    /// No key was accepted for this device yet.
    HostKeyUnknown { shown: String },
    /// The device refused the password or the key.
    LoginRefused { user: String },
    /// No route, no name, a refused or silent port.
    NoConnection { reason: String },
    /// The session broke off, perhaps amid an operation.
    SessionLost { reason: String },
    /// No complete answer in time. The operation may have run.
    NoReply { after: Duration },
    /// More bytes than the bound without an end.
    TooLong { limit: usize },
    /// Answers of devices take all the room in bytes that the process has for them.
    Crowded { room: usize },
    /// Bytes that a device of this kind never sends.
    Garbled { reason: String },
    /// All sessions that this device is given are taken.
    Busy,
}

/// Tag of an answer that is longer than its bound.
pub(super) const TOO_LONG: &str = "too-long";

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::HostKeyChanged { expected, shown } => Self::new(
                Code::Unreachable,
                format!("the host key is {shown}, not {expected}: if the device was replaced, accept its new key; if not, somebody is in between"),
            )
            .from_native("ssh", "host-key-changed"),
            Trouble::HostKeyUnknown { shown } => {
                Self::new(Code::Unreachable, format!("the host key {shown} was never accepted: compare it at the device, then accept it"))
                    .from_native("ssh", "host-key-unknown")
            }
            Trouble::LoginRefused { user } => {
                Self::new(Code::Unreachable, format!("the device refused the login of `{user}`: check the credentials"))
                    .from_native("ssh", "login-refused")
            }
            Trouble::NoConnection { reason } => Self::new(Code::Unreachable, format!("no connection: {reason}")).retryable(),
            Trouble::SessionLost { reason } => {
                Self::new(Code::Unreachable, format!("the session broke off: {reason}; read the state back before a retry")).retryable()
            }
            Trouble::NoReply { after } => {
                let seconds = after.as_secs_f64();
                Self::new(Code::Timeout, format!("no complete answer in {seconds} s; the operation may have run")).retryable()
            }
            Trouble::TooLong { limit } => {
                Self::new(Code::Timeout, format!("the answer has no end within {limit} bytes: ask for a part of it")).from_native("ssh", TOO_LONG)
            }
            Trouble::Crowded { room } => {
                let room = room >> 20;
                Self::new(Code::Unreachable, format!("the answers of devices under way take all {room} MiB of this process: try again, or ask for a part of it"))
                    .retryable()
            }
            Trouble::Garbled { reason } => Self::new(Code::Unreachable, format!("the device does not speak as it should: {reason}")),
            Trouble::Busy => Self::new(Code::Unreachable, "all sessions of this device are in use").retryable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_08_a_retry_is_offered_where_a_retry_may_help() {
        let of = |trouble: Trouble| {
            let fault = Fault::from(trouble);
            (fault.code, fault.may_retry)
        };
        assert_eq!(of(Trouble::NoReply { after: Duration::from_secs(30) }), (Code::Timeout, true));
        assert_eq!(of(Trouble::NoConnection { reason: "no route".into() }), (Code::Unreachable, true));
        assert_eq!(of(Trouble::LoginRefused { user: "ada".into() }), (Code::Unreachable, false));
        let changed = Trouble::HostKeyChanged { expected: "SHA256:a".into(), shown: "SHA256:b".into() };
        assert_eq!(of(changed.clone()), (Code::Unreachable, false));
        assert!(Fault::from(changed).detail.contains("accept its new key"));
        assert_eq!(of(Trouble::TooLong { limit: 10 }), (Code::Timeout, false));
    }
}
