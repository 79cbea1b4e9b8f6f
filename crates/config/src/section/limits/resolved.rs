//! Bounds on callers and servers, every default filled in. Enforces none.

use std::time::Duration;

/// Bounds on what a caller may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Longest request body, in bytes.
    pub request_bytes: usize,
    /// Longest answer taken from an upstream, in bytes.
    pub response_bytes: usize,
    /// Calls in flight over all upstreams.
    pub calls: usize,
    /// Calls in flight to one upstream.
    pub calls_per_mount: usize,
    /// How long what is ready may wait for its turn before requests are refused.
    pub wait: Duration,
    /// Initialize-era sessions kept.
    pub sessions: usize,
    /// How long an idle session is kept.
    pub session_idle: Duration,
    /// Tools taken from one upstream; the rest is reported and left out.
    pub tools_per_mount: usize,
    /// Share of one principal in what is free and what the principal holds, in percent.
    pub share: usize,
    /// Connections of clients.
    pub connections: usize,
    /// Connections from one address; `None`: a share of them, where the gate listens on a network.
    pub connections_per_address: Option<usize>,
    /// Bytes in bodies of requests, as far as these are long.
    pub body_bytes: usize,
    /// Bytes in event streams: what waits for its reader, and answers that are kept for whoever comes back for them.
    pub stream_bytes: usize,
    /// Calls that wait for their caller to come back with an answer.
    pub parked: usize,
    /// Open `subscriptions/listen` requests.
    pub listeners: usize,
    /// Resources that are subscribed to.
    pub subscriptions: usize,
    /// Longest time for which a question of a server is left without an answer.
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
