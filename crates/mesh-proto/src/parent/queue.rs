//! Queue of registrations, in order of arrival. Heartbeats never wait here.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::authority::Identity;
use crate::bucket::Bucket;
use crate::id::{LinkId, RequestId};
use crate::message::Register;

use super::settings::Settings;

/// An undecided registration.
#[derive(Debug, Clone)]
pub(super) struct Applicant {
    pub(super) link: LinkId,
    pub(super) request: RequestId,
    pub(super) identity: Identity,
    pub(super) register: Box<Register>,
}

#[derive(Debug)]
pub(super) struct Queue {
    bucket: Bucket,
    waiting: VecDeque<Applicant>,
    per_link: BTreeMap<LinkId, usize>,
    most: usize,
    most_per_link: usize,
}

impl Queue {
    pub(super) fn new(settings: &Settings) -> Self {
        let rate = settings.registrations_per_second;
        Self {
            bucket: Bucket::new(rate, rate / 5),
            waiting: VecDeque::new(),
            per_link: BTreeMap::new(),
            most: settings.waiting,
            most_per_link: settings.waiting_per_link,
        }
    }

    /// Enters an applicant. A second application on the same link replaces the first, and the first is returned.
    ///
    /// # Errors
    /// When the queue is full: the applicant, and the time to wait.
    pub(super) fn push(&mut self, applicant: Applicant) -> Result<Option<Applicant>, (Box<Applicant>, Duration)> {
        let same = |a: &&mut Applicant| a.link == applicant.link && a.register.subserver_id == applicant.register.subserver_id;
        if let Some(earlier) = self.waiting.iter_mut().find(same) {
            return Ok(Some(std::mem::replace(earlier, applicant)));
        }
        let on_link = self.per_link.get(&applicant.link).copied().unwrap_or_default();
        if self.waiting.len() >= self.most || on_link >= self.most_per_link {
            let turns = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX).max(1);
            return Err((Box::new(applicant), self.bucket.step().saturating_mul(turns)));
        }
        *self.per_link.entry(applicant.link).or_default() += 1;
        self.waiting.push_back(applicant);
        Ok(None)
    }

    /// Gives the next applicant in time; otherwise the time of the next turn.
    pub(super) fn pop(&mut self, now: Instant) -> Result<Option<Applicant>, Instant> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        self.bucket.take_token(now)?;
        let next = self.waiting.pop_front();
        if let Some(applicant) = &next {
            self.leave(applicant.link, 1);
        }
        Ok(next)
    }

    /// Drops the applicants of a link.
    pub(super) fn forget(&mut self, link: LinkId) {
        let before = self.waiting.len();
        self.waiting.retain(|applicant| applicant.link != link);
        self.leave(link, before - self.waiting.len());
    }

    fn leave(&mut self, link: LinkId, count: usize) {
        if let Some(on_link) = self.per_link.get_mut(&link) {
            *on_link -= count.min(*on_link);
            if *on_link == 0 {
                self.per_link.remove(&link);
            }
        }
    }
}
