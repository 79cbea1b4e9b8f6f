//! Examination of a registration: permission, and questions to ask before. Changes nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use banyan_model::{Now, QualifiedName};

use super::questions::Question;
use super::queue::Applicant;
use super::session::{Session, Standing};
use super::settings::Demand;
use super::{Parent, Timer};
use crate::id::NodeId;
use crate::message::MAX_SUBTREE_IDS;
use crate::refusal::{Holder, Refusal};

impl Parent {
    /// Lists the questions to ask about an applicant.
    ///
    /// # Errors
    /// When no answer could make the registration legal at present.
    pub(super) fn examine(&self, now: Now, applicant: &Applicant) -> Result<Vec<Question>, Refusal> {
        self.examine_cycle(applicant)?;
        self.examine_room(applicant)?;
        self.examine_length(applicant)?;
        self.examine_authority(applicant)?;
        self.examine_segment(now, applicant)?;
        let mut questions = self.examine_subserver(now, applicant)?;
        questions.push(Question::Parent);
        Ok(questions)
    }

    /// Tells whether the applicant has proved the alleged authority.
    pub(super) fn is_proven(applicant: &Applicant) -> bool {
        applicant.register.authority.as_ref().is_some_and(|authority| applicant.identity.proven.contains(authority))
    }

    /// Gives the ids both below and above.
    pub(super) fn above_and_in<'a>(&self, below: impl IntoIterator<Item = &'a NodeId>) -> Vec<NodeId> {
        let own = self.settings.aggregator_id;
        let above = |id: &&NodeId| **id == own || self.above.ancestors.contains(id);
        below.into_iter().filter(above).copied().collect()
    }

    fn examine_cycle(&self, applicant: &Applicant) -> Result<(), Refusal> {
        let register = &applicant.register;
        let ids = self.above_and_in(register.subtree.iter().flatten());
        if ids.is_empty() {
            return Ok(());
        }
        let below_you = register.aggregator_id.is_some_and(|id| self.above.ancestors.contains(&id));
        Err(Refusal::RegistrationCycle { ids, below_you })
    }

    /// Checks the room for another registration. A returning subserver takes no more than before.
    fn examine_room(&self, applicant: &Applicant) -> Result<(), Refusal> {
        let most = self.settings.registrations;
        if self.sessions.len() >= most && self.sessions.of_subserver(applicant.register.subserver_id).is_none() {
            return Err(Refusal::Full { most });
        }
        self.examine_subtree(applicant.register.subtree.as_ref().unwrap_or(&BTreeSet::new()))
    }

    /// Checks the number of ids. All together have to fit into the announcement upward: a subserver with too many must not keep this
    /// aggregator out of its own tree.
    pub(super) fn examine_subtree(&self, ids: &BTreeSet<NodeId>) -> Result<(), Refusal> {
        let room = self.below.len_with(ids) < MAX_SUBTREE_IDS;
        if room && ids.len() <= self.settings.subtree_ids {
            Ok(())
        } else {
            Err(Refusal::SubtreeTooLarge { most: self.settings.subtree_ids })
        }
    }

    fn examine_length(&self, applicant: &Applicant) -> Result<(), Refusal> {
        let segment = &applicant.register.segment;
        // A dot and a name of one character have to follow.
        let length = self.above.prefix_length + segment.as_str().len() + 2;
        if length > QualifiedName::MAX {
            return Err(Refusal::NameTooLong { name: segment.to_string(), length });
        }
        Ok(())
    }

    fn examine_authority(&self, applicant: &Applicant) -> Result<(), Refusal> {
        let register = &applicant.register;
        let (proven, segment) = (Self::is_proven(applicant), &register.segment);
        if let Some(claimed) = register.authority.as_ref().filter(|_| !proven && !applicant.identity.proven.is_empty()) {
            return Err(Refusal::AuthorityMismatch { claimed: claimed.clone() });
        }
        if !proven && self.settings.policy(segment).proof == Demand::Always {
            return Err(Refusal::AuthorityRequired { segment: segment.to_string() });
        }
        if !self.claims.allow(segment, register.authority.as_ref(), proven) {
            return Err(Self::conflict(applicant, Holder::Authority, None));
        }
        Ok(())
    }

    fn examine_segment(&self, now: Now, applicant: &Applicant) -> Result<(), Refusal> {
        let segment = &applicant.register.segment;
        if self.mounts.contains(segment) {
            return Err(Self::conflict(applicant, Holder::Mount, None));
        }
        let Some(holder) = self.sessions.of_segment(segment.as_str()) else { return Ok(()) };
        match holder.standing {
            Standing::Live if holder.subserver_id == applicant.register.subserver_id => Ok(()),
            Standing::Live => Err(Self::conflict(applicant, Holder::Registered, None)),
            Standing::Lost { .. } if same_party(holder, applicant) => Ok(()),
            Standing::Lost { .. } => {
                let left =
                    self.timers.at(&Timer::Forget(holder.key)).map_or(Duration::ZERO, |at| at.saturating_duration_since(now.instant));
                Err(Self::conflict(applicant, Holder::Lost, Some(left)))
            }
        }
    }

    /// Examines an earlier session of the same subserver: after a reboot, over a new link, or of a second server with the same id.
    fn examine_subserver(&self, now: Now, applicant: &Applicant) -> Result<Vec<Question>, Refusal> {
        let subserver = applicant.register.subserver_id;
        if !self.claims.allow_subserver(subserver, applicant.register.authority.as_ref().filter(|_| Self::is_proven(applicant))) {
            return Err(Refusal::DuplicateSubserver { retry_after: self.settings.grace });
        }
        let Some(holder) = self.sessions.of_subserver(subserver) else { return Ok(Vec::new()) };
        if holder.link == applicant.link && holder.is_live() {
            return Ok(Vec::new());
        }
        if !same_party(holder, applicant) {
            let until = if holder.is_live() { Timer::Heartbeat(holder.key) } else { Timer::Forget(holder.key) };
            let left = self.timers.at(&until).map_or(self.settings.ask_timeout, |at| at.saturating_duration_since(now.instant));
            return Err(Refusal::DuplicateSubserver { retry_after: left });
        }
        // Whoever proves who it is need not wait for itself, nor for somebody that has only copied an id that is its own. Any other proof has
        // nothing to do with the holder, which is asked.
        if !holder.is_live() || (Self::is_proven(applicant) && !holder.proven && self.is_known(holder, applicant)) {
            return Ok(Vec::new());
        }
        Ok(vec![Question::Holder(holder.key)])
    }

    /// Tells whether an applicant may be the returning holder: by principal, or by the proof that goes with the id.
    pub(super) fn is_known(&self, holder: &Session, applicant: &Applicant) -> bool {
        let proved = holder.proven && Self::is_proven(applicant) && holder.authority == applicant.register.authority;
        proved || holder.principal == applicant.identity.principal || self.claims.is_owned(holder.subserver_id)
    }

    fn conflict(applicant: &Applicant, holder: Holder, retry_after: Option<Duration>) -> Refusal {
        Refusal::NamespaceConflict { segment: applicant.register.segment.to_string(), holder, retry_after }
    }
}

/// Tells whether an applicant may inherit a silent session: with the same proved authority; or, without any proof in the session, as the
/// same subserver with the same principal or with a proof now.
fn same_party(holder: &Session, applicant: &Applicant) -> bool {
    let register = &applicant.register;
    let proved = holder.proven && Parent::is_proven(applicant) && holder.authority == register.authority;
    let known = holder.principal == applicant.identity.principal || Parent::is_proven(applicant);
    proved || (holder.subserver_id == register.subserver_id && known && !holder.proven)
}
