//! Agreements of a stateless server: the changes it announces, and the life of its lists by its own word. Does not ask the server.

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_proto::envelope::Notification;
use mcp_proto::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::tree::port::Instance;

/// Longest life of a list, whatever its server says.
const LONGEST_FRESH: Duration = Duration::from_secs(3600);

/// End of life of the lists last fetched, by their server's `ttlMs` (MCP 2026-07-28, caching).
#[derive(Debug, Default)]
pub struct Freshness(watch::Sender<Option<Instant>>);

impl Freshness {
    /// Notes that all lists are being fetched; their life is unknown until then.
    pub fn unknown(&self) {
        self.0.send_replace(None);
    }

    /// Notes fetched lists with a life of `good_for`. Unless `all` were fetched, the others live no longer than before.
    pub fn fetched(&self, good_for: Duration, all: bool) {
        let until = Instant::now() + good_for.min(LONGEST_FRESH);
        self.0.send_modify(|good| *good = Some(good.filter(|_| !all).map_or(until, |before| before.min(until))));
    }

    /// Completes once the lists may have changed.
    pub async fn over(&self) {
        let mut good = self.0.subscribe();
        loop {
            let until = *good.borrow_and_update();
            let over = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                changed = good.changed() => if changed.is_err() { return },
            }
        }
    }
}

/// Capabilities, with the flags that ask a stateless server to announce changes of their lists.
pub const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// Flags for the lists that a server has.
pub fn wanted_lists(instance: &Instance) -> impl Iterator<Item = &'static str> {
    let has = |name: &str| mcp_proto::era::declares(&instance.negotiated.capabilities, name);
    LISTS.into_iter().filter(move |(name, _)| has(name)).map(|(_, flag)| flag)
}

/// Changes that a server agreed to announce. `None`: the server does not say, though it must (MCP 2026-07-28, "Subscriptions"), so nothing
/// can be relied on; its announcements are still heard.
#[derive(Debug, Clone)]
pub struct AnnouncedChanges(Option<Filter>);

#[derive(Debug, Clone)]
struct Filter {
    resources: BTreeSet<String>,
    /// Flags of lists.
    lists: Vec<&'static str>,
}

impl AnnouncedChanges {
    /// Reads the filter in a server's acknowledgement.
    pub fn read(acknowledged: &Notification) -> Self {
        let members = acknowledged.params.members();
        Self(members.object("notifications").map(|filter| {
            let uris = filter.get("resourceSubscriptions").and_then(json::elements).unwrap_or_default();
            let resources = uris.into_iter().filter_map(|uri| json::as_str(uri).map(|uri| uri.into_owned())).collect();
            let lists = LISTS.iter().map(|(_, flag)| *flag).filter(|flag| filter.get(flag) == Some(b"true")).collect();
            Filter { resources, lists }
        }))
    }

    /// Checks for a server that does not say what it will announce.
    pub fn is_silent(&self) -> bool {
        self.0.is_none()
    }

    /// Tells if changes of the resource `uri` are announced.
    pub fn has(&self, uri: &str) -> bool {
        self.0.as_ref().is_some_and(|filter| filter.resources.contains(uri))
    }

    /// Checks for lists that may change unannounced.
    pub fn leaves_lists_out(&self, instance: &Instance) -> bool {
        let says = |flag: &str| self.0.as_ref().is_some_and(|filter| filter.lists.contains(&flag));
        wanted_lists(instance).any(|flag| !says(flag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_03_lists_live_as_long_as_their_server_says() {
        let (freshness, began) = (Freshness::default(), Instant::now());
        let good_for = |said: u64, all: bool| {
            freshness.fetched(Duration::from_secs(said), all);
            freshness.0.borrow().unwrap().duration_since(began).as_secs()
        };
        assert_eq!(good_for(60, true), 60);
        // Tools alone, with a longer life than the others.
        assert_eq!(good_for(600, false), 60);
        assert_eq!(good_for(30, false), 30);
        assert_eq!(good_for(600, true), 600);
        assert_eq!(good_for(u64::MAX, true), LONGEST_FRESH.as_secs());
        assert_eq!(good_for(0, true), 0);
    }
}
