//! Notary of the gate: its key for tokens, the known issuers, and the place of tokens in memory and in the record. Judges no message.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use audit::ect::EctFault;
use audit::ect::claims::EctClaims;
use audit::ect::work::WitnessedWork;
use audit::record::{Changed, Record, Text};
use banyan_model::Principal;
use config::resolved::Config;
use door::entrance::Entrance;
use runtime::whole::{create, make_dirs};
use runtime::{clock, random};
use trust::ect::{EctIssuers, EctSigner};
use trust::keys::KeySet;
use url::Url;

use crate::evidence::kept::{KeptToken, KeptTokens};
use crate::rate::CallerRates;
use crate::settings::evidence::EvidenceSettings;
use crate::settings::section::AgentSettings;

/// Seconds until a token of this gate expires.
const LIFETIME: u64 = 600;
/// Messages of a caller that are refused for their tokens in a minute, before those that follow are refused unread.
const REFUSALS: u32 = 120;
/// Kind of the entries of the record with a token.
pub const RECORDED: &str = "ect";

/// Notary of one gate.
pub struct Notary {
    pub(super) entrance: Arc<Entrance>,
    file: Option<PathBuf>,
    signer: Mutex<Option<Arc<EctSigner>>>,
    terms: Mutex<Option<Arc<EvidenceTerms>>>,
    kept: Mutex<KeptTokens>,
    refusals: CallerRates,
}

/// Terms of the configuration in force, with the keys.
#[derive(Debug)]
pub struct EvidenceTerms {
    settings: AgentSettings,
    pub evidence: Arc<EvidenceSettings>,
    /// Name of this gate as an issuer, which is its id as an agent.
    pub agent: String,
    /// Names of this gate as an audience: its id, its address, and the origin of the address.
    names: Vec<String>,
    pub issuers: EctIssuers,
    signer: Arc<EctSigner>,
}

/// A task to be witnessed, without the parts that the notary adds.
#[derive(Debug)]
pub struct NewToken<'a> {
    pub audience: &'a [&'a str],
    pub workflow: Option<&'a str>,
    pub action: &'a str,
    pub parents: &'a [&'a str],
    pub input: Option<&'a str>,
    pub output: Option<&'a str>,
    pub extension: &'a str,
}

impl std::fmt::Debug for Notary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notary").field("file", &self.file).finish_non_exhaustive()
    }
}

impl EvidenceTerms {
    /// Names of this gate as an audience.
    pub fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}

impl Notary {
    /// Makes the notary of the gate `id`. Reads no key before one is needed.
    pub fn new(entrance: &Arc<Entrance>, state: Option<&PathBuf>, id: &str) -> Self {
        let file = state.map(|state| state.join("agents").join(format!("{id}.ect.pem")));
        let (entrance, refusals) = (Arc::clone(entrance), CallerRates::default());
        Self { entrance, file, signer: Mutex::default(), terms: Mutex::default(), kept: Mutex::default(), refusals }
    }

