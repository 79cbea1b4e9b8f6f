//! Errors of an authority. Tells nothing that a stranger could use.

use std::path::PathBuf;

/// Reasons why an authority refuses.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    #[error("this machine's clock shows a time that no certificate can hold: set it")]
    Clock,
    #[error("there is an authority in {} already\n  `banyan ca token` lets another gate join; take the directory away to begin anew", .dir.display())]
    Exists { dir: PathBuf },
    #[error("{} can't be {what}: {source}", .file.display())]
    File {
        file: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        source: std::io::Error,
    },
    #[error("{} is damaged ({why}): put it back from a copy, or take the directory away and begin anew", .file.display())]
    Damaged { file: PathBuf, why: String },
    #[error("the certificate can't be made: {0}")]
    Made(String),
    #[error("there is no authority in {}\n  make one with `banyan ca init`", .dir.display())]
    Missing { dir: PathBuf },
    #[error("`{name}` is no DNS name: use letters, digits and `-`, with dots in between")]
    Name { name: String },
    #[error("the request (CSR) is none that can be signed: it has to be PEM, PKCS #10, and signed with its own key")]
    Request,
    /// The asker of a new certificate holds no certificate of this authority.
    #[error("the certificate that was shown is none that this gate has made and still takes: join again with a token of `banyan ca token`")]
    Stranger,
    #[error("the name `{name}` is taken: join under another one (--name), or free it there with `banyan ca revoke {name}`")]
    Taken { name: String },
    /// A token is unknown, used or expired; the answer does not tell which.
    #[error("the join token is not good: it was used, it has ended, or it is of another gate; `banyan ca token` there makes a new one")]
    Token,
}

impl From<rcgen::Error> for CaError {
    fn from(error: rcgen::Error) -> Self {
        Self::Made(error.to_string())
    }
}
