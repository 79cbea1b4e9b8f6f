//! The machine of approvals: waiting calls, votes, and the single use of an agreement. Proofs are verified elsewhere. Nothing is kept or
//! sent here: the driver learns of changes to be kept ([`Desk::changes`]) and of news (its output).
//!
//! Expiries are in Unix seconds, for they outlive the process. A clock that is set back stands still here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use banyan_model::{Machine, Now};

use super::anchor::{Anchors, Verified, is_same};
use super::challenge::{Call, Challenge};
use super::confirm::Refusal;
use super::grant::Grant;
use super::mode::Cause;
use super::proof::Proof;
use super::rounds::Round;
use super::standing::{Approval, End, Standing};
use super::withdrawn::Withdrawals;

/// Greatest number of waiting calls, in all and of one caller: more would be read by nobody.
const MOST_OPEN: usize = 1000;
const MOST_OF_CALLER: usize = 100;
/// Number of finished approvals to remember.
const MOST_OVER: usize = 1000;
/// Seconds during which a returning caller hears the outcome.
const TOLD_WITHIN: u64 = 15 * 60;

/// Settings of all approvals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The gate's id.
    pub gate: String,
    /// Seconds for somebody to agree.
    pub patience: u64,
    /// Number of different people who have to agree.
    pub required: u8,
    /// Seconds before expiry at which a waiting approval is announced again.
    pub warning: u64,
}

/// Random values for one approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    pub id: String,
    pub nonce: String,
}

/// The state of a call that needs agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Let through by a grant.
    Granted(String),
    /// Agreed to; may be claimed under this id.
    Free(String),
    /// Waits under this id.
    Waits(String),
    /// Ended under this id; its caller learns so now.
    Over(String),
    /// Fewer people can agree than have to.
    NoApprover {
        /// People who could agree.
        reachable: usize,
        /// People who have to agree.
        required: u8,
    },
    /// Too many wait already.
    Full(usize),
    /// The caller withdrew too many calls and may ask again after so many seconds.
    TooOften(u64),
}

/// Permission for a call to go out once. Only [`Desk::claim`] makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct Claimed(());

/// A change to be kept before anybody hears of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// An approval, by id.
    Approval(String),
    /// A grant, by id; a revoked grant stays.
    Grant(String),
    /// An operator's key, by id; removed where no such key exists any more.
    Operator(String),
}

/// A change in the life of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Requested,
    /// Somebody agreed, and more have to.
    Approved,
    /// Still waiting, and close to expiry.
    Expiring,
    /// A new standing.
    Moved(Standing),
}

/// An event of one approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    pub id: String,
    pub event: Event,
}

/// All approvals of one gate.
#[derive(Debug, Default)]
pub struct Desk {
    pub(super) settings: Settings,
    pub(super) anchors: Anchors,
    pub(super) all: BTreeMap<String, Approval>,
    /// The approvals of one call, the oldest first.
    pub(super) of_call: BTreeMap<[u8; 32], Vec<String>>,
    /// Finished approvals, the oldest first.
    pub(super) over: VecDeque<String>,
    /// When something is due.
    pub(super) due: BTreeSet<(u64, String)>,
    pub(super) grants: BTreeMap<String, Grant>,
    /// Calls that went out by a grant and were asked for input, the oldest first.
    pub(super) rounds: VecDeque<Round>,
    withdrawn: Withdrawals,
    pub(super) clock: u64,
    /// The time of the last input.
    seen: Option<Now>,
    pub(super) changes: BTreeSet<Change>,
    pub(super) news: VecDeque<News>,
}

