//! `banyan agent deprecate`, `drain`, `retire`, `activate` and `card`: the gate as an agent, and its end. Does not
//! decide on a transition: the gate does.

use agent_proto::capability::written::zone_record;
use clap::Args;
use gateway::admin::client::AdminClient;
use serde_json::{Value, json};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::{gate, threads, time};

/// Path of the life at a gate.
const LIFE: &str = "/-/agent";

/// A transition in the life of the gate as an agent.
#[derive(Args)]
pub(super) struct Transition {
    /// Reason, for the record
    #[arg(long, default_value = "")]
    reason: String,
    /// Address of the capability document of the agent that follows
    #[arg(long, value_name = "URL")]
    successor: Option<String>,
    /// Hours from now until the end
    #[arg(long, value_name = "HOURS")]
    hours: Option<u32>,
}

/// A transition without words for clients.
#[derive(Args)]
pub(super) struct PlainTransition {
    /// Reason, for the record
    #[arg(long, default_value = "")]
    reason: String,
}

/// The gate as an agent, shown.
#[derive(Args)]
pub(super) struct OwnCard {
    /// Print the record for a zone of DNS that leads to the capability document
    #[arg(long)]
    zone: bool,
    /// Print the public keys of the gate's tokens, as a JWK set
    #[arg(long, conflicts_with = "zone")]
    keys: bool,
}

impl Transition {
    pub(super) fn run(&self, to: &str, place: &Place, output: &Output) -> Result<(), Failure> {
        let sunset = self.hours.map(|hours| time::now().saturating_add(u64::from(hours).saturating_mul(3600)));
        change(place, output, &json!({ "to": to, "reason": self.reason, "successor": self.successor, "sunset": sunset }))
    }
}

impl PlainTransition {
    pub(super) fn run(&self, to: &str, place: &Place, output: &Output) -> Result<(), Failure> {
        change(place, output, &json!({ "to": to, "reason": self.reason }))
    }
}

impl OwnCard {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        let shown: Value = threads::wait(gate.get(LIFE, &[]))?.map_err(super::refused)?;
        if self.keys {
            let none = || Failure::NotFound("the gate makes no tokens: it has no [agent.evidence] in its configuration".into());
            return output.line(&shown.get("keys").filter(|keys| !keys.is_null()).ok_or_else(none)?.to_string());
        }
        if !self.zone {
            return print(&shown, output);
        }
        let url = shown["url"].as_str().and_then(|url| url::Url::parse(url).ok());
        let record = url.as_ref().and_then(zone_record).ok_or_else(|| {
            Failure::Failed(
                "`url` of [agent] names an address and no name, so no record can lead there\n  give the gate a name there".into(),
            )
        })?;
        if output.wants_json() { output.json(&json!({ "record": record.trim_end() })) } else { output.line(record.trim_end()) }
    }
}

fn change(place: &Place, output: &Output, wish: &Value) -> Result<(), Failure> {
    let gate: AdminClient = gate::needed(place)?;
    let answer = threads::wait(gate.post(LIFE, wish))?.map_err(super::refused)?;
    let shown = serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
    print(&shown, output)
}

fn print(shown: &Value, output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        return output.json(shown);
    }
    let life = &shown["lifecycle"];
    let word = |member: &str| life[member].as_str().map(printable);
    let facts = [("ends", word("sunset_at")), ("successor", word("successor"))];
    let more: String = facts.into_iter().filter_map(|(name, value)| Some(format!(", {name} {}", value?))).collect();
    let agent = shown["agent_id"].as_str().map(printable).unwrap_or_default();
    output.line(&format!("{agent} is {}, {} tasks in progress{more}", word("status").unwrap_or_default(), shown["working"]))
}
