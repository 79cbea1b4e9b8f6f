//! Entries as C2SP tlog-tiles hands them out: 256 to a bundle, each behind its length in two bytes. Does not read what is in an entry.

use crate::AuditError;

/// Bytes of the longest entry that fits.
pub const MAX_ENTRY: usize = u16::MAX as usize;

/// Puts entries together; `None` for an entry longer than [`MAX_ENTRY`].
pub fn encode<'a>(entries: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for entry in entries {
        out.extend_from_slice(&u16::try_from(entry.len()).ok()?.to_be_bytes());
        out.extend_from_slice(entry);
    }
    Some(out)
}

/// Takes a bundle apart.
///
/// # Errors
/// When an entry is cut.
pub fn decode(mut bundle: &[u8]) -> Result<Vec<&[u8]>, AuditError> {
    let mut entries = Vec::new();
    while !bundle.is_empty() {
        let cut = || AuditError::form("a bundle of entries", format!("entry {} is cut", entries.len()));
        let (length, rest) = bundle.split_first_chunk::<2>().ok_or_else(cut)?;
        let (entry, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or_else(cut)?;
        entries.push(entry);
        bundle = rest;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_what_is_cut_is_refused() {
        let entries: [&[u8]; 3] = [b"", b"a", &[7; 300]];
        let bundle = encode(entries).unwrap();
        assert_eq!(decode(&bundle).unwrap(), entries);
        assert!(decode(&bundle[..bundle.len() - 1]).is_err() && decode(&bundle[..1]).is_err());
        assert_eq!(encode([&[0; MAX_ENTRY + 1][..]]), None);
    }
}
