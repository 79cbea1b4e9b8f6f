//! Rates of requests, each caller's by itself. Knows no request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use banyan_model::Principal;

/// Most callers with a rate below the full one.
const MOST_CALLERS: usize = 4_096;
const MINUTE: Duration = Duration::from_secs(60);

/// Requests of every caller that is not at its full rate.
#[derive(Default)]
pub struct CallerRates(Mutex<HashMap<Principal, RestedRate>>);

/// Requests that a caller may make at once, at a time.
struct RestedRate {
    free: f64,
    at: Instant,
}

impl CallerRates {
    /// Finds the time that `caller` has to wait, where `rate` requests are free in a minute. Charges nothing.
    pub fn wait(&self, caller: &Principal, rate: u32, now: Instant) -> Option<Duration> {
        let rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (most, one) = (f64::from(rate.max(1)), rates.get(caller)?);
        let free = (one.free + now.saturating_duration_since(one.at).as_secs_f64() * most / 60.0).min(most);
        (free < 1.0).then(|| MINUTE.mul_f64((1.0 - free) / most))
    }

    /// Charges a request to `caller` where `rate` are free in a minute, and as many at once. The error is the time to wait.
    pub fn charge(&self, caller: &Principal, rate: u32, now: Instant) -> Result<(), Duration> {
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = f64::from(rate.max(1));
        let rested = |one: &RestedRate| (one.free + now.saturating_duration_since(one.at).as_secs_f64() * most / 60.0).min(most);
        if rates.len() >= MOST_CALLERS && !rates.contains_key(caller) {
            rates.retain(|_, one| rested(one) < most);
            if rates.len() >= MOST_CALLERS {
                return Err(MINUTE);
            }
        }
        let free = rates.get(caller).map_or(most, rested);
        if free < 1.0 {
            return Err(MINUTE.mul_f64((1.0 - free) / most));
        }
        rates.insert(caller.clone(), RestedRate { free: free - 1.0, at: now });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use banyan_model::PrincipalKind;

    use super::*;

    #[test]
    fn ae_17_each_caller_has_a_rate_of_its_own() {
        let (rates, now) = (CallerRates::default(), Instant::now());
        let caller = |name: &str| Principal::new(PrincipalKind::Token, name);
        for _ in 0..6 {
            assert_eq!((rates.wait(&caller("a"), 6, now), rates.charge(&caller("a"), 6, now)), (None, Ok(())));
        }
        assert_eq!(rates.wait(&caller("a"), 6, now), Some(Duration::from_secs(10)));
        assert_eq!(rates.charge(&caller("a"), 6, now), Err(Duration::from_secs(10)));
        assert_eq!(rates.charge(&caller("b"), 6, now), Ok(()));
        assert_eq!(rates.charge(&caller("a"), 6, now + Duration::from_secs(10)), Ok(()));
        assert!(rates.charge(&caller("a"), 6, now + Duration::from_secs(10)).is_err());
    }

    #[test]
    fn ae_17_callers_at_rest_are_forgotten() {
        let (rates, now) = (CallerRates::default(), Instant::now());
        let caller = |number: usize| Principal::new(PrincipalKind::Token, number.to_string());
        for number in 0..MOST_CALLERS {
            assert_eq!(rates.charge(&caller(number), 60, now), Ok(()));
        }
        assert_eq!(rates.charge(&caller(MOST_CALLERS), 60, now), Err(MINUTE), "no caller makes the gate hold more");
        assert_eq!(rates.charge(&caller(MOST_CALLERS), 60, now + MINUTE), Ok(()));
    }
}
