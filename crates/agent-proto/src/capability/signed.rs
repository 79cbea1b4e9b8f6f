//! The signed form of a document (AEPB, section 3): a JWT with the members of the document and the claims of its signer, a local profile.
//! Signs and verifies none.

use json::{Duplicates, Members, quote};

/// `typ` of a signed document.
pub const SIGNED_DOCUMENT: &str = "aepb-capability+jwt";
/// Seconds until a signed document expires: as long as a document may be kept.
pub const LIFETIME: u64 = 3600;
/// Tolerated seconds between clocks.
const SKEW: u64 = 30;

/// Claims of the signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedClaims {
    issuer: String,
    subject: String,
    issued: u64,
    expires: u64,
}

/// Writes a document as claims, signed at `now` (seconds since 1970) by its agent.
pub fn claims(document: &str, agent: &str, now: u64) -> String {
    let (agent, expires) = (quote(agent), now.saturating_add(LIFETIME));
    let members = document.strip_prefix('{').unwrap_or(document);
    format!("{{\"iss\":{agent},\"sub\":{agent},\"iat\":{now},\"exp\":{expires},{members}")
}

impl SignedClaims {
    /// Reads the claims of a verified document. The error says what is wrong with the text.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let whole = Members::parse(text, Duplicates::RefuseDeep).map_err(|error| error.to_string())?;
        let missing = |member: &str| format!("its signed document has no `{member}`");
        let word = |member: &str| whole.str(member).map(std::borrow::Cow::into_owned).ok_or_else(|| missing(member));
        let time = |member: &str| {
            let raw = whole.get(member).and_then(|raw| std::str::from_utf8(raw).ok());
            raw.and_then(|raw| raw.parse().ok()).ok_or_else(|| missing(member))
        };
        Ok(Self { issuer: word("iss")?, subject: word("sub")?, issued: time("iat")?, expires: time("exp")? })
    }

    /// Checks the claims at `now`, for a document of `agent` signed with a key of `signer`. The error says what does not hold.
    pub fn judge(&self, (signer, agent): (&str, &str), now: u64) -> Result<(), String> {
        if self.issuer != signer || self.subject != agent || self.issuer != agent {
            return Err(format!("its document is about {agent}, and signed by {signer}"));
        }
        if self.issued > now.saturating_add(SKEW) {
            return Err("its document was signed in the future: compare the clocks of both machines".into());
        }
        if now >= self.expires.saturating_add(SKEW) { Err("its signed document has expired".into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_772_064_150;

    #[test]
    fn ae_01_a_signed_document_has_an_agent_and_a_time() {
        let text = claims(r#"{"agent_id":"spiffe://a/b"}"#, "spiffe://a/b", NOW);
        let read = SignedClaims::read(text.as_bytes()).unwrap();
        assert!(text.ends_with(r#","agent_id":"spiffe://a/b"}"#) && json::check(text.as_bytes(), Duplicates::RefuseDeep).is_ok(), "{text}");
        assert_eq!(read.judge(("spiffe://a/b", "spiffe://a/b"), NOW), Ok(()));
        for (who, now) in [
            (("spiffe://x/y", "spiffe://a/b"), NOW),
            (("spiffe://a/b", "spiffe://x/y"), NOW),
            (("spiffe://a/b", "spiffe://a/b"), NOW - SKEW - 1),
            (("spiffe://a/b", "spiffe://a/b"), NOW + LIFETIME + SKEW),
        ] {
            assert!(read.judge(who, now).is_err(), "{who:?} {now}");
        }
    }

    #[test]
    fn ae_01_claims_without_sense_are_refused() {
        for text in [
            "",
            "{}",
            r#"{"iss":"a","sub":"a","iat":1}"#,
            r#"{"iss":"a","iss":"a","sub":"a","iat":1,"exp":2}"#,
            r#"{"iss":"a","sub":"a","iat":"1","exp":2}"#,
        ] {
            assert!(SignedClaims::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
