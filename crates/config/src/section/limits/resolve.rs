//! Resolves `[limits]`. Enforces no bound.

use super::file;
use super::resolved::Limits;
use crate::reading::FileReading;

impl FileReading<'_> {
    pub(super) fn limits(&mut self, limits: &file::Limits) -> Limits {
        let defaults = Limits::default();
        Limits {
            request_bytes: self.size(limits.request_size.as_ref()).unwrap_or(defaults.request_bytes),
            response_bytes: self.size(limits.response_size.as_ref()).unwrap_or(defaults.response_bytes),
            calls: limits.calls.unwrap_or(defaults.calls),
            calls_per_mount: limits.calls_per_mount.unwrap_or(defaults.calls_per_mount),
            wait: self.duration(limits.wait.as_ref()).unwrap_or(defaults.wait),
            sessions: limits.sessions.unwrap_or(defaults.sessions),
            session_idle: self.duration(limits.session_idle.as_ref()).unwrap_or(defaults.session_idle),
            tools_per_mount: limits.tools_per_mount.unwrap_or(defaults.tools_per_mount),
            share: limits.share.unwrap_or(defaults.share),
            connections: limits.connections.unwrap_or(defaults.connections),
            connections_per_address: limits.connections_per_address,
            body_bytes: self.size(limits.bodies.as_ref()).unwrap_or(defaults.body_bytes),
            stream_bytes: self.size(limits.streams.as_ref()).unwrap_or(defaults.stream_bytes),
            parked: limits.parked.unwrap_or(defaults.parked),
            listeners: limits.listeners.unwrap_or(defaults.listeners),
            subscriptions: limits.subscriptions.unwrap_or(defaults.subscriptions),
            question: self.duration(limits.question.as_ref()).unwrap_or(defaults.question),
        }
    }
}
