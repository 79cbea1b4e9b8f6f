//! Sources of public keys: a file, or an address fetched again and again. Does not know which tokens the keys verify.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use config::resolved::Keys;
use runtime::tls::Connector;
use rustls::ClientConfig;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::keys::KeySet;

/// Interval between fetches.
const AGAIN: Duration = Duration::from_secs(300);
/// Shortest interval between fetches while tokens with unknown keys come.
const LEAST: Duration = Duration::from_secs(10);
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer, in bytes.
const MOST: usize = 1 << 20;

/// Keys of one party, fetched again in the background until dropped.
pub struct Source {
    pub place: Keys,
    inner: Arc<Inner>,
    _asking: Option<DropGuard>,
}

struct Inner {
    keys: ArcSwapOption<KeySet>,
    /// Signals that keys are missing.
    wanted: Notify,
    asked: Mutex<Option<Instant>>,
}

impl Source {
    /// Makes the source at `place`. An address is fetched by a task spawned on this runtime.
    pub fn new(place: &Keys, connector: &Arc<Connector>) -> Self {
        let inner = Arc::new(Inner { keys: ArcSwapOption::empty(), wanted: Notify::new(), asked: Mutex::new(None) });
        let asking = match place {
            Keys::File(_) => None,
            Keys::Url(url) => {
                let stop = CancellationToken::new();
                tokio::spawn(ask_again(url.clone(), Arc::clone(&inner), Arc::clone(connector), stop.clone()));
                Some(stop.drop_guard())
            }
        };
        let source = Self { place: place.clone(), inner, _asking: asking };
        source.read();
        source
    }

    /// Reads a file again. A useless file leaves the keys as they were.
    pub fn read(&self) {
        let Keys::File(file) = &self.place else { return };
        match fs::read_to_string(file).map_err(|error| error.to_string()).and_then(|text| KeySet::parse(&text)) {
            Ok(keys) => self.inner.keys.store(Some(Arc::new(keys))),
            Err(why) => tracing::warn!(file = %file.display(), why, "keys can't be read: tokens they signed are refused"),
        }
    }

    /// Keys at present, possibly none.
    pub fn keys(&self) -> Arc<KeySet> {
        self.inner.keys.load_full().unwrap_or_default()
    }

    /// Asks for missing keys; `true` if they may arrive in a moment, so that the caller should retry.
    pub fn want_more(&self) -> bool {
        if matches!(self.place, Keys::File(_)) {
            return false;
        }
        let asked = *self.inner.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let due = asked.is_none_or(|asked| asked.elapsed() > LEAST);
        if due {
            self.inner.wanted.notify_one();
        }
        due
    }
}

async fn ask_again(url: url::Url, inner: Arc<Inner>, connector: Arc<Connector>, stop: CancellationToken) {
    let mut known = Instant::now();
    loop {
        match ask(&url, connector.tls().ok()).await {
            Ok(keys) => {
                inner.keys.store(Some(Arc::new(keys)));
                known = Instant::now();
            }
            Err(why) => tracing::warn!(%url, why, since = ?known.elapsed(), "keys can't be fetched: those that were there stay"),
        }
        *inner.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        // Without any keys, retry soon.
        let wait = if inner.keys.load().is_some() { AGAIN } else { LEAST };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = inner.wanted.notified() => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn ask(url: &url::Url, tls: Option<Arc<ClientConfig>>) -> Result<KeySet, String> {
    let builder = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).no_proxy();
    let builder = match tls {
        Some(tls) => builder.tls_backend_preconfigured(ClientConfig::clone(&tls)),
        None => builder,
    };
    let told = |error: reqwest::Error| error.without_url().to_string();
    let client = builder.build().map_err(told)?;
    let mut answer = client.get(url.clone()).send().await.and_then(reqwest::Response::error_for_status).map_err(told)?;
    let mut text = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(told)? {
        text.extend_from_slice(&piece);
        if text.len() > MOST {
            return Err(format!("it is longer than {MOST} bytes"));
        }
    }
    KeySet::parse(&String::from_utf8_lossy(&text))
}
