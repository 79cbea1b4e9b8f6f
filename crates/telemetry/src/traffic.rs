//! Calls of the last hour in memory of a fixed size, for people who look at a gate. Outlives no run, and decides nothing: the record does
//! both.
//!
//! At most [`CALLERS`], [`SERVERS`] and [`TOOLS`] names have counts of their own; calls of further names are counted under the name `""`. A
//! name that was quiet for an hour makes room. Texts are cut to 256 bytes, so that all of it stays below 1.5 MiB.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use crate::metrics::BOUNDS;
use crate::{TEXT_LIMIT, clip};

mod ring;

use ring::Ring;

/// Most callers with counts of their own.
pub const CALLERS: usize = 128;
/// Most servers with counts of their own, those below other gates among them.
pub const SERVERS: usize = 512;
/// Most tools with counts of their own.
pub const TOOLS: usize = 256;
/// Calls kept one by one.
pub const LAST: usize = 100;
/// Length of a step in the counts of the whole gate.
pub const STEP: Duration = Duration::from_secs(10);
/// Steps kept for the whole gate: an hour.
pub const STEPS: usize = 360;
/// Time in which calls of a name count as present traffic.
pub const LATELY: Duration = Duration::from_secs(300);

const MINUTE: Duration = Duration::from_secs(60);
const MINUTES: usize = 60;
/// Bytes of a mount's name and of a name behind it, each cut, with the dot.
const DOTTED: usize = 2 * TEXT_LIMIT + 1;

/// The fate of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Done,
    /// The call left and ended with an error, or with a failure told by the tool.
    Failed,
    /// The call waits for a person, or was taken back before it left.
    Held,
    /// The call never left.
    Refused,
}

/// A call at its end.
#[derive(Clone, Copy, Debug)]
pub struct EndedCall<'a> {
    pub caller: &'a str,
    /// Name of the mount; empty of a call that reached no server.
    pub mount: &'a str,
    /// The mount leads to another gate, whose tools are named by dotted paths.
    pub is_gate: bool,
    /// Name at the owner, from the catalog, or from the caller where `is_listed` is unset.
    pub name: &'a str,
    pub is_listed: bool,
    pub fate: Fate,
    /// The end in the record's words.
    pub word: &'a str,
    /// Id of the call in the record.
    pub call: &'a str,
    /// Time of the beginning, in microseconds since 1970.
    pub began: u64,
    pub took: Duration,
}

/// Calls of the last hour.
pub struct Traffic {
    since: Instant,
    seen: Mutex<SeenCalls>,
}

struct SeenCalls {
    whole: Ring<WholeStep>,
    callers: NameCounts,
    servers: NameCounts,
    tools: NameCounts,
    last: VecDeque<Arc<LastCall>>,
    /// Space in which dotted names are put together.
    dotted: String,
}

#[derive(Clone, Copy, Default, Debug)]
struct WholeStep {
    counts: Counts,
    times: [u32; BOUNDS.len() + 1],
}

/// Numbers of calls, by their fates.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    pub calls: u32,
    pub failed: u32,
    pub refused: u32,
}

/// Everything that is known of the last hour.
#[derive(Debug)]
pub struct TrafficReport {
    /// Steps of [`STEP`], the oldest first.
    pub steps: Vec<StepReport>,
    /// The whole hour.
    pub whole: StepReport,
    /// The busiest first; the name `""` stands for all names without counts of their own.
    pub callers: Vec<NameReport>,
    pub servers: Vec<NameReport>,
    pub tools: Vec<NameReport>,
    /// The newest first.
    pub last: Vec<Arc<LastCall>>,
}

/// Calls of a stretch of time.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct StepReport {
    pub counts: Counts,
    /// Median, in milliseconds, of calls that left.
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
}

/// Calls of a name within the last hour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameReport {
    pub name: Arc<str>,
    pub counts: Counts,
    /// Calls within [`LATELY`].
    pub lately: Counts,
}

/// A call that has ended, for people.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct LastCall {
    pub caller: String,
    /// Dotted path of the server; empty of a call that reached none.
    pub server: String,
    /// Dotted name of what was called.
    pub route: String,
    pub outcome: String,
    pub is_failed: bool,
    pub is_refused: bool,
    pub call: String,
    /// Time of the beginning, in microseconds since 1970.
    pub began: u64,
    pub took_us: u64,
}

