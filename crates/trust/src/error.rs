//! Errors of unusable key and certificate files, with a remedy. Shows no key.

use std::path::{Path, PathBuf};

/// Reasons why a credential file can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// A file can't be read or has the wrong content.
    #[error("{} can't be used: {why}\n  {fix}", .file.display())]
    File {
        file: PathBuf,
        why: String,
        /// Remedy.
        fix: &'static str,
    },
    /// A certificate and a key do not match, or the system can't use them.
    #[error("the certificate of {} and the key of {} do not go together: {why}\n  make both anew, or correct the paths in banyan.toml", .certificate.display(), .key.display())]
    Pair {
        /// Certificate file.
        certificate: PathBuf,
        /// Key file.
        key: PathBuf,
        why: String,
    },
    /// The system's own authorities can't be used.
    #[error("{0}")]
    Roots(String),
}

impl TrustError {
    /// Makes the error for a faulty file.
    pub fn file(file: &Path, why: &dyn ToString, fix: &'static str) -> Self {
        Self::File { file: file.to_owned(), why: why.to_string(), fix }
    }
}
