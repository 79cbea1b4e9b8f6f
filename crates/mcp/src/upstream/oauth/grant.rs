//! Getting tokens without a person: by a refresh token, or by the client's own credentials. Opens no browser.

use std::net::IpAddr;

use config::resolved::Grant;
use config::secret::SystemSources;
use rmcp::transport::auth::{
    AuthError as Rmcp, AuthorizationManager, ClientCredentialsConfig, CredentialStore, InMemoryCredentialStore, OAuthClientConfig,
};

use crate::upstream::oauth::challenge::{Challenge, Wants};
use crate::upstream::oauth::record::Record;
use crate::upstream::oauth::sign_in::Pending;
use crate::upstream::oauth::{AuthError, Client, State, Token};

/// State machine of rmcp, and the store in which it leaves tokens.
pub struct Grantor {
    pub manager: AuthorizationManager,
    pub memory: InMemoryCredentialStore,
}

/// Reasons for a failed refresh.
enum NotRefreshed {
    /// The authorization server refuses the refresh token.
    Finally,
    /// A later try may work.
    ForNow(AuthError),
}

impl Client {
    /// Gets a new token for `challenge`: at once (`None`), or when a person has signed in.
    pub(super) async fn renew(self: &std::sync::Arc<Self>, state: &mut State, challenge: &Challenge) -> Result<Option<Pending>, AuthError> {
        self.is_worth_it(state, challenge)?;
        let mut grantor = self.grantor().await?;
        let found = grantor.manager.resolve_metadata_from_challenge(challenge.header.as_deref()).await.map_err(|e| self.failed(&e))?;
        let issuer = found.metadata.issuer.clone();
        grantor.manager.set_metadata(found.metadata.clone());
        self.forget_other_issuer(state, issuer.as_deref());
        if self.config.grant == Grant::ClientCredentials {
            self.by_client_credentials(state, grantor, challenge).await?;
            return Ok(None);
        }
        if challenge.wants == Wants::Token && state.record.as_ref().is_some_and(Record::can_refresh) {
            self.configure(&mut grantor, state.record.as_ref()).await?;
            match self.refresh_by(state, &grantor).await {
                Ok(_) => {
                    state.grantor = Some(grantor);
                    return Ok(None);
                }
                Err(NotRefreshed::Finally) => {}
                Err(NotRefreshed::ForNow(error)) => return Err(error),
            }
        }
        self.ask(state, grantor, challenge, &found).await.map(Some)
    }

    /// Gets a token by the refresh token of the record; `None` when a person has to sign in again.
    pub(super) async fn refresh(&self, state: &mut State) -> Result<Option<Token>, AuthError> {
        if state.grantor.is_none() {
            let mut grantor = self.grantor().await?;
            let found = grantor.manager.resolve_metadata().await.map_err(|error| self.failed(&error))?;
            self.forget_other_issuer(state, found.metadata.issuer.as_deref());
            grantor.manager.set_metadata(found.metadata);
            self.configure(&mut grantor, state.record.as_ref()).await?;
            state.grantor = Some(grantor);
        }
        let Some(grantor) = state.grantor.take() else { return Ok(None) };
        match self.refresh_by(state, &grantor).await {
            Ok(token) => {
                state.grantor = Some(grantor);
                Ok(token)
            }
            Err(NotRefreshed::ForNow(error)) => {
                state.grantor = Some(grantor);
                Err(error)
            }
            // Another process may have used the refresh token before.
            Err(NotRefreshed::Finally) if self.reload(state).await => Ok(state.record.as_ref().and_then(Record::token)),
            Err(NotRefreshed::Finally) => {
                state.record = state.record.take().map(Record::without_token);
                self.token.store(None);
                Ok(None)
            }
        }
    }

    async fn refresh_by(&self, state: &mut State, grantor: &Grantor) -> Result<Option<Token>, NotRefreshed> {
        let Some(mut record) = state.record.clone() else { return Err(NotRefreshed::Finally) };
        // The store in memory never fails.
        let _saved = grantor.memory.save(record.credentials.clone()).await;
        match grantor.manager.refresh_token().await {
            Ok(_) => {}
            Err(Rmcp::AuthorizationRequired | Rmcp::TokenRefreshRejected(_)) => return Err(NotRefreshed::Finally),
            Err(error) => return Err(NotRefreshed::ForNow(self.failed(&error))),
        }
        let Ok(Some(credentials)) = grantor.memory.load().await else { return Err(NotRefreshed::Finally) };
        record.credentials = credentials;
        Ok(self.settle(state, record).await)
    }

