//! Notifications of a stateless server about its lists. They come only on a stream asked for, and tell of no change before the server's
//! agreement; so the stream is asked for before the lists are fetched, and lists are fetched again after a late agreement. Does not handle
//! the notifications.

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
use call::tree::back::{Back, Sink};
use call::tree::mount::{AGREES_WITHIN, AnnouncedChanges, Edition, Mount};
use call::tree::port::{Instance, Owner, UpstreamError};
use call::way::own_caller;
use call::words::cancel::{Cancel, Guard};
use call::words::entered::scope_of;
use call::words::lane::Lane;

/// Longest wait of the lists for the server's agreement. A slower server has its lists fetched twice.
const AGREED: Duration = Duration::from_millis(500);

/// A standing stream, closed when dropped.
pub struct StandingStream {
    /// A successor takes over: a stream that ends is not opened again.
    is_last: CancellationToken,
    /// The server has answered the request for the stream, or let the time pass.
    is_settled: Arc<AtomicBool>,
    _over: Guard,
}

/// Asks a stateless server for notifications of changes. Lists fetched from now on stay up to date, or are fetched again.
pub async fn begin(mount: &Arc<Mount>, instance: &Arc<Instance>) -> Option<StandingStream> {
    if instance.era() == Era::Initialize {
        return None;
    }
    let mut agreed = mount.connections.agreed.subscribe();
    let late = Arc::new(AtomicBool::new(false));
    mount.connections.subscribed.take_changed();
    let listening = listen(mount, instance, Arc::clone(&late), None);
    if tokio::time::timeout(AGREED, agreed.changed()).await.is_err() {
        late.store(true, Ordering::SeqCst);
        // The server may have agreed since the wait ended.
        if agreed.has_changed().is_ok_and(|has| has) {
            mount.connections.dirty(&Kind::ALL);
        }
    }
    Some(listening)
}

/// Asks the server for subscriptions added since. A second stream replaces the first, which ends only when the second stands, so that no
/// notification is lost. A stream not yet agreed to is waited for.
pub async fn resubscribe(mount: &Arc<Mount>, instance: &Arc<Instance>, listening: &mut Option<StandingStream>) {
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

fn listen(mount: &Arc<Mount>, instance: &Arc<Instance>, late: Arc<AtomicBool>, before: Option<StandingStream>) -> StandingStream {
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
    StandingStream { is_last, is_settled, _over: over.drop_guard() }
}

/// Streams, each following the last.
struct Streams {
    mount: Arc<Mount>,
    instance: Arc<Instance>,
    /// Lists already fetched may be older than the notifications to come.
    late: Arc<AtomicBool>,
    /// Stream that stands until this one is agreed to.
    before: Option<StandingStream>,
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
                self.mount.connections.subscribed.end_stream(stream);
            }
            if self.over.is_cancelled() || self.is_last.is_cancelled() {
                return;
            }
            let is_refused = matches!(outcome, Ok(Answer::Error(_)) | Err(UpstreamError::Refused { .. } | UpstreamError::SignIn(_)));
            if is_refused {
                self.mount.connections.subscribed.refuse(edition);
            }
            self.settle();
            // Waiters learn that no agreement comes.
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

    /// Waits until the next stream is due; `false` where none is.
    async fn again_after(&self, wait: Duration, has_agreed: bool) -> bool {
        let again = async {
            tokio::time::sleep(wait).await;
            if !has_agreed {
                // The lists of a server that tells nothing are polled, but not while the server itself declares them unchanged.
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

    /// Runs one stream to its end. Sets `agreed` to its number once the server agrees.
    async fn stream(&mut self, edition: Edition, uris: &[String], agreed: &mut Option<u64>) -> Result<Answer, UpstreamError> {
        let (mount, instance) = (Arc::clone(&self.mount), Arc::clone(&self.instance));
        let identity = mount.gate.node.shared();
        let (lane, caller) = (Lane::new(), own_caller(scope_of(&mount.gate.config.load(), "")));
        let back = Back::new(caller, Sink::Standing(Arc::clone(&lane)), Some(LogLevel::Debug), self.over.clone());
        // Some servers agree without naming the stream.
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
                    // The whole answer may have come at once.
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

    /// Reads the server's agreement, if the message is one. Other messages go to the mount.
    fn heard(&self, message: &Bytes) -> Option<AnnouncedChanges> {
        let Ok(Message::Notification(notification)) = Message::parse(message, Duplicates::RefuseTop) else { return None };
        if notification.method == "notifications/subscriptions/acknowledged" {
            return Some(AnnouncedChanges::read(&notification));
        }
        self.mount.notified(&Owner::Shared, &notification, &[]);
        None
    }

    /// Notes the server's agreement; returns the number of the stream, unless a successor takes over.
    fn agreed(&mut self, edition: Edition, honoured: &AnnouncedChanges) -> Option<u64> {
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

    /// Ends the stream before, and allows the next to be asked for.
    fn settle(&mut self) {
        self.before = None;
        if !self.is_settled.swap(true, Ordering::SeqCst) {
            self.mount.connections.wake.notify_one();
        }
    }
}

/// Polls lists without notifications once they may be old, never faster than [`FIRST_WAIT`].
async fn look(mount: &Mount) -> Infallible {
    let mut wait = FIRST_WAIT;
    loop {
        tokio::time::sleep(wait).await;
        mount.connections.freshness.over().await;
        mount.connections.dirty(&Kind::ALL);
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}
