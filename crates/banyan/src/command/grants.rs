//! `banyan grants`: agreement given beforehand, for some calls and for a while. Signs what the gate wants signed; whether that is enough is
//! not decided here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use gateway::admin::client::AdminClient;
use gateway::admin::shapes::GrantShown;
use serde::Deserialize;
use serde_json::json;

use super::approvals::Operators;
use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::{self, Align};
use crate::{gate, runtime, signing, time};

/// Lets some calls go out for a while without asking again.
#[derive(Args)]
pub(crate) struct Grants {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the grants
    List,
    /// Give one, signed with an SSH key that is enrolled
    Add(Add),
    /// Take one back
    Revoke {
        /// Its id
        id: String,
    },
}

#[derive(Args)]
struct Add {
    /// The tools: a dotted name; `*` stands for any text
    tool: String,
    /// The caller: a principal; `*` stands for any text
    #[arg(long)]
    caller: String,
    /// An argument that must be there, and what it must be; `*` stands for any text (repeatable)
    #[arg(long = "arg", value_name = "NAME=TEXT")]
    arguments: Vec<String>,
    /// Let other arguments be there as well
    #[arg(long)]
    any_other: bool,
    /// For how many minutes it holds
    #[arg(long, value_name = "MINUTES", default_value_t = 60)]
    minutes: u64,
    /// For how many calls [default: any number]
    #[arg(long)]
    uses: Option<u32>,
    /// File of the key [default: a key that an SSH agent has]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Listed {
    grants: Vec<GrantShown>,
}

#[derive(Deserialize)]
struct ToSign {
    id: String,
    text: String,
    namespace: String,
}

impl Grants {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        runtime::wait(async {
            match &self.action {
                Action::List => list(&gate, output).await,
                Action::Add(add) => add.give(&gate, output).await,
                Action::Revoke { id } => done(&gate.post(&format!("/-/grants/{id}/revoke"), &json!({})).await?, "revoked", output),
            }
        })?
    }
}

impl Add {
    async fn give(&self, gate: &AdminClient, output: &Output) -> Result<(), Failure> {
        let mut arguments = BTreeMap::new();
        for argument in &self.arguments {
            let (name, text) = argument
                .split_once('=')
                .ok_or_else(|| Failure::Usage(format!("`{argument}` is not NAME=TEXT\n  for example --arg path=/tmp/*")))?;
            arguments.insert(name, text);
        }
        let terms = json!({
            "tool": self.tool, "caller": self.caller, "arguments": arguments, "any_other": self.any_other,
            "expires": time::now() + self.minutes * 60, "uses": self.uses,
        });
        let answer = gate.post("/-/grants/statement", &json!({ "terms": terms })).await?;
        let wanted: ToSign =
            serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
        let said: serde_json::Value = serde_json::from_str(&wanted.text).unwrap_or_default();
        let is_same = ["tool", "caller", "arguments", "any_other", "expires", "uses"].iter().all(|member| said[*member] == terms[*member]);
        if !is_same || wanted.namespace != "banyan-grant-v1" {
            return Err(Failure::Refused("the gate wants something else signed than was asked for: nothing was signed".to_owned()));
        }
        let Operators { operators } = gate.get("/-/operators", &[]).await?;
        let proof = signing::sign(&wanted.text, &wanted.namespace, self.key.as_deref(), &operators)?;
        let given = gate.post("/-/grants", &json!({ "id": wanted.id, "terms": terms, "proofs": [proof] })).await?;
        done(&given, "granted", output)
    }
}

fn done(answer: &[u8], what: &str, output: &Output) -> Result<(), Failure> {
    let grant: GrantShown = serde_json::from_slice(answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
    if output.wants_json() {
        return output.json(&grant);
    }
    output.line(&format!("{what} {}", grant.id))
}

async fn list(gate: &AdminClient, output: &Output) -> Result<(), Failure> {
    let Listed { grants } = gate.get("/-/grants", &[]).await?;
    if output.wants_json() {
        return output.json(&json!({ "grants": grants }));
    }
    if grants.is_empty() {
        output.remark("there are no grants: every call that waits is asked about");
        return Ok(());
    }
    let mut rows = vec![["ID", "TOOL", "CALLER", "ARGUMENTS", "USED", "LEFT"].map(str::to_owned).to_vec()];
    for grant in &grants {
        let arguments: Vec<String> = grant.terms.arguments.iter().map(|(name, text)| format!("{name}={text}")).collect();
        let left = grant.terms.expires.saturating_sub(time::now());
        rows.push(vec![
            grant.id.clone(),
            printable(&grant.terms.tool),
            printable(&grant.terms.caller),
            printable(&arguments.join(" ")),
            grant.terms.uses.map_or_else(|| grant.used.to_string(), |uses| format!("{} of {uses}", grant.used)),
            if grant.holds { table::duration(left) } else { output.paint(Look::Dim, "over") },
        ]);
    }
    let columns = [Align::Left, Align::Left, Align::Left, Align::Left, Align::Right, Align::Right];
    table::lines(&columns, &rows).iter().try_for_each(|line| output.line(line))
}
