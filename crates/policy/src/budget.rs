//! Budgets (MCP-AX 11.4, AX-48): calls and costs of a caller per minute and per session. Exact for exclusive use of an account, which
//! is not seen to here.

mod account;
mod purse;

pub use account::{Account, Charge, Exceeded, Limits, Spent, Taken, WINDOW};
pub use purse::{Held, Purse, RefusedAccount};
