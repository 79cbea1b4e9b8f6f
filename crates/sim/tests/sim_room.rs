//! Histories of one room, each from its seed. `BANYAN_SIM_SEEDS=10000` lives through more of them (the long run),
//! `BANYAN_SIM_SEED=N` through one and prints it.

use std::collections::BTreeMap;

use sim::broken::Broken;
use sim::room::live;

/// So many by default: seconds.
const SEEDS: u64 = 60;

/// What has to happen somewhere among the seeds.
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
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", told(&broken)));
        println!("{}", outcome.trace.join("\n"));
        return;
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..setting("BANYAN_SIM_SEEDS").unwrap_or(SEEDS) {
        let outcome = live(seed).unwrap_or_else(|broken| panic!("{}", told(&broken)));
        outcome.counts.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    println!("{counts:#?}");
    // A world in which something never happens proves nothing of it.
    for what in MET {
        assert!(counts.contains_key(what), "nothing of the kind `{what}` happened: {counts:?}");
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

fn told(broken: &Broken) -> String {
    let (seed, what) = (broken.seed, &broken.what);
    let replay = format!("BANYAN_SIM_SEED={seed} cargo test -p sim --test sim_room -- --nocapture mx_19");
    format!("seed {seed} breaks a rule. Its history:\n{}\n{what}\nreplay: {replay}", broken.trace.join("\n"))
}
