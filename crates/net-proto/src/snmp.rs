//! SNMP v2c (RFC 3416) and v3 (RFC 3412, 3414, 3826, 7860) as bytes: messages, users, walks, and the objects that have names here. No socket
//! and no clock: time and salt are arguments.

mod ber;
mod mib;
mod oid;
mod path;
mod pdu;
mod session;
mod table;
mod trap;
mod usm;
mod walk;

pub use oid::Oid;
pub use path::{ObjectPath, SnmpSetting, edited, settable, settings_of, settings_text, values_of, whole_path};
pub use pdu::{CommunityMessage, Pdu, PduKind, SnmpValue};
pub use session::{SnmpAccess, SnmpHeard, SnmpSession};
pub use table::{interface_columns, interfaces, memory, memory_columns, named, processor_columns, processors};
pub use trap::{SnmpNotification, TrapHeard, TrapReader};
pub use usm::{AuthProtocol, EngineClock, LocalUser, PrivacyProtocol, SecurityLevel, SnmpUser, UserMessage};
pub use walk::TableWalk;

/// Largest message that is read or asked for: a UDP datagram.
pub const LARGEST: usize = 65_507;

/// Reason for which bytes are no message of SNMP, or not one that counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnmpError {
    #[error("no SNMP: {0}")]
    Malformed(&'static str),
    #[error("SNMP version {0} is not spoken here: v2c and v3 are")]
    Version(i64),
    #[error("the message is not signed or encrypted as the user's messages have to be")]
    Level,
    #[error("the signature is not the user's")]
    Signature,
    #[error("the text can't be encrypted or decrypted")]
    Cipher,
    #[error("the message is older than 150 s, or of an earlier start of the device")]
    Time,
    #[error("the user is another")]
    User,
}
