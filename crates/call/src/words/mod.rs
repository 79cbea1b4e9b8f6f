//! Words of a call: its caller, the credential, the way back. Nothing here decides or acts.

pub mod cancel;
pub mod key;
pub mod lane;
pub mod node;
pub mod pour;
pub mod pouring;
pub mod refusals;
pub mod seated;
pub mod session;
pub mod shares;
pub mod subscriptions;
pub mod view_key;
pub mod witness;

pub mod address;
pub mod entered;
pub mod granted;
pub mod party;
pub mod refusal;
