//! Replies to a machine's requests. Does not wait for them.

/// A reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The raw `error` object.
    Error(&'a [u8]),
    /// The request or the reply was lost.
    Lost,
    /// The link carries no requests in this direction.
    Mute,
    /// The raw `result`.
    Result(&'a [u8]),
}
