//! Decisions from outside, with rules, budgets and definitions as people write them. Asks nobody.

mod budget;
mod decide;
mod poisoned;
