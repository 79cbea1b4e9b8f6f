//! The driver of parts behind a wire: a part on a serial port is a mount whose tools the configuration names.
//!
//! Knows no policy and no caller's rights: a call comes in ready to send. `stub_proto` decides what goes over the wire, and when.

pub mod broker;
mod catalog;
pub mod ends;
pub mod line;
mod part;
pub mod places;
pub mod port;
pub mod section;
pub mod settings;
pub mod text;
mod upstream;
pub mod values;
pub mod wire;

pub use part::StubPart;
