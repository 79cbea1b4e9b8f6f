//! NETCONF errors (RFC 6241, appendix A) as faults, by operation and group of tags: servers differ in the single tag, so that no code
//! hangs on one alone. Reads no XML.

use super::{Code, Fault};

/// Content of an `<rpc-error>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RpcError {
    /// `transport`, `rpc`, `protocol` or `application`.
    pub error_type: String,
    pub tag: String,
    /// `error` or `warning`.
    pub severity: String,
    pub app_tag: Option<String>,
    pub path: Option<String>,
    pub message: Option<String>,
    /// Session that holds the lock, with `lock-denied`.
    pub session_id: Option<String>,
    /// Names in `<error-info>`: `bad-element`, `bad-attribute`, `bad-namespace`.
    pub bad: Option<String>,
}

/// Request that the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Get,
    Lock,
    Edit,
    Validate,
    /// A commit without a timer, or the first one with a timer.
    Commit,
    /// The commit that confirms, with a persist-id.
    Confirm,
    /// `cancel-commit`, or whatever else rolls back.
    Rollback,
    Other,
}

/// Knowledge of the caller that no tag holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// The deadline of the confirmed commit has passed, or the commit was cancelled.
    pub is_overdue: bool,
    /// Somebody else's confirmed commit is pending, as far as known; until when, as text.
    pub pending_until: Option<String>,
}

/// Groups of tags that ask for one reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TagGroup {
    /// The value or the structure sent.
    Payload,
    /// A node or an operation that the server has not.
    Unsupported,
    Lock,
    Access,
    Resource,
    Rollback,
    Failed,
}

const GROUPS: [(&str, TagGroup); 20] = [
    ("in-use", TagGroup::Lock),
    ("lock-denied", TagGroup::Lock),
    ("invalid-value", TagGroup::Payload),
    ("bad-element", TagGroup::Payload),
    ("bad-attribute", TagGroup::Payload),
    ("missing-element", TagGroup::Payload),
    ("missing-attribute", TagGroup::Payload),
    ("unknown-attribute", TagGroup::Payload),
    ("data-missing", TagGroup::Payload),
    ("data-exists", TagGroup::Payload),
    ("malformed-message", TagGroup::Payload),
    ("unknown-element", TagGroup::Unsupported),
    ("unknown-namespace", TagGroup::Unsupported),
    ("operation-not-supported", TagGroup::Unsupported),
    ("access-denied", TagGroup::Access),
    ("resource-denied", TagGroup::Resource),
    ("too-big", TagGroup::Resource),
    ("rollback-failed", TagGroup::Rollback),
    ("operation-failed", TagGroup::Failed),
    ("partial-operation", TagGroup::Failed),
];

/// Codes by operation and group, first match; `None` stands for any operation. The last field: may a retry help?
const CODES: [(Option<Operation>, TagGroup, Code, bool); 15] = [
    (Some(Operation::Confirm), TagGroup::Failed, Code::ConfirmedCommitTimeout, false),
    (Some(Operation::Confirm), TagGroup::Payload, Code::InvalidParams, false),
    (Some(Operation::Rollback), TagGroup::Payload, Code::InvalidParams, false),
    (Some(Operation::Rollback), TagGroup::Unsupported, Code::RollbackNotSupported, false),
    (Some(Operation::Rollback), TagGroup::Failed, Code::RollbackFailed, false),
    (Some(Operation::Lock), TagGroup::Failed, Code::AccessDenied, true),
    // netconfd on a candidate that somebody has edited without a lock.
    (Some(Operation::Lock), TagGroup::Resource, Code::AccessDenied, true),
    (Some(Operation::Get), TagGroup::Failed, Code::ConfigIncompatible, false),
    (None, TagGroup::Lock, Code::AccessDenied, true),
    (None, TagGroup::Access, Code::AccessDenied, false),
    (None, TagGroup::Resource, Code::HardwareFailure, false),
    (None, TagGroup::Rollback, Code::RollbackFailed, false),
    (None, TagGroup::Unsupported, Code::ConfigIncompatible, false),
    (None, TagGroup::Payload, Code::YangSyntaxError, false),
    (None, TagGroup::Failed, Code::YangSyntaxError, false),
];

