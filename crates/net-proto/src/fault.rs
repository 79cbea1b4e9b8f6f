//! The ten error codes of the draft (section 7), with detail, path and `retryPossible`, in the form of either MCP era.
//!
//! The modules below map failures of NETCONF, SNMP and sessions by table. Messages of command lines are data of their dialect, not here.

mod netconf;
mod session;
mod snmp;

use serde_json::{Map, Value, json};

pub use netconf::{Circumstances, Operation, RpcError};
pub use session::Trouble;
pub use snmp::SnmpRequest;

/// Kinds of failure: the draft's ten, and JSON-RPC's own for an argument that names nothing (a wrong persist-id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    Timeout,
    Unreachable,
    AccessDenied,
    ConfigIncompatible,
    RollbackFailed,
    ConfirmedCommitTimeout,
    RollbackNotSupported,
    YangSyntaxError,
    HardwareFailure,
    SnmpFailure,
    InvalidParams,
}

impl Code {
    /// The draft's ten, in the order of their numbers.
    pub const DRAFT: [Self; 10] = [
        Self::Timeout,
        Self::Unreachable,
        Self::AccessDenied,
        Self::ConfigIncompatible,
        Self::RollbackFailed,
        Self::ConfirmedCommitTimeout,
        Self::RollbackNotSupported,
        Self::YangSyntaxError,
        Self::HardwareFailure,
        Self::SnmpFailure,
    ];

    /// Number in JSON-RPC.
    pub const fn number(self) -> i32 {
        match self {
            Self::Timeout => -32081,
            Self::Unreachable => -32082,
            Self::AccessDenied => -32083,
            Self::ConfigIncompatible => -32084,
            Self::RollbackFailed => -32085,
            Self::ConfirmedCommitTimeout => -32086,
            Self::RollbackNotSupported => -32087,
            Self::YangSyntaxError => -32088,
            Self::HardwareFailure => -32089,
            Self::SnmpFailure => -32090,
            Self::InvalidParams => -32602,
        }
    }

    /// Number for errors of the stateless era, whose MCP keeps -32020 to -32099 for itself: a thousand below the draft's.
    pub const fn stateless_number(self) -> i32 {
        if matches!(self, Self::InvalidParams) { self.number() } else { self.number() - 1000 }
    }

    /// Message of the draft's table.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Timeout => "Network.Timeout",
            Self::Unreachable => "Network.Unreachable",
            Self::AccessDenied => "Network.AccessDenied",
            Self::ConfigIncompatible => "Network.ConfigIncompatible",
            Self::RollbackFailed => "Network.RollbackFailed",
            Self::ConfirmedCommitTimeout => "Network.ConfirmedCommitTimeout",
            Self::RollbackNotSupported => "Network.RollbackNotSupported",
            Self::YangSyntaxError => "Network.YangSyntaxError",
            Self::HardwareFailure => "Network.HardwareFailure",
            Self::SnmpFailure => "Network.SnmpFailure",
            Self::InvalidParams => "Invalid params",
        }
    }

    /// Advice of the draft's table, as a sentence.
    pub const fn recovery(self) -> &'static str {
        match self {
            Self::Timeout => "Retry with a shorter command, or raise the timeout of this device.",
            Self::Unreachable => "Check that the address is reachable, the credentials and the routing.",
            Self::AccessDenied => "Ask for a role that may do this, or do with less.",
            Self::ConfigIncompatible => "Use another model, or the commands of this device's dialect.",
            Self::RollbackFailed => "Look at the device by hand, and at its log.",
            Self::ConfirmedCommitTimeout => "Apply the change again with a longer timer, or mend what kept it from being confirmed.",
            Self::RollbackNotSupported => "Leave the rollback out, or restore a file.",
            Self::YangSyntaxError => "Mend the node named by the path, and send the edit again.",
            Self::HardwareFailure => "Reduce the scale, or use larger hardware.",
            Self::SnmpFailure => "Correct the value as the status says, and set it again.",
            Self::InvalidParams => "Correct the argument.",
        }
    }

    /// Code with this message, as data files write it: `ConfigIncompatible` or `Network.ConfigIncompatible`.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix("Network.").unwrap_or(name);
        Self::DRAFT.into_iter().find(|code| code.message().strip_prefix("Network.") == Some(name))
    }
}

/// Words of the device itself, kept beside the code that they were mapped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Native {
    /// `netconf`, `snmp`, `cli` or `ssh`.
    pub protocol: &'static str,
    /// Error tag, status name or pattern.
    pub tag: String,
}

/// A failure of a device, ready for its caller. Texts may hold secrets until [`crate::redact`] has seen them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ({}): {detail}", code.message(), code.number())]
pub struct Fault {
    pub code: Code,
    /// For people: what is wrong.
    pub detail: String,
    /// YANG path, OID or command, where one is to blame.
    pub path: Option<String>,
    /// Has the same request a chance when sent again?
    pub may_retry: bool,
    pub native: Option<Native>,
}

