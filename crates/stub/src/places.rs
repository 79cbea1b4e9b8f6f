//! Places of calls at a part: so many in all, and fewer for each caller. Sends nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use banyan_model::Principal;
use stub_proto::session::NeverRan;

/// Calls at a part, under way and waiting.
pub const MOST_PLACES: usize = 17;
/// Calls of each caller at a part.
pub const MOST_OF_ONE: usize = 8;

/// Places taken, by caller; `None` is the gate itself.
type PlaceCounts = HashMap<Option<Principal>, usize>;

/// The places at a part.
#[derive(Clone, Debug, Default)]
pub struct PartPlaces(Arc<Mutex<PlaceCounts>>);

/// A place, given back on drop.
#[derive(Debug)]
pub struct PartPlace {
    places: PartPlaces,
    caller: Option<Principal>,
}

impl PartPlaces {
    /// Takes a place for a caller.
    pub fn reserve(&self, caller: Option<&Principal>) -> Result<PartPlace, NeverRan> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        if all >= MOST_PLACES {
            return Err(NeverRan::Full { waiting: all });
        }
        let caller = caller.cloned();
        let own = taken.entry(caller.clone()).or_default();
        if *own >= MOST_OF_ONE {
            return Err(NeverRan::OwnFull { waiting: *own });
        }
        *own += 1;
        drop(taken);
        Ok(PartPlace { places: self.clone(), caller })
    }
}

impl Drop for PartPlace {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.caller) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use banyan_model::PrincipalKind;

    use super::*;

    fn caller(name: &str) -> Principal {
        Principal::new(PrincipalKind::Token, name)
    }

    #[test]
    fn one_caller_leaves_places_for_others() {
        let (places, greedy) = (PartPlaces::default(), caller("greedy"));
        let held: Vec<PartPlace> = (0..MOST_OF_ONE).map(|_| places.reserve(Some(&greedy)).expect("a place")).collect();
        assert_eq!(places.reserve(Some(&greedy)).unwrap_err(), NeverRan::OwnFull { waiting: MOST_OF_ONE });
        let other = places.reserve(Some(&caller("other"))).expect("a place");
        drop(held);
        places.reserve(Some(&greedy)).expect("a place that was given back");
        drop(other);
        assert!(places.0.lock().unwrap().is_empty(), "nothing is remembered of callers that have gone");
    }

    #[test]
    fn many_callers_find_a_part_full() {
        let places = PartPlaces::default();
        let held: Vec<PartPlace> = (0..MOST_PLACES).map(|at| places.reserve(Some(&caller(&at.to_string()))).expect("a place")).collect();
        assert_eq!(places.reserve(Some(&caller("late"))).unwrap_err(), NeverRan::Full { waiting: MOST_PLACES });
        assert_eq!(places.reserve(None).unwrap_err(), NeverRan::Full { waiting: MOST_PLACES });
        drop(held);
    }
}
