//! Log of calls refused for want of room: the first at once, then a count every second, since a line each would cost more than the calls.
//! Does not refuse.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use banyan_model::Segment;

const PAUSE: Duration = Duration::from_secs(1);

/// Cause of refusals: the text, and the mount if the limit is a mount's.
type Cause = (&'static str, Option<Segment>);

/// Refusals since the last line, by cause. A cause stays as long as a task counts it.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<HashMap<Cause, u64>>);

impl Refusals {
    /// Notes a refusal.
    pub fn note(self: &Arc<Self>, what: &'static str, mount: Option<&Segment>) {
        let cause = (what, mount.cloned());
        if self.count(&cause) {
            return;
        }
        say(&cause, "a call was refused; how many are is said once a second");
        let this = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PAUSE).await;
                let Some(refused) = this.sum(&cause) else { break };
                say(&cause, &format!("{refused} calls were refused in the last second"));
            }
        });
    }

    /// Counts a refusal; `false` for the first.
    fn count(&self, cause: &Cause) -> bool {
        let mut counts = self.lock();
        if let Some(count) = counts.get_mut(cause) {
            *count += 1;
            return true;
        }
        counts.insert(cause.clone(), 0);
        false
    }

    /// Refusals since the last sum; `None` without any, and then nobody counts any more.
    fn sum(&self, cause: &Cause) -> Option<u64> {
        let mut counts = self.lock();
        let refused = counts.get_mut(cause).map(std::mem::take).filter(|refused| *refused > 0);
        if refused.is_none() {
            counts.remove(cause);
        }
        refused
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Cause, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn say((what, mount): &Cause, text: &str) {
    match mount {
        Some(mount) => tracing::warn!(%mount, "{text}: {what}"),
        None => tracing::warn!("{text}: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_cause_after_the_first() {
        let refusals = Refusals::default();
        let (full, busy) = (("full", None), ("busy", Segment::new("m").ok()));
        assert!(!refusals.count(&full));
        assert!(!refusals.count(&busy));
        assert!(refusals.count(&full) && refusals.count(&full));
        assert_eq!(refusals.sum(&full), Some(2));
        assert_eq!((refusals.sum(&full), refusals.sum(&busy)), (None, None));
        assert!(!refusals.count(&full), "it is news again");
    }
}
