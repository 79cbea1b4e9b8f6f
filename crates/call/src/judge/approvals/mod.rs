//! Calls that wait for approval: a task owns the deciding machine ([`Desk`]), keeps changes before anybody hears of them, and wakes
//! waiters. Everybody else speaks to it over a bounded channel.
//!
//! Does not define agreement (`policy::approval` does) or choose the calls that wait (`way/gate.rs` does).

pub mod below;
pub mod clerk;
pub mod driver;
pub mod enrolment;
pub mod recorded;
mod refused;
pub mod rows;
pub mod shown;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use banyan_model::{Machine, Now};
use bytes::Bytes;
use config::resolved::Config;
use policy::approval::{Agreement, Approval, Call, Cause, Desk, End, Foreknown, Fresh, Held, News, Proof, Refusal, Standing};
use runtime::random;
use store::Stores;
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

use crate::judge::gate::Gate;
use crate::tree::snapshot::Branch;

pub use crate::judge::approvals::below::{Below, HeldBelow};
pub use crate::judge::approvals::enrolment::{Passkeys, relying_party, request};
pub use crate::judge::approvals::shown::{ApprovalShown, ApprovalsShown, BelowShown, GrantShown, OperatorShown, Previous};
pub use crate::judge::approvals::shown::{link, name_of};

/// Most jobs that wait for the task.
const DEPTH: usize = 1024;
/// Most ids remembered here after the desk has forgotten them.
const FORGOTTEN: usize = 1000;
/// Most lines that wait for a reader of events.
const EVENTS: usize = 256;

/// Handle of the approval task.
pub struct Approvals {
    jobs: mpsc::Sender<Job>,
    /// Jobs for the task, until it begins.
    unread: Mutex<Option<mpsc::Receiver<Job>>>,
    /// Events, a line of JSON each.
    events: broadcast::Sender<Bytes>,
    /// Ids of all approvals at the desk; `None` until the kept ones are read.
    known: Mutex<Option<HashSet<String>>>,
    /// Calls held by gates below.
    pub below: Below,
    /// Key that seals the states of returning calls, once used; the same over restarts.
    seal: OnceLock<[u8; 32]>,
    /// Address of the listener, once known.
    pub listens: OnceLock<String>,
    stores: Arc<dyn Stores>,
}

/// People and programs that hear of waiting calls.
pub trait Audience: Send {
    /// Tells of a transition.
    fn tell(&mut self, news: &News, approval: &Approval);
}

/// State of the approval task.
pub struct Room {
    pub desk: Desk,
    pub passkeys: Passkeys,
    /// Waiters for approvals, by id.
    waiting: std::collections::HashMap<String, Arc<Notify>>,
}

/// Something for the task to do.
pub enum Job {
    /// A question, whose effects count only if all are kept.
    Ask(Ask),
    /// A fact, which holds whatever happens to the disk. The teller hears once it is kept.
    Fact(Fact, oneshot::Sender<()>),
}

/// Returns the delivery of the answer, to run once all changes are kept, and to drop if they are not.
type Ask = Box<dyn FnOnce(&mut Room, Now) -> Deliver + Send>;
type Deliver = Box<dyn FnOnce() + Send>;
/// A fact about calls or the configuration; applied again if it could not be kept.
type Fact = Arc<dyn Fn(&mut Desk, Now) + Send + Sync>;

impl Job {
    fn fact(&self) -> Option<Fact> {
        match self {
            Self::Ask(_) => None,
            Self::Fact(fact, _) => Some(Arc::clone(fact)),
        }
    }

    fn done(self, room: &mut Room, now: Now) -> Deliver {
        match self {
            Self::Ask(ask) => ask(room, now),
            Self::Fact(fact, told) => {
                fact(&mut room.desk, now);
                // The teller may have gone.
                Box::new(move || _ = told.send(()))
            }
        }
    }
}

/// A decision could not be written, and does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this could not be written down, so that it does not count: see that the state directory can be written, and ask again")]
pub struct NotKept;

/// A call that waits.
pub struct WaitingCall {
    pub approval: Approval,
    /// Rings when its standing changes.
    pub rings: Arc<Notify>,
}

impl Approvals {
    /// Makes the handle of a task that has not begun.
    pub fn new(stores: &Arc<dyn Stores>) -> Self {
        let (jobs, unread) = mpsc::channel(DEPTH);
        let (events, _) = broadcast::channel(EVENTS);
        Self {
            jobs,
            unread: Mutex::new(Some(unread)),
            events,
            known: Mutex::new(None),
            below: Below::default(),
            seal: OnceLock::new(),
            listens: OnceLock::new(),
            stores: Arc::clone(stores),
        }
    }

    /// Begins the task, which ends with the gate.
    pub fn begin(gate: &Arc<Gate>, audience: Box<dyn Audience>) {
        let unread = gate.rules.approvals.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(unread) = unread {
            tokio::spawn(driver::run(Arc::clone(gate), unread, audience));
        }
    }