impl Traffic {
    /// Begins at `now` without calls.
    pub fn new(now: Instant) -> Self {
        let seen = SeenCalls {
            whole: Ring::new(STEPS),
            callers: NameCounts::new(CALLERS),
            servers: NameCounts::new(SERVERS),
            tools: NameCounts::new(TOOLS),
            last: VecDeque::with_capacity(LAST),
            dotted: String::with_capacity(DOTTED),
        };
        Self { since: now, seen: Mutex::new(seen) }
    }

    /// Counts a call that ended at `now`.
    pub fn ended(&self, call: &EndedCall<'_>, now: Instant) {
        let (step, minute) = (self.number(now, STEP), self.number(now, MINUTE));
        // Names come from callers in any length: all work on a whole name happens before the lock.
        let below = if call.is_gate && call.is_listed { call.name.rsplit_once('.').map(|(path, _)| clip(path)) } else { None };
        let call = call.cut();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.count(&call, below, step, minute);
        seen.keep(&call);
    }

    /// Reads everything as of `now`.
    pub fn report(&self, now: Instant) -> TrafficReport {
        let (step, minute) = (self.number(now, STEP), self.number(now, MINUTE));
        let (steps, [callers, servers, tools], last) = self.copied(step, minute);
        let mut all = WholeStep::default();
        steps.iter().for_each(|step| all.add(step));
        TrafficReport {
            steps: steps.iter().map(WholeStep::report).collect(),
            whole: all.report(),
            callers: sorted(callers),
            servers: sorted(servers),
            tools: sorted(tools),
            last,
        }
    }

    /// Copies under the lock; sums and sorting come after.
    fn copied(&self, step: u64, minute: u64) -> (Vec<WholeStep>, [Vec<NameReport>; 3], Vec<Arc<LastCall>>) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = seen.whole.until(step).map(|step| step.copied().unwrap_or_default()).collect();
        let names = [&seen.callers, &seen.servers, &seen.tools].map(|names| names.report(minute));
        (steps, names, seen.last.iter().rev().map(Arc::clone).collect())
    }

    fn number(&self, now: Instant, step: Duration) -> u64 {
        now.saturating_duration_since(self.since).as_secs() / step.as_secs().max(1)
    }
}

impl SeenCalls {
    /// Counts a call whose texts are cut; `below` leads to its server below a gate.
    fn count(&mut self, call: &EndedCall<'_>, below: Option<&str>, step: u64, minute: u64) {
        let whole = self.whole.step(step);
        whole.counts.add(call.fate);
        if matches!(call.fate, Fate::Done | Fate::Failed) {
            let seconds = call.took.as_secs_f64();
            whole.times[BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
        }
        self.callers.count(call.caller, call.fate, minute);
        if call.mount.is_empty() {
            return;
        }
        // A name that no catalog has comes from a caller, and so do its dots.
        let server = below.map_or(call.mount, |below| joined(&mut self.dotted, call.mount, below));
        self.servers.count(server, call.fate, minute);
        if call.is_listed {
            self.tools.count(joined(&mut self.dotted, call.mount, call.name), call.fate, minute);
        }
    }

    /// Keeps the call itself in the place of the oldest, whose memory serves again unless a reader holds it.
    fn keep(&mut self, call: &EndedCall<'_>) {
        let mut oldest = if self.last.len() < LAST { Arc::default() } else { self.last.pop_front().unwrap_or_default() };
        if Arc::get_mut(&mut oldest).is_none() {
            oldest = Arc::default();
        }
        if let Some(kept) = Arc::get_mut(&mut oldest) {
            kept.overwrite(call);
        }
        self.last.push_back(oldest);
    }
}

impl<'a> EndedCall<'a> {
    /// The call with its texts cut.
    fn cut(&self) -> Self {
        let [caller, mount, name, word, call] = [self.caller, self.mount, self.name, self.word, self.call].map(clip);
        Self { caller, mount, name, word, call, ..*self }
    }
}

impl LastCall {
    /// Writes a call whose texts are cut over the former call.
    fn overwrite(&mut self, call: &EndedCall<'_>) {
        let kept = self;
        let dot = if call.mount.is_empty() { "" } else { "." };
        let texts = [
            (&mut kept.caller, [call.caller, "", ""]),
            (&mut kept.server, [call.mount, "", ""]),
            (&mut kept.route, [call.mount, dot, call.name]),
            (&mut kept.outcome, [call.word, "", ""]),
            (&mut kept.call, [call.call, "", ""]),
        ];
        for (kept, pieces) in texts {
            kept.clear();
            kept.extend(pieces);
        }
        (kept.is_failed, kept.is_refused) = (call.fate == Fate::Failed, call.fate == Fate::Refused);
        (kept.began, kept.took_us) = (call.began, u64::try_from(call.took.as_micros()).unwrap_or(u64::MAX));
    }
}

/// Puts a dotted name together in `space`.
fn joined<'a>(space: &'a mut String, mount: &str, name: &str) -> &'a str {
    space.clear();
    space.extend([mount, ".", name]);
    space
}

