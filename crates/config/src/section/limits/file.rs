//! The form of `[limits]`. Checks no size and no duration.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The key of the bounds.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct LimitsForm {
    /// Bounds for callers and servers.
    pub limits: Limits,
}

/// Bounds for callers and servers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Longest request body. Default: `16MiB`.
    #[schemars(example = "16MiB")]
    pub request_size: Option<At<String>>,
    /// Longest answer taken from a server. Default: `64MiB`.
    #[schemars(example = "64MiB")]
    pub response_size: Option<At<String>>,
    /// Calls in flight over all servers. Default: 4096.
    #[schemars(range(min = 1))]
    pub calls: Option<usize>,
    /// Calls in flight to each server. Default: 512.
    #[schemars(range(min = 1))]
    pub calls_per_mount: Option<usize>,
    /// Longest wait of a call for its turn on an overloaded gate, before more calls are refused. Default: `10ms`.
    #[schemars(example = "10ms")]
    pub wait: Option<At<String>>,
    /// Sessions kept for clients of revisions before 2026-07-28. Default: 100000.
    #[schemars(range(min = 1))]
    pub sessions: Option<usize>,
    /// Time for which an idle session is kept. Default: `30m`.
    #[schemars(example = "30m")]
    pub session_idle: Option<At<String>>,
    /// Tools taken from each server; the rest is reported and left out. Default: 200000.
    #[schemars(range(min = 1))]
    pub tools_per_mount: Option<usize>,
    /// Share of each caller in every bound, in percent of free room and the caller's own room together; 100 shares nothing out. An only
    /// caller has all. Default: 50.
    #[schemars(range(min = 1, max = 100))]
    pub share: Option<usize>,
    /// Connections of clients, at most three quarters of the files that the system lets the gate open. Near the bound, the longest idle are
    /// closed. Default: 32768.
    #[schemars(range(min = 1))]
    pub connections: Option<usize>,
    /// Connections from each address (of IPv6: each network of 64 bits). Default: as `share` says, where the gate listens on a network.
    #[schemars(range(min = 1))]
    pub connections_per_address: Option<usize>,
    /// Bodies of requests over 64 KiB together, until they are answered. Default: `512MiB`.
    #[schemars(example = "512MiB")]
    pub bodies: Option<At<String>>,
    /// Messages in event streams that wait for clients, and answers kept for returning clients. Default: `256MiB`.
    #[schemars(example = "256MiB")]
    pub streams: Option<At<String>>,
    /// Calls in wait for an answer of their client (revision 2026-07-28). Default: 10000.
    #[schemars(range(min = 1))]
    pub parked: Option<usize>,
    /// Open `subscriptions/listen` requests. Default: 10000.
    #[schemars(range(min = 1))]
    pub listeners: Option<usize>,
    /// Subscribed resources, over all clients. Default: 100000.
    #[schemars(range(min = 1))]
    pub subscriptions: Option<usize>,
    /// Longest time without an answer to a question of a server. Default: `1h`.
    #[schemars(example = "1h")]
    pub question: Option<At<String>>,
}