impl Desk {
    /// Makes an empty desk.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Takes a call that needs agreement. `attends`: the caller waits from now on.
    pub fn hold(&mut self, now: Now, call: Call, why: (Vec<Cause>, String), fresh: Fresh, attends: bool) -> Held {
        self.handle_timeout(now);
        if let Some(held) = self.known(&call, attends) {
            return held;
        }
        if let Some(id) = self.granting(&call).map(|grant| grant.id.clone()) {
            self.spend(&id);
            return Held::Granted(id);
        }
        let (reachable, required) = (self.anchors.reachable(&call.caller), self.settings.required);
        if reachable < usize::from(required) {
            return Held::NoApprover { reachable, required };
        }
        let open = || self.all.values().filter(|approval| !approval.standing.is_over());
        if open().count() >= MOST_OPEN || open().filter(|a| a.challenge.call.caller == call.caller).count() >= MOST_OF_CALLER {
            return Held::Full(MOST_OF_CALLER);
        }
        if let Some(wait) = self.withdrawn.wait(&call.caller, self.clock) {
            return Held::TooOften(wait);
        }
        let Fresh { id, nonce } = fresh;
        let expires = self.clock + self.settings.patience;
        let challenge = Challenge { id: id.clone(), gate: self.settings.gate.clone(), call, required, nonce, expires };
        let (causes, annotation) = why;
        self.enter(Approval {
            challenge,
            causes,
            annotation,
            standing: Standing::Pending,
            requested: self.clock,
            since: self.clock,
            votes: Vec::new(),
            reason: None,
            room: None,
            awaits: None,
            attended: attends,
            told: false,
            escalated: false,
        });
        self.tell(&id, Event::Requested);
        Held::Waits(id)
    }

    /// Takes the proof of somebody's agreement.
    ///
    /// # Errors
    /// The reason for the proof not to count.
    pub fn confirm(&mut self, now: Now, id: &str, proof: &Proof) -> Result<Standing, Refusal> {
        self.handle_timeout(now);
        let statement = self.pending(id)?.challenge.statement();
        let verified = self.anchors.verify(proof, &statement, self.clock)?;
        self.vote(id, verified)
    }

    /// Takes the verified agreement of somebody.
    pub(super) fn vote(&mut self, id: &str, verified: Verified) -> Result<Standing, Refusal> {
        let (clock, approval) = (self.clock, self.pending(id)?);
        let required = approval.challenge.required;
        if verified.is(&approval.challenge.call.caller) {
            return Err(Refusal::SelfApproval(verified.person));
        }
        if approval.votes.iter().any(|vote| is_same(&vote.person, &verified.person)) {
            return Err(Refusal::SamePerson(verified.person, required));
        }
        let counted = verified.counted.clone();
        approval.votes.push(verified.vote(clock));
        let is_enough = approval.votes.len() >= usize::from(required);
        self.counted(counted);
        if is_enough {
            self.turn(id, Standing::Released);
            return Ok(Standing::Released);
        }
        self.tell(id, Event::Approved);
        Ok(Standing::Pending)
    }

    /// Takes somebody's denial.
    ///
    /// # Errors
    /// When the denial comes too late.
    pub fn deny(&mut self, now: Now, id: &str, reason: &str) -> Result<(), Refusal> {
        self.handle_timeout(now);
        let approval = self.all.get_mut(id).ok_or(Refusal::Unknown)?;
        if !approval.standing.is_held() {
            return Err(Refusal::Over(approval.standing));
        }
        approval.reason = Some(reason.to_owned());
        self.turn(id, Standing::Denied);
        Ok(())
    }

    /// Withdraws a call for its caller. A call beyond withdrawal stays as it is.
    pub fn withdraw(&mut self, now: Now, id: &str) {
        self.take_back(now, id, None);
    }

    /// The same, and why.
    pub fn take_back(&mut self, now: Now, id: &str, why: Option<&str>) {
        self.handle_timeout(now);
        let Some(approval) = self.all.get_mut(id).filter(|approval| approval.standing.is_held()) else { return };
        approval.reason = why.map(str::to_owned).or(approval.reason.take());
        self.withdrawn.note(&approval.challenge.call.caller, self.clock);
        self.turn(id, Standing::Withdrawn);
    }

    /// Notes the room of the call.
    pub fn name_room(&mut self, id: &str, room: &str) {
        if let Some(approval) = self.all.get_mut(id) {
            approval.room = Some(room.to_owned());
            self.changes.insert(Change::Approval(id.to_owned()));
        }
    }

    /// The caller does not wait any more, and may come back.
    pub fn detach(&mut self, id: &str) {
        if let Some(approval) = self.all.get_mut(id).filter(|approval| approval.attended) {
            approval.attended = false;
            self.changes.insert(Change::Approval(id.to_owned()));
        }
    }

