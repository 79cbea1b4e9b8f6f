//! The driver of parts behind a wire: a part on a serial port is a mount whose tools the configuration names.
//!
//! Knows no policy and no caller's rights: a call comes in ready to send. `stub_proto` decides what goes over the wire, and when.

mod catalog;
pub mod line;
mod part;
pub mod places;
pub mod port;
pub mod section;
pub mod settings;
mod upstream;
pub mod values;

pub use part::StubPart;