/// Names in the order of their calls, the busiest first.
fn sorted(mut names: Vec<NameReport>) -> Vec<NameReport> {
    names.sort_by(|a, b| b.counts.calls.cmp(&a.counts.calls).then_with(|| a.name.cmp(&b.name)));
    names
}

impl Counts {
    fn add(&mut self, fate: Fate) {
        self.calls = self.calls.saturating_add(1);
        match fate {
            Fate::Done | Fate::Held => {}
            Fate::Failed => self.failed = self.failed.saturating_add(1),
            Fate::Refused => self.refused = self.refused.saturating_add(1),
        }
    }

    fn plus(self, more: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(more.calls),
            failed: self.failed.saturating_add(more.failed),
            refused: self.refused.saturating_add(more.refused),
        }
    }
}

impl WholeStep {
    fn add(&mut self, more: &Self) {
        self.counts = self.counts.plus(more.counts);
        for (time, more) in self.times.iter_mut().zip(&more.times) {
            *time = time.saturating_add(*more);
        }
    }

    fn report(&self) -> StepReport {
        StepReport { counts: self.counts, p50_ms: self.quantile(0.5), p95_ms: self.quantile(0.95) }
    }

    /// Estimates a quantile in milliseconds, on a straight line between the bounds around the quantile.
    fn quantile(&self, part: f64) -> Option<f64> {
        let count: u64 = self.times.iter().map(|time| u64::from(*time)).sum();
        let wanted = part * count as f64;
        let mut below = 0.0;
        let lower = [0.0].into_iter().chain(BOUNDS);
        for ((lower, upper), time) in lower.zip(BOUNDS).zip(&self.times) {
            let here = f64::from(*time);
            if here > 0.0 && below + here >= wanted {
                return Some((lower + (upper - lower) * (wanted - below) / here) * 1000.0);
            }
            below += here;
        }
        let longest = BOUNDS.last().map(|bound| bound * 1000.0);
        longest.filter(|_| count > 0)
    }
}

/// Counts by name, of a bounded number of names.
struct NameCounts {
    most: usize,
    known: HashMap<Arc<str>, Ring<Counts>, RandomState>,
    others: Ring<Counts>,
    /// Minute in which room was looked for last.
    swept: u64,
}

impl NameCounts {
    fn new(most: usize) -> Self {
        Self { most, known: HashMap::default(), others: Ring::new(MINUTES), swept: 0 }
    }

    fn count(&mut self, name: &str, fate: Fate, minute: u64) {
        let name = clip(name);
        if let Some(known) = self.known.get_mut(name) {
            return known.step(minute).add(fate);
        }
        self.sweep(minute);
        if self.known.len() >= self.most {
            return self.others.step(minute).add(fate);
        }
        self.known.entry(name.into()).or_insert_with(|| Ring::new(MINUTES)).step(minute).add(fate);
    }

    /// Forgets the names that were quiet for an hour, at most once a minute.
    fn sweep(&mut self, minute: u64) {
        if self.known.len() >= self.most && minute > self.swept {
            self.swept = minute;
            self.known.retain(|_, ring| ring.newest() + MINUTES as u64 > minute);
        }
    }

    fn report(&self, minute: u64) -> Vec<NameReport> {
        let others: Arc<str> = "".into();
        let all = self.known.iter().chain([(&others, &self.others)]);
        all.map(|(name, ring)| of_name(name, ring, minute)).filter(|name| name.counts.calls > 0).collect()
    }
}

fn of_name(name: &Arc<str>, ring: &Ring<Counts>, minute: u64) -> NameReport {
    let sum = |skipped: usize| ring.until(minute).skip(skipped).flatten().fold(Counts::default(), |sum, step| sum.plus(*step));
    let lately = (LATELY.as_secs() / MINUTE.as_secs()) as usize;
    NameReport { name: Arc::clone(name), counts: sum(0), lately: sum(MINUTES - lately) }
}

#[cfg(test)]
mod tests;