    /// Notes that the caller has heard the outcome.
    pub fn hear(&mut self, id: &str) {
        if let Some(approval) = self.all.get_mut(id).filter(|approval| !approval.told) {
            approval.told = true;
            self.changes.insert(Change::Approval(id.to_owned()));
        }
    }

    /// Lets the call go out if it is the call agreed to.
    ///
    /// # Errors
    /// The reason for the call to stay.
    pub fn claim(&mut self, now: Now, id: &str, call: &Call) -> Result<Claimed, Refusal> {
        self.handle_timeout(now);
        let approval = self.all.get_mut(id).ok_or(Refusal::Unknown)?;
        if !approval.is_free() {
            return Err(Refusal::Over(approval.standing));
        }
        if let Some(what) = approval.challenge.call.difference(call) {
            approval.reason = Some(format!("the {what} changed"));
            self.turn(id, Standing::Void);
            return Err(Refusal::Changed(what));
        }
        if !approval.challenge.call.is_foreseen_as(call) {
            approval.reason = Some("the preview changed".into());
            // Its caller hears of it now, and the same call is put before people anew.
            approval.told = true;
            self.turn(id, Standing::Void);
            return Err(Refusal::PreviewChanged);
        }
        approval.attended = true;
        self.turn(id, Standing::Dispatched);
        Ok(Claimed(()))
    }

    /// Takes the end of a call that went out.
    pub fn finish(&mut self, now: Now, id: &str, end: End) {
        self.advance(now);
        let Some(approval) = self.all.get_mut(id).filter(|approval| approval.standing == Standing::Dispatched) else { return };
        approval.attended = false;
        let goes_on = approval.awaits.is_some();
        approval.awaits = match end {
            End::Asked(state) => Some(state),
            // The server waits for what it asked for as before.
            End::NotSent => approval.awaits,
            End::Answered | End::HeldBelow | End::Unknown => None,
        };
        // Its time may have come while it was on its way. One that has not gone out expires as any other does.
        self.due.insert((approval.challenge.expires, id.to_owned()));
        self.turn(
            id,
            match end {
                End::Answered => Standing::Done,
                End::Asked(_) | End::HeldBelow => Standing::Below,
                End::NotSent if goes_on => Standing::Below,
                End::NotSent => Standing::Released,
                End::Unknown => Standing::OutcomeUnknown,
            },
        );
        // While it was on its way a key may have been taken away.
        self.recount();
        self.handle_timeout(now);
    }

    /// Another policy holds from now on: what was asked for under another version is void.
    pub fn set_policy(&mut self, now: Now, version: &str) {
        self.handle_timeout(now);
        let other = self.all.values_mut().filter(|a| a.standing.is_held()).filter(|a| a.challenge.call.policy != version);
        let ids: Vec<String> = other
            .map(|approval| {
                approval.reason = Some("the policy changed".into());
                approval.id().to_owned()
            })
            .collect();
        ids.iter().for_each(|id| self.turn(id, Standing::Void));
    }

