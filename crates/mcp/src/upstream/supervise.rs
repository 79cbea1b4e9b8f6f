//! Keeps a mount alive: connects, fetches its lists, follows changes, and begins again after a break. Does not make connections.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use banyan_model::Era;
use bytes::Bytes;
use config::resolved::Transport;
use mcp_proto::catalog::{Kind, Page, list_params};
use mcp_proto::client::stateless_meta;
use mcp_proto::envelope::Answer;
use mcp_proto::era;
use mcp_proto::json::Members;
use mcp_proto::mcpax::{self, FAILED_SERVERS, SUBTREE_IDS};
use mcp_proto::splice::{self, Change};

use tokio::time::{Interval, MissedTickBehavior};

use crate::upstream::listening;
use crate::upstream::listening::StandingStream;
use crate::upstream::pages;
use crate::upstream::pages::Pages;
use crate::upstream::process;
use call::judge::pins;
use call::judge::pins::role::role_of;
use call::tree::catalog::Catalog;
use call::tree::mount::{Mount, Phase, State};
use call::tree::port::{Instance, OutgoingRequest, Owner, UpstreamError};

/// Waits between tries, doubled each time.
pub const FIRST_WAIT: Duration = Duration::from_millis(200);
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Life of a connection from which it counts as good.
pub const HELD: Duration = Duration::from_secs(10);
/// Most pages of a list.
const MOST_PAGES: usize = 10_000;

/// Runs until the mount is taken out of the tree.
pub async fn supervise(mount: Arc<Mount>) {
    let mut failures = 0u32;
    let mut last_ready: Option<Instant> = None;
    let mut grace = Grace::default();
    loop {
        let outcome = tokio::select! {
            outcome = grace.during(&mount, live(&mount, &mut last_ready)) => outcome,
            () = mount.gone.cancelled() => return,
        };
        let held = last_ready.is_some_and(|since| since.elapsed() > HELD && mount.state.load().phase == Phase::Ready);
        failures = if held { 0 } else { failures + 1 };
        if let Some(old) = mount.connections.shared.swap(None) {
            old.close().await;
        }
        // Gates that lead to each other may all have seen the loop; the first to return is taken while the others wait.
        let wait = if outcome.is_for_people() { backoff(u32::MAX, &mount) } else { backoff(failures, &mount) };
        fall(&mount, &outcome, wait, &mut grace);
        tokio::select! {
            () = grace.during(&mount, tokio::time::sleep(wait)) => {}
            () = mount.connections.again.notified() => {}
            () = mount.gone.cancelled() => return,
        }
        mount.restarts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        mount.metrics.restarted();
    }
}

/// End of the time for which the tools of an absent server stay listed (AX-61); `None`: they are not listed, or it is there.
#[derive(Default)]
struct Grace(Option<tokio::time::Instant>);

impl Grace {
    /// Begins with the loss of a server.
    fn begin(&mut self, length: Duration) {
        self.0 = if length.is_zero() { None } else { tokio::time::Instant::now().checked_add(length) };
    }

    /// Waits for `work`. Takes the tools out of the lists when the grace ends meanwhile and the server is still away.
    async fn during<T>(&mut self, mount: &Mount, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        if let Some(end) = self.0 {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep_until(end) => {}
            }
            self.0 = None;
            let state = mount.state.load_full();
            if state.phase == Phase::Degraded {
                mount.enter(State { phase: Phase::Failed, ..State::clone(&state) });
                unlist(mount);
            }
        }
        work.await
    }
}

/// Takes everything of a server out of the lists.
fn unlist(mount: &Mount) {
    let kinds: Vec<Kind> = mount.catalog.load().kinds().into_iter().collect();
    if !kinds.is_empty() {
        mount.catalog.store(Arc::default());
        mount.gate.publish(&mount.config.name, &kinds);
    }
}

/// Runs a connection to its end; returns the reason.
async fn live(mount: &Arc<Mount>, last_ready: &mut Option<Instant>) -> UpstreamError {
    let instance = match mount.open(Owner::Shared, mount.gate.node.shared()).await {
        Ok(instance) => instance,
        Err(e) => return e,
    };
    if instance.gate_id().as_deref() == Some(&*mount.gate.node.id) {
        instance.close().await;
        return UpstreamError::Loop;
    }
    mount.role.store(Arc::new(role_of(mount, &instance.negotiated.capabilities).await));
    mount.connections.freshness.unknown();
    mount.connections.subscribed.forget();
    let mut listening = listening::begin(mount, &instance).await;
    mount.connections.take_dirty();
    let catalog = match fetch(mount, &instance, &Catalog::default(), &Kind::ALL).await {
        Ok(catalog) => catalog,
        Err(e) => {
            instance.close().await;
            return e;
        }
    };
    mount.known.store(Some(Arc::new(instance.negotiated.clone())));
    mount.connections.shared.store(Some(Arc::clone(&instance)));
    mount.metrics.set_tools(catalog.tools.len());
    mount.catalog.store(Arc::new(catalog));
    *last_ready = Some(Instant::now());
    // Entered before ready, since waiters look in the tree next.
    mount.gate.publish(&mount.config.name, &Kind::ALL);
    let was = mount.state.load().phase;
    mount.enter(State::new(Phase::Ready, None, None));
    if was == Phase::Degraded {
        // The tree was made before the mount was ready, and shows its tools as unready.
        mount.gate.reannotate(mount);
    }
    subscribe_again(mount, &instance).await;
    follow(mount, &instance, &mut listening).await
}

