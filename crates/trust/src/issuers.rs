//! Signers and their tokens: authorization servers sign tokens of callers, authorities sign proofs. Ends with a principal and its rights,
//! and does not use the rights.

use std::sync::Arc;
use std::time::SystemTime;

use banyan_model::{Principal, PrincipalKind};
use config::resolved::{AuthorityKeys, Config, Issuer, Keys, Trust};
use mcp_proto::glob::Glob;
use mesh_proto::authority::Authority;
use mesh_proto::message::Proof;
use runtime::tls::Connector;

use crate::source::Source;
use crate::token;
use crate::token::{Claims, TokenExpectation, Wrong};
use call::words::granted::TokenRights;

/// Trusted signers: issuers of tokens, and authorities.
#[derive(Default)]
pub struct Issuers {
    audience: Arc<str>,
    issuers: Vec<(Issuer, Arc<Source>)>,
    authorities: Vec<(AuthorityKeys, Arc<Source>)>,
}

/// Holder of a good token.
#[derive(Debug, PartialEq, Eq)]
pub struct Bearer {
    pub principal: Principal,
    /// Name of the issuer in the configuration.
    pub issuer: Arc<str>,
    pub profile: Option<Arc<str>>,
    /// Expiry of the token, leeway included.
    pub until: SystemTime,
    pub granted: Arc<TokenRights>,
}

/// Reasons to refuse a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// Keys that may verify the token are being fetched.
    #[error("the keys of its issuer are being fetched: try again in a second")]
    Later,
    #[error("{0}")]
    Wrong(#[from] Wrong),
}

/// Reasons to refuse a proof of authority.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofRefusal {
    /// The subject is no DNS name.
    #[error("the proof's `sub` is no DNS name")]
    Name,
    /// No authority may sign proofs of the name.
    #[error("no [authority.NAME] of this gate may prove that name: its `names` leave it out")]
    NotAllowed,
    /// No keys can verify a proof.
    #[error("this gate takes no signed proofs: it has no [authority.NAME] in its configuration, and takes client certificates only")]
    NotTaken,
    #[error("the proof is not good: {0}")]
    Token(#[from] TokenRefusal),
}

impl Issuers {
    /// Takes the signers from `config`, and keeps the sources of keys already in `before`.
    pub fn new(config: &Trust, before: &Self, connector: &Arc<Connector>) -> Self {
        let known = |place: &Keys| {
            let mut sources = before.sources();
            let kept = sources.find(|source| source.place == *place);
            kept.map_or_else(|| Arc::new(Source::new(place, connector)), Arc::clone)
        };
        Self {
            audience: config.resource.clone().unwrap_or_default(),
            issuers: config.issuers.iter().map(|issuer| (issuer.clone(), known(&issuer.keys))).collect(),
            authorities: config.authorities.iter().map(|authority| (authority.clone(), known(&authority.keys))).collect(),
        }
    }

    /// Sources of keys, of issuers and then of authorities.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.issuers.iter().map(|(_, source)| source).chain(self.authorities.iter().map(|(_, source)| source))
    }

    /// Verifies a token and returns its holder.
    pub fn bearer(&self, token: &str) -> Result<Bearer, TokenRefusal> {
        let claimed = token::claimed_issuer(token)?;
        let mut denied = TokenRefusal::Wrong(Wrong::Issuer);
        for (issuer, source) in self.issuers.iter().filter(|(issuer, _)| issuer.issuer == claimed) {
            match self.verify(token, source, Some(&claimed)) {
                Ok(claims) => return holder(issuer, &claims),
                Err(why) => denied = why,
            }
        }
        Err(denied)
    }

    /// Verifies a proof and returns the authority named in it.
    pub fn prove(&self, proof: &Proof) -> Result<Authority, ProofRefusal> {
        let mut unproven = ProofRefusal::NotTaken;
        for (authority, source) in &self.authorities {
            match self.verify(proof.reveal(), source, None) {
                Ok(claims) => {
                    let subject = claims.sub.strip_prefix("dns:").unwrap_or(&claims.sub);
                    let name = Authority::of_dns_name(subject).ok_or(ProofRefusal::Name)?;
                    if authority.names.iter().any(|glob| Glob::new(glob).matches(name.dns_name())) {
                        return Ok(name);
                    }
                    unproven = ProofRefusal::NotAllowed;
                }
                // A check that failed under another key says more than a wrong signature under this key.
                Err(TokenRefusal::Wrong(Wrong::Key)) if unproven != ProofRefusal::NotTaken => {}
                Err(why) => unproven = why.into(),
            }
        }
        Err(unproven)
    }

    fn verify(&self, token: &str, source: &Source, issuer: Option<&str>) -> Result<Claims, TokenRefusal> {
        let verified = token::verify(token, &source.keys(), &TokenExpectation { audience: &self.audience, issuer });
        match verified {
            Err(Wrong::Key) if source.want_more() => Err(TokenRefusal::Later),
            other => Ok(other?),
        }
    }
}

