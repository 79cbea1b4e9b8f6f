//! Signed notes (C2SP signed-note): a text, an empty line, and signatures that name their keys. The text is not read here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::AuditError;
use crate::key::{Signer, Verifier};

/// Longer notes are refused, in bytes.
pub const MAX_NOTE: usize = 64 << 10;
/// Greatest number of signatures.
const MAX_SIGNATURES: usize = 100;
/// Each signature line begins so.
const MARK: &str = "\u{2014} ";

/// A note taken apart; signatures are not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The signed text, with its last newline.
    pub text: String,
    /// The names, and behind each the key's id and the signature.
    pub signatures: Vec<(String, Vec<u8>)>,
}

/// Signs `text`.
///
/// # Errors
/// When `text` does not end with a newline, or holds control characters.
pub fn sign(text: &str, signer: &Signer) -> Result<String, AuditError> {
    check(text)?;
    let verifier = signer.verifier()?;
    let mut data = verifier.id().to_vec();
    data.extend(signer.sign(text.as_bytes()));
    Ok(format!("{text}\n{MARK}{} {}\n", verifier.name(), STANDARD.encode(data)))
}

/// Gives the text of a note signed by this key, and passes over other signatures.
///
/// # Errors
/// When `note` is no note, or has no valid signature of the key.
pub fn open<'a>(note: &'a str, verifier: &Verifier) -> Result<&'a str, AuditError> {
    let read = Note::parse(note)?;
    let of_key = |(name, data): &&(String, Vec<u8>)| name == verifier.name() && data.starts_with(&verifier.id());
    let mut own = read.signatures.iter().filter(of_key).peekable();
    let is_there = own.peek().is_some();
    if is_there && own.all(|(_, data)| verifier.has_signed(read.text.as_bytes(), &data[4..])) {
        return Ok(&note[..read.text.len()]);
    }
    Err(AuditError::Signature(verifier.to_string()))
}

/// Splits a text of notes written one behind another; each is still to be read.
pub fn each(text: &str) -> Vec<&str> {
    let (mut notes, mut begin, mut at, mut is_signed) = (Vec::new(), 0, 0, false);
    for line in text.split_inclusive('\n') {
        if is_signed && !line.starts_with(MARK) {
            notes.push(&text[begin..at]);
            begin = at;
        }
        is_signed = line.starts_with(MARK);
        at += line.len();
    }
    notes.push(&text[begin..]);
    notes.into_iter().map(|note| note.trim_start_matches('\n')).filter(|note| !note.is_empty()).collect()
}

impl Note {
    /// Takes a note apart.
    ///
    /// # Errors
    /// When the text is no note.
    pub fn parse(note: &str) -> Result<Self, AuditError> {
        let wrong = |why: &str| AuditError::form("a signed note", why);
        if note.len() > MAX_NOTE {
            return Err(wrong("it is too long"));
        }
        let at = note.rfind("\n\n").ok_or_else(|| wrong("no empty line stands before the signatures"))?;
        let (text, lines) = (&note[..=at], &note[at + 2..]);
        check(text)?;
        let lines = lines.strip_suffix('\n').ok_or_else(|| wrong("it does not end with a newline"))?;
        let mut signatures = Vec::new();
        for line in lines.split('\n') {
            let parts = line.strip_prefix(MARK).and_then(|rest| rest.split_once(' '));
            let (name, data) = parts.ok_or_else(|| wrong("a signature is not `\u{2014} NAME BASE64`"))?;
            let data = STANDARD.decode(data).map_err(|_| wrong("a signature is not base64"))?;
            let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '+');
            if !is_name || data.len() < 5 || signatures.len() == MAX_SIGNATURES {
                return Err(wrong("a signature has no name, is too short, or there are too many"));
            }
            signatures.push((name.to_owned(), data));
        }
        Ok(Self { text: text.to_owned(), signatures })
    }
}

fn check(text: &str) -> Result<(), AuditError> {
    let is_sound = text.ends_with('\n') && !text.contains(|c: char| c != '\n' && c.is_control());
    if is_sound { Ok(()) } else { Err(AuditError::form("the text of a note", "it ends with a newline and holds no control characters")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Go's `golang.org/x/mod/sumdb/note`.
    const KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const NOTE: &str = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

    #[test]
    fn a_published_note_is_opened_with_its_key() {
        let key = Verifier::parse(KEY).unwrap();
        assert_eq!(key.to_string(), KEY);
        assert!(open(NOTE, &key).unwrap().ends_with("your problem is.\n"));
        for bad in [NOTE.replace("answer", "Answer"), NOTE.replace("x08go", "x08gp"), NOTE.replace("Neumann x", "Newmann x")] {
            assert!(open(&bad, &key).is_err());
        }
        assert!(Verifier::parse(&KEY.replace("c74f", "c74e")).is_err() && Verifier::parse("a+b").is_err());
    }

    #[test]
    fn notes_that_were_added_one_behind_the_other_are_read_one_by_one() {
        let signer = Signer::new("banyan/a", &[7; 32]).unwrap();
        let [one, two] = ["first\n", "second\n\nline\n"].map(|text| sign(text, &signer).unwrap());
        let both = format!("{one}{MARK}other AAAAAAAA\n{two}\n{one}");
        assert_eq!(each(&both), [&format!("{one}{MARK}other AAAAAAAA\n"), &two, &one]);
        assert_eq!((each("no note"), each("\n"), each("")), (vec!["no note"], vec![], vec![]));
    }

    #[test]
    fn what_is_signed_here_is_opened_by_the_public_half_only() {
        let signer = Signer::new("banyan/a", &[7; 32]).unwrap();
        let key = signer.verifier().unwrap();
        let note = sign("a\n\nb\n", &signer).unwrap();
        assert_eq!(open(&note, &key), Ok("a\n\nb\n"));
        assert_eq!(Verifier::parse(&key.to_string()), Ok(key));
        let other = Signer::new("banyan/a", &[8; 32]).unwrap().verifier().unwrap();
        assert!(matches!(open(&note, &other), Err(AuditError::Signature(_))));
        assert!(sign("no end", &signer).is_err() && sign("a\r\n", &signer).is_err() && Signer::new("a b", &[7; 32]).is_err());
    }
}
