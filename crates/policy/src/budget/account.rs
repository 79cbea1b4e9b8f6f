//! An account: the spending of one caller from one budget. The budgets of a caller are not known here.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The minute of `max_calls_per_minute`: no span of this length ever holds more calls than are allowed.
pub const WINDOW: Duration = Duration::from_secs(60);

/// Limits on spending; `None` is without limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Calls in any [`WINDOW`].
    pub calls_per_minute: Option<u32>,
    /// Calls with side effects, for the whole session.
    pub mutable_calls_per_session: Option<u64>,
    /// Cost units, for the whole session.
    pub cost_units_per_session: Option<u64>,
}

/// The cost of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Charge {
    /// The call has side effects.
    pub mutable: bool,
    pub units: u64,
}

/// A call's withdrawal from an account. Given back at most once.
#[derive(PartialEq, Eq, Debug)]
pub struct Taken {
    at: Instant,
    charge: Charge,
}

/// The limit that a call would pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Exceeded {
    /// The last minute is full; after this long there is room for one call.
    #[error("{limit} calls a minute are allowed: there is room again in {} s", .retry_after.as_secs() + 1)]
    CallsPerMinute { limit: u32, retry_after: Duration },
    /// The session's cost units are spent.
    #[error("{limit} cost units a session are allowed, and {left} are left")]
    CostUnits {
        limit: u64,
        /// Cost units left: fewer than the call costs.
        left: u64,
    },
    /// The session has no side effects left.
    #[error("{limit} calls a session that change something are allowed")]
    MutableCalls { limit: u64 },
}

impl Exceeded {
    /// The name of the limit, as in MCP-AX 11.4.
    pub fn limit_name(&self) -> &'static str {
        match self {
            Self::CallsPerMinute { .. } => "max_calls_per_minute",
            Self::CostUnits { .. } => "max_cost_units_per_session",
            Self::MutableCalls { .. } => "max_mutable_calls_per_session",
        }
    }

    /// Gives the time until the same call fits; `None`: never in this session.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::CallsPerMinute { retry_after, .. } => Some(*retry_after),
            Self::CostUnits { .. } | Self::MutableCalls { .. } => None,
        }
    }
}

/// The spending from an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Calls in the last [`WINDOW`]; counted only under a limit.
    pub calls_in_window: usize,
    /// Calls with side effects.
    pub mutable_calls: u64,
    pub cost_units: u64,
}

/// An account.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// When the calls of the last window were made, in order.
    recent: VecDeque<Instant>,
    spent: Spent,
    last: Option<Instant>,
}

impl Account {
    /// Checks that a call fits, without taking anything.
    pub fn check(&self, limits: &Limits, charge: Charge, now: Instant) -> Result<(), Exceeded> {
        if let Some(limit) = limits.calls_per_minute {
            let now = self.not_before_the_last(now);
            let in_window = self.in_window(now);
            let most = usize::try_from(limit).unwrap_or(usize::MAX);
            if in_window >= most {
                // The call that has to leave the window: the oldest but for those that are too many since the limit was lowered.
                let leaving = self.recent.len().checked_sub(most).and_then(|place| self.recent.get(place));
                let retry_after = leaving.map_or(WINDOW, |at| (*at + WINDOW).saturating_duration_since(now));
                return Err(Exceeded::CallsPerMinute { limit, retry_after });
            }
        }
        if let Some(limit) = limits.mutable_calls_per_session.filter(|limit| charge.mutable && self.spent.mutable_calls >= *limit) {
            return Err(Exceeded::MutableCalls { limit });
        }
        if let Some(limit) = limits.cost_units_per_session {
            let left = limit.saturating_sub(self.spent.cost_units);
            if charge.units > left {
                return Err(Exceeded::CostUnits { limit, left });
            }
        }
        Ok(())
    }

    /// Takes the cost of a call, even beyond the limits; [`Account::check`] tells first if the call fits.
    pub fn take(&mut self, limits: &Limits, charge: Charge, now: Instant) -> Taken {
        let now = self.not_before_the_last(now);
        self.last = Some(now);
        while self.recent.front().is_some_and(|at| *at + WINDOW <= now) {
            self.recent.pop_front();
        }
        // Without a limit nobody asks, and the list would have no end.
        if limits.calls_per_minute.is_some() {
            self.recent.push_back(now);
        } else {
            self.recent.clear();
        }
        self.spent.mutable_calls += u64::from(charge.mutable);
        self.spent.cost_units = self.spent.cost_units.saturating_add(charge.units);
        Taken { at: now, charge }
    }

    /// Gives back the cost of a call that never left.
    #[expect(clippy::needless_pass_by_value, reason = "what was given back can't be given back again")]
    pub fn give_back(&mut self, taken: Taken) {
        let Taken { at, charge } = taken;
        if let Some(place) = self.recent.iter().rposition(|other| *other == at) {
            self.recent.remove(place);
        }
        self.spent.mutable_calls = self.spent.mutable_calls.saturating_sub(u64::from(charge.mutable));
        self.spent.cost_units = self.spent.cost_units.saturating_sub(charge.units);
    }

    /// Gives the spending at `now`.
    pub fn spent(&self, now: Instant) -> Spent {
        Spent { calls_in_window: self.in_window(self.not_before_the_last(now)), ..self.spent }
    }

    /// Gives the time of the last call, if any.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }

    /// Two threads read the clock in one order and come here in the other.
    fn not_before_the_last(&self, now: Instant) -> Instant {
        self.last.map_or(now, |last| last.max(now))
    }

    fn in_window(&self, now: Instant) -> usize {
        self.recent.len() - self.recent.iter().take_while(|at| **at + WINDOW <= now).count()
    }
}
