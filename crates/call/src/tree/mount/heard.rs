//! Everything that a server says outside of calls, and who hears of it. What it says in a call is not handled here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_proto::catalog::Kind;
use mcp_proto::envelope::Notification;

use crate::tree::asks;
use crate::tree::back::Back;
use crate::tree::mount::{Honoured, Mount};
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

    /// Takes what the server said outside of calls.
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
            "notifications/subscriptions/acknowledged" => self.connections.agree(Some(Honoured::read(notification))),
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
                }
            },
        }
    }

    /// What a registered server says is for everybody goes to everybody, in its order and at a bounded rate. `false`: it does not say so.
    fn relayed(&self, owner: &Owner, near: &[Arc<Back>], notification: &Notification) -> bool {
        let registration = self.registration.as_ref().filter(|registration| registration.notifies);
        let Some(registration) = registration.filter(|_| near.is_empty() && matches!(owner, Owner::Shared)) else { return false };
        if let Some(mesh) = self.gate.mesh() {
            mesh.relay(registration.session, notification.whole.clone());
        }
        true
    }

    /// How a task stands concerns whoever began it, and not whoever happens to call just now. `false`: nobody is known to have.
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

    /// The lists are those of the shared connection; a session with its own is told all the same.
    fn list_changed(&self, owner: &Owner, notification: &Notification) {
        if let Owner::Session(session) = owner
            && let Some(session) = session.upgrade()
        {
            self.gate.hub.to_session(&session, notification);
        }
        let of = |k: &Kind| k.list_changed() == notification.method;
        self.connections.dirty(&Kind::ALL.into_iter().filter(of).collect::<Vec<_>>());
    }

    /// An answer was refused, for it has the id of another request.
    pub fn misanswered(&self) {
        self.misanswers.fetch_add(1, Ordering::Relaxed);
    }
}
