//! Queue of a subserver's notifications: the oldest is dropped first. Knows no other subservers.

use std::collections::VecDeque;
use std::time::Instant;

use banyan_model::Segment;
use bytes::Bytes;

use super::{RelayLimits, RelayOutput};
use crate::bucket::Bucket;

#[derive(Debug)]
pub(super) struct Lane {
    limits: RelayLimits,
    segment: Segment,
    bucket: Bucket,
    queue: VecDeque<Bytes>,
    queued_bytes: usize,
    dropped: u64,
    /// The current flood was announced.
    said: bool,
}

impl Lane {
    pub(super) fn new(segment: Segment, limits: RelayLimits) -> Self {
        Self { limits, segment, bucket: bucket(&limits), queue: VecDeque::new(), queued_bytes: 0, dropped: 0, said: false }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn waiting(&self) -> u64 {
        self.queue.len() as u64
    }

    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    pub(super) fn bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Sets other limits.
    pub(super) fn limit(&mut self, limits: RelayLimits) {
        if limits.per_second != self.limits.per_second {
            self.bucket = bucket(&limits);
        }
        self.limits = limits;
    }

    /// Queues a notification, within the limits and within `room` more bytes; gives the announcement at the first drop of a flood.
    pub(super) fn push(&mut self, bytes: Bytes, room: usize) -> Option<RelayOutput> {
        let most = self.limits.depth_bytes.min(self.queued_bytes.saturating_add(room));
        self.queued_bytes += bytes.len();
        self.queue.push_back(bytes);
        let mut dropped = 0;
        // The newest stays even if larger than the bound by itself, for nothing else would make room for it.
        while self.queue.len() > self.limits.depth.max(1) || (self.queued_bytes > most && self.queue.len() > 1) {
            self.queued_bytes -= self.queue.pop_front().map_or(0, |oldest| oldest.len());
            dropped += 1;
        }
        self.lose(dropped)
    }

    /// Counts drops; gives the announcement at the first of a flood.
    pub(super) fn lose(&mut self, dropped: u64) -> Option<RelayOutput> {
        self.dropped += dropped;
        if dropped == 0 || std::mem::replace(&mut self.said, true) {
            return None;
        }
        Some(RelayOutput::Overflow { segment: self.segment.clone(), dropped: self.dropped })
    }

    /// Sends as much as the rate permits; gives the time of the next.
    pub(super) fn flush(&mut self, now: Instant, out: &mut VecDeque<RelayOutput>) -> Option<Instant> {
        while !self.queue.is_empty() {
            if let Err(ready) = self.bucket.take_token(now) {
                return Some(ready);
            }
            if let Some(bytes) = self.queue.pop_front() {
                self.queued_bytes -= bytes.len();
                out.push_back(RelayOutput::Notification { segment: self.segment.clone(), bytes });
            }
        }
        self.said = false;
        None
    }
}

fn bucket(limits: &RelayLimits) -> Bucket {
    Bucket::new(limits.per_second, limits.per_second / 10)
}
