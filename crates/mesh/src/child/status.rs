//! Status of a membership, for people. Decides nothing.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use mesh_proto::child::LostWhy;
use mesh_proto::message::{Budget, ReceivedRefusal};

/// Standing of this gate in another tree.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct JoinStatus {
    /// Prefix of this gate's tools there.
    pub segment: String,
    /// Parents, the preferred first.
    pub parents: Vec<ParentStatus>,
    /// Time of the next attempt, in seconds since 1970; absent while registered or trying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<u64>,
    /// Number of tools hidden by the parent from everybody, for reasons visible to the parent's operator.
    #[serde(default)]
    pub withheld: u64,
}

/// Status of a parent.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ParentStatus {
    pub url: String,
    /// `idle` (not needed), `trying`, `registered`, `refused`, `unreachable` or `lost`.
    pub state: String,
    /// Seconds since 1970.
    pub since: u64,
    /// Aggregator id, while registered there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Budget of the gate's calls at the parent, as declared with the registration (MCP-AX 11.4); limits left out do not exist.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budget: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Remedy of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl JoinStatus {
    /// Makes the status of a gate that has yet to register with its parents.
    pub fn new<'a>(segment: &str, urls: impl Iterator<Item = &'a url::Url>) -> Self {
        let parents = urls.map(|url| ParentStatus {
            url: url.to_string(),
            state: "idle".into(),
            since: seconds(SystemTime::now()),
            parent_id: None,
            budget: BTreeMap::new(),
            error: None,
            hint: None,
        });
        Self { segment: segment.to_owned(), parents: parents.collect(), next_try: None, withheld: 0 }
    }

    /// Finds the parent of the current registration.
    pub fn registered(&self) -> Option<&ParentStatus> {
        self.parents.iter().find(|parent| parent.state == "registered")
    }
}

impl ParentStatus {
    /// Notes an attempt. The last error stays until a success.
    pub fn try_it(&mut self) {
        if self.error.is_none() {
            self.enter("trying");
        }
    }

    /// Notes a registration.
    pub fn registered(&mut self, parent_id: Option<String>, budget: &Budget) {
        self.enter("registered");
        self.budget = budget.limits().map(|(name, limit)| (name.to_owned(), limit)).collect();
        (self.parent_id, self.error, self.hint) = (parent_id, None, None);
    }

    /// Notes a refused registration.
    pub fn refused(&mut self, refused: &ReceivedRefusal) {
        self.enter("refused");
        let reason = if refused.reason.is_empty() { "it gives no reason" } else { &refused.reason };
        self.error = Some(format!("the registration was refused: {reason} ({})", refused.code));
        self.hint = Some(refused.hint.clone()).filter(|hint| !hint.is_empty());
    }

    /// Notes a parent out of reach.
    pub fn unreachable(&mut self, why: String) {
        self.enter("unreachable");
        (self.error, self.hint) = (Some(why), None);
    }

    /// Notes a lost registration.
    pub fn lost(&mut self, why: LostWhy) {
        self.parent_id = None;
        self.budget.clear();
        if matches!(why, LostWhy::Leaving | LostWhy::Stopped) {
            self.enter("idle");
            return;
        }
        self.enter("lost");
        self.error = Some(match why {
            LostWhy::Cycle => "this gate stands above itself: a gate below leads to one above".into(),
            LostWhy::Forgotten => "it does not know this gate any more: it was started anew, or has ended the registration".into(),
            LostWhy::LinkLost => "the link broke".into(),
            LostWhy::Silent => "it answered nothing for two heartbeats".into(),
            LostWhy::Leaving | LostWhy::Stopped => String::new(),
        });
    }

    fn enter(&mut self, state: &str) {
        if self.state != state {
            state.clone_into(&mut self.state);
            self.since = seconds(SystemTime::now());
        }
    }
}

/// Gives the seconds since 1970.
pub fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
