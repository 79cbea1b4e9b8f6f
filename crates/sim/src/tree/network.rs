//! Links between nodes: each way in order, with delays; cut, unnoticed or held up. What is sent over them is not looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use mesh_proto::id::{CallId, SessionKey};
use mesh_proto::namespace::Offer;

/// Messages over a link.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// `mcpax/parent`, downward.
    Ask {
        call: CallId,
        params: String,
    },
    /// The answer to `Ask`; `None` is an error.
    AskAnswer {
        call: CallId,
        answer: Option<String>,
    },
    /// `tools/list`, downward.
    List {
        session: SessionKey,
    },
    Listed {
        session: SessionKey,
        offers: Vec<Offer>,
    },
    /// `notifications/tools/list_changed`, upward.
    ListChanged,
    /// A notification, upward: its source, its sender, and its number there.
    Notify {
        source: String,
        sender: usize,
        number: u64,
    },
    /// A request of MCP-AX, upward.
    Up {
        call: CallId,
        method: &'static str,
        params: String,
    },
    /// The answer to `Up`: a result or an error object.
    UpAnswer {
        call: CallId,
        answer: Result<String, String>,
    },
}

/// A connection from a child to a parent.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) child: usize,
    pub(super) parent: usize,
    /// The joined lives of both nodes.
    pub(super) lives: (u64, u64),
    /// The link still carries messages.
    pub(super) whole: bool,
    /// The node that closed the link in good order, so that earlier messages still arrive.
    pub(super) closed_by: Option<usize>,
    /// When the last message each way arrives: downward, upward.
    last: (Duration, Duration),
}

impl Link {
    pub(super) fn other(&self, node: usize) -> usize {
        if node == self.child { self.parent } else { self.child }
    }
}

/// All links ever made, and parted pairs of nodes.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) links: BTreeMap<u64, Link>,
    next: u64,
    /// Parted pairs, lower number first, and the end of their separation.
    parted: BTreeMap<(usize, usize), Duration>,
}

impl Network {
    pub(super) fn open(&mut self, child: usize, parent: usize, lives: (u64, u64)) -> u64 {
        self.next += 1;
        let link = Link { child, parent, lives, whole: true, closed_by: None, last: (Duration::ZERO, Duration::ZERO) };
        self.links.insert(self.next, link);
        self.next
    }

    /// When a message sent now by `from` arrives; `None` when the link is gone.
    pub(super) fn arrival(&mut self, link: u64, from: usize, now: Duration, delay: Duration) -> Option<Duration> {
        let (child, parent) = self.links.get(&link).filter(|link| link.whole).map(|link| (link.child, link.parent))?;
        let held = self.parted_until(child, parent, now).unwrap_or(now);
        let link = self.links.get_mut(&link)?;
        let last = if from == child { &mut link.last.1 } else { &mut link.last.0 };
        *last = (held + delay).max(*last + Duration::from_nanos(1));
        Some(*last)
    }

    pub(super) fn part(&mut self, a: usize, b: usize, until: Duration) {
        self.parted.insert((a.min(b), a.max(b)), until);
    }

    pub(super) fn parted_until(&self, a: usize, b: usize, now: Duration) -> Option<Duration> {
        self.parted.get(&(a.min(b), a.max(b))).copied().filter(|until| *until > now)
    }

    /// Breaks a link; returns a link that was whole.
    pub(super) fn cut(&mut self, link: u64) -> Option<Link> {
        let link = self.links.get_mut(&link).filter(|link| link.whole)?;
        link.whole = false;
        Some(link.clone())
    }

    /// Closes a link in good order; returns when the other side will have noticed.
    pub(super) fn close(&mut self, link: u64, by: usize, now: Duration, delay: Duration) -> Option<Duration> {
        let noticed = self.arrival(link, by, now, delay)?;
        let link = self.links.get_mut(&link)?;
        (link.whole, link.closed_by) = (false, Some(by));
        Some(noticed)
    }

    /// The whole links of a node.
    pub(super) fn of(&self, node: usize) -> Vec<u64> {
        self.links.iter().filter(|(_, link)| link.whole && (link.child == node || link.parent == node)).map(|(id, _)| *id).collect()
    }
}
