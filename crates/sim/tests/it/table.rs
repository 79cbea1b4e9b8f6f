//! Histories of a mounted room with a server in it, each from its seed. `BANYAN_SIM_SEEDS=10000` runs more of them
//! (the long run), `BANYAN_SIM_SEED=N` runs one and prints it.

use std::collections::BTreeMap;

use sim::broken::setting;
use sim::table::live;

/// So many by default: seconds.
const SEEDS: u64 = 60;

/// Events that have to occur somewhere among the seeds.
const MET: [&str; 13] = [
    "answers",
    "approved at",
    "asks",
    "cancelled by",
    "comes back",
    "denied at",
    "fulfils",
    "goes out for",
    "has answered",
    "is absent for",
    "left under",
    "offers others",
    "rejects",
];

#[test]
fn mx_21_whoever_asks_has_one_answer_of_its_own_and_a_proposal_one_call_whatever_the_others_do() {
    if let Some(seed) = setting("BANYAN_SIM_SEED") {
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", broken.describe("table", "mx_21")));
        println!("{}", outcome.trace.join("\n"));
        return;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..setting("BANYAN_SIM_SEEDS").unwrap_or(SEEDS) {
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", broken.describe("table", "mx_21")));
        outcome.counts.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    println!("{counts:#?}");
    // A world in which something never happens proves nothing of it.
    for what in MET {
        assert!(counts.contains_key(what), "nothing of the kind `{what}` happened: {counts:?}");
    }
}
