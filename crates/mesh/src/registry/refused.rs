//! Latest registrations refused, or ended for a reason the server has to know, for people. Decides nothing.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use mesh_proto::message::Register;
use mesh_proto::refusal::Refusal;
use serde::{Deserialize, Serialize};

/// Entries kept.
const KEPT: usize = 256;

/// A refused registration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusedRegistration {
    /// Seconds since 1970.
    pub at: u64,
    /// Name of the requester in configuration and log.
    pub principal: String,
    /// Wanted segment; absent if illegible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subserver_id: Option<String>,
    /// The JSON-RPC code of the answer.
    pub code: i64,
    /// The stable word.
    pub reason: String,
    /// Advice.
    pub hint: String,
    /// The rest of the answer: the error's `data`.
    #[serde(default)]
    pub data: serde_json::Value,
    /// Equal refusals in a row.
    #[serde(default = "once")]
    pub times: u64,
}

fn once() -> u64 {
    1
}

/// Latest refusals, the newest last.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<VecDeque<RefusedRegistration>>);

impl Refusals {
    /// Notes a refusal. Repeated attempts of a server count in one entry.
    pub fn note(&self, principal: &str, register: Option<&Register>, refusal: &Refusal) {
        let error = refusal.error();
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let data: serde_json::Value = serde_json::from_str(&error.data).unwrap_or_default();
        let new = RefusedRegistration {
            at,
            principal: principal.to_owned(),
            segment: register.map(|r| r.segment.to_string()),
            subserver_id: register.map(|r| r.subserver_id.to_string()),
            code: error.code,
            reason: error.message.to_owned(),
            hint: refusal.to_string(),
            data,
            times: 1,
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |old: &RefusedRegistration| {
            (&old.principal, &old.segment, &old.subserver_id, &old.reason) == (&new.principal, &new.segment, &new.subserver_id, &new.reason)
        };
        let times = kept.iter().position(same).and_then(|at| kept.remove(at)).map_or(0, |old| old.times);
        kept.push_back(RefusedRegistration { times: times + 1, ..new });
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }

    /// Lists the refusals of a segment or subserver id, or all, the newest first.
    pub fn matching(&self, wanted: Option<&str>) -> Vec<RefusedRegistration> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let meant = |one: &&RefusedRegistration| {
            wanted.is_none_or(|wanted| [&one.segment, &one.subserver_id].iter().any(|own| own.as_deref() == Some(wanted)))
        };
        kept.iter().rev().filter(meant).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use banyan_model::Segment;
    use mesh_proto::id::NodeId;
    use mesh_proto::refusal::Holder;

    use super::*;

    #[test]
    fn ax_27_refusals_are_kept_with_remedies_within_a_bound() {
        let refusals = Refusals::default();
        let register = |id| Register::plain(NodeId::new(id), Segment::nearest("edge"));
        let conflict = Refusal::NamespaceConflict { segment: "edge".into(), holder: Holder::Registered, retry_after: None };
        (0..3).for_each(|_| refusals.note("p", Some(&register(7)), &conflict));
        let kept = refusals.matching(Some("edge"));
        assert_eq!((kept.len(), kept[0].times, kept[0].code, kept[0].reason.as_str()), (1, 3, -31001, "namespace_conflict"));
        assert!(kept[0].hint.contains("choose another segment"), "{kept:?}");
        assert_eq!(refusals.matching(Some(&NodeId::new(7).to_string())), kept);
        (0..1000).for_each(|id| refusals.note("p", Some(&register(id)), &conflict));
        assert_eq!((refusals.matching(None).len(), refusals.matching(Some("other")).len()), (KEPT, 0));
    }
}
