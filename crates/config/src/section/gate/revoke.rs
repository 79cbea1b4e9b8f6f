//! Revocation of approval services. Takes back no approval.

use std::sync::Arc;

use toml::Value;

use super::resolved::{ApprovalService, Gate};
use crate::revoked::{at, is_path};

/// Keeps services with the same entry in the refused file.
pub(super) fn keep(gate: &mut Option<Arc<Gate>>, file: &Value) {
    let named = |section: &str, name: &str| at(file, &[section, "service", name]).cloned();
    let is_kept = |one: &ApprovalService| {
        named("approvals", &one.name).or_else(|| named("gate", &one.name)).is_some_and(|entry| is_service(one, &entry))
    };
    if gate.as_ref().is_some_and(|gate| !gate.services.iter().all(is_kept)) {
        gate.as_mut().map(Arc::make_mut).into_iter().for_each(|gate| gate.services.retain(is_kept));
    }
}

fn is_service(service: &ApprovalService, entry: &Value) -> bool {
    let audience = entry.get("audience").and_then(Value::as_str);
    let is_same = entry.get("issuer").and_then(Value::as_str) == Some(&service.issuer) && is_path(&service.keys, entry.get("keys"));
    is_same && audience.is_none_or(|audience| audience == service.audience)
}
