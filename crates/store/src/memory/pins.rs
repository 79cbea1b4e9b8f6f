//! Definitions in memory. Does not judge definitions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use policy::pin::{Definition, Kind, Known, Standing};

use super::lock;
use crate::pins::{Apart, MOST, MOST_HELD, MOST_PASSING, MOST_PASSING_HELD, Pin, Source, Together};
use crate::{Pins, StoreError};

#[derive(Clone, Default)]
struct State {
    /// In order of arrival.
    pins: Vec<Pin>,
    gates: Vec<Source>,
    /// Looks by number, from 1: time, mount and kind.
    looks: BTreeMap<i64, (u64, String, Kind)>,
}

#[derive(Default)]
pub(super) struct PinShelf {
    state: Mutex<State>,
    /// Held during the work of one go.
    turn: Mutex<()>,
}

struct MemoryPins(Arc<PinShelf>);

pub(super) fn open(shared: &Arc<PinShelf>) -> Box<dyn Pins> {
    Box::new(MemoryPins(Arc::clone(shared)))
}

impl State {
    fn of_kind<'a>(&'a self, source: &'a Source, kind: Kind) -> impl Iterator<Item = &'a Pin> {
        self.pins.iter().filter(move |pin| pin.source == *source && pin.kind == kind)
    }

    fn add(&mut self, pin: &Pin) {
        let is_same = |own: &&Pin| own.name == pin.name && own.definition == pin.definition;
        if self.of_kind(&pin.source, pin.kind).any(|own| is_same(&own)) {
            return;
        }
        self.pins.push(pin.clone());
        if pin.standing != Standing::Held {
            return;
        }
        let is_held =
            |own: &Pin| own.standing == Standing::Held && own.source == pin.source && own.kind == pin.kind && own.name == pin.name;
        let mut held: Vec<u64> = self.pins.iter().filter(|own| is_held(own)).map(|own| own.since).collect();
        held.sort_unstable();
        let beyond = held.len().saturating_sub(MOST_HELD);
        for since in held.into_iter().take(beyond) {
            let oldest = self.pins.iter().position(|own| is_held(own) && own.since == since && own.definition != pin.definition);
            if let Some(oldest) = oldest {
                self.pins.remove(oldest);
            }
        }
    }
}

impl Pins for MemoryPins {
    fn together(&mut self, work: Together<'_>) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.0);
        let _turn = lock(&shared.turn);
        work(self);
        Ok(())
    }

    fn apart(&mut self, work: Apart<'_>) -> Result<(), StoreError> {
        let before = lock(&self.0.state).clone();
        work(self).inspect_err(|_| *lock(&self.0.state) = before)
    }

    fn known(&self, source: &Source, kind: Kind) -> Result<BTreeMap<String, Vec<Known>>, StoreError> {
        let mut known: BTreeMap<String, Vec<Known>> = BTreeMap::new();
        for pin in lock(&self.0.state).of_kind(source, kind) {
            let one = Known { hash: pin.definition.hash(), standing: pin.standing, why: pin.why };
            known.entry(pin.name.clone()).or_default().push(one);
        }
        Ok(known)
    }

    fn add(&mut self, source: &Source, kind: Kind, pins: &[Pin]) -> Result<(), StoreError> {
        let mut state = lock(&self.0.state);
        let (count, held) =
            (state.of_kind(source, kind).count(), state.of_kind(source, kind).filter(|pin| pin.standing == Standing::Held).count());
        let (most, most_held) = if kind.comes_and_goes() { (MOST_PASSING, MOST_PASSING_HELD) } else { (MOST, MOST) };
        let (waiting, good): (Vec<&Pin>, Vec<&Pin>) = pins.iter().partition(|pin| pin.standing == Standing::Held);
        let waiting = waiting.into_iter().take(most_held.saturating_sub(held));
        for pin in waiting.chain(good.into_iter().take(most.saturating_sub(count))) {
            state.add(&Pin { source: source.clone(), ..pin.clone() });
        }
        Ok(())
    }

    fn last_good(&self, source: &Source, kind: Kind, name: &str) -> Result<Option<Definition>, StoreError> {
        let state = lock(&self.0.state);
        let good = state.of_kind(source, kind).filter(|pin| pin.name == name && pin.standing == Standing::Accepted);
        Ok(good.max_by_key(|pin| pin.since).map(|pin| pin.definition.clone()))
    }

    fn all(&self, mount: Option<&str>) -> Result<Vec<Pin>, StoreError> {
        let state = lock(&self.0.state);
        let mut all: Vec<Pin> = state.pins.iter().filter(|pin| mount.is_none_or(|mount| pin.source.mount == mount)).cloned().collect();
        all.sort_by(|a, b| {
            let kinds = b.kind.as_str().cmp(a.kind.as_str());
            a.source.cmp(&b.source).then(kinds).then_with(|| a.name.cmp(&b.name)).then(a.since.cmp(&b.since))
        });
        Ok(all)
    }

    fn was_gate(&mut self, source: &Source, is_pinned_as_gate: bool, _now: u64) -> Result<bool, StoreError> {
        let mut state = lock(&self.0.state);
        if state.gates.contains(source) {
            return Ok(true);
        }
        if !is_pinned_as_gate && state.pins.iter().any(|pin| pin.source == *source) {
            return Ok(false);
        }
        state.gates.push(source.clone());
        Ok(true)
    }

    fn set(&mut self, pin: &Pin, standing: Standing, now: u64) -> Result<(), StoreError> {
        let mut state = lock(&self.0.state);
        let is_meant =
            |own: &&mut Pin| own.source == pin.source && own.kind == pin.kind && own.name == pin.name && own.definition == pin.definition;
        state.pins.iter_mut().filter(is_meant).for_each(|own| (own.standing, own.since) = (standing, now));
        let at = state.looks.last_key_value().map_or(1, |(at, _)| at + 1);
        state.looks.insert(at, (now, pin.source.mount.clone(), pin.kind));
        Ok(())
    }

    fn looked(&self, since: u64) -> Result<i64, StoreError> {
        let state = lock(&self.0.state);
        Ok(state.looks.iter().rev().find(|(_, (when, ..))| *when < since).map_or(0, |(at, _)| *at))
    }

    fn looks_after(&self, at: i64) -> Result<(i64, Vec<(String, Kind)>), StoreError> {
        let state = lock(&self.0.state);
        let looks = state.looks.range(at + 1..).map(|(_, (_, mount, kind))| (mount.clone(), *kind)).collect();
        Ok((state.looks.last_key_value().map_or(at, |(last, _)| (*last).max(at)), looks))
    }
}
