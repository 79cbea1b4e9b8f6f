//! Spending of callers' budgets (AX-48). Neither limits nor costs are decided here: the crate `policy` decides on limits.

use std::sync::Arc;
use std::time::Duration;

use policy::budget::{Charge, Held, Limits, RefusedAccount, Spent};

/// Name of a budget, and the session where each session is counted for itself.
pub type BudgetAccount = (Arc<str>, Option<Arc<str>>);

/// Purses of all callers, by their names.
pub trait Budgets: Send + Sync {
    /// Gives the purse of a caller. Spending is remembered while the purse has a holder.
    fn purse(&self, principal: &Arc<str>) -> Arc<dyn CallerPurse>;

    /// Forgets the spending of callers without a call for `idle`.
    fn forget_idle(&self, idle: Duration);

    /// State of every account, by caller.
    fn spent(&self) -> Vec<(Arc<str>, BudgetAccount, Spent)>;
}

/// Accounts of one caller. Nothing here waits: a call is on its way.
pub trait CallerPurse: std::fmt::Debug + Send + Sync {
    /// Charges a call to each of `accounts`, or to none.
    ///
    /// # Errors
    /// The account without room, with the reason.
    fn charge(&self, accounts: &[(BudgetAccount, Limits)], charge: Charge) -> Result<Held<BudgetAccount>, RefusedAccount<BudgetAccount>>;

    /// Gives back the charge of a call that never left.
    fn give_back(&self, held: Held<BudgetAccount>);
}
