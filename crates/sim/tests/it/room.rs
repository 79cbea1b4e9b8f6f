//! Histories of one room, each from its seed. `BANYAN_SIM_SEEDS=10000` runs more of them (the long run),
//! `BANYAN_SIM_SEED=N` runs one and prints it.

use std::collections::BTreeMap;

use sim::broken::setting;
use sim::room::live;

/// So many by default: seconds.
const SEEDS: u64 = 60;

/// Events that have to occur somewhere among the seeds.
const MET: [&str; 15] = [
    "Dismissed",
    "Misbehaved",
    "SlowReader",
    "auth_violation",
    "capability_violation",
    "changed",
    "full",
    "invalid_envelope",
    "joined",
    "joined again",
    "left",
    "rate_limited",
    "relayed",
    "relayed to absent",
    "unsupported_protocol",
];

#[test]
fn mx_19_everybody_gets_what_is_for_it_once_and_in_order_whatever_the_others_do() {
    if let Some(seed) = setting("BANYAN_SIM_SEED") {
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", broken.describe("room", "mx_19")));
        println!("{}", outcome.trace.join("\n"));
        return;
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..setting("BANYAN_SIM_SEEDS").unwrap_or(SEEDS) {
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", broken.describe("room", "mx_19")));
        outcome.counts.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    println!("{counts:#?}");
    // A world in which something never happens proves nothing of it.
    for what in MET {
        assert!(counts.contains_key(what), "nothing of the kind `{what}` happened: {counts:?}");
    }
}
