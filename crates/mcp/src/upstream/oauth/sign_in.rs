//! A sign-in by a person: the address to open, the wait for the browser's return, the exchange of its code. Refreshes nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataResolution, AuthorizationRequest, AuthorizationSession,
    CredentialStore, InMemoryCredentialStore,
};
use tokio::sync::watch;
use url::Url;

use crate::upstream::oauth::challenge::{Challenge, Wants};
use crate::upstream::oauth::grant::Grantor;
use crate::upstream::oauth::record::Record;
use crate::upstream::oauth::redirect::{Redirect, RedirectParameters};
use crate::upstream::oauth::{AuthError, Client, State};

/// Time for the person to finish a sign-in.
const OPEN_FOR: Duration = Duration::from_secs(600);
/// Longest wait of a request for the person, with a browser opened.
const WAIT: Duration = Duration::from_secs(60);
/// Pause after a failed sign-in before a browser is opened again unasked.
const REST: Duration = Duration::from_secs(600);
/// Time after a sign-in within which a refused token means that the next would be refused too.
const TOO_SOON: Duration = Duration::from_secs(30);

/// Name of our registration at authorization servers.
const CLIENT_NAME: &str = "Banyan";

/// A sign-in that waits for a person.
#[derive(Clone)]
pub struct Pending {
    url: Arc<str>,
    opened: bool,
    /// Outcome, once over.
    outcome: watch::Receiver<Option<Result<(), String>>>,
}

impl Pending {
    /// Address for signing in.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits for a while if a browser was opened; otherwise fails with the address.
    pub async fn wait(mut self, mount: &str) -> Result<(), AuthError> {
        let limit = if self.opened { WAIT } else { Duration::ZERO };
        let ended = tokio::time::timeout(limit, self.outcome.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(outcome)) => report(mount, outcome.clone()),
            Ok(Err(_)) | Err(_) => Err(AuthError::SignIn { mount: mount.into(), url: self.url.to_string() }),
        }
    }

    /// Waits until the person is through or has let the time pass.
    pub async fn wait_until_the_end(mut self, mount: &str) -> Result<(), AuthError> {
        match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => report(mount, outcome.clone()),
            Err(_) => report(mount, None),
        }
    }
}

fn report(mount: &str, outcome: Option<Result<(), String>>) -> Result<(), AuthError> {
    let outcome = outcome.unwrap_or_else(|| Err("the sign-in was given up".into()));
    outcome.map_err(|why| AuthError::Denied { mount: mount.into(), why })
}

/// Our identity at the authorization server.
struct Identity {
    id: String,
    secret: Option<String>,
    /// The authorization server issued both.
    registered: bool,
}

/// Parameters of the task that waits for the browser.
struct BrowserWait {
    session: AuthorizationSession,
    memory: InMemoryCredentialStore,
    identity: Identity,
    scopes: Vec<String>,
    state: String,
}

impl Client {
    /// Begins a sign-in: makes the address, opens a browser if there is one, and waits for its return in the background.
    pub(super) async fn ask(
        self: &Arc<Self>,
        state: &mut State,
        grantor: Grantor,
        challenge: &Challenge,
        found: &AuthorizationMetadataResolution,
    ) -> Result<Pending, AuthError> {
        let too_soon = state.signed_in.is_some_and(|at| at.elapsed() < TOO_SOON);
        if too_soon && challenge.wants == Wants::Token {
            let why = "the server refuses the token that it has only just given".into();
            return Err(AuthError::Denied { mount: self.mount.clone(), why });
        }
        let Grantor { mut manager, memory } = grantor;
        let redirect = self.redirect(state).await?;
        let scopes = self.scopes(&manager, state, challenge).await;
        let identity = self.identity(&mut manager, state, found, &redirect.uri(), &scopes).await?;
        let mut request = AuthorizationRequest::new(redirect.uri()).with_scopes(scopes.clone()).with_initial_scope_selection();
        request = request.with_preregistered_client(&identity.id);
        if let Some(secret) = &identity.secret {
            request = request.with_client_secret(secret);
        }
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| self.failed(&error))?;
        let url: Arc<str> = session.auth_url.as_str().into();
        let waiting = BrowserWait { state: state_of(&url), session, memory, identity, scopes };

