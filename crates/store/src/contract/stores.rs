//! Promises of [`Stores`]. Their place is not known here.

use std::sync::Arc;

use super::{bus, claims, contexts, lessons, pending, pins};
use crate::Stores;

/// A place for stores, opened by each call as another gate or a later run would.
pub type StorePlace = Box<dyn Fn() -> Arc<dyn Stores>>;

/// Tries every promise, each at a fresh place.
pub async fn hold(fresh: impl Fn() -> StorePlace) {
    claims::are_there_after_a_restart_and_each_gates_own(&fresh()).await;
    pending::rows_are_there_after_a_restart_and_operators_are_every_gates(&fresh());
    pending::what_is_over_for_long_is_forgotten(&fresh());
    pending::no_turn_writes_over_what_another_wrote_meanwhile(&fresh());
    pins::are_known_after_a_restart_and_one_tool_does_not_fill_the_store(&fresh());
    pins::what_comes_and_goes_does_not_flood_whoever_looks(&fresh());
    pins::what_fails_leaves_nothing_behind(&fresh());
    pins::looks_are_heard_by_whoever_asks_from_where_he_was(&fresh());
    pins::gates_are_those_that_said_so_when_they_were_first_seen(&fresh());
    lessons::are_kept_for_their_gate_and_room(&fresh());
    contexts::are_there_after_a_restart_and_each_gates_own(&fresh());
    contexts::go_on_from_a_snapshot(&fresh());
    bus::news_come_to_whoever_listens(&fresh()).await;
}
