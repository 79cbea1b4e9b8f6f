//! A finished task, written as the claims of a token in the names of either draft. Does not choose ids, times or keys.

use super::claims::EctClaims;
use super::{EctDraft, EctFault};

/// A task to be witnessed.
#[derive(Debug, Clone, Copy)]
pub struct WitnessedWork<'a> {
    pub issuer: &'a str,
    pub audience: &'a [&'a str],
    /// Seconds since 1970.
    pub issued: u64,
    /// Seconds since 1970.
    pub expires: u64,
    /// UUID of the token and the task.
    pub id: &'a str,
    /// UUID of the workflow.
    pub workflow: Option<&'a str>,
    pub action: &'a str,
    pub parents: &'a [&'a str],
    /// [`super::spelled_hash`] of the bytes received.
    pub input: Option<&'a str>,
    /// [`super::spelled_hash`] of the bytes sent.
    pub output: Option<&'a str>,
    /// Raw JSON object.
    pub extension: Option<&'a str>,
}

impl WitnessedWork<'_> {
    /// Writes the claims.
    ///
    /// # Errors
    /// When a reader would refuse the claims.
    pub fn claims(&self, draft: EctDraft) -> Result<Vec<u8>, EctFault> {
        let mut text = String::from("{");
        let mut push = |name: &str, raw: &str| {
            text.push_str(if text.len() == 1 { "" } else { "," });
            text.push_str(&format!("\"{name}\":{raw}"));
        };
        push("iss", &json::quote(self.issuer));
        push("aud", &array(self.audience));
        push("iat", &self.issued.to_string());
        push("exp", &self.expires.to_string());
        push("jti", &json::quote(self.id));
        for (name, value) in [("wid", self.workflow), ("exec_act", Some(self.action))] {
            value.into_iter().for_each(|value| push(name, &json::quote(value)));
        }
        push(draft.parents(), &array(self.parents));
        for (name, value) in [("inp_hash", self.input), ("out_hash", self.output)] {
            value.into_iter().for_each(|value| push(name, &json::quote(value)));
        }
        self.extension.into_iter().for_each(|raw| push(draft.extension(), raw));
        text.push('}');
        EctClaims::parse(text.as_bytes()).map(|_| text.into_bytes())
    }
}

fn array(texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| json::quote(text)).collect();
    format!("[{}]", texts.join(","))
}
