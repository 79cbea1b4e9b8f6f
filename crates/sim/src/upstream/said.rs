//! Lines of the model server, as text and as meaning. Does not know the open calls.

/// A line of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerLine {
    /// An answer to this id with this raw result or error object.
    Answer { id: u64, body: String, is_error: bool },
    /// A question under this raw id.
    Asks { id: String, method: &'static str },
    /// An answer to this id that is no message.
    BrokenAnswer { id: u64, text: String },
    /// An answer cut off before its id.
    BrokenNameless { text: String },
    /// A question or a log line, with the id of a call of ours, that is no message.
    BrokenQuestion { text: String },
    /// The probe's answer: the server speaks the stateless revision.
    Discovered,
    /// No message of the protocol at all.
    Garbage { text: &'static str },
    /// A sound message without meaning for us.
    Ignored { text: &'static str },
    /// `initialize` is answered with the older era.
    Initialized,
    /// A log line outside every call.
    Log { number: usize },
    /// A line of so many bytes, longer than allowed.
    Long { size: usize },
    /// A ping under this raw id.
    Ping { id: String },
    /// Progress of the call with this id, as the pipe's token names it.
    Progress { id: u64, number: usize },
    /// The probe, or `initialize`, is refused.
    Refused { id: u64 },
    /// `initialize` is refused, and the probe's revision named.
    RefusedForStateless,
    /// Withdrawal of the question under this raw id.
    Withdraws { id: String },
}

impl ServerLine {
    /// Writes the line, without its end.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Answer { id, body, is_error } => {
                let key = if *is_error { "error" } else { "result" };
                // Half the servers put the id last.
                if body.len() % 2 == 0 {
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":{body}}}"#)
                } else {
                    format!(r#"{{ "{key}" :{body}, "id": {id} ,"jsonrpc":"2.0" }}"#)
                }
            }
            Self::Asks { id, method } => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"q":1.50}}}}"#),
            Self::BrokenAnswer { text, .. } | Self::BrokenNameless { text } | Self::BrokenQuestion { text } => text.clone(),
            Self::Garbage { text } | Self::Ignored { text } => (*text).into(),
            Self::Discovered => {
                r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#.into()
            }
            Self::Initialized => r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#.into(),
            Self::Log { number } => {
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{number}}}}}"#)
            }
            Self::Long { size } => "x".repeat(*size),
            Self::Ping { id } => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#),
            Self::Progress { id, number } => progress(&id.to_string(), *number),
            Self::Refused { id } => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#),
            Self::RefusedForStateless => {
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}"#.into()
            }
            Self::Withdraws { id } => {
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"reason":"enough","requestId":{id}}}}}"#)
            }
        }
    }
}

/// Writes a progress notification under this raw token.
pub(super) fn progress(token: &str, number: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken": {token} ,"progress":{number}.0,"v":[1e5]}}}}"#
    )
}
