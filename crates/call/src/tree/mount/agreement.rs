//! Agreements of a stateless server: what it will tell of, and for how long its lists are good by its own word. Asking it is not done here.

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_proto::envelope::Notification;
use mcp_proto::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::tree::port::Instance;

/// No list is taken to be good for longer than this, whatever its server says.
const LONGEST_FRESH: Duration = Duration::from_secs(3600);

/// Until when the lists that were fetched last are good, by what their server said of them (`ttlMs`; MCP 2026-07-28, caching).
#[derive(Debug, Default)]
pub struct Freshness(watch::Sender<Option<Instant>>);

impl Freshness {
    /// All lists are being fetched: nothing is known until they are there.
    pub fn unknown(&self) {
        self.0.send_replace(None);
    }

    /// Lists were fetched that are good for so long. Unless these are `all`, the others are good for no longer than they were.
    pub fn fetched(&self, good_for: Duration, all: bool) {
        let until = Instant::now() + good_for.min(LONGEST_FRESH);
        self.0.send_modify(|good| *good = Some(good.filter(|_| !all).map_or(until, |before| before.min(until))));
    }

    /// Returns once lists are there that may have changed since.
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

/// Capabilities, and what asks a stateless server to tell of changes of their lists.
pub const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// With what a server is asked to tell of the lists that it has.
pub fn wanted_lists(instance: &Instance) -> impl Iterator<Item = &'static str> {
    let has = |name: &str| mcp_proto::era::declares(&instance.negotiated.capabilities, name);
    LISTS.into_iter().filter(move |(name, _)| has(name)).map(|(_, flag)| flag)
}

/// Of what a server says it will tell. `None`: it does not say, though it has to (MCP 2026-07-28, "Subscriptions"), so that nobody may count
/// on anything. What such a server tells all the same is heard.
#[derive(Debug, Clone)]
pub struct Honoured(Option<Filter>);

#[derive(Debug, Clone)]
struct Filter {
    resources: BTreeSet<String>,
    /// The flags of lists.
    lists: Vec<&'static str>,
}

impl Honoured {
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

    /// Checks that the server does not say of what it will tell.
    pub fn is_silent(&self) -> bool {
        self.0.is_none()
    }

    /// Tells if changes of the resource `uri` are announced.
    pub fn has(&self, uri: &str) -> bool {
        self.0.as_ref().is_some_and(|filter| filter.resources.contains(uri))
    }

    /// Whether there are lists that may change without a word.
    pub fn leaves_lists_out(&self, instance: &Instance) -> bool {
        let says = |flag: &str| self.0.as_ref().is_some_and(|filter| filter.lists.contains(&flag));
        wanted_lists(instance).any(|flag| !says(flag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_03_lists_are_good_for_as_long_as_their_server_says_and_not_longer() {
        let (freshness, began) = (Freshness::default(), Instant::now());
        let good_for = |said: u64, all: bool| {
            freshness.fetched(Duration::from_secs(said), all);
            freshness.0.borrow().unwrap().duration_since(began).as_secs()
        };
        assert_eq!(good_for(60, true), 60);
        // Tools alone, which are good for longer than the others are.
        assert_eq!(good_for(600, false), 60);
        assert_eq!(good_for(30, false), 30);
        assert_eq!(good_for(600, true), 600);
        assert_eq!(good_for(u64::MAX, true), LONGEST_FRESH.as_secs());
        assert_eq!(good_for(0, true), 0);
    }
}
