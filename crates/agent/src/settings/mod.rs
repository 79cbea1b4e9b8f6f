//! The settings of the gate as an agent. Puts none in force.

pub mod evidence;
pub mod section;
