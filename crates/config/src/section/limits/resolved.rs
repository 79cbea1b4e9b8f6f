//! Bounds on callers and servers, every default filled in. Enforces none.

use std::time::Duration;

/// Bounds for callers and servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Longest request body, in bytes.
    pub request_bytes: usize,
    /// Longest answer taken from an upstream, in bytes.
    pub response_bytes: usize,
    /// Calls in flight over all upstreams.
    pub calls: usize,
    /// Calls in flight to each upstream.
    pub calls_per_mount: usize,
    /// Longest wait of ready work for its turn, before requests are refused.
    pub wait: Duration,
    /// Initialize-era sessions kept.
    pub sessions: usize,
    pub session_idle: Duration,
    /// Tools taken from each upstream; the rest is reported and left out.
    pub tools_per_mount: usize,
    /// Share of each principal in free room and the principal's own room together, in percent.
    pub share: usize,
    /// Connections of clients.
    pub connections: usize,
    /// Connections from each address; `None`: a share of all, where the gate listens on a network.
    pub connections_per_address: Option<usize>,
    /// Bytes in bodies of requests, as far as these are long.
    pub body_bytes: usize,
    /// Bytes in event streams: waiting messages, and answers kept for returning clients.
    pub stream_bytes: usize,
    /// Calls in wait for an answer of their caller.
    pub parked: usize,
    /// Open `subscriptions/listen` requests.
    pub listeners: usize,
    /// Subscribed resources.
    pub subscriptions: usize,
    /// Longest time without an answer to a question of a server.
    pub question: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: 16 << 20,
            response_bytes: 64 << 20,
            calls: 4096,
            calls_per_mount: 512,
            wait: Duration::from_millis(10),
            sessions: 100_000,
            session_idle: Duration::from_secs(30 * 60),
            tools_per_mount: 200_000,
            share: 50,
            connections: 32_768,
            connections_per_address: None,
            body_bytes: 512 << 20,
            stream_bytes: 256 << 20,
            parked: 10_000,
            listeners: 10_000,
            subscriptions: 100_000,
            question: Duration::from_secs(60 * 60),
        }
    }
}