fn holder(issuer: &Issuer, claims: &Claims) -> Result<Bearer, TokenRefusal> {
    if !issuer.scopes.iter().all(|scope| claims.has_scope(scope)) {
        return Err(Wrong::Scope.into());
    }
    let legal = (1..=255).contains(&claims.sub.len()) && !claims.sub.chars().any(char::is_control);
    if !legal {
        return Err(Wrong::Form.into());
    }
    Ok(Bearer {
        principal: Principal::new(PrincipalKind::Issuer, format!("{}@{}", claims.sub, issuer.name)),
        issuer: Arc::clone(&issuer.name),
        profile: issuer.profile.clone(),
        until: claims.until(),
        granted: Arc::new(TokenRights {
            groups: claims.groups().map(|group| format!("{group}@{}", issuer.name)).collect(),
            roles: claims.roles().map(|role| format!("{role}@{}", issuer.name)).collect(),
            scopes: claims.scopes().map(str::to_owned).collect(),
            place: claims.place.clone(),
        }),
    })
}

/// The challenge of a 401 or 403 (RFC 6750, RFC 9728), where authorization servers are configured.
pub fn challenge(config: &Config, error: Option<&str>) -> Option<String> {
    let first = config.trust.issuers.first()?;
    challenge_for(config, error, &first.scopes.join(" "))
}

/// Makes the challenge of a caller who needs `scope` (space-separated).
pub fn challenge_for(config: &Config, error: Option<&str>, scope: &str) -> Option<String> {
    let metadata = metadata_url(config.trust.resource.as_deref()?)?;
    let mut challenge = format!("Bearer realm=\"banyan\", resource_metadata=\"{metadata}\"");
    if let Some(error) = error {
        challenge.push_str(&format!(", error=\"{error}\""));
    }
    if !scope.is_empty() {
        challenge.push_str(&format!(", scope=\"{scope}\""));
    }
    Some(challenge)
}

/// URL of a resource's metadata (RFC 9728, section 3.1).
fn metadata_url(resource: &str) -> Option<String> {
    let url = url::Url::parse(resource).ok()?;
    let path = url.path().trim_end_matches('/');
    Some(format!("{}{METADATA}{path}", url.origin().ascii_serialization()))
}

/// Path of the metadata.
pub const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Metadata of this gate as a protected resource (RFC 9728); `None` where no authorization server is configured.
pub fn metadata(config: &Config) -> Option<serde_json::Value> {
    let resource = config.trust.resource.as_deref().filter(|_| !config.trust.issuers.is_empty())?;
    let servers: Vec<&str> = config.trust.issuers.iter().map(|issuer| issuer.issuer.as_str()).collect();
    let mut scopes: Vec<&str> = config.trust.issuers.iter().flat_map(|issuer| &issuer.scopes).map(String::as_str).collect();
    scopes.sort_unstable();
    scopes.dedup();
    let mut metadata = serde_json::json!({
        "resource": resource,
        "authorization_servers": servers,
        "bearer_methods_supported": ["header"],
        "resource_name": "Banyan",
    });
    if !scopes.is_empty() {
        metadata["scopes_supported"] = scopes.into();
    }
    Some(metadata)
}

#[cfg(test)]
mod tests;
