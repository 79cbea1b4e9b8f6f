//! Resolves `[[token]]`. Makes no token.

use super::file;
use super::resolved::Token;
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;
use crate::units::hex_digest;

impl FileReading<'_> {
    pub(super) fn tokens(&mut self, tokens: &[file::Token]) -> Vec<Token> {
        let mut found: Vec<Token> = Vec::new();
        for token in tokens {
            let name = token.name.get();
            if name.is_empty() || found.iter().any(|other| *other.name == **name) {
                let message = if name.is_empty() { "a token needs a name".into() } else { format!("there are two tokens named `{name}`") };
                self.flaws.push(Flaw::new(token.name.span(), message).help("names tell the holders apart in logs and records"));
            }
            let Some(sha256) = hex_digest(token.sha256.get()) else {
                let flaw = Flaw::new(token.sha256.span(), "`sha256` is not a SHA-256 hash of 64 hexadecimal digits").secret();
                self.flaws.push(flaw.help("`banyan token add NAME` makes a token and writes its hash here"));
                continue;
            };
            if let Some(profile) = &token.profile {
                self.known_profile(profile);
            }
            let profile = token.profile.as_ref().map(|profile| profile.get().as_str().into());
            found.push(Token { name: name.as_str().into(), sha256, profile, metrics: token.metrics });
        }
        found
    }

    /// Refuses a profile that the file does not have.
    pub(crate) fn known_profile(&mut self, profile: &At<String>) {
        let advice = format!("add a section [profile.{}]", profile.get());
        self.known("profile", profile, &advice);
    }
}
