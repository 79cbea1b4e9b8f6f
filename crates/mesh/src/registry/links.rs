//! Links of requests. A child's link is its connection. A registration by plain HTTP requests has no connection to break: proxies, pools
//! and reconnecting clients make connections useless as signs of life. Its link is made of lasting things instead, and serves a single
//! registration: principal, subserver id and URL.
//!
//! So a heartbeat finds its registration by the session id over any connection, if the principal is the same. The end of an MCP session
//! does not end the registration; missing heartbeats and `mcpax/deregister` do. And a server that comes back at another URL is on another
//! link, so that the server at the old URL is asked whether it is still there.
//!
//! Grants no registration.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use mcp_proto::envelope::Answer;
use mesh_proto::authority::Identity;
use mesh_proto::id::{LinkId, NodeId, SessionId, SessionKey};
use tokio::sync::{mpsc, oneshot};
use url::Url;

use mcp::upstream::pool::Pool;

/// A link without sessions: requests on it speak for nobody.
const NOBODY: LinkId = LinkId(0);

/// The gate's end of a child's link.
pub struct LinkEnd {
    /// The child's MCP endpoint in requests over the link.
    pub url: Url,
    /// Connections over the link.
    pub pool: Arc<Pool>,
    /// Queue of requests to the child.
    pub asks: mpsc::Sender<Ask>,
}

/// A request to a child. Dropping it means no answer.
pub struct Ask {
    pub method: &'static str,
    /// A raw object.
    pub params: String,
    pub reply: oneshot::Sender<Answer>,
}

/// The other end of a link.
pub enum End {
    Held(LinkEnd),
    Dialled(DialledServer),
}

/// A server reached at its URL.
#[derive(Clone)]
pub struct DialledServer {
    key: Key,
    pub url: Url,
    /// Patience for an answer.
    pub patience: Duration,
}

type Key = (Arc<str>, NodeId, String);

/// Ends of links by id, with the registrations over HTTP.
#[derive(Default)]
pub struct Links {
    ends: HashMap<LinkId, End>,
    dialled: BTreeMap<Key, LinkId>,
    sessions: HashMap<SessionId, (LinkId, Arc<str>)>,
    ids: HashMap<SessionKey, SessionId>,
    /// Number of sessions on a link; absent: none.
    used: HashMap<LinkId, usize>,
    /// Links to check for remaining use.
    left: Vec<LinkId>,
}

impl Links {
    /// Adds an opened link.
    pub fn opened(&mut self, link: LinkId, end: LinkEnd) {
        self.ends.insert(link, End::Held(end));
    }

    /// Drops a lost link.
    pub fn lost(&mut self, link: LinkId) {
        self.ends.remove(&link);
    }

    /// Finds the end of a link.
    pub fn find_end(&self, link: LinkId) -> Option<&End> {
        self.ends.get(&link)
    }

    /// Gives the link of a registration by HTTP, old or new.
    pub fn dial(&mut self, identity: &Identity, id: NodeId, url: Url, patience: Duration, new: impl FnOnce() -> LinkId) -> LinkId {
        let key: Key = (Arc::clone(&identity.principal), id, url.to_string());
        let link = *self.dialled.entry(key.clone()).or_insert_with(new);
        self.ends.insert(link, End::Dialled(DialledServer { key, url, patience }));
        link
    }

    /// Finds the link of a session named by HTTP request. Only the session's principal may speak for it.
    pub fn of_session(&self, identity: &Identity, id: &str) -> LinkId {
        let known = SessionId::parse(id).and_then(|id| self.sessions.get(&id));
        known.filter(|(_, principal)| *principal == identity.principal).map_or(NOBODY, |(link, _)| *link)
    }

    /// Adds a session on a link.
    pub fn began(&mut self, key: SessionKey, id: SessionId, link: LinkId, principal: Arc<str>) {
        *self.used.entry(link).or_default() += 1;
        self.ids.insert(key, id.clone());
        self.sessions.insert(id, (link, principal));
    }

    /// Removes a session.
    pub fn over(&mut self, key: SessionKey) {
        let Some((link, _)) = self.ids.remove(&key).and_then(|id| self.sessions.remove(&id)) else { return };
        if let Some(count) = self.used.get_mut(&link) {
            *count -= 1;
            if *count == 0 {
                self.used.remove(&link);
            }
        }
        self.left(link);
    }

    /// Marks a link for a check, after a vain request or the end of a session.
    pub fn left(&mut self, link: LinkId) {
        self.left.push(link);
    }

    /// Drops unused links of registrations by HTTP. To be called between answers: a new registration over the same link first ends the
    /// previous session.
    pub fn let_go(&mut self) {
        for link in std::mem::take(&mut self.left) {
            if !self.used.contains_key(&link)
                && let Some(End::Dialled(dialled)) = self.ends.get(&link)
            {
                self.dialled.remove(&dialled.key);
                self.ends.remove(&link);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dial(links: &mut Links, principal: &str, id: u128, url: &str, new: u64) -> LinkId {
        links.dial(&Identity::bare(principal), NodeId::new(id), Url::parse(url).unwrap(), Duration::ZERO, || LinkId(new))
    }

    #[test]
    fn ax_20_a_registration_by_http_keeps_its_link() {
        let mut links = Links::default();
        let first = dial(&mut links, "p", 1, "http://127.0.0.1:1/mcp", 1);
        assert_eq!(dial(&mut links, "p", 1, "http://127.0.0.1:1/mcp", 2), first);
        for (at, other) in [("q", 1, "http://127.0.0.1:1/mcp"), ("p", 2, "http://127.0.0.1:1/mcp"), ("p", 1, "http://127.0.0.1:2/mcp")]
            .into_iter()
            .enumerate()
        {
            assert_ne!(dial(&mut links, other.0, other.1, other.2, 10 + at as u64), first, "{other:?}");
        }
    }

    #[test]
    fn ax_40_a_session_id_serves_its_own_principal_only() {
        let mut links = Links::default();
        let link = dial(&mut links, "p", 1, "http://127.0.0.1:1/mcp", 1);
        links.began(SessionKey(1), SessionId::of_bits(7), link, "p".into());
        let id = SessionId::of_bits(7);
        assert_eq!(links.of_session(&Identity::bare("p"), id.as_str()), link);
        assert_eq!(links.of_session(&Identity::bare("q"), id.as_str()), NOBODY);
        links.over(SessionKey(1));
        assert_eq!(links.of_session(&Identity::bare("p"), id.as_str()), NOBODY);
        assert!(links.find_end(link).is_some());
        links.let_go();
        assert!(links.find_end(link).is_none() && links.dialled.is_empty());
    }
}
