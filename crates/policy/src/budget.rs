//! Budgets (MCP-AX 11.4, AX-48): how much a caller may do in a minute and in a session. Exact for whoever has the account to himself;
//! that nobody else has it meanwhile is not seen to here.

mod account;
mod purse;

pub use account::{Account, Charge, Exceeded, Limits, Spent, Taken, WINDOW};
pub use purse::{Held, Purse, Refused};
