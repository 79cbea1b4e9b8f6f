//! What callers have spent of their budgets (AX-48). What fits is decided in the crate `policy`, and what a call costs is not known here.

use std::sync::Arc;
use std::time::Duration;

use policy::budget::{Charge, Held, Limits, RefusedAccount, Spent};

/// Name of a budget, and the session where each session is counted for itself.
pub type BudgetAccount = (Arc<str>, Option<Arc<str>>);

/// Purses of all callers, by their names.
pub trait Budgets: Send + Sync {
    /// Purse of a caller. What was spent is not forgotten as long as somebody has the purse.
    fn purse(&self, principal: &Arc<str>) -> Arc<dyn CallerPurse>;

    /// Forgets what was spent by callers who have made no call for so long.
    fn forget_idle(&self, idle: Duration);

    /// State of every account, by caller.
    fn spent(&self) -> Vec<(Arc<str>, BudgetAccount, Spent)>;
}

/// Accounts of one caller. Nothing here waits: a call is on its way.
pub trait CallerPurse: std::fmt::Debug + Send + Sync {
    /// Takes a call from each of `accounts`, or from none.
    ///
    /// # Errors
    /// The account without room, and why.
    fn take(&self, accounts: &[(BudgetAccount, Limits)], charge: Charge) -> Result<Held<BudgetAccount>, RefusedAccount<BudgetAccount>>;

    /// Gives back what a call has taken that never left.
    fn give_back(&self, held: Held<BudgetAccount>);
}
