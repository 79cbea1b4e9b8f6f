//! URIs mentioned by servers in results without being listed. Does not decide the owner of a listed URI.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use banyan_model::Segment;

use crate::template::MAX_URI;

/// Bytes for an entry beside its text.
const OVERHEAD: usize = 128;

/// Remembers, for each mount, the URIs used last, within a bound on memory that no other mount can use up.
#[derive(Debug)]
pub struct Seen {
    bytes_per_mount: usize,
    clock: u64,
    owners: HashMap<Arc<str>, (Segment, u64)>,
    mounts: BTreeMap<Segment, Shelf>,
}

/// URIs of one mount, the least recently used first.
#[derive(Debug, Default)]
struct Shelf {
    bytes: usize,
    oldest: BTreeMap<u64, Arc<str>>,
}

impl Seen {
    /// Keeps about `bytes_per_mount` bytes for each mount.
    pub fn new(bytes_per_mount: usize) -> Self {
        Self { bytes_per_mount, clock: 0, owners: HashMap::new(), mounts: BTreeMap::new() }
    }

    /// Notes that a result of this mount holds `uri`. A URI stays with the first mount until
    /// forgotten.
    pub fn note(&mut self, mount: &Segment, uri: &str) {
        if self.owners.contains_key(uri) {
            if self.owners.get(uri).is_some_and(|(owner, _)| owner == mount) {
                self.owner(uri);
            }
            return;
        }
        let size = uri.len() + OVERHEAD;
        if uri.len() > MAX_URI || size > self.bytes_per_mount {
            return;
        }
        self.clock += 1;
        let uri: Arc<str> = uri.into();
        let shelf = self.mounts.entry(mount.clone()).or_default();
        shelf.bytes += size;
        shelf.oldest.insert(self.clock, Arc::clone(&uri));
        self.owners.insert(uri, (mount.clone(), self.clock));
        while shelf.bytes > self.bytes_per_mount {
            let Some((_, forgotten)) = shelf.oldest.pop_first() else { break };
            shelf.bytes -= forgotten.len() + OVERHEAD;
            self.owners.remove(&forgotten);
        }
    }

    /// Gives the mount whose results held `uri`. Asking counts as use.
    pub fn owner(&mut self, uri: &str) -> Option<Segment> {
        let (mount, used) = self.owners.get_mut(uri)?;
        self.clock += 1;
        if let Some(shelf) = self.mounts.get_mut(mount)
            && let Some(text) = shelf.oldest.remove(used)
        {
            shelf.oldest.insert(self.clock, text);
        }
        *used = self.clock;
        Some(mount.clone())
    }

    /// Forgets all URIs of a mount.
    pub fn forget(&mut self, mount: &Segment) {
        for uri in self.mounts.remove(mount).unwrap_or_default().oldest.values() {
            self.owners.remove(uri);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uri_used_longest_ago_is_forgotten_first() {
        let (a, mut seen) = (Segment::nearest("a"), Seen::new(3 * (OVERHEAD + 3)));
        ["x:1", "x:2", "x:3"].iter().for_each(|uri| seen.note(&a, uri));
        assert_eq!(seen.owner("x:1"), Some(a.clone()));
        seen.note(&a, "x:4");
        assert_eq!(["x:1", "x:2", "x:3", "x:4"].map(|uri| seen.owner(uri).is_some()), [true, false, true, true]);
    }

    #[test]
    fn a_flood_of_one_mount_leaves_the_others_theirs() {
        let (a, b, mut seen) = (Segment::nearest("a"), Segment::nearest("b"), Seen::new(2000));
        seen.note(&a, "x:kept");
        (0..1000).for_each(|n| seen.note(&b, &format!("x:{n}")));
        assert_eq!(seen.owner("x:kept"), Some(a));
        assert!(seen.owners.len() < 20);
    }

    #[test]
    fn a_uri_stays_with_the_first_until_that_one_is_forgotten() {
        let (a, b, mut seen) = (Segment::nearest("a"), Segment::nearest("b"), Seen::new(2000));
        seen.note(&a, "x:1");
        seen.note(&b, "x:1");
        assert_eq!(seen.owner("x:1"), Some(a.clone()));
        seen.forget(&a);
        assert_eq!(seen.owner("x:1"), None);
        seen.note(&b, "x:1");
        assert_eq!(seen.owner("x:1"), Some(b));
    }

    #[test]
    fn what_is_too_long_is_not_kept() {
        let (a, mut seen) = (Segment::nearest("a"), Seen::new(1 << 20));
        let long = "x".repeat(MAX_URI + 1);
        seen.note(&a, &long);
        assert_eq!(seen.owner(&long), None);
    }
}
