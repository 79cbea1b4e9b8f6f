//! Signatures with SSH keys, as by `ssh-keygen -Y sign`: from a key's file, or by an agent. Signs only after the agreement of a person at
//! the terminal, or with `--yes`. Verifies nothing.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gateway::admin::shapes::OperatorShown;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{places, terminal};

/// Proof that somebody agreed to sign the shown text.
#[derive(Clone, Copy)]
pub(crate) struct SigningConsent(());

impl SigningConsent {
    /// Asks at the terminal, unless `yes`. Refuses where nobody can be asked.
    pub(crate) fn obtain(question: &str, yes: bool) -> Result<Self, Failure> {
        if yes {
            return Ok(Self(()));
        }
        if !terminal::somebody_is_there() {
            let why =
                "nobody is at a terminal to be asked: nothing was signed\n  run it in a terminal, or pass `--yes` to sign what is shown";
            return Err(Failure::Refused(why.to_owned()));
        }
        if terminal::agrees(question)? { Ok(Self(())) } else { Err(Failure::Refused("nothing was signed".to_owned())) }
    }
}

/// Signs `text` for `namespace` with the key in a file, or with the first of the enrolled `operators`' keys that an agent has.
pub(crate) fn sign(
    _: SigningConsent,
    text: &str,
    namespace: &str,
    key: Option<&Path>,
    operators: &[OperatorShown],
) -> Result<Value, Failure> {
    let signature = match key {
        Some(key) => with_file(text, namespace, key)?,
        None => {
            let public = Public::write(&from_agent(operators)?)?;
            with_file(text, namespace, &public.0)?
        }
    };
    Ok(json!({ "type": "sshsig", "signature": signature }))
}

fn with_file(text: &str, namespace: &str, key: &Path) -> Result<String, Failure> {
    let mut signing = Command::new("ssh-keygen")
        .args(["-q", "-Y", "sign", "-n", namespace, "-f"])
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| Failure::Failed(format!("`ssh-keygen` can't be started, which signs: {e}\n  install OpenSSH 8.2 or later")))?;
    let failed = |e: std::io::Error| Failure::Failed(format!("`ssh-keygen` can't be asked to sign: {e}"));
    if let Some(mut input) = signing.stdin.take() {
        input.write_all(text.as_bytes()).map_err(failed)?;
    }
    let signed = signing.wait_with_output().map_err(failed)?;
    if !signed.status.success() {
        return Err(Failure::Failed(format!("no signature was made with {}: `ssh-keygen` said above why", key.display())));
    }
    Ok(String::from_utf8_lossy(&signed.stdout).into_owned())
}

/// Finds the line of an enrolled key held by an agent.
fn from_agent(operators: &[OperatorShown]) -> Result<String, Failure> {
    let listed = Command::new("ssh-add").arg("-L").stderr(Stdio::null()).output();
    let lines = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned()).unwrap_or_default();
    let enrolled = |line: &&str| operators.iter().any(|operator| !operator.passkey && line.starts_with(&operator.key));
    let found = lines.lines().find(enrolled).map(str::to_owned);
    found.ok_or_else(|| {
        Failure::Refused(
            "no agent has a key that is enrolled here\n  name a key's file with --key FILE, or add it with `ssh-add FILE`; \
             `banyan operator list` shows the keys that count"
                .to_owned(),
        )
    })
}

/// A public key in a file of its own, for as long as needed.
struct Public(PathBuf);

impl Public {
    fn write(line: &str) -> Result<Self, Failure> {
        let dir = places::runtime_dir()?;
        let path = dir.join(format!("signing-{}.pub", std::process::id()));
        let written = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, format!("{line}\n")));
        written.map_err(|e| Failure::Failed(format!("{} can't be written: {e}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Public {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}
