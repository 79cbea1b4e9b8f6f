//! `banyan agent negotiate`: what another agent speaks, and which protocol the gate would choose. The gate fetches and decides; no call is made.

use clap::Args;
use serde_json::{Value, json};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::{gate, threads};

/// Path of negotiations at a gate.
const NEGOTIATION: &str = "/-/agent/negotiation";

/// A negotiation with another agent.
#[derive(Args)]
pub(super) struct WishedNegotiation {
    /// Address of the agent, or of its capability document
    #[arg(value_parser = super::address)]
    url: String,
    /// Take a document alone that an issuer of [agent.evidence] has signed
    #[arg(long)]
    signed: bool,
    /// Least security: `tls-1.3`, `tls-1.3+mtls`, `tls-1.3+wpt`, or `loopback` [default: tls-1.3, or loopback between two agents of this machine]
    #[arg(long, value_name = "SECURITY")]
    least_security: Option<String>,
    /// Least level of evidence of both sides: `L1`, `L2` or `L3`
    #[arg(long, value_name = "LEVEL", default_value = "L1")]
    least_assurance: String,
}

impl WishedNegotiation {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        let wish = json!({
            "url": self.url, "signed": self.signed, "least_security": self.least_security, "least_assurance": self.least_assurance,
        });
        let answer = threads::wait(gate.post(NEGOTIATION, &wish))?.map_err(super::refused)?;
        let found: Value = serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
        if output.wants_json() {
            output.json(&found)?;
        } else {
            lines(&found).iter().try_for_each(|line| output.line(&printable(line)))?;
        }
        match found["code"].as_str() {
            Some(code) => Err(Failure::Failed(format!("no protocol: {} ({})", printable(&text(&found["reason"])), printable(code)))),
            None => Ok(()),
        }
    }
}

fn lines(found: &Value) -> Vec<String> {
    let whence = if found["kept"] == true { "from memory" } else { "fetched" };
    let signed = if found["signed"] == true { ", signed" } else { "" };
    let agent = text(&found["agent_id"]);
    let mut lines = vec![
        format!(
            "found     {agent} at {} ({whence}{signed}), {}, evidence {}",
            text(&found["url"]),
            text(&found["status"]),
            text(&found["assurance"])
        ),
        format!("demanded  security {}, evidence {}", text(&found["least_security"]), text(&found["least_assurance"])),
    ];
    let chosen = &found["chosen"];
    if chosen.is_object() {
        let peer = &chosen["peer"];
        let (id, version, endpoint) = (text(&peer["id"]), text(&peer["version"]), text(&peer["endpoint"]));
        lines.push(format!(
            "chosen    {id} {version} at {endpoint}, priority {}, security {}",
            chosen["priority"],
            text(&chosen["security"])
        ));
    }
    for one in found["rejected"].as_array().into_iter().flatten() {
        let side = if one["side"] == "own" { "of ours" } else { "of theirs" };
        let protocol = &one["protocol"];
        lines.push(format!("not       {} {} {side}: {}", text(&protocol["id"]), text(&protocol["version"]), text(&one["reason"])));
    }
    for one in found["gateways"].as_array().into_iter().flatten() {
        let answer =
            one["endpoint"].as_str().map_or_else(|| "does not translate".to_owned(), |endpoint| format!("translates, at {endpoint}"));
        lines.push(format!("gateway   {} {answer} {} to {}", text(&one["gateway"]), text(&one["from"]), text(&one["to"])));
    }
    lines
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
