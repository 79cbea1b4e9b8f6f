//! Subscriptions of one client in either era, and the messages about a change. Bounded in number and in bytes; sends nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

/// Most resources that a client follows, in a session or over all listen requests.
pub(crate) const MOST: usize = 1_000;
/// Longest URI of a subscription, in bytes.
const LONGEST_URI: usize = 2_048;
/// Most listen requests.
const MOST_LISTENERS: usize = 64;
/// Key of the listen request in `_meta` of each message.
pub(crate) const LISTENED: &str = "io.modelcontextprotocol/subscriptionId";
const LISTS: [&str; 2] = ["promptsListChanged", "resourcesListChanged"];
const RESOURCES: &str = "resourceSubscriptions";

/// A change of interest to subscribers.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The list of prompts.
    Prompts,
    /// The content of one resource.
    Resource(&'a str),
    /// The list of resources.
    Resources,
}

/// Members beyond MCP in the message about a changed resource, and a second name of the message.
#[derive(Clone, Debug, Default)]
pub struct UpdateExtras {
    pub members: Map<String, Value>,
    /// Method of a copy for a session; `None` for no copy.
    pub second_method: Option<&'static str>,
}

/// Resources and lists that a client follows.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// URIs of the session (initialize era), each with the id of its subscription.
    session: BTreeMap<String, String>,
    /// Listen requests (stateless era): id and honoured filter.
    listening: HashMap<String, (Value, Map<String, Value>)>,
    made: u64,
}

impl Subscriptions {
    /// Adds a resource to the session; answers the id of the subscription, `None` beyond the bounds.
    pub(crate) fn subscribe(&mut self, uri: &str) -> Option<String> {
        if let Some(id) = self.session.get(uri) {
            return Some(id.clone());
        }
        if self.session.len() >= MOST || uri.len() > LONGEST_URI {
            return None;
        }
        self.made += 1;
        let id = format!("subscription-{}", self.made);
        self.session.insert(uri.to_owned(), id.clone());
        Some(id)
    }

    /// Removes a resource from the session, by URI or by the id of the subscription.
    pub(crate) fn unsubscribe(&mut self, name: &str) {
        self.session.retain(|uri, id| uri != name && id != name);
    }

    /// Ends everything of the session.
    pub(crate) fn begin_session(&mut self) {
        self.session.clear();
    }

    /// Takes from a filter what can be honoured; `None` beyond the bound of listen requests.
    pub(crate) fn honoured(&self, mut wanted: Map<String, Value>) -> Option<Map<String, Value>> {
        if self.listening.len() >= MOST_LISTENERS {
            return None;
        }
        wanted.retain(|kind, _| kind == RESOURCES || LISTS.contains(&kind.as_str()));
        let room = MOST.saturating_sub(self.listening.values().map(|(_, filter)| uris(filter).count()).sum());
        if let Some(Value::Array(all)) = wanted.get_mut(RESOURCES) {
            all.retain(|uri| uri.as_str().is_some_and(|uri| uri.len() <= LONGEST_URI));
            all.truncate(room);
        }
        Some(wanted)
    }

    /// Adds a listen request with its honoured filter.
    pub(crate) fn listen(&mut self, id: Value, honoured: Map<String, Value>) {
        self.listening.insert(id.to_string(), (id, honoured));
    }

    /// Ends a listen request.
    pub(crate) fn end_listening(&mut self, id: &str) {
        self.listening.remove(id);
    }

    /// All resources that are followed.
    pub(crate) fn followed(&self) -> BTreeSet<String> {
        let listened = self.listening.values().flat_map(|(_, filter)| uris(filter)).map(str::to_owned);
        self.session.keys().cloned().chain(listened).collect()
    }

