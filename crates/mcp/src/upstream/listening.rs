//! What a stateless server says of its lists: it does so only on a stream that is asked for, and nothing of what changed before it has
//! agreed. So it is asked before the lists are fetched, and they are fetched again where it agrees later than that. What it says is not
//! handled here.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use banyan_model::Era;
use bytes::Bytes;
use futures_util::FutureExt as _;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::{Answer, Message};
use mcp_proto::era::LogLevel;
use mcp_proto::json::Duplicates;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::upstream::standing;
use crate::upstream::supervise;
use crate::upstream::supervise::{FIRST_WAIT, HELD, LONGEST_WAIT};
use call::tree::mount::{AGREES_WITHIN, Edition, Honoured, Mount};
use call::tree::port::{Instance, Owner, UpstreamError};
use call::way::own_caller;
use call::words::back::{Back, Sink};
use call::words::cancel::{Cancel, Guard};
use call::words::entered::scope_of;
use call::words::lane::Lane;

/// How long lists wait for the server to agree. One that takes longer has them fetched twice.
const AGREED: Duration = Duration::from_millis(500);

/// Listens for as long as it is held.
pub struct Listening {
    /// Another is to take its place: a stream that ends is not asked for again.
    is_last: CancellationToken,
    /// The server has said what it thinks of it, or was given the time to.
    is_settled: Arc<AtomicBool>,
    _over: Guard,
}

/// Asks a stateless server to tell of changes. What is fetched from now on is what it will tell of, or is fetched again.
pub async fn begin(mount: &Arc<Mount>, instance: &Arc<Instance>) -> Option<Listening> {
    if instance.era() == Era::Initialize {
        return None;
    }
    let mut agreed = mount.connections.agreed.subscribe();
    let late = Arc::new(AtomicBool::new(false));
    mount.connections.subscribed.take_changed();
    let listening = listen(mount, instance, Arc::clone(&late), None);
    if tokio::time::timeout(AGREED, agreed.changed()).await.is_err() {
        late.store(true, Ordering::SeqCst);
        // It may have agreed in between.
        if agreed.has_changed().is_ok_and(|has| has) {
            mount.connections.dirty(&Kind::ALL);
        }
    }
    Some(listening)
}

/// Asks the server for what it has not been asked for: another stream in the place of the one there is, which ends when the new one is
/// there, so that nothing is said to nobody. One that is still being asked for is waited for.
pub async fn resubscribe(mount: &Arc<Mount>, instance: &Arc<Instance>, listening: &mut Option<Listening>) {
    if !mount.connections.subscribed.is_changed() || listening.as_ref().is_some_and(|one| !one.is_settled.load(Ordering::SeqCst)) {
        return;
    }
    mount.connections.subscribed.take_changed();
    match listening.take() {
        None => supervise::subscribe_again(mount, instance).await,
        Some(before) => {
            before.is_last.cancel();
            *listening = Some(listen(mount, instance, Arc::default(), Some(before)));
        }
    }
}

fn listen(mount: &Arc<Mount>, instance: &Arc<Instance>, late: Arc<AtomicBool>, before: Option<Listening>) -> Listening {
    let over = Cancel::default();
    let (is_last, is_settled) = (CancellationToken::new(), Arc::default());
    let streams = Streams {
        mount: Arc::clone(mount),
        instance: Arc::clone(instance),
        late,
        before,
        over: over.clone(),
        is_last: is_last.clone(),
        is_settled: Arc::clone(&is_settled),
    };
    tokio::spawn(streams.run());
    Listening { is_last, is_settled, _over: over.drop_guard() }
}

/// One stream after the other.
struct Streams {
    mount: Arc<Mount>,
    instance: Arc<Instance>,
    /// Lists that were fetched may be older than what the server will tell of.
    late: Arc<AtomicBool>,
    /// What listens until this does.
    before: Option<Listening>,
    over: Cancel,
    is_last: CancellationToken,
    is_settled: Arc<AtomicBool>,
}

impl Streams {
    async fn run(mut self) {
        let mut wait = FIRST_WAIT;
        loop {
            let (began, (edition, uris)) = (Instant::now(), self.mount.connections.subscribed.all());
            let mut agreed = None;
            let outcome = self.stream(edition, &uris, &mut agreed).await;
            if let Some(stream) = agreed {
                self.mount.connections.subscribed.end(stream);
            }
            if self.over.is_cancelled() || self.is_last.is_cancelled() {
                return;
            }
            let is_refused = matches!(outcome, Ok(Answer::Error(_)) | Err(UpstreamError::Refused { .. } | UpstreamError::SignIn(_)));
            if is_refused {
                self.mount.connections.subscribed.refuse(edition);
            }
            self.settle();
            // Nobody waits for what it does not offer.
            self.mount.connections.agree(None);
            if let Err(UpstreamError::Refused { .. } | UpstreamError::SignIn(_)) = outcome {
                return;
            }
            self.late.store(true, Ordering::SeqCst);
            wait = if began.elapsed() > HELD { FIRST_WAIT } else { (wait * 2).min(LONGEST_WAIT) };
            if !self.again_after(wait, agreed.is_some()).await {
                return;
            }
        }
    }

