//! Which resources of one mount are subscribed to, and from when on its server tells of them. A subscription is answered when the server has
//! taken it, so that nothing which changes after the answer is missed. Asking the server is not done here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, watch};

/// How long a stateless server may take to agree to a stream. Whoever waits longer is answered, and told of an update once it has agreed.
pub const AGREES_WITHIN: Duration = Duration::from_secs(10);

/// Counts the changes of what is subscribed to.
pub type Edition = u64;

/// The subscriptions.
#[derive(Debug, Default)]
pub struct Subscribed {
    state: Mutex<State>,
    heard: watch::Sender<Heard>,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<String, Entry>,
    edition: Edition,
    /// There is something that the server has not been asked for.
    is_changed: bool,
}

#[derive(Debug, Default)]
struct Entry {
    /// How many subscribe.
    count: usize,
    /// Streams that were asked for from here on have it.
    since: Edition,
    /// Somebody counts on it, and there was a time in which the server told nothing.
    is_owed: bool,
    /// A stateless server agreed to a stream, but not to tell of this.
    is_left_out: bool,
    /// Set once a server of the initialize era has taken it.
    taken: Arc<OnceCell<()>>,
}

/// What a stateless server says to streams.
#[derive(Debug, Default, Clone, Copy)]
struct Heard {
    /// What the stream has to which it agreed last; 0: there is none.
    agreed: Edition,
    /// What the stream would have had that it refused last.
    refused: Edition,
    /// Counts the streams to which it agreed.
    streams: u64,
}

/// How waiting for a stream came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The server tells of it.
    Agreed,
    /// It did not say in time.
    Late,
    /// It tells nobody of changes.
    Refused,
}

impl Subscribed {
    /// One more subscribes. `true`: nobody did before.
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

    /// Takes over who subscribes at another connection of this name, which is given up. They count on it, and what changed in between is told.
    /// `true`: there are any.
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

    /// One less subscribes. `true`: nobody does any more.
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

    /// Whether anybody subscribes to it.
    pub fn has(&self, uri: &str) -> bool {
        self.lock().entries.contains_key(uri)
    }

    /// Whether nobody subscribes to anything.
    pub fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// Everything that is subscribed to, and its edition.
    pub fn all(&self) -> (Edition, Vec<String>) {
        let state = self.lock();
        (state.edition, state.entries.keys().cloned().collect())
    }

    /// Notes that the server is to be asked.
    pub fn change(&self) {
        self.lock().is_changed = true;
    }

    /// Whether it is.
    pub fn is_changed(&self) -> bool {
        self.lock().is_changed
    }

    /// It is asked now.
    pub fn take_changed(&self) -> bool {
        std::mem::take(&mut self.lock().is_changed)
    }

    /// Where it is noted that a server of the initialize era has taken `uri`; whoever comes first asks it.
    pub fn taken(&self, uri: &str) -> Option<Arc<OnceCell<()>>> {
        self.lock().entries.get(uri).map(|entry| Arc::clone(&entry.taken))
    }

    /// Waits until a stateless server tells of all of `uris`.
    pub async fn agreed(&self, uris: &[&str]) -> Waited {
        let wanted = {
            let state = self.lock();
            uris.iter().filter_map(|uri| state.entries.get(*uri)).map(|entry| entry.since).max().unwrap_or_default()
        };
        let mut heard = self.heard.subscribe();
        let settled = heard.wait_for(|heard| heard.agreed.max(heard.refused) >= wanted);
        match tokio::time::timeout(AGREES_WITHIN, settled).await {
            Ok(Ok(heard)) if heard.agreed >= wanted => Waited::Agreed,
            Ok(_) => Waited::Refused,
            Err(_) => Waited::Late,
        }
    }

    /// Whether a server that agreed does not tell of `uri`.
    pub fn is_left_out(&self, uri: &str) -> bool {
        self.lock().entries.get(uri).is_some_and(|entry| entry.is_left_out)
    }

