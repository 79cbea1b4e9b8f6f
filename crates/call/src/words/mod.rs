//! Words of a call: its caller, the credential, the way back. Nothing here decides or acts.

pub mod back;
pub mod by_session;
pub mod caller;
pub mod cancel;
pub mod key;
pub mod lane;
pub mod node;
pub mod pour;
pub mod pouring;
pub mod session;
pub mod shares;
pub mod subscriptions;

pub mod address;
pub mod entered;
pub mod granted;
pub mod party;
pub mod refusal;
