//! Ids of the gates of a state directory, kept over restarts. Does not know their uses.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use mesh_proto::id::NodeId;
use runtime::random;
use runtime::whole::{make_dirs, sync_dir};
use sha2::{Digest, Sha256};

/// Directory with the ids of all gates of a state directory.
const KEPT: &str = "nodes";

/// Makes an id unlike any other.
pub fn fresh() -> Arc<str> {
    uuid(&random::token())
}

/// Reads the ids of all gates of `state_dir`.
pub(crate) fn known(state_dir: &Path) -> io::Result<Vec<String>> {
    let files = match fs::read_dir(state_dir.join(KEPT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        files => files?,
    };
    let mut ids = Vec::new();
    for file in files {
        ids.extend(NodeId::parse(fs::read_to_string(file?.path())?.trim()).map(|id| id.to_string()));
    }
    Ok(ids)
}

/// Reads the id of the gate of `place`, or makes an id for a new gate. The id is reserved while the file is open.
///
/// # Errors
/// When another gate of this place runs, and when the id can't be kept.
pub fn keep(state_dir: &Path, place: &Path) -> io::Result<(Arc<str>, File)> {
    let digest = Sha256::digest(place.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(16).map(|b| format!("{b:02x}")).collect();
    let (directory, id) = (state_dir.join(KEPT), fresh());
    make_dirs(&directory, 0o700)?;
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(directory.join(name))?;
    file.try_lock().map_err(|_| io::Error::other("another gate with the same configuration runs"))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    if let Some(id) = NodeId::parse(text.trim()) {
        return Ok((id.to_string().into(), file));
    }
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{id}\n").as_bytes())?;
    file.sync_all()?;
    sync_dir(&directory)?;
    Ok((id, file))
}

/// Writes 32 hexadecimal digits as a UUID of version 4.
fn uuid(digits: &str) -> Arc<str> {
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_of_version_4() {
        assert_eq!(uuid("0123456789abcdef0123456789abcdef").as_ref(), "01234567-89ab-4def-8123-456789abcdef");
    }
}
