//! Histories of a device that is changed, each from its seed. `BANYAN_SIM_SEEDS=10000` lives through more of them (the long run),
//! `BANYAN_SIM_SEED=N` through one and prints it.

use std::collections::BTreeMap;

use sim::broken::setting;
use sim::change::live;

/// So many by default: seconds.
const SEEDS: u64 = 2000;

/// Events that have to occur somewhere among the seeds.
const MET: [&str; 25] = [
    "acknowledgement lost",
    "cancel lost",
    "came to nothing",
    "clock jumped",
    "commit delayed",
    "commit lost",
    "committed",
    "confirmation lost",
    "confirmed",
    "device restarted",
    "disk full",
    "drifted",
    "half done",
    "killed",
    "locked",
    "machine restarted",
    "no way back",
    "not done",
    "restored by itself",
    "rolled back",
    "settled",
    "stuck",
    "taken back by the device",
    "taken over",
    "too late",
];

#[test]
fn nm_09_a_device_runs_what_was_confirmed_or_is_restored() {
    if let Some(seed) = setting("BANYAN_SIM_SEED") {
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", broken.describe("change", "nm_09")));
        println!("{}", outcome.trace.join("\n"));
        return;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..setting("BANYAN_SIM_SEEDS").unwrap_or(SEEDS) {
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", broken.describe("change", "nm_09")));
        outcome.counts.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    println!("{counts:#?}");
    // A world in which something never happens proves nothing of it.
    for what in MET {
        assert!(counts.contains_key(what), "nothing of the kind `{what}` happened: {counts:?}");
    }
}
