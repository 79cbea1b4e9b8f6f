//! HTTP/1.1 (RFC 9112) over bytes, as far as a gateway reads it itself: heads, and ends of bodies.
//!
//! Takes only requests with a single reading, so that no two servers take bytes apart differently; anything odd, chunked or of HTTP/2 is left to
//! a library. Behind a library a small call took 2.2 times the processor time of nginx: a task, two channels and a copied head on either side.
//!
//! Does not write, keep connections, follow redirects or decompress, and knows nothing of MCP.

mod before;
mod body;
mod fields;
mod request;
mod response;
mod search;

pub use before::{Before, Heads};
pub use body::Body;
pub use fields::Fields;
pub use request::{Post, Unusual};
pub use response::Head;

/// Bytes of the longest head.
pub const MAX_HEAD: usize = 64 << 10;

const MAX_FIELDS: usize = 96;

/// Reasons for input to be no response. The connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The framing of the body is open to two readings.
    #[error("the length of its body is not clear")]
    Framing,
    /// No HTTP/1.1, or a head longer than [`MAX_HEAD`].
    #[error("it does not answer in HTTP/1.1")]
    Head,
}

fn whole_number(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let digit = |number: u64, b: &u8| number.checked_mul(10)?.checked_add(u64::from(b.checked_sub(b'0').filter(|digit| *digit < 10)?));
    if value.is_empty() { None } else { value.iter().try_fold(0, digit) }
}
