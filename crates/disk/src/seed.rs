//! Secrets of a user's gates: made on first use, kept in the state directory for its owner only. Does not use them.

use std::fs;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use runtime::random;
use runtime::whole::{create, make_dirs, sync_dir};

/// Key that signs checkpoints.
pub(crate) const SIGNING: &str = "audit.key";
/// Key that seals the states of waiting calls.
pub(crate) const SEALING: &str = "approvals.key";

/// Reads the seed of that name in `state_dir`, or makes it. Two gates that start at once get the same.
pub(crate) fn seed(state_dir: &Path, name: &str) -> io::Result<[u8; 32]> {
    let path = state_dir.join(name);
    if let Err(error) = fs::metadata(&path) {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        make_dirs(state_dir, 0o700)?;
        let new = state_dir.join(format!("{name}.{}", random::token()));
        create(&new, format!("{}\n", STANDARD.encode(random::seed())).as_bytes())?;
        let linked = fs::hard_link(&new, &path);
        fs::remove_file(&new)?;
        sync_dir(state_dir)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    let text = fs::read_to_string(&path)?;
    let seed = STANDARD.decode(text.trim()).ok().and_then(|raw| raw.try_into().ok());
    seed.ok_or_else(|| {
        io::Error::other(format!("{} holds no key: put it back from a backup, or take it away so that a new one is made", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_made_once_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let made = seed(dir.path(), SIGNING).unwrap();
        assert_eq!(seed(dir.path(), SIGNING).unwrap(), made);
        assert_eq!(fs::metadata(dir.path().join(SIGNING)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::write(dir.path().join(SIGNING), "x").unwrap();
        assert!(seed(dir.path(), SIGNING).is_err());
    }
}
