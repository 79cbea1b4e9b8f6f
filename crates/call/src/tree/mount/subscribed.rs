//! Resources of a mount with subscribers, and the server's agreement to announce their changes. A subscription is answered only after the
//! server's agreement, so that no later change is missed. Does not ask the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, watch};

/// Longest wait for a stateless server's agreement to a stream. A later agreement comes with an update.
pub const AGREES_WITHIN: Duration = Duration::from_secs(10);

/// Counts changes of the set of subscriptions.
pub type Edition = u64;

/// Subscriptions at a mount.
#[derive(Debug, Default)]
pub struct ResourceSubscriptions {
    state: Mutex<State>,
    heard: watch::Sender<StreamAnswers>,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<String, Entry>,
    edition: Edition,
    /// Some subscriptions have not been sent to the server.
    is_changed: bool,
}

#[derive(Debug, Default)]
struct Entry {
    /// Number of subscribers.
    count: usize,
    /// Edition from which streams include the resource.
    since: Edition,
    /// Subscribers rely on it, and there was a gap in the announcements.
    is_owed: bool,
    /// A stateless server agreed to a stream without this resource.
    is_left_out: bool,
    /// Set once a server of the initialize era has agreed.
    taken: Arc<OnceCell<()>>,
}

/// A stateless server's answers to streams.
#[derive(Debug, Default, Clone, Copy)]
struct StreamAnswers {
    /// Edition of the stream last agreed to; 0: none.
    agreed: Edition,
    /// Edition of the stream last refused.
    refused: Edition,
    /// Number of streams agreed to.
    streams: u64,
}

/// Outcome of waiting for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgreementWait {
    /// The server announces changes.
    Agreed,
    /// The server did not answer in time.
    Late,
    /// The server announces nothing.
    Refused,
}

impl ResourceSubscriptions {
    /// Adds a subscriber; `true` for the first.
    pub fn add(&self, uri: &str) -> bool {
        let state = &mut *self.lock();
        let entry = state.entries.entry(uri.to_owned()).or_default();
        entry.count += 1;
        let is_first = entry.count == 1;
        if is_first {
            state.edition += 1;
            entry.since = state.edition;
        }
        is_first
    }

    /// Takes over the subscribers of a mount of this name that is given up. They rely on it, and hear of possible changes in between;
    /// `true` if there are any.
    pub fn take_over(&self, before: &Self) -> bool {
        let taken = std::mem::take(&mut before.lock().entries);
        let state = &mut *self.lock();
        let has_any = !taken.is_empty();
        if has_any {
            state.edition += 1;
            state.is_changed = true;
        }
        for (uri, Entry { count, .. }) in taken {
            let entry = state.entries.entry(uri).or_default();
            entry.count += count;
            (entry.since, entry.is_owed) = (state.edition, true);
        }
        has_any
    }

    /// Removes a subscriber; `true` for the last.
    pub fn remove(&self, uri: &str) -> bool {
        let state = &mut *self.lock();
        let Some(entry) = state.entries.get_mut(uri) else { return false };
        entry.count -= 1;
        let is_last = entry.count == 0;
        if is_last {
            state.entries.remove(uri);
            state.edition += 1;
        }
        is_last
    }

    /// Checks for subscribers to a resource.
    pub fn has(&self, uri: &str) -> bool {
        self.lock().entries.contains_key(uri)
    }

    /// Checks for no subscribers at all.
    pub fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// All resources with subscribers, and their edition.
    pub fn all(&self) -> (Edition, Vec<String>) {
        let state = self.lock();
        (state.edition, state.entries.keys().cloned().collect())
    }

    /// Notes that the server must be asked.
    pub fn change(&self) {
        self.lock().is_changed = true;
    }

    /// Checks that the server must be asked.
    pub fn is_changed(&self) -> bool {
        self.lock().is_changed
    }

    /// Takes the note that the server must be asked.
    pub fn take_changed(&self) -> bool {
        std::mem::take(&mut self.lock().is_changed)
    }

    /// Cell for the agreement of a server of the initialize era to `uri`; the first holder asks the server.
    pub fn taken(&self, uri: &str) -> Option<Arc<OnceCell<()>>> {
        self.lock().entries.get(uri).map(|entry| Arc::clone(&entry.taken))
    }

    /// Waits until a stateless server tells of all of `uris`.
    pub async fn agreed(&self, uris: &[&str]) -> AgreementWait {
        let wanted = {
            let state = self.lock();
            uris.iter().filter_map(|uri| state.entries.get(*uri)).map(|entry| entry.since).max().unwrap_or_default()
        };
        let mut heard = self.heard.subscribe();
        let settled = heard.wait_for(|heard| heard.agreed.max(heard.refused) >= wanted);
        match tokio::time::timeout(AGREES_WITHIN, settled).await {
            Ok(Ok(heard)) if heard.agreed >= wanted => AgreementWait::Agreed,
            Ok(_) => AgreementWait::Refused,
            Err(_) => AgreementWait::Late,
        }
    }

