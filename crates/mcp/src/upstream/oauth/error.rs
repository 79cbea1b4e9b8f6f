//! Errors of signing in, with a remedy. Knows no status code and no JSON-RPC code.

use std::io;
use std::path::PathBuf;

use config::secret::SecretError;

/// Reasons why signing in failed. Never holds a token or a secret.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The settings are unusable.
    #[error("the oauth settings of mount `{mount}` can't be used: {why}")]
    Config {
        mount: String,
        /// Fault and remedy.
        why: String,
    },
    #[error("signing in at `{mount}` was refused ({why}): sign in again with `banyan auth {mount}`, or ask who runs that server")]
    Denied { mount: String, why: String },
    /// The server's description of its sign-in is unusable.
    #[error(
        "`{mount}` wants a sign-in but does not say properly how ({why}): tell who runs that server, or give a token under its `headers`"
    )]
    Discovery { mount: String, why: String },
    #[error(
        "`{mount}` wants a credential and offers no sign-in: put its token under `headers`, such as Authorization = \"Bearer ${{env:TOKEN}}\""
    )]
    NotOffered { mount: String },
    #[error(
        "the redirect of a sign-in at `{mount}` needs port {port} of 127.0.0.1 ({source}): end what uses it, or change `redirect_port`"
    )]
    Redirect {
        mount: String,
        /// The port; 0: any.
        port: u16,
        source: io::Error,
    },
    /// The token could not be refreshed; later it may work.
    #[error("the token for `{mount}` could not be refreshed ({why}): try again; if that does not help, `banyan auth {mount}`")]
    Refresh {
        mount: String,
        /// Text of the authorization server, or the reason why there is none.
        why: String,
    },
    /// The authorization server did not register this gate.
    #[error(
        "the authorization server of `{mount}` did not register Banyan ({why}): register it there by hand and give the client id as \
         `client_id` under [mount.{mount}.oauth]"
    )]
    Registration { mount: String, why: String },
    /// The server wants more scopes than granted, and a further sign-in changed nothing.
    #[error("`{mount}` wants the scope `{scope}`, which was asked for and not granted: ask who runs that server for it")]
    Scope {
        mount: String,
        /// Scopes named by the server.
        scope: String,
    },
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("sign in at `{mount}`: open {url} in a browser on this machine (or run `banyan auth {mount}`), then try again")]
    SignIn { mount: String, url: String },
    #[error("the token can't be kept in {}: {source}", .path.display())]
    Store { path: PathBuf, source: io::Error },
}

impl AuthError {
    /// Converts an error of rmcp.
    pub fn from_rmcp(mount: &str, error: &rmcp::transport::auth::AuthError) -> Self {
        use rmcp::transport::auth::AuthError as Rmcp;
        let (mount, why) = (mount.to_owned(), with_sources(error));
        match error {
            Rmcp::RegistrationFailed(_) => Self::Registration { mount, why },
            Rmcp::TokenRefreshFailed(_) | Rmcp::TokenRefreshRejected(_) => Self::Refresh { mount, why },
            Rmcp::NoAuthorizationSupport => Self::NotOffered { mount },
            Rmcp::MetadataError(_)
            | Rmcp::DiscoveryRequestFailed { .. }
            | Rmcp::ProtectedResourceMetadataInvalid { .. }
            | Rmcp::AuthorizationServersUnavailable { .. }
            | Rmcp::PkceUnsupported
            | Rmcp::UrlError(_)
            | Rmcp::HttpError(_) => Self::Discovery { mount, why },
            Rmcp::AuthorizationRequired
            | Rmcp::AuthorizationFailed(_)
            | Rmcp::TokenExchangeFailed(_)
            | Rmcp::CredentialStoreError(_)
            | Rmcp::OAuthError(_)
            | Rmcp::InternalError(_)
            | Rmcp::InvalidTokenType(_)
            | Rmcp::TokenExpired
            | Rmcp::InvalidScope(_)
            | Rmcp::InsufficientScope { .. }
            | Rmcp::AuthorizationServerMismatch { .. }
            | Rmcp::AuthorizationServerMissingIssuer { .. }
            | Rmcp::ClientCredentialsError(_)
            | _ => Self::Denied { mount, why },
        }
    }
}

/// Writes an error with its causes: rmcp keeps the reason of a failed request in the source.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