impl Fault {
    /// Fault for an `<rpc-error>` that answers `operation`.
    pub fn from_netconf(operation: Operation, error: &RpcError, known: &Circumstances) -> Self {
        let group = GROUPS.iter().find(|(tag, _)| *tag == error.tag).map_or(TagGroup::Failed, |(_, group)| *group);
        let (code, may_retry) = code_for(operation, group, known);
        let mut detail = error.message.clone().filter(|m| !m.is_empty()).unwrap_or_else(|| error.tag.clone());
        if let Some(bad) = &error.bad {
            detail.push_str(&format!(" (`{bad}`)"));
        }
        match (&error.session_id, &known.pending_until) {
            (Some(session), _) if group == TagGroup::Lock => detail = format!("locked by session {session}: {detail}"),
            (_, Some(until)) if code == Code::AccessDenied => detail = format!("a confirmed commit is pending until {until}: {detail}"),
            _ => {}
        }
        let tag = error.app_tag.as_ref().map_or_else(|| error.tag.clone(), |app| format!("{} {app}", error.tag));
        Self { code, detail, path: error.path.clone(), may_retry, native: None }.from_native("netconf", tag)
    }
}

fn code_for(operation: Operation, group: TagGroup, known: &Circumstances) -> (Code, bool) {
    let is_settling = matches!(operation, Operation::Confirm | Operation::Rollback);
    if is_settling && known.is_overdue && matches!(group, TagGroup::Payload | TagGroup::Failed) {
        return (Code::ConfirmedCommitTimeout, false);
    }
    // netopeer2 refuses a commit under another's pending one with invalid-value.
    if operation == Operation::Commit && known.pending_until.is_some() && group == TagGroup::Payload {
        return (Code::AccessDenied, true);
    }
    let row = CODES.iter().find(|(asked, of, ..)| asked.is_none_or(|asked| asked == operation) && *of == group);
    row.map_or((Code::ConfigIncompatible, false), |(.., code, retry)| (*code, *retry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(operation: Operation, tag: &str, known: &Circumstances) -> Code {
        Fault::from_netconf(operation, &RpcError { tag: tag.into(), ..RpcError::default() }, known).code
    }

    /// Answers of netconfd and netopeer2, situation by situation.
    #[test]
    fn nm_08_tags_of_two_servers_share_a_code() {
        let calm = Circumstances::default();
        let overdue = Circumstances { is_overdue: true, ..Circumstances::default() };
        let pending = Circumstances { pending_until: Some("12:00:00".into()), ..Circumstances::default() };
        for (operation, tags, known, expected) in [
            (Operation::Lock, ["lock-denied", "lock-denied"], &calm, Code::AccessDenied),
            (Operation::Edit, ["invalid-value", "bad-element"], &calm, Code::YangSyntaxError),
            (Operation::Edit, ["unknown-element", "unknown-element"], &calm, Code::ConfigIncompatible),
            (Operation::Edit, ["data-missing", "missing-element"], &calm, Code::YangSyntaxError),
            (Operation::Commit, ["in-use", "invalid-value"], &pending, Code::AccessDenied),
            (Operation::Confirm, ["invalid-value", "invalid-value"], &calm, Code::InvalidParams),
            (Operation::Confirm, ["operation-failed", "invalid-value"], &overdue, Code::ConfirmedCommitTimeout),
            (Operation::Edit, ["access-denied", "access-denied"], &calm, Code::AccessDenied),
            (Operation::Rollback, ["operation-not-supported", "operation-not-supported"], &calm, Code::RollbackNotSupported),
            (Operation::Rollback, ["operation-failed", "rollback-failed"], &calm, Code::RollbackFailed),
            (Operation::Commit, ["resource-denied", "too-big"], &calm, Code::HardwareFailure),
        ] {
            for tag in tags {
                assert_eq!(code(operation, tag, known), expected, "{operation:?} {tag}");
            }
        }
    }

    #[test]
    fn nm_08_a_lock_names_its_session_and_allows_a_retry() {
        let error = RpcError { tag: "lock-denied".into(), session_id: Some("7".into()), ..RpcError::default() };
        let fault = Fault::from_netconf(Operation::Lock, &error, &Circumstances::default());
        assert!(fault.may_retry && fault.detail.starts_with("locked by session 7"), "{fault:?}");
        assert_eq!(fault.native.map(|native| native.tag).as_deref(), Some("lock-denied"));
    }

    #[test]
    fn nm_08_every_operation_with_every_tag_keeps_the_tag() {
        use Operation::{Commit, Confirm, Edit, Get, Lock, Other, Rollback, Validate};
        for operation in [Get, Lock, Edit, Validate, Commit, Confirm, Rollback, Other] {
            for tag in GROUPS.map(|(tag, _)| tag).into_iter().chain(["of-a-vendor", ""]) {
                let error = RpcError { tag: tag.into(), ..RpcError::default() };
                let fault = Fault::from_netconf(operation, &error, &Circumstances::default());
                assert_eq!(fault.native.map(|native| native.tag).as_deref(), Some(tag));
            }
        }
    }
}