impl Fault {
    /// A failure that stays when it is retried, with no path.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), path: None, may_retry: false, native: None }
    }

    /// Did the device say more than is taken?
    pub fn is_too_long(&self) -> bool {
        self.native.as_ref().is_some_and(|native| native.tag == session::TOO_LONG)
    }

    /// The same failure, blamed on a path.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The same failure, which may be gone at the next try.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.may_retry = true;
        self
    }

    /// The same failure, with the device's own word for it.
    #[must_use]
    pub fn from_native(mut self, protocol: &'static str, tag: impl Into<String>) -> Self {
        self.native = Some(Native { protocol, tag: tag.into() });
        self
    }

    /// Passes each text of the failure through `hide`, which hides secrets, and replaces characters that would steer a terminal.
    #[must_use]
    pub fn cleaned(mut self, hide: impl Fn(&str) -> String) -> Self {
        let clean = |text: &str| hide(text).replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "\u{fffd}");
        self.detail = clean(&self.detail);
        self.path = self.path.map(|path| clean(&path));
        self.native = self.native.map(|native| Native { tag: clean(&native.tag), ..native });
        self
    }

    /// `data` of the draft's section 7.2, with the device's own word below `native`.
    pub fn data(&self) -> Value {
        let mut data = Map::new();
        data.insert("detail".into(), self.detail.as_str().into());
        if let Some(path) = &self.path {
            data.insert("path".into(), path.as_str().into());
        }
        data.insert("retryPossible".into(), self.may_retry.into());
        data.insert("recovery".into(), self.code.recovery().into());
        if let Some(native) = &self.native {
            data.insert("native".into(), json!({ "protocol": native.protocol, "tag": native.tag }));
        }
        Value::Object(data)
    }

    /// `error` of a JSON-RPC answer in the initialize era.
    pub fn to_error(&self) -> Value {
        json!({ "code": self.code.number(), "message": self.code.message(), "data": self.data() })
    }

    /// `error` of a JSON-RPC answer in the stateless era, for methods without `isError` (`resources/read`): a code outside MCP's own
    /// range, and the draft's in `data.networkCode`.
    pub fn to_stateless_error(&self) -> Value {
        let mut data = self.data();
        data["networkCode"] = self.code.number().into();
        json!({ "code": self.code.stateless_number(), "message": self.code.message(), "data": data })
    }

    /// `result` of a `tools/call` that failed, for the stateless era and for hosts that show errors to nobody.
    pub fn to_result(&self) -> Value {
        let mut text = format!("{} ({}): {}", self.code.message(), self.code.number(), self.detail);
        if let Some(path) = &self.path {
            text.push_str(&format!("\npath: {path}"));
        }
        text.push_str(&format!("\nretry possible: {}\n{}", if self.may_retry { "yes" } else { "no" }, self.code.recovery()));
        json!({
            "content": [{ "type": "text", "text": text }],
            "isError": true,
            "structuredContent": { "code": self.code.number(), "message": self.code.message(), "data": self.data() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_08_ten_consecutive_codes_have_the_names_of_the_draft() {
        let numbers: Vec<i32> = Code::DRAFT.iter().map(|code| code.number()).collect();
        assert_eq!(numbers, (-32090..=-32081).rev().collect::<Vec<_>>());
        for code in Code::DRAFT {
            assert_eq!(Code::named(code.message()), Some(code));
            assert!(code.recovery().ends_with('.'));
        }
        assert_eq!(Code::named("YangSyntaxError"), Some(Code::YangSyntaxError));
        assert_eq!(Code::named("Invalid params"), None);
    }

    #[test]
    fn nm_08_the_example_of_the_draft_has_all_its_members() {
        let fault = Fault::new(Code::ConfigIncompatible, "VLAN 4095 > maximum 4094").at("/openconfig-vlan:vlans/vlan/config/vlan-id");
        let error = fault.to_error();
        assert_eq!(error["code"], -32084);
        assert_eq!(error["message"], "Network.ConfigIncompatible");
        assert_eq!(error["data"]["detail"], "VLAN 4095 > maximum 4094");
        assert_eq!(error["data"]["path"], "/openconfig-vlan:vlans/vlan/config/vlan-id");
        assert_eq!(error["data"]["retryPossible"], false);
    }

    #[test]
    fn nm_08_stateless_codes_lie_outside_the_range_of_mcp() {
        for code in Code::DRAFT {
            let error = Fault::new(code, "x").to_stateless_error();
            assert!(!(-32768..=-32000).contains(&code.stateless_number()), "{code:?}");
            assert_eq!(error["code"], code.stateless_number());
            assert_eq!(error["data"]["networkCode"], code.number());
        }
    }

    #[test]
    fn nm_08_a_failed_tool_has_its_code_in_structured_content() {
        let result = Fault::new(Code::Timeout, "no reply in 30 s").at("show tech").retryable().to_result();
        assert_eq!(result["isError"], true);
        assert_eq!(result["structuredContent"]["code"], -32081);
        assert_eq!(result["structuredContent"]["data"]["retryPossible"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("no reply in 30 s") && text.contains("show tech") && text.contains("retry possible: yes"), "{text}");
    }

    #[test]
    fn nm_12_every_text_of_a_fault_is_cleaned() {
        let text = "S\u{1b}]0;x\u{7}\u{9b}1m\r\nnext\tS";
        let fault = Fault::new(Code::AccessDenied, text).at(text).from_native("cli", text);
        let fault = fault.cleaned(|text| text.replace('S', "-"));
        let expected = "-\u{fffd}]0;x\u{fffd}\u{fffd}1m\u{fffd}\nnext\t-";
        assert_eq!((&*fault.detail, fault.path.as_deref(), &*fault.native.unwrap().tag), (expected, Some(expected), expected));
    }
}
