//! Histories of one upstream with many faults, each from its seed. `BANYAN_SIM_SEEDS=10000` runs more of them (the long
//! run), `BANYAN_SIM_SEED=N` runs one and prints it.

use std::collections::BTreeSet;

use sim::broken::setting;
use sim::upstream::{Outcome, live};

/// So many by default: seconds.
const SEEDS: u64 = 200;

#[test]
fn every_call_ends_once_with_its_own_answer_whatever_the_server_does() {
    if let Some(seed) = setting("BANYAN_SIM_SEED") {
        let outcome = live(seed, seed).unwrap_or_else(|broken| panic!("{}", broken.describe("upstream", "every_call")));
        println!("{}", outcome.trace.join("\n"));
        return;
    }
    let mut ended = [0; 5];
    for seed in 0..setting("BANYAN_SIM_SEEDS").unwrap_or(SEEDS) {
        let outcome = live(seed, seed).unwrap_or_else(|broken| panic!("{}", broken.describe("upstream", "every_call")));
        ended.iter_mut().zip(outcome.ended).for_each(|(sum, more)| *sum += more);
    }
    // A world in which something never happens proves nothing of it.
    let [answered, garbled, cancelled, thrown_away, with_the_pipe] = ended;
    assert!(ended.iter().all(|count| *count > 0), "{ended:?}");
    println!(
        "{answered} answered, {garbled} garbled, {cancelled} cancelled, {thrown_away} thrown away, {with_the_pipe} lost with the pipe"
    );
}

#[test]
fn cutting_the_stream_differently_never_changes_the_outcome() {
    for seed in 0..setting("BANYAN_SIM_SEEDS").unwrap_or(SEEDS).div_ceil(4) {
        let lives = |cut| live(seed, cut).unwrap_or_else(|broken| panic!("cut {cut}: {}", broken.describe("upstream", "every_call")));
        let first: Outcome = lives(0);
        for cut in 1..4 {
            assert_eq!(lives(cut), first, "seed {seed}, cut {cut}");
        }
    }
}

#[test]
fn each_kind_of_server_is_met_over_both_framings() {
    let kinds: BTreeSet<String> = (0..SEEDS)
        .map(|seed| live(seed, 0).unwrap_or_else(|broken| panic!("{}", broken.describe("upstream", "every_call"))).trace.swap_remove(0))
        .collect();
    assert_eq!(kinds.len(), 18, "{kinds:#?}");
}
