//! What one subserver notifies: the oldest waits longest and is dropped first. Nothing of other subservers.

use std::collections::VecDeque;
use std::time::Instant;

use banyan_model::Segment;
use bytes::Bytes;

use super::{RelayLimits, Relayed};
use crate::bucket::Bucket;

#[derive(Debug)]
pub(super) struct Lane {
    segment: Segment,
    bucket: Bucket,
    queue: VecDeque<Bytes>,
    queued_bytes: usize,
    dropped: u64,
    /// Whether it was said that some were dropped, and not all that waited then has gone since.
    said: bool,
}

impl Lane {
    pub(super) fn new(segment: Segment, limits: &RelayLimits) -> Self {
        let bucket = Bucket::new(limits.per_second, limits.per_second / 10);
        Self { segment, bucket, queue: VecDeque::new(), queued_bytes: 0, dropped: 0, said: false }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn waiting(&self) -> u64 {
        self.queue.len() as u64
    }

    /// Lets it wait; returns the notice when this is the first drop of a flood.
    pub(super) fn push(&mut self, bytes: Bytes, limits: &RelayLimits) -> Option<Relayed> {
        self.queued_bytes += bytes.len();
        self.queue.push_back(bytes);
        let before = self.dropped;
        while self.queue.len() > limits.depth.max(1) || (self.queued_bytes > limits.depth_bytes && self.queue.len() > 1) {
            self.queued_bytes -= self.queue.pop_front().map_or(0, |oldest| oldest.len());
            self.dropped += 1;
        }
        if self.dropped == before || std::mem::replace(&mut self.said, true) {
            return None;
        }
        Some(Relayed::Overflow { segment: self.segment.clone(), dropped: self.dropped })
    }

    /// Sends what may be sent; returns when the next may.
    pub(super) fn flush(&mut self, now: Instant, out: &mut VecDeque<Relayed>) -> Option<Instant> {
        while !self.queue.is_empty() {
            if let Err(ready) = self.bucket.take(now) {
                return Some(ready);
            }
            if let Some(bytes) = self.queue.pop_front() {
                self.queued_bytes -= bytes.len();
                out.push_back(Relayed::Notification { segment: self.segment.clone(), bytes });
            }
        }
        self.said = false;
        None
    }
}
