//! Histories of whole worlds, and what the fuzzer kept. Looks at no source: the house rules stand in `tidy`.

mod change;
mod corpus;
mod room;
mod table;
mod tree;
mod upstream;
