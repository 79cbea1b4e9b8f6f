//! On which link a request stands. A link that a child holds is its connection. A registration by plain HTTP requests has none that could
//! break: proxies, pools and reconnecting clients make connections say nothing about who lives. Its link is made of what stays the same
//! instead, and is good for one registration: principal, subserver id and URL.
//!
//! So a heartbeat finds its registration by the session id over whatever connection it comes, if it comes from the same principal. An MCP
//! session that ends or is deleted does not end the registration; missing heartbeats and `mcpax/deregister` do. And a server that comes
//! back at another URL is on another link, so that the one at the old URL is asked whether it is still there.
//!
//! Whether anybody may register is not decided here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use mcp_proto::envelope::Answer;
use mesh_proto::authority::Identity;
use mesh_proto::id::{LinkId, NodeId, SessionId, SessionKey};
use tokio::sync::{mpsc, oneshot};
use url::Url;

use mcp::upstream::pool::Pool;

/// Nobody's link: what comes on it speaks for no session.
const NOBODY: LinkId = LinkId(0);

/// This side of a link that a child holds.
pub struct LinkEnd {
    /// The child's MCP endpoint, as requests over the link name it.
    pub url: Url,
    /// The connections over the link.
    pub pool: Arc<Pool>,
    /// Takes requests to the child.
    pub asks: mpsc::Sender<Ask>,
}

/// A request to a child. Dropped, it is one that was not answered.
pub struct Ask {
    /// The method.
    pub method: &'static str,
    /// The raw params.
    pub params: String,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Answer>,
}

/// The other side of a link.
pub enum End {
    Held(LinkEnd),
    Dialled(Dialled),
}

/// A server that is reached at its URL.
#[derive(Clone)]
pub struct Dialled {
    key: Key,
    pub url: Url,
    /// How long it may take to answer a question.
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
    /// How many sessions are on a link that has any.
    used: HashMap<LinkId, usize>,
    /// Links that may be of no more use.
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
    pub fn end(&self, link: LinkId) -> Option<&End> {
        self.ends.get(&link)
    }

    /// The link of a registration by HTTP: the one it has, or a new one.
    pub fn dial(&mut self, identity: &Identity, id: NodeId, url: Url, patience: Duration, new: impl FnOnce() -> LinkId) -> LinkId {
        let key: Key = (Arc::clone(&identity.principal), id, url.to_string());
        let link = *self.dialled.entry(key.clone()).or_insert_with(new);
        self.ends.insert(link, End::Dialled(Dialled { key, url, patience }));
        link
    }

    /// The link of the session that a request by HTTP names. Its principal alone may speak for it.
    pub fn of_session(&self, identity: &Identity, id: &str) -> LinkId {
        let known = SessionId::parse(id).and_then(|id| self.sessions.get(&id));
        known.filter(|(_, principal)| *principal == identity.principal).map_or(NOBODY, |(link, _)| *link)
    }

    /// A session began on a link.
    pub fn began(&mut self, key: SessionKey, id: SessionId, link: LinkId, principal: Arc<str>) {
        *self.used.entry(link).or_default() += 1;
        self.ids.insert(key, id.clone());
        self.sessions.insert(id, (link, principal));
    }

    /// A session is over.
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

    /// A request on this link came to nothing, or a session on it is over.
    pub fn left(&mut self, link: LinkId) {
        self.left.push(link);
    }

    /// Lets go of the links of registrations by HTTP that are over. To be called when nothing is being answered: who registers anew
    /// over the same link first ends the session it had.
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
    fn ax_20_a_registration_by_http_keeps_its_link_whatever_connection_it_comes_over() {
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
    fn ax_40_a_session_id_is_good_for_its_own_principal_only() {
        let mut links = Links::default();
        let link = dial(&mut links, "p", 1, "http://127.0.0.1:1/mcp", 1);
        links.began(SessionKey(1), SessionId::of_bits(7), link, "p".into());
        let id = SessionId::of_bits(7);
        assert_eq!(links.of_session(&Identity::bare("p"), id.as_str()), link);
        assert_eq!(links.of_session(&Identity::bare("q"), id.as_str()), NOBODY);
        links.over(SessionKey(1));
        assert_eq!(links.of_session(&Identity::bare("p"), id.as_str()), NOBODY);
        assert!(links.end(link).is_some());
        links.let_go();
        assert!(links.end(link).is_none() && links.dialled.is_empty());
    }
}
