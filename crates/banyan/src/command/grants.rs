//! `banyan grants`: agreement given beforehand, for some calls and for a while. Signs the gate's text; the number of signatures needed is
//! not decided here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gateway::admin::client::AdminClient;
use gateway::admin::shapes::GrantShown;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::approvals::Operators;
use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::signing::{self, SigningConsent};
use crate::table::{self, Align};
use crate::{document, gate, threads, time};

/// Namespace of the signature.
const NAMESPACE: &str = "banyan-grant-v1";

/// Lets some calls go out for a while without asking again.
#[derive(Args)]
pub(crate) struct Grants {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// List the grants
    List,
    /// Give one, signed with an SSH key that is enrolled
    Add(Add),
    /// Give one that several people have signed
    Give {
        /// The file that `propose` wrote, and each of them signed
        file: PathBuf,
    },
    /// Write down one that several people have to sign, into a file
    Propose(Propose),
    /// Sign a proposed grant with an enrolled SSH key; the file keeps the signature
    Sign {
        /// The file that `propose` wrote
        file: PathBuf,
        /// File of the key [default: a key that an SSH agent has]
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Do not ask again; needed without a terminal
        #[arg(short, long)]
        yes: bool,
    },
    /// Take one back
    #[command(visible_alias = "rm")]
    Revoke {
        /// Its id
        id: String,
    },
}

#[derive(Args)]
struct Add {
    #[command(flatten)]
    terms: Terms,
    /// File of the key [default: a key that an SSH agent has]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Do not ask again; needed without a terminal
    #[arg(short, long)]
    yes: bool,
}

#[derive(Args)]
struct Propose {
    #[command(flatten)]
    terms: Terms,
    /// Where to write it
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Args)]
struct Terms {
    /// The tools: a dotted name; `*` stands for any text
    tool: String,
    /// The caller: a principal; `*` stands for any text
    #[arg(long)]
    caller: String,
    /// An argument that must be there, and its value; `*` stands for any text (repeatable)
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
}

#[derive(Deserialize)]
struct ListedGrants {
    grants: Vec<GrantShown>,
}

#[derive(Deserialize)]
struct ToSign {
    id: String,
    text: String,
    namespace: String,
    required: u8,
}

/// A grant on its way from one person to the next.
#[derive(Serialize, Deserialize)]
struct ProposedGrant {
    id: String,
    /// Number of signatures needed.
    required: u8,
    terms: Value,
    /// The text to be signed.
    text: String,
    proofs: Vec<Value>,
}

impl Grants {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        threads::wait(async {
            match self.action.as_ref().unwrap_or(&Action::List) {
                Action::List => list(&gate, output).await,
                Action::Add(add) => add.give(&gate, output).await,
                Action::Give { file } => {
                    let ProposedGrant { id, terms, proofs, .. } = ProposedGrant::read(file)?;
                    let given = gate.post("/-/grants", &json!({ "id": id, "terms": terms, "proofs": proofs })).await?;
                    done(&given, "granted", output)
                }
                Action::Propose(propose) => {
                    let proposed = propose.terms.proposed(&gate).await?;
                    proposed.write(&propose.out)?;
                    output.line(&proposed.next(&propose.out))
                }
                Action::Sign { file, key, yes } => {
                    let mut proposed = ProposedGrant::read(file)?;
                    proposed.sign(&gate, key.as_deref(), *yes, output).await?;
                    proposed.write(file)?;
                    output.line(&proposed.next(file))
                }
                Action::Revoke { id } => done(&gate.post(&format!("/-/grants/{id}/revoke"), &json!({})).await?, "revoked", output),
            }
        })?
    }
}

