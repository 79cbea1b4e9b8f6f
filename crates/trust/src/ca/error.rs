//! Why an authority does not do what it was asked. Says nothing that a stranger could use.

use std::path::PathBuf;

/// Why an authority does not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    /// The clock of this machine is off by centuries.
    #[error("this machine's clock shows a time that no certificate can hold: set it")]
    Clock,
    /// There is one already.
    #[error("there is an authority in {} already\n  `banyan ca token` lets another gate join; take the directory away to begin anew", .dir.display())]
    Exists {
        /// Where.
        dir: PathBuf,
    },
    /// A file can't be read or written.
    #[error("{} can't be {what}: {source}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of ours holds something else.
    #[error("{} is damaged ({why}): put it back from a copy, or take the directory away and begin anew", .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A certificate could not be made or read.
    #[error("the certificate can't be made: {0}")]
    Made(String),
    /// There is none.
    #[error("there is no authority in {}\n  make one with `banyan ca init`", .dir.display())]
    Missing {
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// A name can't stand in a certificate.
    #[error("`{name}` is no DNS name: use letters, digits and `-`, with dots in between")]
    Name {
        /// The name.
        name: String,
    },
    /// A request for a certificate is none.
    #[error("the request (CSR) is none that can be signed: it has to be PEM, PKCS #10, and signed with its own key")]
    Request,
    /// Who asks for a new certificate holds none of this authority.
    #[error("the certificate that was shown is none that this gate has made and still takes: join again with a token of `banyan ca token`")]
    Stranger,
    /// The name belongs to somebody.
    #[error("the name `{name}` is taken: join under another one (--name), or free it there with `banyan ca revoke {name}`")]
    Taken {
        /// The name.
        name: String,
    },
    /// A token is unknown, used or over; which of them is nobody's business.
    #[error("the join token is not good: it was used, it has ended, or it is of another gate; `banyan ca token` there makes a new one")]
    Token,
}

impl From<rcgen::Error> for CaError {
    fn from(error: rcgen::Error) -> Self {
        Self::Made(error.to_string())
    }
}
