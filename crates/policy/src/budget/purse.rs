//! All accounts of one caller: the cost of a call is taken from every account concerned, or from none. The caller is not known here.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::account::{Account, Charge, Exceeded, Limits, Spent, Taken};

/// Accounts by purpose.
#[derive(Debug)]
pub struct Purse<K> {
    accounts: BTreeMap<K, Account>,
}

impl<K> Default for Purse<K> {
    fn default() -> Self {
        Self { accounts: BTreeMap::new() }
    }
}

/// A call's withdrawals from a purse. Given back at most once.
#[derive(Debug, Default)]
pub struct Held<K>(Vec<(K, Taken)>);

/// The account without room, and the limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedAccount<K> {
    pub account: K,
    pub why: Exceeded,
}

impl<K: Ord + Clone> Purse<K> {
    /// Takes a call from each of `accounts`, or says which has no room: then nothing is taken at all.
    pub fn take(&mut self, accounts: &[(K, Limits)], charge: Charge, now: Instant) -> Result<Held<K>, RefusedAccount<K>> {
        for (key, limits) in accounts {
            let empty = Account::default();
            let account = self.accounts.get(key).unwrap_or(&empty);
            account.check(limits, charge, now).map_err(|why| RefusedAccount { account: key.clone(), why })?;
        }
        let taken = accounts.iter().map(|(key, limits)| {
            let account = self.accounts.entry(key.clone()).or_default();
            (key.clone(), account.take(limits, charge, now))
        });
        Ok(Held(taken.collect()))
    }

    /// Gives back the cost of a call that never left. A forgotten account stays forgotten.
    pub fn give_back(&mut self, held: Held<K>) {
        for (key, taken) in held.0 {
            if let Some(account) = self.accounts.get_mut(&key) {
                account.give_back(taken);
            }
        }
    }

    /// Forgets accounts unused for so long; `true`: none is left.
    pub fn forget_idle(&mut self, idle: Duration, now: Instant) -> bool {
        self.accounts.retain(|_, account| account.last().is_some_and(|last| now.saturating_duration_since(last) < idle));
        self.accounts.is_empty()
    }

    /// Lists the spending from each account.
    pub fn spent(&self, now: Instant) -> impl Iterator<Item = (&K, Spent)> {
        self.accounts.iter().map(move |(key, account)| (key, account.spent(now)))
    }
}
