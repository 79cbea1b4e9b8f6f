//! Demands of a refusal with 401 or 403 (RFC 6750, RFC 9728). Decides nothing.

use rmcp::transport::auth::WWWAuthenticateParams;
use url::Url;

/// A refusal's demand.
pub struct Challenge {
    pub wants: Wants,
    /// Header as it came, for discovery.
    pub header: Option<String>,
    /// Scopes named.
    pub scopes: Vec<String>,
}

/// Remedy for a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wants {
    /// A token with more scopes.
    More,
    /// A sign-in would not help.
    Nothing,
    /// A token, or another one.
    Token,
}

impl Challenge {
    /// Reads the `WWW-Authenticate` header of a response from `url`.
    pub fn new(status: u16, header: Option<&str>, url: &Url) -> Self {
        let read = header.map(|header| WWWAuthenticateParams::parse(header, url)).unwrap_or_default();
        let scopes: Vec<String> = read.scope.iter().flat_map(|scope| scope.split_whitespace()).map(Into::into).collect();
        let wants = match status {
            _ if read.is_insufficient_scope() && !scopes.is_empty() => Wants::More,
            401 => Wants::Token,
            _ => Wants::Nothing,
        };
        Self { wants, header: header.map(Into::into), scopes }
    }
}

/// Reads the scopes from any header, for fuzzing.
pub fn asked(status: u16, header: &str, url: &Url) -> Vec<String> {
    Challenge::new(status, Some(header), url).scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_whether_and_what_more_is_needed() {
        let url = "https://example.com/mcp".parse().unwrap();
        let read = |status, header| {
            let challenge = Challenge::new(status, header, &url);
            (challenge.wants, challenge.scopes.join(" "))
        };
        assert_eq!(read(401, None), (Wants::Token, String::new()));
        assert_eq!(read(401, Some("Bearer scope=\"read\", resource_metadata=\"https://example.com/p\"")), (Wants::Token, "read".into()));
        assert_eq!(read(403, Some("Bearer error=\"insufficient_scope\", scope=\"read write\"")), (Wants::More, "read write".into()));
        assert_eq!(read(401, Some("Bearer error=\"insufficient_scope\", scope=\"x\"")), (Wants::More, "x".into()));
        assert_eq!(read(403, Some("Bearer error=\"insufficient_scope\"")), (Wants::Nothing, String::new()));
        assert_eq!(read(403, Some("Bearer realm=\"x\"")), (Wants::Nothing, String::new()));
    }
}