    /// Those who subscribe to `uris` count on them, and nothing is told of them so far.
    pub fn owe(&self, uris: &[&str]) {
        let mut state = self.lock();
        for uri in uris {
            if let Some(entry) = state.entries.get_mut(*uri) {
                entry.is_owed = true;
            }
        }
    }

    /// The server agreed to a stream of that edition, and to tell of what it `takes` there. Gives the stream's number, and what may have
    /// changed while nobody was told.
    pub fn agree(&self, edition: Edition, takes: impl Fn(&str) -> bool) -> (u64, Vec<String>) {
        let mut state = self.lock();
        for (uri, entry) in state.entries.iter_mut().filter(|(_, entry)| entry.since <= edition) {
            entry.is_left_out = !takes(uri);
        }
        self.heard.send_modify(|heard| *heard = Heard { agreed: edition, streams: heard.streams + 1, ..*heard });
        let owed = state.entries.iter_mut().filter(|(_, entry)| entry.since <= edition && entry.is_owed && !entry.is_left_out);
        let owed = owed.map(|(uri, entry)| {
            entry.is_owed = false;
            uri.clone()
        });
        (self.heard.borrow().streams, owed.collect())
    }

    /// The server has taken `uri` (initialize era). Whether it may have changed while nobody was told.
    pub fn take_owed(&self, uri: &str) -> bool {
        self.lock().entries.get_mut(uri).is_some_and(|entry| std::mem::take(&mut entry.is_owed))
    }

    /// The server refused a stream of that edition.
    pub fn refuse(&self, edition: Edition) {
        self.heard.send_modify(|heard| heard.refused = edition);
    }

    /// The stream of that number is over. Where no other has taken its place, nobody is told of anything for now.
    pub fn end(&self, stream: u64) {
        let mut state = self.lock();
        let had = *self.heard.borrow();
        if had.streams == stream {
            self.heard.send_modify(|heard| heard.agreed = 0);
            state.entries.values_mut().filter(|entry| entry.since <= had.agreed).for_each(|entry| entry.is_owed = true);
        }
    }

    /// A connection knows nothing of what was taken over the one before.
    pub fn forget(&self) {
        let mut state = self.lock();
        self.heard.send_modify(|heard| *heard = Heard { streams: heard.streams, ..Heard::default() });
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

    /// The server agrees to what is wanted now; what is owed.
    fn agree(subscribed: &Subscribed) -> Vec<String> {
        subscribed.agree(subscribed.all().0, |_| true).1
    }

    #[tokio::test]
    async fn who_subscribes_waits_for_a_stream_that_was_asked_for_since() {
        let subscribed = Subscribed::default();
        assert!(subscribed.add("a"));
        let (with_a, _) = subscribed.all();
        assert!(subscribed.remove("a") && subscribed.add("a"));
        // This stream has it, and the next one may not: it was asked for in between.
        assert!(subscribed.agree(with_a, |_| true).1.is_empty());
        assert!(subscribed.agreed(&["a"]).now_or_never().is_none());
        agree(&subscribed);
        assert_eq!(subscribed.agreed(&["a"]).await, Waited::Agreed);
        assert!(!subscribed.add("a"));
        assert_eq!(subscribed.agreed(&["a"]).await, Waited::Agreed);
        subscribed.add("b");
        subscribed.refuse(subscribed.all().0);
        assert_eq!(subscribed.agreed(&["b"]).await, Waited::Refused);
    }

    #[test]
    fn whoever_subscribed_at_the_connection_before_is_told_by_the_next() {
        let [before, next] = [(), ()].map(|()| Subscribed::default());
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
        let subscribed = Subscribed::default();
        subscribed.add("a");
        let (first, owed) = subscribed.agree(subscribed.all().0, |_| true);
        assert!(owed.is_empty());
        subscribed.end(first);
        subscribed.add("b");
        assert_eq!(agree(&subscribed), ["a"], "nobody has counted on the other");
        // One whose place another has taken lets nothing be missed.
        subscribed.end(first);
        assert!(agree(&subscribed).is_empty());
    }
}