    /// Has the task do something; returns its answer, once all its changes are kept.
    pub async fn ask<T: Send + 'static>(&self, ask: impl FnOnce(&mut Room, Now) -> T + Send + 'static) -> Result<T, NotKept> {
        let (reply, answer) = oneshot::channel();
        let ask: Ask = Box::new(move |room, now| {
            let answer = ask(room, now);
            // The asker may have gone.
            Box::new(move || drop(reply.send(answer)))
        });
        self.jobs.send(Job::Ask(ask)).await.map_err(|_| NotKept)?;
        answer.await.map_err(|_| NotKept)
    }

    /// Has the task note a fact; `true` if it is kept by now.
    async fn tell(&self, fact: impl Fn(&mut Desk, Now) + Send + Sync + 'static) -> bool {
        let (told, kept) = oneshot::channel();
        self.jobs.send(Job::Fact(Arc::new(fact), told)).await.is_ok() && kept.await.is_ok()
    }

    /// Asks for approval of a call. A waiting call comes with a bell for changes. `room_name` is its room of origin, if any.
    pub async fn hold(
        &self,
        call: Call,
        why: (Vec<Cause>, String),
        attends: bool,
        room_name: Option<Arc<str>>,
    ) -> Result<(Held, Option<WaitingCall>), NotKept> {
        let fresh = Fresh { id: random::token(), nonce: random::token() };
        self.ask(move |room, now| {
            let held = room.desk.hold(now, call, why, fresh, attends);
            let id = match &held {
                Held::Waits(id) | Held::Over(id) | Held::Free(id) => Some(id.clone()),
                Held::Granted(_) | Held::NoApprover { .. } | Held::Full(_) | Held::TooOften(_) => None,
            };
            if let (Held::Waits(id), Some(name)) = (&held, &room_name) {
                room.desk.name_room(id, name);
            }
            let waiting = id.and_then(|id| {
                let approval = room.desk.approval(&id)?.clone();
                let rings = if approval.standing.is_over() { Arc::default() } else { Arc::clone(room.waiting.entry(id).or_default()) };
                Some(WaitingCall { approval, rings })
            });
            (held, waiting)
        })
        .await
    }

    /// Says if people would be asked about a call.
    pub async fn foreknown(&self, call: Call) -> Result<Foreknown, NotKept> {
        self.ask(move |room, now| room.desk.foreknown(now, &call)).await
    }

    /// Reads an approval.
    pub async fn look(&self, id: &str) -> Result<Option<Approval>, NotKept> {
        let id = id.to_owned();
        self.ask(move |room, now| {
            room.desk.handle_timeout(now);
            room.desk.approval(&id).cloned()
        })
        .await
    }

    /// Notes a call held by a gate behind `branch`; returns its id and notice. `None` if the notice names no call of that gate, so that
    /// nobody is sent there.
    pub async fn note_below(&self, gate: &Gate, branch: &Branch, data: &Bytes) -> Option<(String, HeldBelow)> {
        let (id, held) = HeldBelow::read(&gate.mounts.tree.load(), branch, &gate.node.id, data, now())?;
        let own = self.look(&id).await;
        (own.is_ok_and(|own| own.is_none()) && self.below.note(&id, held.clone(), now())).then_some((id, held))
    }

    /// Lets the call out now, if it is the one that was agreed to.
    pub async fn claim(&self, id: &str, call: Call) -> Result<Result<(), Refusal>, NotKept> {
        let id = id.to_owned();
        self.ask(move |room, now| room.desk.claim(now, &id, &call).map(drop)).await
    }

    /// Lets out a request that returns with the input its server asked for, once.
    pub async fn go_on(&self, call: Call, state: [u8; 32]) -> Result<Option<Agreement>, NotKept> {
        self.ask(move |room, now| room.desk.go_on(now, &call, state)).await
    }

    /// Notes that a call under a grant was asked for input, with the given state.
    pub async fn asked(&self, grant: &str, call: Call, state: [u8; 32]) {
        let grant = grant.to_owned();
        self.tell(move |desk, _| desk.asked(&grant, &call, state)).await;
    }

    /// Notes the end of a call that went out.
    pub async fn finish(&self, id: &str, end: End) {
        let own = id.to_owned();
        if !self.tell(move |desk, now| desk.finish(now, &own, end)).await {
            tracing::error!(
                id,
                "how a call ended that somebody agreed to can't be written down: if the gate ends before it can, it counts as unknown"
            );
        }
    }

    /// Gives back a grant's use for a call that never left.
    pub async fn give_back(&self, grant: &str) {
        let id = grant.to_owned();
        // If the return can't be kept, the grant has one use less.
        self.tell(move |desk, _| desk.give_back(&id)).await;
    }

    /// Notes that the caller stops waiting: it `comes_back`, or withdraws the call.
    pub async fn leave(&self, id: &str, comes_back: bool) {
        let id = id.to_owned();
        self.tell(move |desk, now| if comes_back { desk.detach(&id) } else { desk.withdraw(now, &id) }).await;
    }

    /// Notes that the caller stops waiting after a failed write, and comes back later.
    pub fn let_go(&self, id: &str) {
        let id = id.to_owned();
        let (told, _) = oneshot::channel();
        // If the task has too much to do, the call ends when its time is over.
        _ = self.jobs.try_send(Job::Fact(Arc::new(move |desk: &mut Desk, _| desk.detach(&id)), told));
    }

    /// The call is taken back; `why`, for people.
    pub async fn take_back(&self, id: &str, why: Option<&str>) {
        let (id, why) = (id.to_owned(), why.map(str::to_owned));
        self.tell(move |desk, now| desk.take_back(now, &id, why.as_deref())).await;
    }

    /// Notes that the caller has heard the outcome.
    pub async fn hear(&self, id: &str) {
        let id = id.to_owned();
        // A note that is not kept means that the outcome is told again.
        _ = self.ask(move |room, _| room.desk.hear(&id)).await;
    }

    /// People who gave a grant.
    pub async fn gave(&self, id: &str) -> Vec<String> {
        let id = id.to_owned();
        let given = self.ask(move |room, _| room.desk.grants().find(|grant| grant.id == id).map(|grant| grant.given.clone())).await;
        given.ok().flatten().unwrap_or_default().into_iter().map(|vote| vote.person).collect()
    }

    /// Answers from memory if the desk may know an approval of this id, so that made-up ids cost no turn there.
    pub fn may_know(&self, id: &str) -> bool {
        self.known().as_ref().is_none_or(|known| known.contains(id))
    }

    /// Takes over the ids known at the desk before anybody hears of them: all at first, and then the `new` one.
    fn follow(&self, desk: &Desk, new: Option<&str>) {
        let mut known = self.known();
        let all = || desk.approvals().map(|approval| approval.id().to_owned()).collect();
        let ids = known.get_or_insert_with(all);
        ids.extend(new.map(str::to_owned));
        // Ids forgotten at the desk are dropped now and then.
        if ids.len() > 2 * desk.approvals().size_hint().0 + FORGOTTEN {
            *ids = all();
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<HashSet<String>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a person's agreement; returns the standing, and the numbers of people who have agreed and who have to.
    pub async fn confirm(&self, gate: &Gate, id: &str, proof: Proof) -> Result<Result<(Standing, usize, u8), Refusal>, NotKept> {
        if !self.may_know(id) {
            return Ok(Err(Refusal::Unknown));
        }
        let (id, party) = (id.to_owned(), relying_party(gate));
        self.ask(move |room, now| {
            room.desk.set_relying_party(party);
            let standing = room.desk.confirm(now, &id, &proof)?;
            let approval = room.desk.approval(&id).ok_or(Refusal::Unknown)?;
            Ok((standing, approval.votes.len(), approval.challenge.required))
        })
        .await
    }

    /// Takes a changed configuration.
    pub fn apply(&self, gate: &Gate, config: &Config) {
        let (settings, services) = (driver::settings(&gate.node.id, config), driver::trusted(config));
        let version = policy_version(config);
        let fact = move |desk: &mut Desk, now: Now| {
            desk.set(settings.clone());
            desk.trust(services.clone());
            desk.set_policy(now, &version);
        };
        let (told, _) = oneshot::channel();
        if self.jobs.try_send(Job::Fact(Arc::new(fact), told)).is_err() {
            tracing::error!("approvals have too much to do to take the changed configuration: reload it again");
        }
    }

    /// Events from now on, a line of JSON each.
    pub fn events(&self) -> broadcast::Receiver<Bytes> {
        self.events.subscribe()
    }

    /// Seal of `id` and `principal`, which only this gate can make.
    pub fn sealed(&self, id: &str, principal: &str) -> String {
        let seal = self.seal.get_or_init(|| {
            self.stores.sealing().unwrap_or_else(|error| {
                tracing::warn!(%error, "callers that wait for somebody are not known again after a restart by what they hold, only by their calls");
                random::seed()
            })
        });
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, seal);
        let tag = aws_lc_rs::hmac::sign(&key, format!("{id}\n{principal}").as_bytes());
        policy::approval::hex(&tag.as_ref()[..16])
    }
}

/// Version of this gate's demands for approval; approvals asked for under another version are void.
pub fn policy_version(config: &Config) -> String {
    use sha2::{Digest, Sha256};
    let gate = config.gate.as_deref().map(|gate| (gate.mode, &gate.mounts, gate.approvals, gate.preview, &gate.previews));
    let rules = config.policy.as_ref().map(|rules| rules.digest);
    policy::approval::hex(&Sha256::digest(format!("{gate:?} {rules:?}"))[..8])
}

/// Unix time, in seconds.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
