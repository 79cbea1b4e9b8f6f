//! House rules beyond the compiler, held as tests: layers, budgets, words, packages, documents.
//! The tests read files and `cargo metadata`; they do not build or run anything.

#![expect(clippy::expect_used, reason = "a check whose ground is missing fails loudly")]

mod additions;
mod budgets;
mod conformance;
mod dependencies;
mod documents;
mod english;
mod floors;
mod layers;
mod licences;
mod metadata;
mod packages;
mod prose;
mod tree;
mod walls;
mod words;