    /// Messages about a change. A session hears of all lists.
    pub(crate) fn messages(&self, has_session: bool, change: Change<'_>, extras: &UpdateExtras) -> Vec<Value> {
        let (method, mut params, member) = match change {
            Change::Prompts => ("notifications/prompts/list_changed", json!({}), LISTS[0]),
            Change::Resource(uri) => ("notifications/resources/updated", json!({ "uri": uri }), RESOURCES),
            Change::Resources => ("notifications/resources/list_changed", json!({}), LISTS[1]),
        };
        if let Some(params) = params.as_object_mut() {
            params.extend(extras.members.clone());
        }
        let message = |method: &str, params: &Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let mut all = Vec::new();
        match change {
            Change::Prompts | Change::Resources if has_session => all.push(message(method, &params)),
            Change::Prompts | Change::Resources => {}
            Change::Resource(uri) => {
                if let Some(id) = self.session.get(uri) {
                    let mut params = params.clone();
                    params["subscriptionId"] = id.clone().into();
                    all.extend([Some(method), extras.second_method].into_iter().flatten().map(|method| message(method, &params)));
                }
            }
        }
        for (id, filter) in self.listening.values() {
            let is_wanted = match change {
                Change::Prompts | Change::Resources => filter.get(member).and_then(Value::as_bool).unwrap_or(false),
                Change::Resource(uri) => uris(filter).any(|wanted| wanted == uri),
            };
            if is_wanted {
                let mut params = params.clone();
                params["_meta"][LISTENED] = id.clone();
                all.push(message(method, &params));
            }
        }
        all
    }
}

/// Resources in a filter.
pub(crate) fn uris(filter: &Map<String, Value>) -> impl Iterator<Item = &str> {
    filter.get(RESOURCES).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Replaces the resources of a filter.
pub(crate) fn replace_uris(filter: &mut Map<String, Value>, uris: Vec<String>) {
    if filter.contains_key(RESOURCES) {
        filter.insert(RESOURCES.to_owned(), uris.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(count: usize, prefix: &str) -> Map<String, Value> {
        let uris: Vec<String> = (0..count).map(|n| format!("{prefix}:{n}")).collect();
        Map::from_iter([(RESOURCES.to_owned(), uris.into())])
    }

    #[test]
    fn resources_of_a_session_are_bounded() {
        let mut all = Subscriptions::default();
        for number in 0..MOST {
            assert!(all.subscribe(&format!("a:{number}")).is_some());
        }
        assert!(all.subscribe("a:more").is_none() && all.subscribe("a:7").is_some());
        all.unsubscribe("subscription-1");
        assert!(all.subscribe(&"x".repeat(LONGEST_URI + 1)).is_none() && all.subscribe("a:more").is_some());
        assert_eq!(all.followed().len(), MOST);
    }

    #[test]
    fn listen_requests_are_bounded_together() {
        let mut all = Subscriptions::default();
        for number in 0..MOST_LISTENERS {
            let honoured = all.honoured(filter(600, &number.to_string())).unwrap();
            all.listen(number.into(), honoured);
        }
        assert_eq!(all.followed().len(), MOST);
        assert!(all.honoured(filter(1, "b")).is_none());
        all.end_listening("0");
        assert_eq!(all.honoured(filter(1, "b")).map(|filter| uris(&filter).count()), Some(1));
        let long = Map::from_iter([(RESOURCES.to_owned(), json!(["x".repeat(LONGEST_URI + 1), 7, "a:1"]))]);
        assert_eq!(all.honoured(long).map(|filter| uris(&filter).count()), Some(1));
    }

    #[test]
    fn each_subscriber_hears_a_change_in_its_form() {
        let mut all = Subscriptions::default();
        all.subscribe("a:1");
        all.listen(9.into(), filter(3, "a"));
        let members = Map::from_iter([("contents".to_owned(), json!([1]))]);
        let extras = UpdateExtras { members, second_method: Some("resources/updated") };
        let told = all.messages(true, Change::Resource("a:1"), &extras);
        let methods: Vec<&str> = told.iter().map(|one| one["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["notifications/resources/updated", "resources/updated", "notifications/resources/updated"]);
        assert_eq!((&told[0]["params"]["subscriptionId"], &told[0]["params"]["contents"]), (&json!("subscription-1"), &json!([1])));
        assert_eq!(told[2]["params"]["_meta"][LISTENED], 9);
        assert_eq!(all.messages(true, Change::Resource("a:2"), &extras).len(), 1);
        assert_eq!(all.messages(true, Change::Resource("a:4"), &extras), [] as [Value; 0]);
    }
}
