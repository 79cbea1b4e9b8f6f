//! Versions and snapshots as bytes for a store. Does not know where they are kept.

use bytes::Bytes;
use prost::Message as _;

use super::clock::WriteStamp;
use super::replica::ContextVersion;
use crate::error::AxcpError;
use crate::message::{ContextPatch, DeltaOp};

/// A version without its number, which a store has beside it.
#[derive(Clone, PartialEq, prost::Message)]
struct KeptVersion {
    #[prost(message, optional, tag = "1")]
    op: Option<DeltaOp>,
    #[prost(uint64, optional, tag = "2")]
    merged: Option<u64>,
}

/// Writes a version.
pub fn write_version(version: &ContextVersion) -> Vec<u8> {
    KeptVersion { op: Some(version.op.clone()), merged: version.merged }.encode_to_vec()
}

/// Reads the version of a number.
///
/// # Errors
/// When the bytes are no version.
pub fn read_version(version: u64, text: &[u8]) -> Result<ContextVersion, AxcpError> {
    let kept = KeptVersion::decode(text).ok();
    let (op, merged) =
        kept.and_then(|kept| Some((kept.op?, kept.merged))).ok_or(AxcpError::Malformed("a kept version has no operation"))?;
    Ok(ContextVersion { version, stamp: WriteStamp { ts: op.ts, node: op.node_id.as_str().into() }, merged, op, via: None })
}

/// Writes a snapshot.
pub fn write_snapshot(snapshot: &ContextPatch) -> Vec<u8> {
    snapshot.encode_to_vec()
}

/// Reads a snapshot.
///
/// # Errors
/// When the bytes are no snapshot.
pub fn read_snapshot(text: Bytes) -> Result<ContextPatch, AxcpError> {
    ContextPatch::decode(text).map_err(|_| AxcpError::Malformed("a kept snapshot cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::replica::Replica;
    use crate::message::DeltaKind;

    #[test]
    fn xc_14_kept_bytes_are_read_again() {
        let mut replica = Replica::new("c", "me").unwrap();
        replica.write(&[(DeltaKind::Add, "/a", Bytes::from_static(b"1"))], 5).unwrap();
        let mut late = replica.snapshot();
        late.ops[0].path = "/b".into();
        replica.apply(&late, "x", 5).unwrap();
        for version in replica.history() {
            let kept = ContextVersion { via: None, ..version.clone() };
            assert_eq!(read_version(version.version, &write_version(version)), Ok(kept));
        }
        assert_eq!(replica.history().last().unwrap().merged, Some(0));
        assert_eq!(read_snapshot(write_snapshot(&replica.snapshot()).into()), Ok(replica.snapshot()));
        assert!(read_version(1, b"\xff").is_err() && read_version(1, b"").is_err() && read_snapshot(Bytes::from_static(b"\xff")).is_err());
    }
}