        let rested = state.in_vain.is_none_or(|at| at.elapsed() > REST);
        let opened = rested && (self.open)(&url);
        tracing::info!(mount = self.mount, opened, "a person has to sign in");
        let (ended, outcome) = watch::channel(None);
        let pending = Pending { url, opened, outcome };
        state.pending = Some(pending.clone());
        let client = self.clone();
        tokio::spawn(async move {
            let outcome = client.conclude(waiting, redirect, opened).await;
            ended.send_replace(Some(outcome));
        });
        Ok(pending)
    }

    /// Waits for the browser's return and exchanges the code.
    async fn conclude(&self, waiting: BrowserWait, redirect: Redirect, opened: bool) -> Result<(), String> {
        let uri = redirect.uri();
        let returned = tokio::time::timeout(OPEN_FOR, redirect.wait(&waiting.state)).await;
        let exchanged = match returned {
            Ok(Ok(returned)) => self.exchange(&waiting, returned).await,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("nobody signed in within {} minutes", OPEN_FOR.as_secs() / 60)),
        };
        let mut state = self.state.lock().await;
        state.pending = None;
        if let Err(why) = exchanged {
            state.in_vain = opened.then(Instant::now);
            tracing::warn!(mount = self.mount, why, "nobody has signed in");
            return Err(why);
        }
        let Ok(Some(credentials)) = waiting.memory.load().await else { return Err("the token was lost".into()) };
        let mut record = Record::new(self.url.as_str(), credentials);
        record.client_secret = waiting.identity.secret.filter(|_| waiting.identity.registered);
        (record.redirect, record.asked_scopes) = (Some(uri), waiting.scopes);
        (state.signed_in, state.in_vain) = (Some(Instant::now()), None);
        state.grantor = Some(Grantor { manager: waiting.session.auth_manager, memory: waiting.memory });
        self.settle(&mut state, record).await;
        tracing::info!(mount = self.mount, "signed in");
        Ok(())
    }

    async fn exchange(&self, waiting: &BrowserWait, returned: RedirectParameters) -> Result<(), String> {
        let code = returned.outcome?;
        let exchanged = waiting.session.handle_callback_with_issuer(&code, &returned.state, returned.issuer.as_deref()).await;
        exchanged.map(drop).map_err(|error| error.to_string())
    }

    /// Listens for the browser: at the configured port, or at the port of the last sign-in, to which a registration may be bound, or at
    /// any.
    async fn redirect(&self, state: &State) -> Result<Redirect, AuthError> {
        let failed = |port| move |source| AuthError::Redirect { mount: self.mount.clone(), port, source };
        if let Some(port) = self.config.redirect_port {
            return Redirect::bind(port).await.map_err(failed(port));
        }
        let last = state.record.as_ref().and_then(|record| Url::parse(record.redirect.as_deref()?).ok()?.port());
        if let Some(port) = last
            && let Ok(redirect) = Redirect::bind(port).await
        {
            return Ok(redirect);
        }
        Redirect::bind(0).await.map_err(failed(0))
    }

    /// Scopes to ask for: those named by the server, or else by the configuration; never fewer than before (SEP-2350).
    pub(super) async fn scopes(&self, manager: &AuthorizationManager, state: &State, challenge: &Challenge) -> Vec<String> {
        let defaults: Vec<&str> = self.config.scopes.iter().map(String::as_str).collect();
        let mut scopes = match challenge.wants {
            Wants::More => challenge.scopes.clone(),
            Wants::Nothing | Wants::Token => manager.select_initial_scopes(&defaults).await,
        };
        if let Some(record) = &state.record {
            let before = record.credentials.granted_scopes.iter().chain(&record.asked_scopes);
            // A set, since a server may have granted any number.
            let mut known: HashSet<String> = scopes.iter().cloned().collect();
            scopes.extend(before.filter(|scope| known.insert((*scope).clone())).cloned());
        }
        scopes
    }

    /// Chooses our identity: as configured, else by a metadata document, else as registered before, else newly registered.
    async fn identity(
        &self,
        manager: &mut AuthorizationManager,
        state: &State,
        found: &AuthorizationMetadataResolution,
        redirect: &str,
        scopes: &[String],
    ) -> Result<Identity, AuthError> {
        if let Some(id) = &self.config.client_id {
            return Ok(Identity { id: id.clone(), secret: self.secret().await?, registered: false });
        }
        if let Some(document) = self.config.client_metadata_url.as_ref().filter(|_| takes_documents(&found.metadata)) {
            return Ok(Identity { id: document.clone(), secret: None, registered: false });
        }
        let before = state.record.as_ref().filter(|record| record.redirect.as_deref() == Some(redirect));
        if let Some(record) = before {
            let (id, secret) = (record.credentials.client_id.clone(), record.client_secret.clone());
            return Ok(Identity { id, secret, registered: true });
        }
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        match manager.register_client(CLIENT_NAME, redirect, &scopes).await {
            Ok(registered) => Ok(Identity { id: registered.client_id, secret: registered.client_secret, registered: true }),
            // The endpoints were guessed, so this server offers no OAuth.
            Err(_) if !found.source.is_discovered() => Err(AuthError::NotOffered { mount: self.mount.clone() }),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

fn takes_documents(metadata: &AuthorizationMetadata) -> bool {
    metadata.additional_fields.get("client_id_metadata_document_supported").and_then(serde_json::Value::as_bool).unwrap_or(false)
}

fn state_of(url: &str) -> String {
    let state = |url: Url| url.query_pairs().find(|(key, _)| key == "state").map(|(_, value)| value.into_owned());
    Url::parse(url).ok().and_then(state).unwrap_or_default()
}
