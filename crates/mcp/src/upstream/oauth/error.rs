//! Why there is no token, in words that say what to do. Knows no status code and no JSON-RPC code.

use std::io;
use std::path::PathBuf;

use config::secret::SecretError;

/// Why signing in did not work. Never holds a token or a secret.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The settings name what can't be used.
    #[error("the oauth settings of mount `{mount}` can't be used: {why}")]
    Config {
        /// The mount.
        mount: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The person, or the authorization server, said no.
    #[error("signing in at `{mount}` was refused ({why}): sign in again with `banyan auth {mount}`, or ask who runs that server")]
    Denied {
        /// The mount.
        mount: String,
        /// What the authorization server said.
        why: String,
    },
    /// The server's description of how to sign in can't be used.
    #[error(
        "`{mount}` wants a sign-in but does not say properly how ({why}): tell who runs that server, or give a token under its `headers`"
    )]
    Discovery {
        /// The mount.
        mount: String,
        /// What was found.
        why: String,
    },
    /// The server wants a token but offers no OAuth.
    #[error(
        "`{mount}` wants a credential and offers no sign-in: put its token under `headers`, such as Authorization = \"Bearer ${{env:TOKEN}}\""
    )]
    NotOffered {
        /// The mount.
        mount: String,
    },
    /// The local address for the redirect can't be listened at.
    #[error(
        "the redirect of a sign-in at `{mount}` needs port {port} of 127.0.0.1 ({source}): end what uses it, or change `redirect_port`"
    )]
    Redirect {
        /// The mount.
        mount: String,
        /// The port; 0: any.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The token could not be refreshed, perhaps only now.
    #[error("the token for `{mount}` could not be refreshed ({why}): try again; if that does not help, `banyan auth {mount}`")]
    Refresh {
        /// The mount.
        mount: String,
        /// What the authorization server said, or why it could not be asked.
        why: String,
    },
    /// We could not introduce ourselves.
    #[error(
        "the authorization server of `{mount}` did not register Banyan ({why}): register it there by hand and give the client id as \
         `client_id` under [mount.{mount}.oauth]"
    )]
    Registration {
        /// The mount.
        mount: String,
        /// What the authorization server said.
        why: String,
    },
    /// More is needed than was granted, and asking again changed nothing.
    #[error("`{mount}` wants the scope `{scope}`, which was asked for and not granted: ask who runs that server for it")]
    Scope {
        /// The mount.
        mount: String,
        /// What the server named.
        scope: String,
    },
    /// A configured secret is not there.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A person has to sign in.
    #[error("sign in at `{mount}`: open {url} in a browser on this machine (or run `banyan auth {mount}`), then try again")]
    SignIn {
        /// The mount.
        mount: String,
        /// The address to open.
        url: String,
    },
    /// The token can't be kept.
    #[error("the token can't be kept in {}: {source}", .path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl AuthError {
    /// Puts what rmcp says into our words.
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

/// An error with what caused it: rmcp keeps the reason of a failed request below the error.
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
