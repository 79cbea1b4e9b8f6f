//! `banyan operator`: the keys of people who may approve calls. Approves nothing itself.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gateway::admin::client::AdminClient;
use gateway::admin::shapes::OperatorShown;
use serde_json::json;

use super::approvals::Operators;
use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::table::{self, Align};
use crate::{document, gate, threads};

/// Enrols, lists and removes public keys of approvers.
#[derive(Args)]
pub(crate) struct Operator {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Let the holder of a key approve calls
    #[command(visible_alias = "add")]
    Enroll {
        /// The person
        name: String,
        /// File of the public key: one that `ssh-keygen` made (.pub), or PEM
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// A principal of this person's own calls: another person has to approve these (repeatable)
        #[arg(long = "principal", value_name = "NAME")]
        principals: Vec<String>,
    },
    /// List the keys that count
    List,
    /// Take a key away: it approves nothing from now on
    #[command(visible_alias = "rm")]
    Remove {
        /// Its fingerprint, or the person where that is one key only
        id: String,
    },
}

impl Operator {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        threads::wait(async {
            match self.action.as_ref().unwrap_or(&Action::List) {
                Action::Enroll { name, key, principals } => {
                    let text = std::fs::read_to_string(key).map_err(|error| document::unread(key, &error))?;
                    if text.contains("PRIVATE KEY") {
                        return Err(Failure::Usage(format!("{0} is a private key\n  enrol the public one: {0}.pub", key.display())));
                    }
                    let body = json!({ "name": name, "principals": principals, "key": text });
                    done(&gate.post("/-/operators", &body).await?, "enrolled", output)
                }
                Action::List => list(&gate, output).await,
                Action::Remove { id } => {
                    let id = fingerprint(&gate, id).await?;
                    done(&gate.post("/-/operators/remove", &json!({ "id": id })).await?, "removed", output)
                }
            }
        })?
    }
}

fn done(answer: &[u8], what: &str, output: &Output) -> Result<(), Failure> {
    let operator: OperatorShown =
        serde_json::from_slice(answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
    if output.wants_json() {
        return output.json(&operator);
    }
    output.line(&format!("{what} {} with {}", printable(&operator.name), operator.id))
}

async fn list(gate: &AdminClient, output: &Output) -> Result<(), Failure> {
    let Operators { operators } = gate.get("/-/operators", &[]).await?;
    if output.wants_json() {
        return output.json(&json!({ "operators": operators }));
    }
    if operators.is_empty() {
        output.remark("nobody may approve calls\n  `banyan operator enroll NAME --key FILE` lets somebody");
        return Ok(());
    }
    let mut rows = vec![["NAME", "KEY", "IS", "CALLS AS"].map(str::to_owned).to_vec()];
    for operator in &operators {
        let kind = if operator.passkey { "a passkey" } else { operator.key.split(' ').next().unwrap_or_default() };
        rows.push(vec![printable(&operator.name), operator.id.clone(), kind.to_owned(), printable(&operator.principals.join(", "))]);
    }
    table::lines(&[Align::Left; 4], &rows).iter().try_for_each(|line| output.line(line))
}

/// Finds the fingerprint of a key by fingerprint or holder.
async fn fingerprint(gate: &AdminClient, named: &str) -> Result<String, Failure> {
    let Operators { operators } = gate.get("/-/operators", &[]).await?;
    if operators.iter().any(|operator| operator.id == named) {
        return Ok(named.to_owned());
    }
    let mut of_person = operators.iter().filter(|operator| operator.name == named);
    match (of_person.next(), of_person.next()) {
        (Some(one), None) => Ok(one.id.clone()),
        (Some(_), Some(_)) => {
            Err(Failure::Usage(format!("{named} has several keys: name one by its fingerprint\n  `banyan operator list` shows them")))
        }
        (None, _) => Err(Failure::NotFound(format!("there is no key `{named}`\n  `banyan operator list` shows them"))),
    }
}
