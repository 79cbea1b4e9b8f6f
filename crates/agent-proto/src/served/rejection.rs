//! Refusals to A2A clients (A2A 1.0, section 3.3.2), for JSON-RPC and for HTTP+JSON. Decides on none.

/// A refusal to a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ClientRefusal {
    pub kind: RefusalReason,
    pub message: String,
}

/// Reasons with a code of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    ContentTypeNotSupported,
    Crowded,
    /// The agent takes no new work any more.
    Draining,
    /// Tokens of the message do not hold.
    Evidence,
    InvalidParams,
    MethodNotFound,
    /// The caller has sent too many tokens, and comes again after this many seconds.
    Paced(u64),
    PushNotificationNotSupported,
    TaskNotCancelable,
    TaskNotFound,
    UnsupportedOperation,
    VersionNotSupported,
}

impl RefusalReason {
    /// Code of JSON-RPC, status of HTTP, status of `google.rpc.Status`, and reason of `google.rpc.ErrorInfo`.
    pub fn codes(self) -> (i64, u16, &'static str, &'static str) {
        match self {
            Self::ContentTypeNotSupported => (-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::Crowded => (-32000, 429, "RESOURCE_EXHAUSTED", "TOO_MANY_TASKS"),
            Self::Draining => (-32000, 503, "UNAVAILABLE", "AGENT_DRAINING"),
            Self::Evidence => (-32000, 403, "PERMISSION_DENIED", "EVIDENCE_REFUSED"),
            Self::InvalidParams => (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
            Self::MethodNotFound => (-32601, 404, "UNIMPLEMENTED", "METHOD_NOT_FOUND"),
            Self::Paced(_) => (-32000, 429, "RESOURCE_EXHAUSTED", "TOO_MANY_TOKENS"),
            Self::PushNotificationNotSupported => (-32003, 400, "UNIMPLEMENTED", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            Self::TaskNotCancelable => (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
            Self::TaskNotFound => (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
            Self::UnsupportedOperation => (-32004, 400, "UNIMPLEMENTED", "UNSUPPORTED_OPERATION"),
            Self::VersionNotSupported => (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
        }
    }
}

impl ClientRefusal {
    /// Makes a refusal.
    pub fn new(kind: RefusalReason, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Seconds after which tokens of the caller are taken again, where too many were sent.
    pub fn wait(&self) -> Option<u64> {
        if let RefusalReason::Paced(wait) = self.kind { Some(wait) } else { None }
    }

    /// Writes the `error` of a JSON-RPC response.
    pub fn rpc(&self) -> String {
        format!("{{\"code\":{},\"message\":{},\"data\":{}}}", self.kind.codes().0, json::quote(&self.message), self.details())
    }

    /// Writes the body of an HTTP+JSON response.
    pub fn rest(&self) -> String {
        let (_, status, name, _) = self.kind.codes();
        let (message, details) = (json::quote(&self.message), self.details());
        format!("{{\"error\":{{\"code\":{status},\"status\":\"{name}\",\"message\":{message},\"details\":{details}}}}}")
    }

    fn details(&self) -> String {
        let reason = self.kind.codes().3;
        format!("[{{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"{reason}\",\"domain\":\"a2a-protocol.org\"}}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{AgentFault, FaultKind};

    #[test]
    fn the_mounting_half_reads_a_refusal_back() {
        let refusal = ClientRefusal::new(RefusalReason::TaskNotFound, "no \"t\"");
        let rpc = AgentFault::from_rpc(refusal.rpc().as_bytes());
        assert_eq!(rpc, AgentFault::from_rest(refusal.rest().as_bytes()));
        assert_eq!((rpc.kind, rpc.message.as_str()), (FaultKind::TaskNotFound, "no \"t\""));
    }
}
