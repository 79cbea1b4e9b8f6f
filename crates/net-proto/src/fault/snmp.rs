//! SNMP error statuses (RFC 3416) as faults. No BER here: the driver's library reads packets.

use super::{Code, Fault};

/// Request that the agent answers with a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnmpRequest {
    Get,
    Set,
}

/// Name, may a retry help, and the code when it was no SET: a SET gives -32090 whatever the status.
const STATUSES: [(&str, bool, Code); 19] = [
    ("noError", false, Code::SnmpFailure),
    ("tooBig", false, Code::HardwareFailure),
    ("noSuchName", false, Code::ConfigIncompatible),
    ("badValue", false, Code::YangSyntaxError),
    ("readOnly", false, Code::AccessDenied),
    ("genErr", true, Code::SnmpFailure),
    ("noAccess", false, Code::AccessDenied),
    ("wrongType", false, Code::YangSyntaxError),
    ("wrongLength", false, Code::YangSyntaxError),
    ("wrongEncoding", false, Code::YangSyntaxError),
    ("wrongValue", false, Code::YangSyntaxError),
    ("noCreation", false, Code::ConfigIncompatible),
    ("inconsistentValue", true, Code::YangSyntaxError),
    ("resourceUnavailable", true, Code::HardwareFailure),
    ("commitFailed", true, Code::SnmpFailure),
    ("undoFailed", false, Code::SnmpFailure),
    ("authorizationError", false, Code::AccessDenied),
    ("notWritable", false, Code::AccessDenied),
    ("inconsistentName", true, Code::ConfigIncompatible),
];

impl Fault {
    /// Fault for an error status; `oid` is the one that the error index points to. `None`: the status is `noError`.
    pub fn from_snmp(request: SnmpRequest, status: u32, oid: &str) -> Option<Self> {
        let known = usize::try_from(status).ok().and_then(|at| STATUSES.get(at));
        let (name, may_retry, code) = match (known, request) {
            (Some(("noError", ..)), _) => return None,
            (Some((name, retry, _)), SnmpRequest::Set) => ((*name).to_owned(), *retry, Code::SnmpFailure),
            (Some((name, retry, code)), SnmpRequest::Get) => ((*name).to_owned(), *retry, *code),
            (None, _) => (format!("status {status}"), false, Code::SnmpFailure),
        };
        let asked = match request {
            SnmpRequest::Get => "GET",
            SnmpRequest::Set => "SET",
        };
        let fault = Self::new(code, format!("SNMP {asked} was answered with {name} ({status})")).at(oid).from_native("snmp", name);
        Some(Self { may_retry, ..fault })
    }

    /// Fault for a report of an agent about a message of `user` (RFC 3414, section 5).
    pub fn from_snmp_report(number: u32, user: &str) -> Self {
        let (name, why) = match number {
            1 => ("usmStatsUnsupportedSecLevels", "does not take this protection from"),
            2 => ("usmStatsNotInTimeWindows", "has another clock than it told to"),
            3 => ("usmStatsUnknownUserNames", "does not know"),
            5 => ("usmStatsWrongDigests", "refused the signature of"),
            6 => ("usmStatsDecryptionErrors", "can't decrypt the messages of"),
            _ => ("report", "reports an error about"),
        };
        Self::new(Code::Unreachable, format!("the device {why} the user `{user}`: check the credentials")).from_native("snmp", name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_08_every_status_of_a_set_names_the_oid() {
        for (status, (name, ..)) in STATUSES.iter().enumerate().skip(1) {
            let fault = Fault::from_snmp(SnmpRequest::Set, u32::try_from(status).unwrap(), "1.3.6.1.2.1.1.5.0").unwrap();
            assert_eq!(fault.code, Code::SnmpFailure, "{name}");
            assert_eq!(fault.path.as_deref(), Some("1.3.6.1.2.1.1.5.0"));
            assert!(fault.detail.contains(name), "{}", fault.detail);
        }
        assert_eq!(Fault::from_snmp(SnmpRequest::Set, 0, "1.3"), None);
        assert_eq!(Fault::from_snmp(SnmpRequest::Set, 4_000_000_000, "1.3").map(|f| f.code), Some(Code::SnmpFailure));
    }

    #[test]
    fn nm_08_a_get_without_access_is_an_access_fault() {
        assert_eq!(Fault::from_snmp(SnmpRequest::Get, 6, "1.3").map(|f| f.code), Some(Code::AccessDenied));
        assert_eq!(Fault::from_snmp(SnmpRequest::Get, 2, "1.3").map(|f| f.code), Some(Code::ConfigIncompatible));
    }
}
