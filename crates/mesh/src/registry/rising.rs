//! Relay of mounts' notifications to gates above. Keeps each with the only principal that listened at its arrival: nobody else ever gets it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use banyan_model::{Machine, Now, Principal, Segment};
use bytes::Bytes;
use mesh_proto::relay::{Relay, RelayLimits, RelayOutput};

/// A notification to send, or news of dropped ones, for gates of a principal.
#[derive(Debug, PartialEq, Eq)]
pub struct RisingNotification {
    pub principal: Principal,
    pub relayed: RelayOutput,
}

/// The relay of mounts.
pub struct RisingRelay {
    relay: Relay<Segment>,
    /// Principals of the notifications in the relay.
    principals: BTreeMap<Segment, Principal>,
    out: VecDeque<RisingNotification>,
}

impl Default for RisingRelay {
    fn default() -> Self {
        Self { relay: Relay::new(RelayLimits::default()), principals: BTreeMap::new(), out: VecDeque::new() }
    }
}

impl RisingRelay {
    /// Lists open mounts.
    pub fn mounts(&self) -> impl Iterator<Item = &Segment> {
        self.relay.sessions()
    }

    /// Checks for an open mount.
    pub fn is_open(&self, mount: &Segment) -> bool {
        self.relay.is_open(mount)
    }

    /// Opens a mount for a principal. Notifications of an earlier principal are dropped.
    pub fn handle_opened(&mut self, mount: &Segment, principal: Principal, limits: RelayLimits) {
        if self.is_open(mount) && self.principals.get(mount) == Some(&principal) {
            return;
        }
        self.handle_closed(mount);
        self.principals.insert(mount.clone(), principal);
        self.relay.handle_opened(mount.clone(), mount.clone());
        self.relay.handle_limits(mount, limits);
    }

    /// Sets the limits of an open mount.
    pub fn handle_limits(&mut self, mount: &Segment, limits: RelayLimits) {
        self.relay.handle_limits(mount, limits);
    }

    /// Closes a mount, and drops the queue.
    pub fn handle_closed(&mut self, mount: &Segment) {
        // Outputs so far belong to the principal so far.
        self.drain();
        self.principals.remove(mount);
        self.relay.handle_closed(mount);
    }

    /// Takes notifications of an open mount, `lost` others having been dropped before.
    pub fn handle_notifications(&mut self, now: Now, mount: &Segment, lost: u64, all: impl IntoIterator<Item = Bytes>) {
        if lost > 0 {
            self.relay.handle_lost(mount, lost);
        }
        all.into_iter().for_each(|whole| self.relay.handle_notification(now, mount.clone(), whole));
    }

    /// Counts notifications of nobody known as dropped.
    pub fn handle_unheard(&mut self, count: u64) {
        self.relay.handle_unheard(count);
    }

    /// Counts all notifications dropped.
    pub fn dropped(&self) -> u64 {
        self.relay.dropped()
    }

    /// Lists open mounts with losses, and the notifications dropped of each.
    pub fn losses(&self) -> impl Iterator<Item = (&Segment, u64)> {
        self.relay.losses()
    }

    fn drain(&mut self) {
        while let Some(relayed) = self.relay.poll_output() {
            let (RelayOutput::Notification { segment, .. } | RelayOutput::Overflow { segment, .. }) = &relayed;
            if let Some(principal) = self.principals.get(segment) {
                self.out.push_back(RisingNotification { principal: principal.clone(), relayed });
            }
        }
    }
}

impl Machine for RisingRelay {
    type Output = RisingNotification;

    fn handle_timeout(&mut self, now: Now) {
        self.relay.handle_timeout(now);
    }

    fn poll_output(&mut self) -> Option<RisingNotification> {
        self.drain();
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.relay.poll_timeout()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use banyan_model::PrincipalKind;

    use super::*;

    #[test]
    fn ax_50_news_of_one_principal_waits_for_no_other() {
        let (mount, mut rising) = (Segment::nearest("n"), RisingRelay::default());
        let now = Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH };
        let limits = RelayLimits { per_second: 1, ..RelayLimits::default() };
        let mut hear = |name: &str, said: &[&'static str]| {
            rising.handle_opened(&mount, Principal::new(PrincipalKind::Token, name), limits);
            rising.handle_notifications(now, &mount, 0, said.iter().map(|text| Bytes::from_static(text.as_bytes())));
        };
        hear("ann", &["1", "2"]);
        hear("bob", &["3"]);
        let mut sent = Vec::new();
        while let Some(RisingNotification { principal, relayed: RelayOutput::Notification { bytes, .. } }) = rising.poll_output() {
            sent.push((principal.name.to_string(), bytes));
        }
        assert_eq!(sent, [("ann".to_owned(), Bytes::from_static(b"1")), ("bob".to_owned(), Bytes::from_static(b"3"))]);
        assert_eq!(rising.dropped(), 1, "what waited for ann is gone");
    }
}