    async fn by_client_credentials(&self, state: &mut State, mut grantor: Grantor, challenge: &Challenge) -> Result<(), AuthError> {
        let (Some(client_id), Some(client_secret)) = (self.config.client_id.clone(), self.secret().await?) else {
            let why = "grant = \"client_credentials\" needs `client_id` and `client_secret`".into();
            return Err(AuthError::Config { mount: self.mount.clone(), why });
        };
        let mut scopes = self.scopes(&grantor.manager, state, challenge).await;
        // A client with credentials of its own needs no person.
        scopes.retain(|scope| scope != "offline_access");
        let mut resource = self.url.clone();
        resource.set_fragment(None);
        let asked =
            ClientCredentialsConfig::ClientSecret { client_id, client_secret, scopes: scopes.clone(), resource: Some(resource.into()) };
        let manager = &mut grantor.manager;
        manager.validate_client_credentials_metadata(&asked).map_err(|error| self.failed(&error))?;
        manager.configure_client_credentials(&asked).map_err(|error| self.failed(&error))?;
        manager.exchange_client_credentials(&asked).await.map_err(|error| self.failed(&error))?;
        if let Ok(Some(credentials)) = grantor.memory.load().await {
            let mut record = Record::new(self.url.as_str(), credentials);
            record.asked_scopes = scopes;
            self.settle(state, record).await;
        }
        Ok(())
    }

    /// Refuses to go on where another sign-in would change nothing.
    fn is_worth_it(&self, state: &State, challenge: &Challenge) -> Result<(), AuthError> {
        let asked = state.record.as_ref().map(|record| &record.asked_scopes[..]).unwrap_or_default();
        match challenge.wants {
            Wants::Token => Ok(()),
            Wants::More if challenge.scopes.iter().any(|scope| !asked.contains(scope)) => Ok(()),
            Wants::More => Err(AuthError::Scope { mount: self.mount.clone(), scope: challenge.scopes.join(" ") }),
            Wants::Nothing => Err(AuthError::Denied { mount: self.mount.clone(), why: "the server answers 403".into() }),
        }
    }

    /// Forgets tokens and registrations of another authorization server, which must never be shown to this one.
    fn forget_other_issuer(&self, state: &mut State, issuer: Option<&str>) {
        let other = state.record.as_ref().is_some_and(|record| record.issuer() != issuer);
        if other {
            tracing::info!(mount = self.mount, issuer, "the server names another authorization server than before: signing in anew");
            (state.record, state.grantor, state.signed_in) = (None, None, None);
            self.token.store(None);
        }
    }

    /// Gives the manager the client of the record, or of the configuration.
    async fn configure(&self, grantor: &mut Grantor, record: Option<&Record>) -> Result<(), AuthError> {
        let Some(record) = record else { return Ok(()) };
        let redirect = record.redirect.clone().unwrap_or_else(|| "http://127.0.0.1/callback".into());
        let mut client = OAuthClientConfig::new(record.credentials.client_id.clone(), redirect);
        let configured = if self.config.client_id.is_some() { self.secret().await? } else { None };
        if let Some(secret) = configured.or_else(|| record.client_secret.clone()) {
            client = client.with_client_secret(secret);
        }
        grantor.manager.configure_client(client).map_err(|error| self.failed(&error))
    }

    /// Configured secret of the client.
    pub(super) async fn secret(&self) -> Result<Option<String>, AuthError> {
        let Some(reference) = self.config.client_secret.clone() else { return Ok(None) };
        let resolved = tokio::task::spawn_blocking(move || reference.resolve(&SystemSources)).await;
        match resolved {
            Ok(secret) => Ok(Some(secret?.expose().to_owned())),
            Err(_) => Ok(None),
        }
    }

    async fn grantor(&self) -> Result<Grantor, AuthError> {
        // Metadata may name private addresses only where the server itself is at a private address.
        let made = if is_private(&self.url).await {
            AuthorizationManager::new_allowing_private_addresses(self.url.clone()).await
        } else {
            AuthorizationManager::new(self.url.clone()).await
        };
        let mut manager = made.map_err(|error| self.failed(&error))?;
        let memory = InMemoryCredentialStore::new();
        manager.set_credential_store(memory.clone());
        Ok(Grantor { manager, memory })
    }

    pub(super) fn failed(&self, error: &Rmcp) -> AuthError {
        AuthError::from_rmcp(&self.mount, error)
    }
}

/// Checks that a server is inside a private network.
async fn is_private(url: &url::Url) -> bool {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
    let Ok(found) = tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await else { return false };
    are_private(found.map(|address| address.ip()))
}

/// Checks that all addresses are private: an outside server could add a private address to pass for an inside one.
fn are_private(mut addresses: impl Iterator<Item = IpAddr>) -> bool {
    let private = |address: IpAddr| match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => address.is_unique_local(),
    };
    addresses.next().is_some_and(private) && addresses.all(private)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_an_inside_server_may_name_inside_addresses() {
        for (host, wanted) in [
            ("10.1.2.3", true),
            ("192.168.0.1", true),
            ("[fd00::1]", true),
            ("8.8.8.8", false),
            ("169.254.169.254", false),
            ("127.0.0.1", false),
        ] {
            let url = format!("http://{host}:80/mcp").parse().unwrap();
            assert_eq!(is_private(&url).await, wanted, "{host}");
        }
        let [inside, outside] = ["10.1.2.3", "8.8.8.8"].map(|address| address.parse().unwrap());
        assert!(are_private([inside, inside].into_iter()));
        assert!(!are_private([inside, outside].into_iter()) && !are_private([outside, inside].into_iter()) && !are_private([].into_iter()));
    }
}
