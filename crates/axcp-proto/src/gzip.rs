//! Data of an operation: JSON text, packed by gzip or not. Does not read the JSON.

use std::borrow::Cow;
use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use crate::error::AxcpError;

/// Bytes of the longest data, unpacked: as many as a segment may have.
pub const MOST_DATA: usize = 64 * 1024;
/// Bytes of the data of all operations of an envelope, unpacked: short data may stand for much.
pub const MOST_UNPACKED: usize = 2 * 1024 * 1024;

/// Beginning of every gzip member, and of no JSON text.
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Shorter texts grow by packing.
const WORTH_PACKING: usize = 200;

/// Unpacks packed `data`, and gives other data back. No text is unpacked further than the limit.
///
/// # Errors
/// When the text is longer than [`MOST_DATA`], or the packing is broken or followed by anything.
pub fn unpack(data: &[u8]) -> Result<Cow<'_, [u8]>, AxcpError> {
    if !data.starts_with(&MAGIC) {
        return if data.len() > MOST_DATA { Err(too_large()) } else { Ok(Cow::Borrowed(data)) };
    }
    let mut decoder = GzDecoder::new(data);
    let mut text = Vec::new();
    let most = u64::try_from(MOST_DATA).unwrap_or(u64::MAX);
    let read = decoder.by_ref().take(most.saturating_add(1)).read_to_end(&mut text);
    if text.len() > MOST_DATA {
        return Err(too_large());
    }
    read.map_err(|_| AxcpError::Malformed("the gzip data is broken"))?;
    if decoder.into_inner().is_empty() { Ok(Cow::Owned(text)) } else { Err(AxcpError::Malformed("the gzip data is followed by more")) }
}

/// Gives the length of data that was unpacked before, by the length in its last four bytes (RFC 1952, section 2.3.1).
pub fn unpacked_len(data: &[u8]) -> usize {
    match data.last_chunk::<4>() {
        Some(length) if data.starts_with(&MAGIC) => usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX),
        Some(_) | None => data.len(),
    }
}

/// Packs `text` where packing makes shorter.
pub fn pack(text: Bytes) -> Bytes {
    if text.len() < WORTH_PACKING {
        return text;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let packed = encoder.write_all(&text).and_then(|()| encoder.finish());
    match packed {
        Ok(packed) if packed.len() < text.len() => packed.into(),
        Ok(_) | Err(_) => text,
    }
}

const fn too_large() -> AxcpError {
    AxcpError::TooLarge { what: "the bytes of an operation's data", most: MOST_DATA }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn xc_11_plain_json_is_taken_as_it_is() {
        assert_eq!(unpack(b"100"), Ok(Cow::Borrowed(b"100".as_slice())));
        assert_eq!(unpack(b""), Ok(Cow::Borrowed(b"".as_slice())));
        assert_eq!(unpack(&vec![b' '; MOST_DATA + 1]), Err(too_large()));
    }

    #[test]
    fn xc_11_a_gzip_bomb_is_refused() {
        let bomb = gzip(&vec![b' '; 64 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(unpack(&bomb), Err(too_large()));
        let edge = vec![b'1'; MOST_DATA];
        assert_eq!(unpack(&gzip(&edge)), Ok(Cow::Owned(edge)));
    }

    #[test]
    fn xc_11_broken_packing_is_refused() {
        let packed = gzip(b"{\"a\":1}");
        for end in 2..packed.len() {
            assert!(unpack(&packed[..end]).is_err(), "cut at {end}");
        }
        let mut changed = packed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(unpack(&changed).is_err());
        assert!(unpack(&[packed.as_slice(), b"{}"].concat()).is_err());
    }

    #[test]
    fn xc_15_packing_never_makes_a_text_longer() {
        let short = Bytes::from_static(b"{\"mood\":\"calm\"}");
        assert_eq!(pack(short.clone()), short);
        assert!(pack(vec![b'a'; 1000].into()).len() < 100);
    }

    proptest! {
        #[test]
        fn xc_11_packed_text_is_unpacked_again(text in prop::collection::vec(b' '..b'~', 0..2000)) {
            let packed = pack(text.clone().into());
            prop_assert!(packed.len() <= text.len());
            prop_assert_eq!(unpacked_len(&packed), text.len());
            prop_assert_eq!(unpack(&packed).unwrap().into_owned(), text);
        }
    }
}
