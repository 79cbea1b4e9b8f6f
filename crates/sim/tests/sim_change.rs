//! Histories of a device that is changed, each from its seed. `BANYAN_SIM_SEEDS=10000` lives through more of them (the long run),
//! `BANYAN_SIM_SEED=N` through one and prints it.

use std::collections::BTreeMap;

use sim::broken::setting;
use sim::change::live;

/// So many by default: seconds.
const SEEDS: u64 = 2000;

/// What has to happen somewhere among the seeds.
const MET: [&str; 19] = [
    "acknowledgement lost",
    "came to nothing",
    "clock jumped",
    "committed",
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
    "stuck",
    "taken over",
    "too late",
];

#[test]
fn nm_09_the_old_configuration_runs_or_a_deadline_restores_it_or_somebody_confirmed() {
    if let Some(seed) = setting("BANYAN_SIM_SEED") {
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", broken.told("sim_change", "nm_09")));
        println!("{}", outcome.trace.join("\n"));
        return;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..setting("BANYAN_SIM_SEEDS").unwrap_or(SEEDS) {
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", broken.told("sim_change", "nm_09")));
        outcome.counts.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    println!("{counts:#?}");
    // A world in which something never happens proves nothing of it.
    for what in MET {
        assert!(counts.contains_key(what), "nothing of the kind `{what}` happened: {counts:?}");
    }
}
