//! Commitments of a log: the number of entries, and the root over them (C2SP tlog-checkpoint). Does not decide when to sign.

use crate::AuditError;
use crate::hash::Hash;
use crate::key::{Signer, Verifier};
use crate::note::{self, Note};
use crate::tile::decimal;

/// A commitment of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the log.
    pub origin: String,
    /// The number of entries.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Hash,
}

impl Checkpoint {
    /// As a signed note. The key's name is the origin.
    ///
    /// # Errors
    /// When the origin can't stand in a note.
    pub fn sign(&self, signer: &Signer) -> Result<String, AuditError> {
        note::sign(&format!("{}\n{}\n{}\n", self.origin, self.size, self.root), signer)
    }

    /// Reads a note signed by this key.
    ///
    /// # Errors
    /// When the note is no checkpoint, of another log, or not signed by the key.
    pub fn open(text: &str, verifier: &Verifier) -> Result<Self, AuditError> {
        let checkpoint = Self::read(note::open(text, verifier)?)?;
        if checkpoint.origin == verifier.name() { Ok(checkpoint) } else { Err(AuditError::Signature(verifier.to_string())) }
    }

    /// Reads a note by any signer.
    ///
    /// # Errors
    /// When the note is no checkpoint.
    pub fn parse(text: &str) -> Result<Self, AuditError> {
        Self::read(&Note::parse(text)?.text)
    }

    /// Extension lines are passed over.
    fn read(text: &str) -> Result<Self, AuditError> {
        let wrong = |why: &str| AuditError::form("a checkpoint", why);
        let mut lines = text.lines();
        let origin = lines.next().filter(|line| !line.is_empty()).ok_or_else(|| wrong("it has no origin"))?.to_owned();
        let size = lines.next().and_then(decimal).ok_or_else(|| wrong("its size is not a number"))?;
        let root = Hash::parse(lines.next().ok_or_else(|| wrong("it has no root"))?)?;
        if lines.any(str::is_empty) { Err(wrong("an empty line stands in it")) } else { Ok(Self { origin, size, root }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    #[test]
    fn a_checkpoint_is_that_of_its_log_and_key() {
        let signer = Signer::new("banyan/a", &[7; 32]).unwrap();
        let checkpoint = Checkpoint { origin: "banyan/a".into(), size: 3, root: hash::empty_root() };
        let text = checkpoint.sign(&signer).unwrap();
        let key = signer.verifier().unwrap();
        assert_eq!(Checkpoint::open(&text, &key), Ok(checkpoint.clone()));
        assert_eq!(Checkpoint::parse(&text), Ok(checkpoint.clone()));
        let other = Checkpoint { origin: "banyan/b".into(), ..checkpoint }.sign(&signer).unwrap();
        assert!(Checkpoint::open(&other, &key).is_err());
        for (good, bad) in [("\n3\n", "\n03\n"), ("\n3\n", "\n4\n"), ("47DEQpj8", "47DEQpj9"), ("banyan/a\n3", "\n3")] {
            assert!(Checkpoint::open(&text.replacen(good, bad, 1), &key).is_err(), "{bad}");
        }
    }
}
