//! The differences between MCP's two eras: revisions, the `_meta` keys of the stateless era, and reading them.
//!
//! Does not decide the form of a refusal.

use std::borrow::Cow;

use banyan_model::Era;
use bytes::Bytes;

use crate::json::{self, Members, Object};

/// The stateless revision.
pub const STATELESS: &str = "2026-07-28";

/// The revisions with a handshake, newest first.
pub const INITIALIZE: [&str; 5] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/// Keys under `_meta` reserved by MCP itself (2026-07-28, "Lifecycle").
pub mod key {
    /// The caller's capabilities.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The caller's identity.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Lowest level of log messages for the caller.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The revision of the request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The server's identity.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The listen request behind a notification.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

/// The id of the tasks extension.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A request's `_meta` about the request itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestMeta {
    /// The raw `clientCapabilities` object.
    pub capabilities: Option<Bytes>,
    /// The raw `clientInfo` object.
    pub client_info: Option<Bytes>,
    /// The wanted log level.
    pub log_level: Option<LogLevel>,
    /// The raw progress token.
    pub progress_token: Option<Bytes>,
    pub version: Option<Cow<'static, str>>,
}

impl RequestMeta {
    /// Reads the `_meta` of `params`.
    pub fn of(params: &Object) -> Self {
        let Some(meta) = params.meta() else { return Self::default() };
        let object = |key| meta.get(key).filter(|raw| raw.starts_with(b"{")).map(|raw| params.slice_ref(raw));
        Self {
            capabilities: object(key::CLIENT_CAPABILITIES),
            client_info: object(key::CLIENT_INFO),
            log_level: meta.str(key::LOG_LEVEL).and_then(|l| LogLevel::parse(&l)),
            progress_token: meta.get("progressToken").map(|raw| params.slice_ref(raw)),
            version: meta.str(key::PROTOCOL_VERSION).map(shared),
        }
    }

    /// Copies the `_meta` into memory of its own.
    pub fn owned(&self) -> Self {
        let copy = |raw: &Option<Bytes>| raw.as_deref().map(Bytes::copy_from_slice);
        let (capabilities, client_info, progress_token) = (copy(&self.capabilities), copy(&self.client_info), copy(&self.progress_token));
        Self { capabilities, client_info, progress_token, log_level: self.log_level, version: self.version.clone() }
    }

    /// Tells if `params` claim the stateless era.
    pub fn claimed(params: &Object) -> bool {
        params.meta().is_some_and(|meta| meta.get(key::PROTOCOL_VERSION).is_some_and(|raw| raw.starts_with(b"\"")))
    }

    /// Tells if the request claims the stateless era.
    pub fn is_stateless(&self) -> bool {
        self.version.is_some()
    }
}

/// Shares the text of the usual revision, and copies any other.
fn shared(version: Cow<'_, str>) -> Cow<'static, str> {
    if version == STATELESS { Cow::Borrowed(STATELESS) } else { version.into_owned().into() }
}

/// Syslog's levels, as MCP logging names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    Debug,
    Info,
    /// Normal but significant.
    Notice,
    Warning,
    Error,
    /// A component fails.
    Critical,
    /// Somebody must act.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// Reads a level's name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(level, _)| *level)
    }

    /// The level's name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("debug", |(_, name)| name)
    }
}

/// Gives the era of a revision; `None` for a revision unknown here.
pub fn era_of(version: &str) -> Option<Era> {
    if version == STATELESS {
        return Some(Era::Stateless);
    }
    INITIALIZE.contains(&version).then_some(Era::Initialize)
}

/// Chooses the revision in the answer to an `initialize`: the one asked for if known here, else our newest with a handshake.
pub fn answer_version(asked: &str) -> &'static str {
    INITIALIZE.iter().find(|v| **v == asked).unwrap_or(&INITIALIZE[0])
}

/// Tells if a raw capability object declares `name`.
pub fn declares(capabilities: &[u8], name: &str) -> bool {
    Members::parse(capabilities, json::Duplicates::RefuseTop).is_ok_and(|m| m.get(name).is_some_and(|raw| raw.starts_with(b"{")))
}

/// Tells if a raw capability object of the stateless era names the extension `id`.
pub fn extends(capabilities: &[u8], id: &str) -> bool {
    Members::parse(capabilities, json::Duplicates::RefuseDeep).is_ok_and(|m| m.object("extensions").is_some_and(|e| e.has(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meta_of_a_stateless_request_is_read() {
        let params = Object::from(Bytes::from_static(
            br#"{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"progressToken":7,"io.modelcontextprotocol/logLevel":"warning"}}"#,
        ));
        let meta = RequestMeta::of(&params);
        assert_eq!(meta.version.as_deref(), Some(STATELESS));
        assert!(declares(meta.capabilities.as_deref().unwrap(), "sampling"));
        assert!(!declares(meta.capabilities.as_deref().unwrap(), "roots"));
        assert_eq!(meta.progress_token.as_deref(), Some(&b"7"[..]));
        assert_eq!(meta.log_level, Some(LogLevel::Warning));
        assert_eq!(RequestMeta::of(&Object::empty()), RequestMeta::default());
    }

    #[test]
    fn an_unknown_revision_is_answered_with_our_newest() {
        assert_eq!(answer_version("2025-03-26"), "2025-03-26");
        assert_eq!(answer_version("1999-01-01"), "2025-11-25");
        assert_eq!(era_of("2026-07-28"), Some(Era::Stateless));
    }
}
