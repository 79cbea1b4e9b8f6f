//! Notifications on their way to the task, outside of the queue of inputs: a flood fills the room of the flooding peer alone, and there the
//! oldest goes for the newest. Limits no rate: the relay does.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use banyan_model::{PrincipalKind, Segment};
use bytes::Bytes;
use mesh_proto::id::{LinkId, SessionKey};
use tokio::sync::Notify;

/// Most notifications of one peer, and most bytes.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 4 << 20;
/// Most bytes of all peers.
const MOST_OF_ALL: usize = 64 << 20;

/// Sender of notifications, as far as known at the entrance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotificationSource {
    /// A registrant over a link.
    Link(LinkId),
    /// A mount, with kind and name of the only principal that listened.
    Mount(Segment, PrincipalKind, Arc<str>),
    Session(SessionKey),
}

/// Notifications of a sender, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HeldNotifications {
    pub queue: VecDeque<Bytes>,
    /// Number dropped before the queue.
    pub dropped: u64,
    bytes: usize,
}

/// Notifications for the task.
#[derive(Debug, Default)]
pub struct Inbox {
    waiting: Mutex<Backlog>,
    stirred: Notify,
}

#[derive(Debug, Default)]
struct Backlog {
    by_sender: BTreeMap<NotificationSource, HeldNotifications>,
    bytes: usize,
}

impl Inbox {
    /// Adds a notification.
    pub fn push(&self, sender: NotificationSource, whole: Bytes) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(sender, whole);
        self.stirred.notify_one();
    }

    /// Takes all notifications at once.
    pub fn take_all(&self) -> BTreeMap<NotificationSource, HeldNotifications> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner)).by_sender
    }

    /// Waits for notifications, and takes all.
    pub async fn next_batch(&self) -> BTreeMap<NotificationSource, HeldNotifications> {
        loop {
            let taken = self.take_all();
            if !taken.is_empty() {
                return taken;
            }
            self.stirred.notified().await;
        }
    }
}

impl Backlog {
    fn push(&mut self, sender: NotificationSource, whole: Bytes) {
        let sent = self.by_sender.entry(sender).or_default();
        sent.bytes += whole.len();
        self.bytes += whole.len();
        sent.queue.push_back(whole);
        while (sent.queue.len() > MOST || sent.bytes > MOST_BYTES)
            && let Some(oldest) = sent.drop_oldest()
        {
            self.bytes -= oldest;
        }
        // The sender with the most pays for all.
        while self.bytes > MOST_OF_ALL
            && let Some(oldest) = self.by_sender.values_mut().max_by_key(|sent| sent.bytes).and_then(HeldNotifications::drop_oldest)
        {
            self.bytes -= oldest;
        }
    }
}

impl HeldNotifications {
    /// Drops the oldest notification, and gives the length; `None`: there is none.
    fn drop_oldest(&mut self) -> Option<usize> {
        let oldest = self.queue.pop_front()?.len();
        self.bytes -= oldest;
        self.dropped += 1;
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pushes: impl IntoIterator<Item = (u64, Bytes)>) -> Backlog {
        let mut waiting = Backlog::default();
        pushes.into_iter().for_each(|(session, whole)| waiting.push(NotificationSource::Session(SessionKey(session)), whole));
        waiting
    }

    #[test]
    fn ax_51_a_flood_before_the_relay_loses_its_own_oldest() {
        let flood = (0..12_000u32).map(|number| (1, Bytes::from(number.to_string())));
        let waiting = filled(std::iter::once((2, Bytes::from_static(b"first"))).chain(flood));
        let of = |session| &waiting.by_sender[&NotificationSource::Session(SessionKey(session))];
        assert_eq!((of(1).queue.len(), of(1).dropped, &of(1).queue[0][..]), (MOST, 2000, &b"2000"[..]));
        assert_eq!((of(2).queue.len(), of(2).dropped), (1, 0), "nobody else loses anything");
    }

    #[test]
    fn ax_51_a_full_inbox_takes_from_the_largest_sender() {
        let (mib, small) = (Bytes::from(vec![b' '; 1 << 20]), Bytes::from_static(b"small"));
        let floods = (0..16).flat_map(|session| (0..4).map(move |_| session)).map(|session| (session, mib.clone()));
        let waiting = filled(floods.chain((0..3).map(|_| (99, small.clone()))));
        let quiet = &waiting.by_sender[&NotificationSource::Session(SessionKey(99))];
        assert_eq!((quiet.queue.len(), quiet.dropped), (3, 0));
        assert_eq!(waiting.by_sender.values().map(|sent| sent.dropped).sum::<u64>(), 1, "a flood loses");
        assert!(waiting.bytes <= MOST_OF_ALL);
    }

    #[test]
    fn ax_51_what_waits_before_the_relay_is_bounded_in_bytes() {
        let mib = Bytes::from(vec![b' '; 1 << 20]);
        let waiting = filled((0..100).flat_map(|session| (0..6).map(move |_| session)).map(|session| (session, mib.clone())));
        assert_eq!(waiting.bytes, MOST_OF_ALL);
        assert_eq!(waiting.by_sender.values().map(|sent| sent.queue.len() as u64 + sent.dropped).sum::<u64>(), 600);
        assert!(waiting.by_sender.values().all(|sent| sent.bytes <= MOST_BYTES));
    }
}
