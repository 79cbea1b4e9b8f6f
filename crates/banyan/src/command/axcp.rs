//! `banyan axcp`: connections with other nodes of AXCP, and the contexts that they share. Changes nothing.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::{gate, threads};

/// Path of the status at a gate.
const STATUS: &str = "/-/axcp";

/// Show the nodes that share contexts with the gate
#[derive(Args)]
pub(crate) struct Axcp {
    #[command(subcommand)]
    command: AxcpCommand,
}

#[derive(Subcommand)]
enum AxcpCommand {
    /// Show the peers and the contexts, and how far each peer is
    Status,
}

impl Axcp {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let AxcpCommand::Status = self.command;
        let shown: Value = threads::wait(gate::needed(place)?.get(STATUS, &[]))?.map_err(Failure::from)?;
        if output.wants_json() { output.json(&shown) } else { lines(&shown).iter().try_for_each(|line| output.line(&printable(line))) }
    }
}

fn lines(shown: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut lines = vec![format!("this node is {}, and listens on {}", word(&shown["id"]), word(&shown["listen"]))];
    lines.extend(shown["trouble"].as_str().map(|trouble| format!("trouble: {trouble}")));
    for peer in shown["peers"].as_array().into_iter().flatten() {
        let state = if peer["connected"] == true { format!("connected at profile {}", peer["profile"]) } else { "away".into() };
        let end = peer["last_end"].as_str().map(|why| format!(" (last: {why})")).unwrap_or_default();
        lines.push(format!("peer {} ({}) is {state}{end}", word(&peer["name"]), word(&peer["id"])));
    }
    for context in shown["contexts"].as_array().into_iter().flatten() {
        lines.push(format!("context {} is at version {}, {} bytes", word(&context["name"]), context["version"], context["bytes"]));
        lines.extend(context["trouble"].as_str().map(|trouble| format!("  trouble: {trouble}")));
        for peer in context["peers"].as_array().into_iter().flatten() {
            let lacks = if peer["lacks"] == true { ", and what came behind it or was refused is asked for again" } else { "" };
            let sent = if peer["sent"].is_null() { "does not subscribe".into() } else { format!("was sent {}", peer["sent"]) };
            lines.push(format!("  {} {sent}; its version {} is known{lacks}", word(&peer["id"]), peer["known"]));
        }
    }
    lines
}