    /// Checks for a resource that the server's agreement leaves out.
    pub fn is_left_out(&self, uri: &str) -> bool {
        self.lock().entries.get(uri).is_some_and(|entry| entry.is_left_out)
    }

    /// Notes that subscribers rely on `uris`, without announcements so far.
    pub fn owe(&self, uris: &[&str]) {
        let mut state = self.lock();
        for uri in uris {
            if let Some(entry) = state.entries.get_mut(*uri) {
                entry.is_owed = true;
            }
        }
    }

    /// Notes the server's agreement to a stream of that edition, with the resources for which `takes` holds. Returns the stream's number,
    /// and the resources that may have changed during a gap.
    pub fn agree(&self, edition: Edition, takes: impl Fn(&str) -> bool) -> (u64, Vec<String>) {
        let mut state = self.lock();
        for (uri, entry) in state.entries.iter_mut().filter(|(_, entry)| entry.since <= edition) {
            entry.is_left_out = !takes(uri);
        }
        self.heard.send_modify(|heard| *heard = StreamAnswers { agreed: edition, streams: heard.streams + 1, ..*heard });
        let owed = state.entries.iter_mut().filter(|(_, entry)| entry.since <= edition && entry.is_owed && !entry.is_left_out);
        let owed = owed.map(|(uri, entry)| {
            entry.is_owed = false;
            uri.clone()
        });
        (self.heard.borrow().streams, owed.collect())
    }

    /// Notes the agreement of a server of the initialize era to `uri`; `true` if it may have changed during a gap.
    pub fn take_owed(&self, uri: &str) -> bool {
        self.lock().entries.get_mut(uri).is_some_and(|entry| std::mem::take(&mut entry.is_owed))
    }

    /// Notes the refusal of a stream of that edition.
    pub fn refuse(&self, edition: Edition) {
        self.heard.send_modify(|heard| heard.refused = edition);
    }

    /// Notes the end of a stream. Without a successor, nothing is announced for now.
    pub fn end_stream(&self, stream: u64) {
        let mut state = self.lock();
        let had = *self.heard.borrow();
        if had.streams == stream {
            self.heard.send_modify(|heard| heard.agreed = 0);
            state.entries.values_mut().filter(|entry| entry.since <= had.agreed).for_each(|entry| entry.is_owed = true);
        }
    }

    /// Forgets agreements over a connection that is gone.
    pub fn forget(&self) {
        let mut state = self.lock();
        self.heard.send_modify(|heard| *heard = StreamAnswers { streams: heard.streams, ..StreamAnswers::default() });
        for entry in state.entries.values_mut() {
            entry.is_owed |= entry.taken.initialized();
            entry.taken = Arc::default();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Lets the server agree to the present subscriptions; returns those owed an update.
    fn agree(subscribed: &ResourceSubscriptions) -> Vec<String> {
        subscribed.agree(subscribed.all().0, |_| true).1
    }

    #[tokio::test]
    async fn a_subscriber_waits_for_a_later_stream() {
        let subscribed = ResourceSubscriptions::default();
        assert!(subscribed.add("a"));
        let (with_a, _) = subscribed.all();
        assert!(subscribed.remove("a") && subscribed.add("a"));
        // This stream includes it; a stream asked for in between may not.
        assert!(subscribed.agree(with_a, |_| true).1.is_empty());
        assert!(subscribed.agreed(&["a"]).now_or_never().is_none());
        agree(&subscribed);
        assert_eq!(subscribed.agreed(&["a"]).await, AgreementWait::Agreed);
        assert!(!subscribed.add("a"));
        assert_eq!(subscribed.agreed(&["a"]).await, AgreementWait::Agreed);
        subscribed.add("b");
        subscribed.refuse(subscribed.all().0);
        assert_eq!(subscribed.agreed(&["b"]).await, AgreementWait::Refused);
    }

    #[test]
    fn subscribers_of_a_lost_connection_hear_from_the_next() {
        let [before, next] = [(), ()].map(|()| ResourceSubscriptions::default());
        assert!(before.add("a") && !before.add("a"));
        agree(&before);
        next.add("b");
        assert!(next.take_over(&before) && !next.take_over(&before) && !before.has("a"));
        assert!(next.take_changed());
        assert_eq!(agree(&next), ["a"]);
        assert!(!next.remove("a") && next.remove("a") && !before.remove("a"));
    }

    #[test]
    fn what_nobody_was_told_meanwhile_is_told_once() {
        let subscribed = ResourceSubscriptions::default();
        subscribed.add("a");
        let (first, owed) = subscribed.agree(subscribed.all().0, |_| true);
        assert!(owed.is_empty());
        subscribed.end_stream(first);
        subscribed.add("b");
        assert_eq!(agree(&subscribed), ["a"], "nobody has counted on the other");
        // A stream replaced by another leaves no gap.
        subscribed.end_stream(first);
        assert!(agree(&subscribed).is_empty());
    }
}
