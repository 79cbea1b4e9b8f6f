//! Changes of ancestry and subtree, and cycles that show only then (AX-24). Sends nothing upward: the child machine does.

use std::collections::BTreeSet;
use std::sync::Arc;

use banyan_model::{Now, Segment};

use super::Parent;
use crate::id::{LinkId, NodeId, SessionKey};
use crate::message::{Ancestry, Subtree, SubtreeChange};
use crate::refusal::{Refusal, SessionEnd};

impl Parent {
    /// Gives the ids of the aggregators below, and the own id.
    pub fn subtree(&self) -> BTreeSet<NodeId> {
        self.below.ids().chain([self.settings.aggregator_id]).collect()
    }

    /// Takes a new ancestry after a registration, a move or a loss of the parent. `prefix_length` counts the characters before the names
    /// shown here.
    pub fn handle_above(&mut self, above: Ancestry) {
        let longer = above.prefix_length != self.above.prefix_length;
        self.above = above;
        if !longer {
            return;
        }
        let segments: Vec<Segment> = self.namespace.parts().map(|part| part.segment().clone()).collect();
        for segment in segments {
            let limits = self.sessions.of_segment(segment.as_str()).map(|session| self.limits(session));
            let changed = limits.and_then(|limits| self.namespace.part(segment.as_str())?.limited(&limits));
            if let Some(part) = changed {
                self.namespace = self.namespace.with(Arc::new(part));
                self.namespace_changed = true;
            }
        }
    }

    /// Ends the sessions that brought `ids`: an aggregator above claims that these ids, announced as standing below, stand above. Otherwise
    /// a liar far below could keep this aggregator out of the tree for ever. The child machine registers once the subtree is smaller, and
    /// from then on such a lie is recognised.
    pub fn handle_cycle(&mut self, ids: &[NodeId]) {
        let brought = |session: &&super::Session| session.subtree.iter().flatten().any(|id| ids.contains(id));
        let keys: Vec<SessionKey> = self.sessions.iter().filter(|s| s.is_live()).filter(brought).map(|s| s.key).collect();
        for key in keys {
            self.end_session(key, SessionEnd::Cycle);
        }
    }

    pub(super) fn handle_subtree(&mut self, now: Now, link: LinkId, message: Subtree) -> Result<String, Refusal> {
        let key = self.touch(now, link, &message.session)?;
        let Some(session) = self.sessions.get(key) else { return Err(Refusal::UnknownSession { ended: None }) };
        let Some(before) = &session.subtree else {
            let why = "belongs to a plain subserver; register with aggregator_id to be an aggregator".to_owned();
            return Err(Refusal::ParamsInvalid { member: "session_id".into(), why });
        };
        let mut after = match message.change {
            SubtreeChange::All(ids) => ids,
            SubtreeChange::Step { .. } if message.version != session.subtree_version + 1 => return Err(Refusal::SubtreeOutOfStep),
            SubtreeChange::Step { joined, left } => before.difference(&left).copied().chain(joined).collect(),
        };
        after.extend(session.aggregator_id);
        self.examine_subtree(&after)?;
        let ids = self.above_and_in(&after);
        if !ids.is_empty() {
            let below_you = session.aggregator_id.is_some_and(|id| self.above.ancestors.contains(&id));
            return Err(Refusal::RegistrationCycle { ids, below_you });
        }
        let (gone, new): (Vec<NodeId>, Vec<NodeId>) =
            (before.difference(&after).copied().collect(), after.difference(before).copied().collect());
        let changed = [self.below.add(&new), self.below.remove(&gone)];
        self.subtree_changed |= changed.contains(&true);
        if let Some(session) = self.sessions.live(key) {
            session.subtree = Some(after);
            session.subtree_version = message.version;
        }
        Ok(Subtree::RESULT.to_owned())
    }
}
