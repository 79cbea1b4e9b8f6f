//! The ground under every driver: the loop around a state machine, serving threads, timers, the clock, random numbers, sockets and TLS, files
//! replaced whole.
//! Knows no protocol and nothing of the gate.

pub mod alarm;
pub mod browser;
pub mod clock;
pub mod drive;
pub mod lateness;
pub mod listening;
pub mod random;
pub mod reach;
pub mod tcp;
pub mod tls;
pub mod together;
pub mod wall;
pub mod whole;
pub mod worker;
