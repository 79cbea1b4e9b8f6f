//! What became of a request that a machine sent. Waiting for it is not done here.

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The raw `error` object.
    Error(&'a [u8]),
    /// It did not get there, or nothing came back.
    Lost,
    /// The link carries no requests in this direction.
    Mute,
    /// The raw `result`.
    Result(&'a [u8]),
}
