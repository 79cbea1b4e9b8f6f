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
            if let Some(holder) = self.other_holder(name) {
                let message = format!("a token can't be named `{name}`: that is {holder}");
                let help = "grants, rules and seats in rooms know callers by name and would mean both; give the token another name";
                self.flaws.push(Flaw::new(token.name.span(), message).help(help));
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

    /// The caller of another kind that has this name, or may have it: what a certificate or an issuer says must not become a token's.
    fn other_holder(&self, name: &str) -> Option<String> {
        let lower = name.to_ascii_lowercase();
        if lower.starts_with("dns:") || lower.starts_with("spiffe://") {
            return Some("the name of a certificate's holder".into());
        }
        let (_, issuer) = name.rsplit_once('@')?;
        self.names("issuer").contains(&issuer).then(|| format!("somebody whom the issuer `{issuer}` knows"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::parse;
    use crate::secret::SystemSources;

    fn problems(name: &str) -> Option<String> {
        let hash = "01".repeat(32);
        let issuer = "resource = \"https://gate.example/mcp\"\n[issuer.login]\nissuer = \"https://login.example\"\nkeys = \"https://login.example/jwks\"\n";
        let text = format!("{issuer}[[token]]\nname = \"{name}\"\nsha256 = \"{hash}\"\n");
        parse(&text, Path::new("/etc/banyan.toml"), &SystemSources).err().map(|problems| problems.to_string())
    }

    #[test]
    fn tokens_have_no_names_of_other_callers() {
        for name in ["dns:edge.example.com", "DNS:edge.example.com", "spiffe://a.example/b", "ada@login"] {
            let problems = problems(name).unwrap_or_default();
            assert!(problems.contains(&format!("a token can't be named `{name}`")), "{name}: {problems}");
        }
        for name in ["ada", "ada@example.com", "dns", "login"] {
            assert_eq!(problems(name), None, "{name}");
        }
    }
}
