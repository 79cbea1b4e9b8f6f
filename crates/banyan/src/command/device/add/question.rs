//! Questions for the way to a new device. Asks for nothing that was given or has no use on that way, and tries nothing but to see the host key.

use netdev::Backend;

use super::typed_secret::TypedSecrets;
use super::{AddedDevice, BACKENDS, failed};
use crate::failure::Failure;
use crate::places::person;
use crate::printable::printable;
use crate::{terminal, threads};

/// Answers to one question until one is taken.
const TRIES: usize = 3;

/// Asks for what the way to the device needs.
pub(super) fn complete(added: &mut AddedDevice, secrets: &mut TypedSecrets) -> Result<(), Failure> {
    let names_nothing = added.pathspace.is_none() && added.socket.is_none() && added.address.is_none();
    if added.backend.is_none() && names_nothing {
        let taken = |answer: &str| BACKENDS.contains(&answer);
        added.backend = Some(asked(&format!("Way to the device ({})", BACKENDS.join(", ")), Some(BACKENDS[0]), taken)?);
    }
    match added.backend.as_deref().unwrap_or(BACKENDS[0]) {
        "ssh" => {
            complete_login(added, secrets, Backend::Ssh)?;
            let dialect = added.dialect.take().map_or_else(|| asked("Dialect (frr, ios, junos, vrp)", Some("frr"), is_word), Ok)?;
            added.dialect = Some(dialect);
            Ok(())
        }
        "netconf" => complete_login(added, secrets, Backend::Netconf),
        "frr" if added.address.is_some() => complete_login(added, secrets, Backend::Frr),
        "snmp" => complete_agent(added, secrets),
        _ => Ok(()),
    }
}

/// Completes a way over SSH.
fn complete_login(added: &mut AddedDevice, secrets: &mut TypedSecrets, backend: Backend) -> Result<(), Failure> {
    let address = added.address.take().map_or_else(|| asked("Address", None, is_word), Ok)?;
    if added.host_key.is_none() {
        added.host_key = Some(accepted_host_key(&address, backend)?);
    }
    added.address = Some(address);
    let user = added.user.take().map_or_else(|| asked("User", Some(&person()), is_word), Ok)?;
    if added.key.is_none() && added.password.is_none() {
        let key = terminal::line("File of the private key, or nothing for a password: ")?;
        if key.is_empty() {
            added.password = Some(kept(&format!("Password of {}", printable(&user)), "", secrets)?);
        } else {
            added.key = Some(key);
        }
    }
    added.user = Some(user);
    Ok(())
}

/// Shows the host key of a device to whoever can compare it. Accepts nothing by itself, as whoever sits in between would show a key, too.
fn accepted_host_key(address: &str, backend: Backend) -> Result<String, Failure> {
    let shown = threads::wait(async { netdev::shown_host_key(address, backend).await.map_err(|fault| failed(&fault)) })??;
    let question = format!("{} shows the host key {}. Is that the key of the device? [yes/no] ", printable(address), printable(&shown));
    if terminal::line(&question)?.trim() == "yes" {
        return Ok(shown);
    }
    Err(Failure::Refused("the host key is not accepted: nothing is added\n  `ssh-keygen -l` at the device shows its key".to_owned()))
}

/// Completes a way over SNMP: a user of v3, or a community.
fn complete_agent(added: &mut AddedDevice, secrets: &mut TypedSecrets) -> Result<(), Failure> {
    if added.address.is_none() {
        added.address = Some(asked("Address", None, is_word)?);
    }
    if added.community.is_some() {
        return Ok(());
    }
    if added.user.is_none() {
        let user = terminal::line("User of SNMP v3, or nothing for a community of v2c: ")?;
        if user.is_empty() {
            added.community = Some(kept("Community", "", secrets)?);
            return Ok(());
        }
        added.user = Some(user);
    }
    if added.password.is_none() {
        added.password = Some(kept("Password", "", secrets)?);
        let privacy = terminal::hidden_line("Password for the encryption, or nothing for none: ")?;
        if !privacy.is_empty() {
            added.privacy_password = Some(secrets.keep("-privacy", &privacy)?);
        }
    }
    Ok(())
}

/// Reference to a secret that is typed now.
fn kept(prompt: &str, ending: &str, secrets: &mut TypedSecrets) -> Result<String, Failure> {
    let value = terminal::hidden_line(&format!("{prompt}: "))?;
    if value.is_empty() { Err(Failure::Usage("the answer is empty: nothing is added".to_owned())) } else { secrets.keep(ending, &value) }
}

fn is_word(answer: &str) -> bool {
    !answer.is_empty() && !answer.contains(char::is_whitespace)
}

/// Asks until an answer is `taken`; nothing stands for the default.
fn asked(question: &str, default: Option<&str>, taken: impl Fn(&str) -> bool) -> Result<String, Failure> {
    let prompt = default.map_or_else(|| format!("{question}: "), |default| format!("{question} [{default}]: "));
    for _ in 0..TRIES {
        let typed = terminal::line(&prompt)?;
        let answer = if typed.trim().is_empty() { default.unwrap_or_default() } else { typed.trim() };
        if taken(answer) {
            return Ok(answer.to_owned());
        }
    }
    Err(Failure::Usage(format!(
        "no answer was of use to `{question}`: nothing is added\n  `banyan device add --help` shows what can be given"
    )))
}
