//! Why a file of keys or certificates is of no use, in words that say what to do. Shows no key.

use std::path::{Path, PathBuf};

/// Why something that is needed to know others can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// A file can't be read, or does not hold what it should.
    #[error("{} can't be used: {why}\n  {fix}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
        /// What to do.
        fix: &'static str,
    },
    /// A certificate and a key do not belong together, or the system can't use them.
    #[error("the certificate of {} and the key of {} do not go together: {why}\n  make both anew, or correct the paths in banyan.toml", .certificate.display(), .key.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// This machine's own authorities can't be used.
    #[error("{0}")]
    Roots(String),
}

impl TrustError {
    /// Makes the error for a faulty file.
    pub fn file(file: &Path, why: &dyn ToString, fix: &'static str) -> Self {
        Self::File { file: file.to_owned(), why: why.to_string(), fix }
    }
}
