//! Signing in at upstreams by OAuth, with rmcp's `auth` module for the protocol: discovery, PKCE, resource indicators, `iss`, registration,
//! refresh.
//!
//! Adds everything around it: a single sign-in at a time for each mount, the redirect on loopback, the browser, tokens that outlive the
//! process, and giving up. A token is only ever sent to the mount of its sign-in; no credential of a caller is used.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::sync::{Mutex, watch};
use url::Url;

use config::resolved;
use config::secret::Secret;

pub mod challenge;
pub mod error;
pub mod grant;
pub mod record;
pub mod redirect;
pub mod sign_in;

pub use crate::upstream::oauth::error::AuthError;

pub use crate::upstream::oauth::challenge::asked;

use crate::upstream::oauth::challenge::Challenge;
use crate::upstream::oauth::grant::Grantor;
use crate::upstream::oauth::record::{Record, Store};
use crate::upstream::oauth::sign_in::Pending;

/// Time before its end from which a token is no longer used.
const EARLY: Duration = Duration::from_secs(60);

/// Signs in at a mount and keeps its token.
pub struct OAuthClient(Arc<Client>);

struct Client {
    mount: String,
    url: Url,
    config: resolved::OAuth,
    store: Store,
    /// Token in use.
    token: ArcSwapOption<Token>,
    state: Mutex<State>,
    /// Counts successful sign-ins and refreshes.
    renewed: watch::Sender<u64>,
    /// Opens an address in a browser; `false` without a browser.
    open: fn(&str) -> bool,
}

/// A token and the end of its use.
#[derive(Clone)]
struct Token {
    secret: Secret,
    until: Option<Instant>,
}

impl Token {
    fn is_fresh(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}

/// State for one task at a time.
#[derive(Default)]
struct State {
    /// The store has been read.
    loaded: bool,
    record: Option<Record>,
    /// Ready to refresh; made on first use.
    grantor: Option<Grantor>,
    /// Sign-in that waits for a person.
    pending: Option<Pending>,
    /// Time of a person's last sign-in, and of the last browser opened in vain.
    signed_in: Option<Instant>,
    in_vain: Option<Instant>,
}

impl OAuthClient {
    /// Makes a client for the mount `mount` at `url`, with tokens in the keyring or below `state_dir`.
    pub fn new(mount: &str, url: Url, config: resolved::OAuth, state_dir: &Path) -> Self {
        Self(Arc::new(Client {
            mount: mount.into(),
            store: Store::new(mount, url.as_str(), state_dir),
            url,
            config,
            token: ArcSwapOption::empty(),
            state: Mutex::default(),
            renewed: watch::Sender::new(0),
            open: runtime::browser::open,
        }))
    }

    /// Token for the next request; `None` before the first sign-in. A single task refreshes the token for all before its end.
    pub async fn token(&self) -> Result<Option<Secret>, AuthError> {
        let client = &self.0;
        if let Some(token) = client.token.load().as_deref().filter(|token| token.is_fresh()) {
            return Ok(Some(token.secret.clone()));
        }
        let mut state = client.state.lock().await;
        client.load(&mut state).await;
        let Some(record) = &state.record else { return Ok(None) };
        if let Some(token) = record.token().filter(Token::is_fresh) {
            return Ok(Some(client.keep(token)));
        }
        if record.can_refresh() {
            return Ok(client.refresh(&mut state).await?.map(|token| token.secret));
        }
        Ok(None)
    }

    /// Meets the demand of a 401 or 403: takes a newer token, refreshes, or signs in. `Ok` means that the request should be sent again.
    ///
    /// `sent` is the `Authorization` header of the refused request. Where a person is needed, waits for a minute if a browser could be
    /// opened, and otherwise fails with the address; the sign-in stays open for ten minutes.
    pub async fn challenged(&self, status: u16, www_authenticate: Option<&str>, sent: Option<&str>) -> Result<(), AuthError> {
        let client = &self.0;
        let challenge = Challenge::new(status, www_authenticate, &client.url);
        let pending = {
            let mut state = client.state.lock().await;
            client.reload(&mut state).await;
            if client.has_newer(&state, sent) {
                return Ok(());
            }
            match state.pending.clone() {
                Some(pending) => pending,
                None => match client.renew(&mut state, &challenge).await? {
                    None => return Ok(()),
                    Some(pending) => pending,
                },
            }
        };
        pending.wait(&client.mount).await
    }

    /// Signs in without a demand of the server, even with a good token. `announce` gets the address to open.
    pub async fn sign_in(&self, announce: impl FnOnce(&str)) -> Result<(), AuthError> {
        let client = &self.0;
        let pending = {
            let mut state = client.state.lock().await;
            client.load(&mut state).await;
            state.record = state.record.take().map(Record::without_token);
            state.signed_in = None;
            match state.pending.clone() {
                Some(pending) => pending,
                None => match client.renew(&mut state, &Challenge::new(401, None, &client.url)).await? {
                    None => return Ok(()),
                    Some(pending) => pending,
                },
            }
        };
        announce(pending.url());
        pending.wait_until_the_end(&client.mount).await
    }

    /// Forgets the token and the registration, here and in the store.
    pub async fn sign_out(&self) -> Result<(), AuthError> {
        let mut state = self.0.state.lock().await;
        *state = State { loaded: true, ..State::default() };
        self.0.token.store(None);
        self.0.store.clear().await
    }

    /// Counts new tokens, so that those who wait for a sign-in can try again.
    pub fn renewed(&self) -> watch::Receiver<u64> {
        self.0.renewed.subscribe()
    }
}

impl std::fmt::Debug for OAuthClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OAuthClient({})", self.0.mount)
    }
}

impl Client {
    /// Checks for a token that the refused request did not carry.
    fn has_newer(&self, state: &State, sent: Option<&str>) -> bool {
        let Some(token) = state.record.as_ref().and_then(Record::token).filter(Token::is_fresh) else { return false };
        if sent.is_some_and(|sent| sent.strip_prefix("Bearer ") == Some(token.secret.expose())) {
            return false;
        }
        self.keep(token);
        true
    }

    fn keep(&self, token: Token) -> Secret {
        let secret = token.secret.clone();
        self.token.store(Some(Arc::new(token)));
        secret
    }

    /// Puts a new record to use, and saves it.
    async fn settle(&self, state: &mut State, record: Record) -> Option<Token> {
        let token = record.token();
        self.token.store(token.clone().map(Arc::new));
        if let Err(error) = self.store.save(&record).await {
            tracing::warn!(mount = self.mount, %error, "the sign-in works, but will be asked for again after a restart");
        }
        state.record = Some(record);
        self.renewed.send_modify(|count| *count += 1);
        token
    }

    async fn load(&self, state: &mut State) {
        if !state.loaded {
            state.loaded = true;
            state.record = self.store.load().await;
        }
    }

    /// Reads the store again; `true` if another process, such as `banyan auth`, has signed in.
    async fn reload(&self, state: &mut State) -> bool {
        state.loaded = true;
        let Some(found) = self.store.load().await else { return false };
        let newer = state.record.as_ref().is_none_or(|known| found.is_newer_than(known));
        if newer {
            state.record = Some(found);
            state.grantor = None;
        }
        newer
    }
}

#[cfg(test)]
mod tests;
