//! Ledger of an authority: open invitations and issued certificates. A file beside the authority, changed under a lock, since the gate and
//! the command line both write. Signs nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::ca::{CaError, JoinToken, files};
use crate::certificate::hex;
use call::words::party::Names;

pub const FILE: &str = "ledger.json";
const LOCK: &str = "ledger.lock";
/// Time after which expired tokens are forgotten.
const REMEMBERED: Duration = Duration::from_secs(7 * 86_400);

/// Invitations and certificates of an authority.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    tokens: Vec<Invitation>,
    certificates: Vec<IssuedCertificate>,
    /// Names of the authority's own gate.
    reserved: BTreeSet<String>,
}

/// An open invitation, without the secret of its token.
#[derive(Debug, Serialize, Deserialize)]
struct Invitation {
    id: String,
    sha256: String,
    /// Name in the invitation; `None` admits under any name.
    name: Option<String>,
    until: u64,
    used: bool,
}

/// A certificate, as the ledger records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedCertificate {
    /// DNS name in the certificate.
    pub name: String,
    /// Serial number, in hexadecimal digits.
    pub serial: String,
    /// Time of issue, in seconds since 1970.
    pub made: u64,
    /// End, in seconds since 1970.
    pub until: u64,
    pub revoked: bool,
}

impl IssuedCertificate {
    /// Describes a certificate made at `now`.
    pub fn new(name: &str, names: &Names, now: SystemTime) -> Self {
        Self { name: name.to_owned(), serial: names.serial.clone(), made: seconds(now), until: seconds(names.until), revoked: false }
    }

    fn is_good(&self, now: SystemTime) -> bool {
        !self.revoked && self.until > seconds(now)
    }
}

impl Ledger {
    /// Reads the ledger in `dir`; a missing file is an empty ledger.
    pub fn read(dir: &Path) -> Result<Self, CaError> {
        let file = dir.join(FILE);
        let text = match files::read(&file) {
            Err(CaError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read?,
        };
        serde_json::from_str(&text).map_err(|error| CaError::Damaged { file, why: error.to_string() })
    }

    /// Issued certificates that have not ended, the latest last.
    pub fn certificates(&self) -> impl Iterator<Item = &IssuedCertificate> {
        self.certificates.iter()
    }

    /// Revokes the certificates of `whom`, a name or a serial number, and returns them.
    pub fn revoke(dir: &Path, whom: &str) -> Result<Vec<IssuedCertificate>, CaError> {
        let now = SystemTime::now();
        Self::change(dir, |ledger| {
            let meant = |issued: &&mut IssuedCertificate| issued.is_good(now) && (issued.name == whom || issued.serial == whom);
            let mut taken = Vec::new();
            for issued in ledger.certificates.iter_mut().filter(meant) {
                issued.revoked = true;
                taken.push(issued.clone());
            }
            Ok(taken)
        })
    }

    /// Reads the ledger, applies `change` and writes it, under a lock.
    pub fn change<T>(dir: &Path, change: impl FnOnce(&mut Self) -> Result<T, CaError>) -> Result<T, CaError> {
        let lock = dir.join(LOCK);
        let failed = |source: std::io::Error| CaError::File { file: lock.clone(), what: "written", source };
        let held = File::create(&lock).map_err(failed)?;
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
        let mut ledger = Self::read(dir)?;
        let done = change(&mut ledger)?;
        let text = serde_json::to_string_pretty(&ledger).map_err(|error| CaError::Made(error.to_string()))?;
        files::write(&dir.join(FILE), &text)?;
        Ok(done)
    }

    /// Reserves names for the authority's own gate, compared without case.
    pub fn reserve(&mut self, names: &[String]) {
        self.reserved.extend(names.iter().map(|name| name.to_ascii_lowercase()));
    }

    /// Notes a token for joining, good until `until`.
    pub fn invite(&mut self, token: &JoinToken, name: Option<&str>, until: SystemTime) {
        let forgotten = seconds(SystemTime::now()).saturating_sub(REMEMBERED.as_secs());
        self.tokens.retain(|token| token.until > forgotten);
        let sha256 = hex(&JoinToken::digest(token.secret()));
        self.tokens.push(Invitation { id: token.id.clone(), sha256, name: name.map(Into::into), until: seconds(until), used: false });
    }

    /// Uses up a token and returns the name under which its holder joins.
    pub fn use_up(&mut self, id: &str, secret: &str, wanted: &str, now: SystemTime) -> Result<String, CaError> {
        let digest = hex(&JoinToken::digest(secret));
        let mut found = None;
        // Every token is compared, so that the time taken tells nothing.
        for (i, token) in self.tokens.iter().enumerate() {
            let good = !token.used && token.until > seconds(now);
            if bool::from(token.sha256.as_bytes().ct_eq(digest.as_bytes())) && token.id == id && good {
                found = Some(i);
            }
        }
        let token = found.and_then(|i| self.tokens.get_mut(i)).ok_or(CaError::Token)?;
        let name = token.name.clone().unwrap_or_else(|| wanted.to_owned());
        // A token made for a name is meant for the next holder of the name.
        let meant = token.name.is_some();
        let held = self.certificates.iter().any(|issued| issued.name == name && issued.is_good(now));
        if self.reserved.contains(&name) || (held && !meant) {
            return Err(CaError::Taken { name });
        }
        token.used = true;
        self.certificates.iter_mut().filter(|issued| issued.name == name).for_each(|issued| issued.revoked = true);
        Ok(name)
    }

    /// Notes an issued certificate, and forgets expired ones.
    pub fn note(&mut self, issued: IssuedCertificate) {
        let now = SystemTime::now();
        self.certificates.retain(|issued| issued.until > seconds(now));
        self.certificates.push(issued);
    }

    /// Finds the name in an unrevoked certificate by serial number.
    pub fn holder(&self, serial: &str, now: SystemTime) -> Option<String> {
        self.certificates.iter().find(|issued| issued.serial == serial && issued.is_good(now)).map(|issued| issued.name.clone())
    }
}

/// Serial numbers of revoked certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevokedSerials(BTreeSet<String>);

impl RevokedSerials {
    /// Reads the serial numbers from the ledger in `dir`.
    pub fn read(dir: &Path) -> Result<Self, CaError> {
        let revoked = Ledger::read(dir)?.certificates.into_iter().filter(|issued| issued.revoked);
        Ok(Self(revoked.map(|issued| issued.serial).collect()))
    }

    /// Checks for a serial number.
    pub fn holds(&self, serial: &str) -> bool {
        self.0.contains(serial)
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