/// Times at which the lists of a server that tells of no changes are fetched again.
pub fn looks_again(config: &config::resolved::Mount) -> Interval {
    let mut again = tokio::time::interval(config.list_ttl);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    again
}

/// Lists of which a server of the initialize era tells no changes (AX-03). Stateless servers say how long a list is good.
pub fn untold(instance: &Instance) -> Vec<Kind> {
    if instance.era() == Era::Stateless {
        return Vec::new();
    }
    let said = Members::again(&instance.negotiated.capabilities);
    let is_told = |kind: &Kind| said.object(kind.capability()).and_then(|own| own.get("listChanged")) == Some(b"true");
    Kind::ALL.into_iter().filter(|kind| said.object(kind.capability()).is_some() && !is_told(kind)).collect()
}

/// Follows changes of the lists until the connection is gone.
async fn follow(mount: &Arc<Mount>, instance: &Arc<Instance>, listening: &mut Option<StandingStream>) -> UpstreamError {
    let (untold, mut again) = (untold(instance), looks_again(&mount.config));
    // The first is due at once, when the lists have just come.
    again.reset();
    loop {
        let is_look = tokio::select! {
            () = instance.lost() => return UpstreamError::Lost(mount.connections.last_words()),
            () = mount.connections.wake.notified() => false,
            _ = again.tick(), if !untold.is_empty() => {
                mount.connections.lock().dirty.extend(&untold);
                true
            }
        };
        listening::resubscribe(mount, instance, listening).await;
        if let Some(why) = mount.connections.take_reconnect() {
            return UpstreamError::Lost(why.into());
        }
        let kinds: Vec<Kind> = mount.connections.take_dirty().into_iter().collect();
        if kinds.is_empty() {
            continue;
        }
        let old = mount.catalog.load_full();
        match fetch(mount, instance, &old, &kinds).await {
            Ok(new) if new != *old => {
                let changed: Vec<Kind> = new.changed_since(&old).into_iter().collect();
                mount.catalog.store(Arc::new(new));
                mount.gate.publish(&mount.config.name, &changed);
            }
            Ok(_) => {}
            // A server that answers one request at a time is busy with a call, and nobody but the clock has asked for its lists.
            Err(UpstreamError::Silent(_)) if is_look => mount.connections.lock().dirty.extend(&kinds),
            Err(e) => return e,
        }
    }
}

/// Fetches `kinds` anew; the other lists are those of `old`.
pub async fn fetch(mount: &Mount, instance: &Instance, old: &Catalog, kinds: &[Kind]) -> Result<Catalog, UpstreamError> {
    let mut catalog = old.clone();
    catalog.notes = mount.role.load().note(mount).into_iter().collect();
    let mut fresh = Vec::with_capacity(kinds.len());
    let mut good_for = Duration::MAX;
    for kind in kinds {
        if !era::declares(&instance.negotiated.capabilities, kind.capability()) {
            catalog.set(*kind, Vec::new(), mount, instance);
            fresh.push(*kind);
            continue;
        }
        match tokio::time::timeout(mount.config.start_timeout, list(mount, instance, *kind)).await {
            Ok(Ok(listed)) => {
                good_for = good_for.min(listed.good_for);
                catalog.notes.extend(listed.notes);
                catalog.set(*kind, listed.entries, mount, instance);
                if *kind == Kind::Tools {
                    catalog.subtree = listed.subtree;
                    catalog.failed_below = listed.failed_below;
                }
                fresh.push(*kind);
            }
            Ok(Err(Listing::Refused(why))) => {
                good_for = Duration::ZERO;
                catalog.notes.push(format!("{} failed: {why}", kind.method()));
            }
            Ok(Err(Listing::Broken(e))) => return Err(e),
            Err(_) => return Err(UpstreamError::Silent(mount.config.start_timeout)),
        }
    }
    mount.connections.freshness.fetched(good_for, fresh.len() == Kind::ALL.len());
    let (said, note) = instance.negotiated.instructions.as_deref().map(pages::instructions).unzip();
    catalog.notes.extend(note.flatten());
    // Kept as sent, so that hidden characters in it are found.
    pins::hold(mount, (&mut catalog, old), &fresh, said).await;
    pins::clean(&mut catalog, &fresh);
    // Every change of a subtree comes up as a change of its tools, so a loop is found wherever it was closed.
    if catalog.subtree.iter().any(|id| **id == *mount.gate.node.id) { Err(UpstreamError::Loop) } else { Ok(catalog) }
}

/// A whole list.
struct FetchedList {
    entries: Vec<mcp_proto::catalog::Entry>,
    notes: Vec<String>,
    /// Ids that a gate claims for itself and the gates below it.
    subtree: Vec<String>,
    /// Paths of failed servers below a gate.
    failed_below: Vec<String>,
    /// Life of the pages, if the server declares one.
    good_for: Duration,
}