    /// Waits until another stream is to be asked for; `false`: none is.
    async fn again_after(&self, wait: Duration, has_agreed: bool) -> bool {
        let again = async {
            tokio::time::sleep(wait).await;
            if !has_agreed {
                // Of a server that tells nothing it is found by looking, but not while it says itself that nothing changes.
                self.mount.connections.freshness.over().await;
                self.mount.connections.dirty(&Kind::ALL);
            }
        };
        tokio::select! {
            () = again => true,
            () = self.is_last.cancelled() => false,
            () = self.over.cancelled() => false,
        }
    }

    /// One stream, to its end. `agreed`: its number, once the server agreed to it.
    async fn stream(&mut self, edition: Edition, uris: &[String], agreed: &mut Option<u64>) -> Result<Answer, UpstreamError> {
        let (mount, instance) = (Arc::clone(&self.mount), Arc::clone(&self.instance));
        let identity = mount.gate.node.shared();
        let (lane, caller) = (Lane::new(), own_caller(scope_of(&mount.gate.config.load(), "")));
        let back = Back::new(caller, Sink::Standing(Arc::clone(&lane)), Some(LogLevel::Debug), self.over.clone());
        // Some servers do not say to which stream they agree.
        let mut untagged = mount.connections.agreed.subscribe();
        let listened = standing::listen(&instance, &identity, uris, &back);
        let late = tokio::time::sleep(AGREES_WITHIN);
        let looking = look(&mount);
        tokio::pin!(listened, late, looking);
        let (mut said, mut leaves_lists_out) = (lane.read(0), false);
        loop {
            let honoured = tokio::select! {
                biased;
                message = std::future::poll_fn(|cx| said.poll_next(cx)) => message.and_then(|(_, message)| self.heard(&message)),
                outcome = &mut listened => {
                    // All of it may have come at once.
                    while let Some(Some((_, message))) = std::future::poll_fn(|cx| said.poll_next(cx)).now_or_never() {
                        if let (Some(honoured), None) = (self.heard(&message), *agreed) {
                            *agreed = self.agreed(edition, &honoured);
                        }
                    }
                    return outcome;
                }
                changed = untagged.changed(), if agreed.is_none() => changed.ok().and_then(|()| untagged.borrow_and_update().clone()),
                never = &mut looking, if leaves_lists_out => match never {},
                () = &mut late, if agreed.is_none() && !self.is_settled.load(Ordering::SeqCst) => {
                    self.settle();
                    None
                }
            };
            if let (Some(honoured), None) = (honoured, *agreed) {
                leaves_lists_out = honoured.leaves_lists_out(&instance);
                *agreed = self.agreed(edition, &honoured);
            }
        }
    }

    /// What the server agrees to, if that is what it says. What else it says goes to the mount.
    fn heard(&self, message: &Bytes) -> Option<Honoured> {
        let Ok(Message::Notification(notification)) = Message::parse(message, Duplicates::RefuseTop) else { return None };
        if notification.method == "notifications/subscriptions/acknowledged" {
            return Some(Honoured::read(&notification));
        }
        self.mount.notified(&Owner::Shared, &notification, &[]);
        None
    }

    /// The server agreed; the number of the stream, unless another is to take its place.
    fn agreed(&mut self, edition: Edition, honoured: &Honoured) -> Option<u64> {
        if self.is_last.is_cancelled() {
            return None;
        }
        if honoured.is_silent() {
            tracing::warn!(mount = %self.mount.config.name, "the server agrees to tell of changes and does not say of which (`notifications` is missing): it is taken to tell of none");
        }
        let (stream, owed) = self.mount.connections.subscribed.agree(edition, |uri| honoured.has(uri));
        self.mount.connections.agree(None);
        self.settle();
        if self.late.load(Ordering::SeqCst) {
            self.mount.connections.dirty(&Kind::ALL);
        }
        owed.iter().for_each(|uri| self.mount.may_have_changed(uri));
        Some(stream)
    }

    /// What listened before is not needed any more, and another stream may be asked for.
    fn settle(&mut self) {
        self.before = None;
        if !self.is_settled.swap(true, Ordering::SeqCst) {
            self.mount.connections.wake.notify_one();
        }
    }
}

/// Lists of which the server does not tell are looked at once they may be old, however short that is not without a pause.
async fn look(mount: &Mount) -> Infallible {
    let mut wait = FIRST_WAIT;
    loop {
        tokio::time::sleep(wait).await;
        mount.connections.freshness.over().await;
        mount.connections.dirty(&Kind::ALL);
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}
