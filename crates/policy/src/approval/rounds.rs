//! Calls whose servers ask for input before they go on: each state given by a server lets one more request out. The meaning of a state is
//! not known here.

use banyan_model::{Machine, Now};

use super::challenge::Call;
use super::desk::Desk;
use super::standing::Standing;

/// Greatest number of granted calls that may be asked for input at once.
const MOST_ROUNDS: usize = 1000;

/// The agreement that lets a call out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agreement {
    /// An approval of this call.
    Approval(String),
    Grant(String),
}

/// The next round of a call let out by a grant.
#[derive(Debug)]
pub(super) struct Round {
    of: [u8; 32],
    grant: String,
}

impl Desk {
    /// Takes a request that comes back with the requested input and the server's state; gives the agreement that lets it out, once.
    pub fn go_on(&mut self, now: Now, call: &Call, state: [u8; 32]) -> Option<Agreement> {
        self.handle_timeout(now);
        let ids = self.of_call.get(&call.key()).into_iter().flatten();
        let awaits = |id: &&String| self.all.get(*id).is_some_and(|a| a.standing == Standing::Below && a.awaits == Some(state));
        let awaiting = ids.rev().find(awaits).cloned();
        if let Some(id) = awaiting {
            let approval = self.all.get_mut(&id)?;
            approval.attended = true;
            self.turn(&id, Standing::Dispatched);
            return Some(Agreement::Approval(id));
        }
        let place = self.rounds.iter().position(|round| round.of == call.round(state))?;
        let Round { grant, .. } = self.rounds.remove(place)?;
        // What it lets through was counted with the first request.
        let lasts = self.grants.get(&grant).is_some_and(|grant| self.holds_for_more(grant));
        lasts.then_some(Agreement::Grant(grant))
    }

    /// A call that went out by a grant was asked for input, with such a state.
    pub fn asked(&mut self, grant: &str, call: &Call, state: [u8; 32]) {
        if self.rounds.len() >= MOST_ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back(Round { of: call.round(state), grant: grant.to_owned() });
    }
}
