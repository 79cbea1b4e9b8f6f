//! What a stateless server says of its lists: it does so only on a stream that is asked for, and nothing of what changed before it has
//! agreed. So it is asked before the lists are fetched, and they are fetched again where it agrees later than that. What it says is not
//! handled here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use banyan_model::Era;
use mcp_proto::catalog::Kind;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::mount::Mount;
use super::supervise::{FIRST_WAIT, HELD, LONGEST_WAIT};
use super::{Instance, UpstreamError, standing};

/// How long lists wait for the server to agree. One that takes longer has them fetched twice.
const AGREED: Duration = Duration::from_millis(500);

/// No list is taken to be good for longer than this, whatever its server says.
const LONGEST_FRESH: Duration = Duration::from_secs(3600);

/// Until when the lists that were fetched last are good, by what their server said of them (`ttlMs`; MCP 2026-07-28, caching).
#[derive(Debug, Default)]
pub(crate) struct Freshness(watch::Sender<Option<Instant>>);

impl Freshness {
    /// All lists are being fetched: nothing is known until they are there.
    pub(crate) fn unknown(&self) {
        self.0.send_replace(None);
    }

    /// Lists were fetched that are good for so long. Unless these are `all`, the others are good for no longer than they were.
    pub(crate) fn fetched(&self, good_for: Duration, all: bool) {
        let until = Instant::now() + good_for.min(LONGEST_FRESH);
        self.0.send_modify(|good| *good = Some(good.filter(|_| !all).map_or(until, |before| before.min(until))));
    }

    /// Returns once lists are there that may have changed since.
    async fn over(&self) {
        let mut good = self.0.subscribe();
        loop {
            let until = *good.borrow_and_update();
            let over = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                changed = good.changed() => if changed.is_err() { return },
            }
        }
    }
}

/// Listens for as long as it is held.
pub(crate) struct Listening(#[expect(dead_code, reason = "held, so that the task ends with it")] AbortOnDropHandle<()>);

/// Asks a stateless server to tell of changes. What is fetched from now on is what it will tell of, or is fetched again.
pub(crate) async fn begin(mount: &Arc<Mount>, instance: &Arc<Instance>) -> Option<Listening> {
    if instance.era() == Era::Initialize {
        return None;
    }
    let mut agreed = mount.agreed.subscribe();
    let late = Arc::new(AtomicBool::new(false));
    let task = tokio::spawn(listen(Arc::clone(mount), Arc::clone(instance), Arc::clone(&late)));
    let listening = Listening(AbortOnDropHandle::new(task));
    if tokio::time::timeout(AGREED, agreed.changed()).await.is_err() {
        late.store(true, Ordering::SeqCst);
        // It may have agreed in between.
        if agreed.has_changed().is_ok_and(|has| has) {
            mount.dirty(&Kind::ALL);
        }
    }
    Some(listening)
}

/// `late`: lists that were fetched may be older than what the server will tell of.
async fn listen(mount: Arc<Mount>, instance: Arc<Instance>, late: Arc<AtomicBool>) {
    let mut wait = FIRST_WAIT;
    loop {
        let (began, uris, identity) = (Instant::now(), mount.subscriptions(), mount.gateway.node.shared());
        let mut agreed = mount.agreed.subscribe();
        let mut has_agreed = false;
        let listened = standing::listen(&instance, &identity, &uris);
        tokio::pin!(listened);
        let outcome = loop {
            tokio::select! {
                outcome = &mut listened => break outcome,
                changed = agreed.changed(), if !has_agreed => {
                    has_agreed = changed.is_ok();
                    if late.load(Ordering::SeqCst) {
                        mount.dirty(&Kind::ALL);
                    }
                }
            }
        };
        // Nobody waits for what it does not offer.
        mount.agree();
        if let Err(UpstreamError::Refused { .. } | UpstreamError::SignIn(_)) = outcome {
            return;
        }
        late.store(true, Ordering::SeqCst);
        wait = if began.elapsed() > HELD { FIRST_WAIT } else { (wait * 2).min(LONGEST_WAIT) };
        tokio::time::sleep(wait).await;
        if !has_agreed {
            // Of a server that tells nothing it is found by looking, but not while it says itself that nothing changes.
            mount.freshness.over().await;
            mount.dirty(&Kind::ALL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_03_lists_are_good_for_as_long_as_their_server_says_and_not_longer() {
        let (freshness, began) = (Freshness::default(), Instant::now());
        let good_for = |said: u64, all: bool| {
            freshness.fetched(Duration::from_secs(said), all);
            freshness.0.borrow().unwrap().duration_since(began).as_secs()
        };
        assert_eq!(good_for(60, true), 60);
        // Tools alone, which are good for longer than the others are.
        assert_eq!(good_for(600, false), 60);
        assert_eq!(good_for(30, false), 30);
        assert_eq!(good_for(600, true), 600);
        assert_eq!(good_for(u64::MAX, true), LONGEST_FRESH.as_secs());
        assert_eq!(good_for(0, true), 0);
    }
}
