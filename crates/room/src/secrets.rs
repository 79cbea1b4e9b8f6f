//! Secrets of participants, fetched from their configured sources at the first token. Admits nobody.

use std::sync::{Arc, Mutex, PoisonError};

use config::resolved::{self, TokenKey};
use config::secret::{Secret, SecretRef};
use room_proto::name::ParticipantId;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::OnceCell;

use crate::Rooms;

/// Secrets of the current configuration.
#[derive(Default)]
pub struct Secrets(Mutex<Option<ConfigSecrets>>);

/// Secrets of one configuration.
#[derive(Clone)]
struct ConfigSecrets {
    config: Arc<resolved::Rooms>,
    fetched: Arc<OnceCell<Arc<FetchedSecrets>>>,
}

/// Secrets as fetched. Hidden from debug output.
pub struct FetchedSecrets {
    /// Hashes of tokens.
    tokens: Vec<([u8; 32], ParticipantId)>,
    /// Key for signed tokens.
    pub shared: Option<Secret>,
}

/// Shortest shared secret that can't be guessed (RFC 7518, 3.2), in bytes.
const LEAST: usize = 32;

impl Secrets {
    /// Gives the secrets named by `config`, fetched once, so that guessing at the door costs no reading of files.
    pub async fn fetched_for(&self, rooms: &Arc<Rooms>, config: &Arc<resolved::Rooms>) -> Arc<FetchedSecrets> {
        let fetched = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match known.as_ref().filter(|known| Arc::ptr_eq(&known.config, config)) {
                Some(same) => Arc::clone(&same.fetched),
                None => Arc::clone(&known.insert(ConfigSecrets { config: Arc::clone(config), fetched: Arc::default() }).fetched),
            }
        };
        let fetch = async || {
            let (rooms, config) = (Arc::clone(rooms), Arc::clone(config));
            let fetched = tokio::task::spawn_blocking(move || FetchedSecrets::fetch(&rooms, &config)).await;
            Arc::new(fetched.unwrap_or_else(|_| FetchedSecrets { tokens: Vec::new(), shared: None }))
        };
        Arc::clone(fetched.get_or_init(fetch).await)
    }
}

impl FetchedSecrets {
    fn fetch(rooms: &Rooms, config: &resolved::Rooms) -> Self {
        let resolve = |secret: &SecretRef| {
            let resolved = secret.resolve(&*rooms.sources);
            resolved.map_err(|error| tracing::warn!(%error, "nobody comes into a room by a secret that can't be read")).ok()
        };
        let token = |key: &TokenKey| match key {
            TokenKey::Secret(secret) => {
                resolve(secret).filter(|token| !token.expose().is_empty()).map(|token| Sha256::digest(token.expose()).into())
            }
            TokenKey::Sha256(digest) => Some(*digest),
        };
        let tokens = config.participants.iter().filter_map(|(id, who)| Some((token(&who.token)?, id.clone())));
        let shared = config.secret.as_ref().and_then(resolve).filter(|secret| {
            let is_long = secret.expose().len() >= LEAST;
            if !is_long {
                tracing::warn!("rooms.secret has fewer than {LEAST} bytes: no token that it signed is taken; make a longer one");
            }
            is_long
        });
        Self { tokens: tokens.collect(), shared }
    }

    /// Finds the holder of a token.
    pub fn holder(&self, token: &str) -> Option<&ParticipantId> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // Every token is compared, so that the time taken tells nothing.
        let mut found = None;
        for (known, id) in &self.tokens {
            if bool::from(known.ct_eq(&digest)) {
                found = Some(id);
            }
        }
        found
    }
}