    /// Lists changes to be kept before anybody hears of them.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter()
    }

    /// Notes that all changes are kept.
    pub fn kept(&mut self) {
        self.changes.clear();
    }

    /// Changes the settings for later approvals.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Finds the approval that answers for a call made once more.
    pub(super) fn answering(&self, call: &Call) -> Option<&Approval> {
        let is_answer = |approval: &&Approval| match approval.standing {
            Standing::Pending => true,
            Standing::Released | Standing::Below => approval.is_free(),
            Standing::Dispatched | Standing::Done | Standing::Withdrawn => false,
            Standing::Denied | Standing::Expired | Standing::Void | Standing::OutcomeUnknown => {
                !approval.told && self.clock < approval.since + TOLD_WITHIN
            }
        };
        let ids = self.of_call.get(&call.key())?.iter().rev();
        ids.filter_map(|id| self.all.get(id)).filter(|approval| !approval.attended).find(is_answer)
    }

    /// Finds the grant that lets a call through.
    pub(super) fn granting(&self, call: &Call) -> Option<&Grant> {
        self.grants.values().find(|grant| self.holds(grant) && grant.fits(call))
    }

    fn known(&mut self, call: &Call, attends: bool) -> Option<Held> {
        let id = self.answering(call)?.id().to_owned();
        let approval = self.all.get_mut(&id)?;
        let held = match approval.standing {
            Standing::Pending => Held::Waits(id.clone()),
            Standing::Released | Standing::Dispatched | Standing::Below | Standing::Done | Standing::Withdrawn => Held::Free(id.clone()),
            Standing::Denied | Standing::Expired | Standing::Void | Standing::OutcomeUnknown => {
                approval.told = true;
                Held::Over(id.clone())
            }
        };
        approval.attended = attends && !approval.standing.is_over();
        self.changes.insert(Change::Approval(id));
        Some(held)
    }

    fn pending(&mut self, id: &str) -> Result<&mut Approval, Refusal> {
        let approval = self.all.get_mut(id).ok_or(Refusal::Unknown)?;
        if approval.standing == Standing::Pending { Ok(approval) } else { Err(Refusal::Over(approval.standing)) }
    }

    pub(super) fn counted(&mut self, counted: Option<(String, u32)>) {
        let Some((id, count)) = counted else { return };
        if let Some(passkey) = self.anchors.operators.get_mut(&id).and_then(|operator| operator.passkey.as_mut()) {
            passkey.count = count;
            self.changes.insert(Change::Operator(id));
        }
    }

    pub(super) fn enter(&mut self, approval: Approval) {
        let id = approval.id().to_owned();
        self.of_call.entry(approval.challenge.call.key()).or_default().push(id.clone());
        self.schedule(&approval);
        self.all.insert(id, approval);
    }

    pub(super) fn schedule(&mut self, approval: &Approval) {
        let (id, expires) = (approval.id(), approval.challenge.expires);
        if !approval.standing.is_over() {
            self.due.insert((expires, id.to_owned()));
            self.due.insert((expires.saturating_sub(self.settings.warning).max(approval.requested + 1), id.to_owned()));
        }
    }

    pub(super) fn turn(&mut self, id: &str, to: Standing) {
        let Some(approval) = self.all.get_mut(id) else { return };
        approval.standing = to;
        approval.since = self.clock;
        if to.is_over() {
            self.over.push_back(id.to_owned());
        }
        self.tell(id, Event::Moved(to));
        self.forget();
    }

    fn tell(&mut self, id: &str, event: Event) {
        self.changes.insert(Change::Approval(id.to_owned()));
        self.news.push_back(News { id: id.to_owned(), event });
    }

    /// Drops the oldest finished approvals, except changes that are still to be kept.
    fn forget(&mut self) {
        while self.over.len() > MOST_OVER
            && let Some(id) = self.over.front()
            && !self.changes.contains(&Change::Approval(id.clone()))
            && let Some(id) = self.over.pop_front()
        {
            self.unlist(&id);
        }
    }

    pub(super) fn unlist(&mut self, id: &str) {
        let Some(approval) = self.all.remove(id) else { return };
        let key = approval.challenge.call.key();
        if let Some(ids) = self.of_call.get_mut(&key) {
            ids.retain(|other| other != id);
            if ids.is_empty() {
                self.of_call.remove(&key);
            }
        }
    }

    pub(super) fn advance(&mut self, now: Now) {
        self.clock = self.clock.max(now.unix_seconds());
        self.seen = Some(now);
    }
}

impl Machine for Desk {
    type Output = News;

    fn handle_timeout(&mut self, now: Now) {
        self.advance(now);
        while let Some((at, id)) = self.due.first().filter(|(at, _)| *at <= self.clock).cloned() {
            self.due.remove(&(at, id.clone()));
            let Some(approval) = self.all.get_mut(&id) else { continue };
            if approval.standing.is_held() && approval.challenge.expires <= self.clock {
                self.turn(&id, Standing::Expired);
            } else if approval.standing == Standing::Pending && !std::mem::replace(&mut approval.escalated, true) {
                self.tell(&id, Event::Expiring);
            }
        }
    }

    fn poll_output(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let ((due, _), now) = (self.due.first()?, self.seen?);
        // By the clock on the wall as it stands, even where it was set back and the desk's own stands still.
        let wait = Duration::from_secs(*due).saturating_sub(now.since_epoch());
        Some((now.instant.checked_add(wait)?, "an approval expires, or will soon"))
    }
}
