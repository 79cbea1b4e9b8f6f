//! Key of the gate for envelopes of AINP, kept on the disk. Signs nothing.

use std::io::ErrorKind;
use std::path::Path;

use bridge::EnvelopeKey;
use runtime::random;
use runtime::whole::{Readers, make_dirs, replace};

/// Directory for the keys of all gates of a state directory.
const KEPT: &str = "agents";

/// Reads the key of the gate `id`, or makes one. `None`: no key can be made.
pub fn open(state: Option<&Path>, id: &str) -> Option<EnvelopeKey> {
    let Some(state) = state else { return EnvelopeKey::of_seed(&random::bytes()) };
    let file = state.join(KEPT).join(format!("{id}.ainp"));
    let seed = match std::fs::read(&file) {
        Ok(seed) => seed.try_into().ok(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let seed: [u8; 32] = random::bytes();
            let kept = make_dirs(&state.join(KEPT), 0o700).and_then(|()| replace(&file, &seed, Readers::Owner));
            kept.inspect_err(|error| tracing::warn!("{} can't be kept: {error}. The gate has a new key at each start", file.display()))
                .ok();
            Some(seed)
        }
        Err(_) => None,
    };
    if seed.is_none() {
        tracing::error!("{} can't be read, or holds no key of 32 bytes: no message of AINP is answered", file.display());
    }
    seed.and_then(|seed| EnvelopeKey::of_seed(&seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ae_11_the_name_of_the_gate_outlives_a_restart() {
        let dir = std::env::temp_dir().join(format!("banyan-ainp-{}", std::process::id()));
        let name = |id: &str| open(Some(&dir), id).unwrap().did();
        assert_eq!(name("a"), name("a"));
        assert_ne!(name("a"), name("b"));
        std::fs::write(dir.join(KEPT).join("a.ainp"), b"short").unwrap();
        assert!(open(Some(&dir), "a").is_none(), "a broken key is not replaced");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
