//! `banyan secret`: secrets in the system's keyring, for `${keyring:NAME}` in a configuration. Never prints a value.

use std::io::{IsTerminal, Read};

use clap::{Args, Subcommand};
use config::secret::{Secret as Value, SecretStore, StoreError};

use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::similar::did_you_mean;
use crate::{places, terminal};

/// Keeps secrets in the system's keyring.
#[derive(Args)]
pub(crate) struct Secret {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Store a secret: asked for on a terminal, otherwise read from standard input
    Set {
        /// Name of the secret, for ${keyring:NAME}
        name: String,
    },
    /// List the names
    List,
    /// Remove a secret
    #[command(visible_alias = "remove")]
    Rm {
        /// Name of the secret
        name: String,
    },
}

impl Secret {
    pub(crate) fn run(&self, output: &Output) -> Result<(), Failure> {
        let store = SecretStore::in_dir(&places::state_dir()?);
        match self.action.as_ref().unwrap_or(&Action::List) {
            Action::Set { name } => set(&store, name, output),
            Action::List => list(&store, output),
            Action::Rm { name } => remove(&store, name, output),
        }
    }
}

fn set(store: &SecretStore, name: &str, output: &Output) -> Result<(), Failure> {
    let value = if std::io::stdin().is_terminal() { terminal::hidden_line(&format!("value of {name}: "))? } else { piped()? };
    if value.is_empty() {
        return Err(Failure::Usage("the secret is empty: nothing stored".to_owned()));
    }
    let reference = store.set(name, &Value::new(value))?;
    if output.wants_json() {
        return output.json(&serde_json::json!({ "name": name, "reference": reference.to_string() }));
    }
    output.line(&format!("stored; write {} where it is needed", output.paint(Look::Strong, &reference.to_string())))
}

/// Reads standard input without its last line end.
fn piped() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| Failure::Failed(format!("standard input can't be read: {e}")))?;
    let line = text.strip_suffix('\n').map(|t| t.strip_suffix('\r').unwrap_or(t));
    Ok(line.unwrap_or(&text).to_owned())
}

fn list(store: &SecretStore, output: &Output) -> Result<(), Failure> {
    let names = store.list()?;
    if output.wants_json() {
        return output.json(&serde_json::json!({ "secrets": names }));
    }
    if names.is_empty() {
        output.remark("there is no secret; `banyan secret set NAME` stores one");
    }
    names.iter().try_for_each(|n| output.line(n))
}

fn remove(store: &SecretStore, name: &str, output: &Output) -> Result<(), Failure> {
    if !store.remove(name)? {
        let names = store.list()?;
        let hint = did_you_mean(name, names.iter().map(String::as_str));
        return Err(Failure::NotFound(format!("there is no secret `{name}`{hint}")));
    }
    if output.wants_json() {
        return output.json(&serde_json::json!({ "removed": name }));
    }
    output.line("removed")
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::BadName(_) => Self::Usage(error.to_string()),
            StoreError::Index { .. } | StoreError::Keyring(_) => Self::Failed(error.to_string()),
        }
    }
}