enum Listing {
    Broken(UpstreamError),
    Refused(String),
}

async fn list(mount: &Mount, instance: &Instance, kind: Kind) -> Result<FetchedList, Listing> {
    let most = mount.gate.limits().tools_per_mount;
    let mut pages = Pages::new(kind, most);
    let (mut subtree, mut failed_below) = (Vec::new(), Vec::new());
    let mut good_for = Duration::MAX;
    let mut cursors = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for number in 1.. {
        let mut params = list_params(cursor.as_deref());
        if instance.era() == Era::Stateless {
            let meta = stateless_meta(&mount.gate.node.shared());
            params = Bytes::from(splice::edit(&params, &[("_meta", Change::Set(meta.as_bytes()))]));
        }
        let answer = instance.request(&OutgoingRequest::plain(kind.method(), params), None).await.map_err(Listing::Broken)?;
        let result = match answer {
            Answer::Result(result) => result,
            Answer::Error(error) => return Err(Listing::Refused(String::from_utf8_lossy(&error).chars().take(300).collect())),
        };
        // A claim to be a gate is believed as to loops, since it can only keep its maker out.
        if cursor.is_none() && instance.gate_id().is_some() {
            let meta = result.meta();
            let told = |member| meta.as_ref().and_then(|meta| meta.get(member));
            subtree = told(SUBTREE_IDS).map(mcpax::read_ids).unwrap_or_default();
            failed_below = told(FAILED_SERVERS).map(mcpax::read_paths).unwrap_or_default();
        }
        let page = Page::parse(kind, &result).ok_or_else(|| Listing::Refused("its result is no list".into()))?;
        good_for = good_for.min(Duration::from_millis(page.ttl_ms.unwrap_or(0)));
        let next = page.next.clone();
        if !pages.add(page, result.len()) {
            break;
        }
        match next {
            Some(_) if number >= MOST_PAGES => {
                pages.goes_on(number);
                break;
            }
            Some(next) if cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) => {
                pages.circles();
                break;
            }
            None => break,
        }
    }
    let (entries, notes) = pages.finish();
    Ok(FetchedList { entries, notes, subtree, failed_below, good_for })
}

/// Subscribes anew at a server of the initialize era, for a new connection.
pub async fn subscribe_again(mount: &Arc<Mount>, instance: &Arc<Instance>) {
    if instance.era() == Era::Stateless {
        return;
    }
    for uri in mount.connections.subscribed.all().1 {
        if let Err(e) = mount.subscribe_at_server(instance, &uri).await {
            tracing::warn!(mount = %mount.config.name, uri, error = %e, "a subscription could not be made again");
        }
    }
}

fn fall(mount: &Mount, why: &UpstreamError, wait: Duration, grace: &mut Grace) {
    let next = SystemTime::now().checked_add(wait);
    if why.is_for_people() {
        grace.0 = None;
    } else if mount.state.load().phase == Phase::Ready {
        grace.begin(mount.config.grace);
    }
    let phase = if grace.0.is_some() { Phase::Degraded } else { Phase::Failed };
    let state = State { words: written_last(mount), ..State::new(phase, Some(why.to_string()), next) };
    let text = state.explained().unwrap_or_default();
    let (before, was) = (mount.state.load().explained(), mount.state.load().phase);
    // A try that fails like the one before tells nothing new, whatever its process or its log is numbered.
    let is_news = before.is_none_or(|before| without_numbers(&before) != without_numbers(&text));
    if is_news {
        tracing::warn!(mount = %mount.config.name, error = %text, retry_in = ?wait, "the server is not available");
    } else {
        tracing::debug!(mount = %mount.config.name, error = %text, retry_in = ?wait, "the server is still not available");
    }
    mount.enter(state);
    if phase == Phase::Degraded && was != phase {
        mount.gate.reannotate(mount);
    }
    if phase == Phase::Failed {
        unlist(mount);
    }
}

fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// The telling line of the process on its standard error, if any, and the remedy for a variable that did not reach the process.
fn written_last(mount: &Mount) -> Option<String> {
    let stderr = &mount.connections.stderr;
    let telling = stderr.telling()?;
    let withheld = match &mount.config.transport {
        Transport::Stdio(process) => process::withheld(process, &stderr.lines_of_run()),
        Transport::Family(_) | Transport::Http(_) | Transport::Sse(_) => None,
    };
    Some(withheld.into_iter().fold(telling, |telling, remedy| format!("{telling}; {remedy}")))
}

/// Doubles the wait, with a spread by name, so that many mounts of a broken host do not return together.
fn backoff(failures: u32, mount: &Mount) -> Duration {
    if failures == 0 {
        return FIRST_WAIT;
    }
    let base = FIRST_WAIT.saturating_mul(1 << failures.min(9)).min(LONGEST_WAIT);
    let spread = mount.config.name.as_str().bytes().fold(0u32, |a, b| a.wrapping_mul(31).wrapping_add(u32::from(b))) % 25;
    base + base * spread / 100
}
