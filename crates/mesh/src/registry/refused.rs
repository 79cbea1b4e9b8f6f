//! The last registrations that were refused, or ended for a reason that their server has to know, for people who ask why. Nothing is
//! decided here.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use mesh_proto::message::Register;
use mesh_proto::refusal::Refusal;
use serde::{Deserialize, Serialize};

/// How many are kept.
const KEPT: usize = 256;

/// A registration that was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusedRegistration {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Who asked, as the configuration and the log know it.
    pub principal: String,
    /// The segment that was asked for; absent where the request could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
    /// The id of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subserver_id: Option<String>,
    /// The JSON-RPC code that was answered.
    pub code: i64,
    /// The stable word for the reason.
    pub reason: String,
    /// What to do about it.
    pub hint: String,
    /// The rest of what was answered: the error's `data`.
    #[serde(default)]
    pub data: serde_json::Value,
    /// How often the same was refused in a row.
    #[serde(default = "once")]
    pub times: u64,
}

fn once() -> u64 {
    1
}

/// The last of them, the newest last.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<VecDeque<RefusedRegistration>>);

impl Refusals {
    /// Notes one. A server that tries again and again is one entry that counts.
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

    /// Those of this segment or subserver id; all of them without one. The newest first.
    pub fn of(&self, wanted: Option<&str>) -> Vec<RefusedRegistration> {
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
    fn ax_27_what_was_refused_is_kept_with_its_remedy_and_never_too_much_of_it() {
        let refusals = Refusals::default();
        let register = |id| Register::plain(NodeId::new(id), Segment::nearest("edge"));
        let conflict = Refusal::NamespaceConflict { segment: "edge".into(), holder: Holder::Registered, retry_after: None };
        (0..3).for_each(|_| refusals.note("p", Some(&register(7)), &conflict));
        let kept = refusals.of(Some("edge"));
        assert_eq!((kept.len(), kept[0].times, kept[0].code, kept[0].reason.as_str()), (1, 3, -32012, "namespace_conflict"));
        assert!(kept[0].hint.contains("choose another segment"), "{kept:?}");
        assert_eq!(refusals.of(Some(&NodeId::new(7).to_string())), kept);
        (0..1000).for_each(|id| refusals.note("p", Some(&register(id)), &conflict));
        assert_eq!((refusals.of(None).len(), refusals.of(Some("other")).len()), (KEPT, 0));
    }
}
