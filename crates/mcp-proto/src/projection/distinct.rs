//! Gives each of many claimants a name of its own. Does not know the meaning of a name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Characters of the longest tail.
const LONGEST_TAIL: usize = 25;

/// Somebody who wants a name. All texts are ASCII but the parts of the identity.
pub(super) trait Candidate {
    /// The wanted name, of any length.
    fn stem(&self) -> &str;
    /// The most bytes a name may have; at least 32.
    fn limit(&self) -> usize;
    /// Rates the claim: the lowest wins, equals all lose.
    fn rank(&self) -> u32;
    /// Identifies the claimant. Claimants of one identity share one name.
    fn identity(&self) -> [&str; 4];
}

/// A name given to a single claimant.
#[derive(Clone)]
pub(super) struct SettledName {
    pub(super) name: Arc<str>,
    /// A tail distinguishes the name from rivals.
    pub(super) tailed: bool,
}

/// Names every claimant, in their order; the outcome depends on the set of claimants only.
pub(super) fn settle<C: Candidate>(claims: &[C]) -> Vec<SettledName> {
    let mut settled: Vec<Option<SettledName>> = vec![None; claims.len()];
    let mut taken: HashSet<Arc<str>> = HashSet::with_capacity(claims.len());
    let mut pending: Vec<usize> = (0..claims.len()).collect();
    let mut level = 0;
    while !pending.is_empty() {
        let (won, lost) = round(claims, &pending, &taken, level);
        for (index, name) in won {
            taken.insert(Arc::clone(&name));
            if let Some(slot) = settled.get_mut(index) {
                *slot = Some(SettledName { name, tailed: level > 0 });
            }
        }
        pending = lost;
        level += 1;
    }
    settled.into_iter().flatten().collect()
}

/// Runs a round: every pending claimant names its wish of this level, and unrivalled claimants get theirs.
fn round<C: Candidate>(claims: &[C], pending: &[usize], taken: &HashSet<Arc<str>>, level: u32) -> (Vec<(usize, Arc<str>)>, Vec<usize>) {
    let mut wishes: Vec<(usize, &C, Arc<str>)> = Vec::with_capacity(pending.len());
    let mut best: HashMap<Arc<str>, Best<'_>> = HashMap::with_capacity(pending.len());
    for &index in pending {
        let Some(claim) = claims.get(index) else {
            continue;
        };
        let wish: Arc<str> = wish(claim, level).into();
        let rank = if level == 0 { claim.rank() } else { 0 };
        let new = Best { rank, identity: claim.identity(), contested: false };
        best.entry(Arc::clone(&wish)).and_modify(|old| old.meet(&new)).or_insert(new);
        wishes.push((index, claim, wish));
    }
    let (mut won, mut lost) = (Vec::with_capacity(pending.len()), Vec::new());
    for (index, claim, wish) in wishes {
        let wins = best.get(&wish).is_some_and(|best| !best.contested && best.identity == claim.identity());
        if wins && !taken.contains(&wish) {
            won.push((index, wish));
        } else {
            lost.push(index);
        }
    }
    (won, lost)
}

/// The strongest claim to a name so far.
#[derive(Clone)]
struct Best<'a> {
    rank: u32,
    identity: [&'a str; 4],
    contested: bool,
}

impl<'a> Best<'a> {
    fn meet(&mut self, other: &Best<'a>) {
        if other.rank < self.rank {
            *self = other.clone();
        } else if other.rank == self.rank && other.identity != self.identity {
            self.contested = true;
        }
    }
}

/// Gives the wish of a claimant that lost `level` times.
fn wish<C: Candidate>(claim: &C, level: u32) -> String {
    if level == 0 && claim.stem().len() <= claim.limit() {
        return claim.stem().to_owned();
    }
    with_tail(claim.stem(), claim.limit(), &tail(&claim.identity(), level))
}

/// `stem_tail`, or the head and the end of the stem and the tail where that is longer than `limit`.
fn with_tail(stem: &str, limit: usize, tail: &str) -> String {
    if stem.len() + 1 + tail.len() <= limit {
        return format!("{stem}_{tail}");
    }
    let room = limit.saturating_sub(tail.len() + 2);
    let back = room / 3;
    let head = stem.get(..room - back).unwrap_or(stem);
    let end = stem.get(stem.len().saturating_sub(back)..).unwrap_or("");
    format!("{head}_{end}_{tail}")
}

/// Counts the bytes of a stem that every name within this limit keeps.
pub(super) fn kept(limit: usize) -> usize {
    let room = limit.saturating_sub(LONGEST_TAIL + 2);
    room - room / 3
}

/// Gives 8, 16 or 25 characters of the hash of the claimant's identity. Later levels salt the hash, so that nobody can occupy all tails.
fn tail(identity: &[&str; 4], level: u32) -> String {
    let mut hash = Sha256::new();
    for part in identity {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let length = match level {
        0 | 1 => 8,
        2 => 16,
        salt => {
            hash.update(salt.to_be_bytes());
            LONGEST_TAIL
        }
    };
    base32(&hash.finalize(), length)
}

/// The first `length` characters of `bytes` in lower-case base32 (RFC 4648).
fn base32(bytes: &[u8], length: usize) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1));
    let digit = |place: usize| (0..5).fold(0, |value, offset| value << 1 | bit(place * 5 + offset));
    (0..length).filter_map(|place| ALPHABET.get(digit(place)).copied().map(char::from)).collect()
}