    /// Terms in force; `None`: the gate makes and takes no tokens.
    ///
    /// # Errors
    /// When the gate's own key can't be read or made.
    pub fn terms(&self) -> Result<Option<Arc<EvidenceTerms>>, String> {
        let config = self.entrance.gate.config.load();
        let Some((settings, evidence)) = evidence(&config) else { return Ok(None) };
        let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = terms.as_ref().filter(|known| known.settings == *settings) {
            return Ok(Some(Arc::clone(known)));
        }
        let signer = self.signer()?;
        let agent = settings.agent_id();
        let mut issuers = EctIssuers::default();
        issuers.add(&agent, KeySet::parse(&signer.public()?)?);
        for (name, keys) in &evidence.issuers {
            issuers.add(name, KeySet::parse(keys)?);
        }
        let origin = Url::parse(&settings.url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        let names = vec![agent.clone(), settings.url.clone(), origin];
        let made = Arc::new(EvidenceTerms { settings: settings.clone(), evidence: Arc::clone(evidence), agent, names, issuers, signer });
        *terms = Some(Arc::clone(&made));
        Ok(Some(made))
    }

    /// Writes the public keys of the gate as a JWK set.
    ///
    /// # Errors
    /// When the key can't be read or made.
    pub fn key_set(&self) -> Result<String, String> {
        Ok(format!("{{\"keys\":[{}]}}", self.signer()?.public()?))
    }

    /// Signs a JWT of another kind than a token.
    ///
    /// # Errors
    /// When the key can't be read or made.
    pub fn sign_document(&self, kind: &str, claims: &str) -> Result<String, String> {
        self.signer()?.sign_document(kind, claims.as_bytes()).map_err(|fault| fault.to_string())
    }

    fn signer(&self) -> Result<Arc<EctSigner>, String> {
        let mut signer = self.signer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signer) = &*signer {
            return Ok(Arc::clone(signer));
        }
        let made = Arc::new(self.file.as_deref().map_or_else(|| Ok(EctSigner::generate()?.0), kept_signer)?);
        *signer = Some(Arc::clone(&made));
        Ok(made)
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, KeptTokens> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a token, and keeps it for `caller` and in the record.
    pub fn make(&self, terms: &EvidenceTerms, caller: &Principal, new: &NewToken<'_>) -> Option<KeptToken> {
        self.sign(terms, new).inspect(|token| self.keep(caller, token))
    }

    /// Makes a token, and keeps none.
    pub fn sign(&self, terms: &EvidenceTerms, new: &NewToken<'_>) -> Option<KeptToken> {
        let (id, issued) = (uuid(), seconds());
        let work = WitnessedWork {
            issuer: &terms.agent,
            audience: new.audience,
            issued,
            expires: issued + LIFETIME,
            id: &id,
            workflow: new.workflow,
            action: new.action,
            parents: new.parents,
            input: new.input,
            output: new.output,
            extension: Some(new.extension),
        };
        let made = terms.signer.sign(&work, terms.evidence.draft).and_then(|text| Ok((terms.issuers.signed(&text)?, text)));
        made.map(|(claims, text)| KeptToken::new(claims, &text))
            .inspect_err(|fault| tracing::error!(%fault, action = new.action, "a hop has no token"))
            .ok()
    }

    /// Keeps a verified token for `caller`, and in the record if the token is a new one.
    pub fn keep(&self, caller: &Principal, token: &KeptToken) {
        if !self.kept().keep(caller, token.clone()) {
            return;
        }
        let lines = vec![Text::Borrowed(&*token.text)];
        let version = token.claims.workflow.as_deref().map(Text::Borrowed);
        let entry = Record::Changed(Changed { lines, version, what: Text::Borrowed(RECORDED) });
        self.entrance.gate.record.journal.append_for(&caller.name, &entry);
    }

    /// Takes the ids of tokens, each once.
    ///
    /// # Errors
    /// When an id was taken before, or the caller has its share.
    pub fn admit_once(&self, caller: &Principal, tokens: &[EctClaims]) -> Result<(), EctFault> {
        self.kept().admit_once(caller, tokens, seconds())
    }

    /// Finds the time for which no token of the caller is read, after too many refusals.
    pub(super) fn pause(&self, caller: &Principal) -> Option<Duration> {
        self.refusals.wait(caller, REFUSALS, clock::now())
    }

    /// Counts a refusal.
    pub(super) fn count_refusal(&self, caller: &Principal) {
        // A caller without room for the count has paused already.
        let (Ok(()) | Err(_)) = self.refusals.charge(caller, REFUSALS, clock::now());
    }
}

/// Reads the settings of a gate that keeps evidence.
fn evidence(config: &Config) -> Option<(&AgentSettings, &Arc<EvidenceSettings>)> {
    let settings = config.values.get::<AgentSettings>()?;
    Some((settings, settings.evidence.as_ref()?))
}

/// Reads the key of a file, or makes the file. A file without sense is left as it is: others may know its key.
fn kept_signer(file: &Path) -> Result<EctSigner, String> {
    let failed = |what: &str, why: &dyn std::fmt::Display| format!("the key in {} can't be {what}: {why}", file.display());
    match std::fs::read_to_string(file) {
        Ok(pem) => EctSigner::by_thumbprint(&pem).map_err(|why| failed("read", &why)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let (signer, pem) = EctSigner::generate()?;
            let made = make_dirs(file.parent().unwrap_or(Path::new("/")), 0o700).and_then(|()| create(file, pem.as_bytes()));
            made.map(|()| signer).map_err(|error| failed("made", &error))
        }
        Err(error) => Err(failed("read", &error)),
    }
}

/// Makes a random UUID (RFC 9562, version 4).
pub(super) fn uuid() -> String {
    let mut bytes = random::bytes::<16>();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Reads the clock on the wall, in seconds since 1970.
pub(super) fn seconds() -> u64 {
    clock::wall() / 1_000_000
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn ae_40_a_key_is_kept_for_its_owner_alone() {
        let dir = std::env::temp_dir().join(random::token());
        let file = dir.join("agents/gate.ect.pem");
        let first = kept_signer(&file).unwrap().public().unwrap();
        assert_eq!(kept_signer(&file).unwrap().public().unwrap(), first);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&file, "nonsense").unwrap();
        assert!(kept_signer(&file).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "nonsense", "the file is for a person to judge");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn ids_of_tokens_are_random_uuids() {
        let (one, other) = (uuid(), uuid());
        assert!(one != other && one.len() == 36 && one.as_bytes()[14] == b'4' && b"89ab".contains(&one.as_bytes()[19]), "{one}");
    }
}
