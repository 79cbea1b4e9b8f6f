//! Messages of a server outside of calls, and their receivers. Does not handle messages within a call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_proto::catalog::Kind;
use mcp_proto::envelope::Notification;

use crate::tree::asks;
use crate::tree::back::Back;
use crate::tree::mount::{AnnouncedChanges, Mount};
use crate::tree::port::Owner;

impl Mount {
    /// The server asked something outside the stream of any call; `idle`: no call was under way.
    pub fn saw_question(&self, method: &str, idle: bool) {
        if idle && method == "roots/list" {
            self.connections.asks_roots.store(true, Ordering::Relaxed);
        } else if !self.connections.asks.swap(true, Ordering::Relaxed) {
            tracing::info!(mount = %self.config.name, "the server asks its clients; those that can answer share a connection one at a time");
        }
    }

    /// Handles a notification outside of calls.
    pub fn notified(&self, owner: &Owner, notification: &Notification, near: &[Arc<Back>]) {
        if let Some(listens) = near.iter().find(|b| b.stands()) {
            return asks::pass_on(listens, notification);
        }
        match notification.method.as_str() {
            method if method.ends_with("/list_changed") && !method.contains("roots") => self.list_changed(owner, notification),
            "notifications/resources/updated" => {
                if let Some(uri) = notification.params.members().str("uri") {
                    self.gate.hub.updated(&self.config.name, &uri, notification);
                }
            }
            "notifications/subscriptions/acknowledged" => self.connections.agree(Some(AnnouncedChanges::read(notification))),
            "notifications/progress" => {}
            "notifications/tasks/status" if self.told_to_its_principal(owner, notification) => {}
            method if self.relayed(owner, near, notification) => tracing::trace!(mount = %self.config.name, method, "relayed"),
            method => match (owner, near) {
                (_, [only]) => asks::pass_on(only, notification),
                (Owner::Session(session), _) => {
                    if let Some(session) = session.upgrade() {
                        self.gate.hub.to_session(&session, notification);
                    }
                }
                (Owner::Shared, _) => {
                    tracing::trace!(mount = %self.config.name, method, "broadcast");
                    self.gate.hub.broadcast(&self.config.name, notification, near);
                    // Gates above have callers of others: the effect of a call, or a log, stays here.
                    if near.is_empty()
                        && method != "notifications/message"
                        && let Some(mesh) = self.gate.mesh()
                        && let Some(principal) = self.gate.hub.only_principal_above(&self.config.name)
                    {
                        mesh.relay_mount(&self.config.name, principal, notification.whole.clone());
                    }
                }
            },
        }
    }

    /// Relays a registered server's notification to everybody, in order and at a bounded rate; `false` unless the server registered as a
    /// notifier.
    fn relayed(&self, owner: &Owner, near: &[Arc<Back>], notification: &Notification) -> bool {
        let registration = self.registration.as_ref().filter(|registration| registration.notifies);
        let Some(registration) = registration.filter(|_| near.is_empty() && matches!(owner, Owner::Shared)) else { return false };
        if let Some(mesh) = self.gate.mesh() {
            mesh.relay(registration.session, notification.whole.clone());
        }
        true
    }

    /// Sends the state of a task to the principal that began it, not to the caller of the moment; `false` for an unknown beginner.
    fn told_to_its_principal(&self, owner: &Owner, notification: &Notification) -> bool {
        let id = notification.params.members().str("taskId").map(|id| id.into_owned()).unwrap_or_default();
        let principal = match owner {
            Owner::Session(_) => None,
            Owner::Shared => self.gate.load.tasks.began(&self.config.name, &id),
        };
        if let Some(principal) = &principal {
            self.gate.hub.to_principal(&self.config.name, principal, notification);
        }
        principal.is_some()
    }

    // Lists belong to the shared connection, but a session with a connection of its own still hears of changes.
    fn list_changed(&self, owner: &Owner, notification: &Notification) {
        if let Owner::Session(session) = owner
            && let Some(session) = session.upgrade()
        {
            self.gate.hub.to_session(&session, notification);
        }
        let of = |k: &Kind| k.list_changed() == notification.method;
        self.connections.dirty(&Kind::ALL.into_iter().filter(of).collect::<Vec<_>>());
    }

    /// Counts an answer refused for the id of another request.
    pub fn misanswered(&self) {
        self.misanswers.fetch_add(1, Ordering::Relaxed);
    }
}