impl Add {
    async fn give(&self, gate: &AdminClient, output: &Output) -> Result<(), Failure> {
        let mut proposed = self.terms.proposed(gate).await?;
        if proposed.required > 1 {
            return Err(Failure::Usage(format!(
                "{} different people have to sign a grant here\n  `banyan grants propose TOOL … --out FILE`, then each of them `banyan grants sign \
                 FILE`, then `banyan grants give FILE`",
                proposed.required
            )));
        }
        if self.terms.arguments.is_empty() && !self.terms.any_other {
            let look = output.paint_remark(Look::Warn, "warning:");
            output.remark(&format!("{look} the grant lets through calls without arguments only; `--any-other` lets arguments be there"));
        }
        proposed.sign(gate, self.key.as_deref(), self.yes, output).await?;
        let ProposedGrant { id, terms, proofs, .. } = proposed;
        done(&gate.post("/-/grants", &json!({ "id": id, "terms": terms, "proofs": proofs })).await?, "granted", output)
    }
}

impl Terms {
    /// Asks the gate for the text to be signed.
    async fn proposed(&self, gate: &AdminClient) -> Result<ProposedGrant, Failure> {
        let mut arguments = BTreeMap::new();
        for argument in &self.arguments {
            let (name, text) = argument
                .split_once('=')
                .ok_or_else(|| Failure::Usage(format!("`{argument}` is not NAME=TEXT\n  for example --arg path=/tmp/*")))?;
            arguments.insert(name, text);
        }
        let terms = json!({
            "tool": self.tool, "caller": self.caller, "arguments": arguments, "any_other": self.any_other,
            "expires": time::now().saturating_add(self.minutes.saturating_mul(60)), "uses": self.uses,
        });
        let answer = gate.post("/-/grants/statement", &json!({ "terms": terms })).await?;
        let ToSign { id, text, namespace, required } =
            serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
        if namespace != NAMESPACE {
            return Err(Failure::Refused("the gate wants something else signed than a grant: nothing was signed".to_owned()));
        }
        Ok(ProposedGrant { id, required, terms, text, proofs: Vec::new() })
    }
}

impl ProposedGrant {
    fn read(file: &Path) -> Result<Self, Failure> {
        let text = std::fs::read(file).map_err(|error| document::unread(file, &error))?;
        serde_json::from_slice(&text)
            .map_err(|e| Failure::Usage(format!("{} is no proposed grant: {e}\n  `banyan grants propose` writes one", file.display())))
    }

    fn write(&self, file: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        std::fs::write(file, format!("{text}\n")).map_err(|error| document::failed(file, "written", &error))
    }

    /// Signs the text, if it agrees with the terms: a person before may have changed either.
    async fn sign(&mut self, gate: &AdminClient, key: Option<&Path>, yes: bool, output: &Output) -> Result<(), Failure> {
        let said: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let is_same = ["tool", "caller", "arguments", "any_other", "expires", "uses"].iter().all(|one| said[*one] == self.terms[*one]);
        if !is_same {
            return Err(Failure::Refused(
                "what is to be signed says something else than the grant that is asked for: nothing was signed".to_owned(),
            ));
        }
        output.remark(&printable(&self.text));
        let agreed = SigningConsent::obtain("Sign this grant?", yes)?;
        let Operators { operators } = gate.get("/-/operators", &[]).await?;
        self.proofs.push(signing::sign(agreed, &self.text, NAMESPACE, key, &operators)?);
        Ok(())
    }

    fn next(&self, file: &Path) -> String {
        let (file, missing) = (file.display(), usize::from(self.required).saturating_sub(self.proofs.len()));
        if missing == 0 {
            format!("`banyan grants give {file}` gives it")
        } else {
            format!("{missing} more have to sign it: `banyan grants sign {file}`")
        }
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
    let ListedGrants { grants } = gate.get("/-/grants", &[]).await?;
    if output.wants_json() {
        return output.json(&json!({ "grants": grants }));
    }
    if grants.is_empty() {
        output.remark("there are no grants: every call that waits is asked about");
        return Ok(());
    }
    let mut rows = vec![["ID", "TOOL", "CALLER", "ARGUMENTS", "USED", "LEFT"].map(str::to_owned).to_vec()];
    for grant in &grants {
        let named = grant.terms.arguments.iter().map(|(name, text)| format!("{name}={text}"));
        let arguments: Vec<String> = named.chain(grant.terms.any_other.then(|| "any other".to_owned())).collect();
        let arguments = if arguments.is_empty() { vec!["none".to_owned()] } else { arguments };
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
