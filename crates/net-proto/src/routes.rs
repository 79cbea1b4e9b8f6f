//! A page of a routing table read block by block, so that a page of a table with a million routes asks for some thousand of them. Asks nobody:
//! wishes for blocks go out, and what stands in them comes in.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Order of prefixes: by address, then by length.
pub type PrefixKey = (IpAddr, u8);

/// Blocks that are asked for in vain before a page is given up: no table of a device needs as many.
const MOST_TURNS: u32 = 1000;
/// Bits by which a block that holds too much is narrowed, and one that holds little is widened.
const NARROWER: u8 = 4;
const WIDER: u8 = 2;

/// Prefixes to ask for: all within `within`, and these `above` it with the same address, which no block of their own holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteBlock {
    pub within: PrefixKey,
    pub above: Vec<PrefixKey>,
}

/// Place where a table goes on: the last prefix of a page, and the length of its block.
pub type RoutePlace = (PrefixKey, u8);

/// A walk over a table for one page.
#[derive(Clone, Debug)]
pub struct RouteWalk<R> {
    bits: u8,
    after: Option<PrefixKey>,
    wanted: usize,
    /// Address of the next block, right-aligned; `None` behind the last one.
    from: Option<u128>,
    /// Bits of the next block.
    length: u8,
    taken: BTreeMap<PrefixKey, R>,
    turns: u32,
}

impl<R> RouteWalk<R> {
    /// A walk for `wanted` prefixes behind `after`. `length` is the length of the block that was right before, 0 for a start.
    pub fn new(is_v6: bool, after: Option<PrefixKey>, length: u8, wanted: usize) -> Self {
        let bits = if is_v6 { 128 } else { 32 };
        let length = length.min(bits);
        let from = after.map_or(0, |(ip, _)| number(ip)) & !low(bits - length);
        Self { bits, after, wanted, from: Some(from), length, taken: BTreeMap::new(), turns: 0 }
    }

    /// The next block to ask for; `None` once the page is whole.
    pub fn block(&self) -> Option<RouteBlock> {
        let from = self.from.filter(|_| self.taken.len() <= self.wanted && self.turns < MOST_TURNS)?;
        let free = if from == 0 { self.bits } else { u8::try_from(from.trailing_zeros()).unwrap_or(self.bits).min(self.bits) };
        let above = (self.bits - free..self.length).map(|length| (self.address(from), length));
        Some(RouteBlock { within: (self.address(from), self.length), above: above.collect() })
    }

    /// Takes what stands in the block that was asked for. `is_little`: it could have been a larger one.
    pub fn hear(&mut self, found: impl IntoIterator<Item = (PrefixKey, R)>, is_little: bool) {
        self.turns += 1;
        let (after, bits) = (self.after, self.bits);
        let is_new = |key: &PrefixKey| after.is_none_or(|after| *key > after) && key.0.is_ipv4() == (bits == 32);
        self.taken.extend(found.into_iter().filter(|(key, _)| is_new(key)));
        let size = low(self.bits - self.length).checked_add(1);
        let next = self.from.zip(size).and_then(|(from, size)| from.checked_add(size));
        self.from = next.filter(|next| *next <= low(self.bits));
        if let (true, Some(from)) = (is_little, self.from) {
            // A block begins where its own size divides the address.
            let free = u8::try_from(from.trailing_zeros()).unwrap_or(self.bits).min(self.bits);
            self.length = self.length.saturating_sub(WIDER).max(self.bits - free);
        }
    }

    /// Narrows the block, which holds too much; false where no block is narrower.
    pub fn narrow(&mut self) -> bool {
        self.turns += 1;
        if self.length == self.bits || self.turns >= MOST_TURNS {
            return false;
        }
        self.length = (self.length + NARROWER).min(self.bits);
        // Blocks before the first wanted address are passed over.
        if let Some((from, (ip, _))) = self.from.zip(self.after) {
            self.from = Some(from.max(number(ip) & !low(self.bits - self.length)));
        }
        true
    }

    /// The page in order, and the place where the table goes on. `None`: the walk led nowhere.
    pub fn page(mut self) -> Option<(Vec<R>, Option<RoutePlace>)> {
        let is_more = self.taken.len() > self.wanted || self.from.is_some();
        if self.from.is_some() && self.taken.is_empty() {
            return None;
        }
        while self.taken.len() > self.wanted {
            self.taken.pop_last();
        }
        let last = self.taken.last_key_value().map(|(key, _)| *key).filter(|_| is_more);
        let length = self.length;
        Some((self.taken.into_values().collect(), last.map(|last| (last, length))))
    }

    fn address(&self, number: u128) -> IpAddr {
        match u32::try_from(number) {
            Ok(number) if self.bits == 32 => Ipv4Addr::from_bits(number).into(),
            _ => Ipv6Addr::from_bits(number).into(),
        }
    }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// A number of so many low bits.
const fn low(bits: u8) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> PrefixKey {
        let (ip, length) = text.split_once('/').unwrap();
        (ip.parse().unwrap(), length.parse().unwrap())
    }

    fn is_within((ip, length): &PrefixKey, block: &PrefixKey) -> bool {
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        *length >= block.1 && number(*ip) & !low(bits - block.1) == number(block.0)
    }

    /// All pages of a table on a device that gives at most `limit` prefixes of a block at once; and the most that a page asked for.
    fn walked(table: &BTreeSet<PrefixKey>, is_v6: bool, wanted: usize, limit: usize) -> (Vec<PrefixKey>, usize) {
        let (mut all, mut cursor, mut most) = (Vec::new(), None, 0);
        loop {
            let (after, length) = cursor.map_or((None, 0), |(key, length)| (Some(key), length));
            let (mut walk, mut asked) = (RouteWalk::new(is_v6, after, length, wanted), 0);
            while let Some(block) = walk.block() {
                asked += 1;
                assert!(asked < 1000, "{block:?}");
                let inside: Vec<PrefixKey> = table.iter().filter(|key| is_within(key, &block.within)).copied().collect();
                if inside.len() > limit {
                    assert!(walk.narrow());
                    continue;
                }
                let is_little = inside.len() * 4 < limit;
                let above = block.above.iter().filter(|key| table.contains(key)).copied();
                walk.hear(inside.into_iter().chain(above).map(|key| (key, key)), is_little);
            }
            most = most.max(asked);
            let (page, next) = walk.page().unwrap();
            assert!(page.len() <= wanted);
            all.extend(page);
            cursor = next;
            if cursor.is_none() {
                return (all, most);
            }
        }
    }

    #[test]
    fn nm_04_a_small_table_is_one_block() {
        let table: BTreeSet<PrefixKey> = ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/24", "255.255.255.255/32"].map(key).into();
        let walk: RouteWalk<PrefixKey> = RouteWalk::new(false, None, 0, 1000);
        assert_eq!(walk.block(), Some(RouteBlock { within: key("0.0.0.0/0"), above: Vec::new() }));
        assert_eq!(walked(&table, false, 1000, 1000), (table.iter().copied().collect(), 1));
    }

    #[test]
    fn nm_04_a_dense_table_is_found_within_few_blocks() {
        let ip = |number: u32| (IpAddr::from(Ipv4Addr::from_bits(0x1400_0000 + number)), 32);
        let mut table: BTreeSet<PrefixKey> = (0..20_000).map(ip).collect();
        table.extend(["0.0.0.0/0", "20.0.0.0/8", "20.0.0.0/16", "20.0.64.0/18"].map(key));
        let (all, most) = walked(&table, false, 1000, 4000);
        assert!(all.iter().eq(table.iter()) && most < 25, "{} of {}, {most} blocks", all.len(), table.len());
    }

    proptest! {
        #[test]
        fn nm_04_pages_hold_each_prefix_once_in_order(
            v4 in proptest::collection::vec((any::<u32>(), 0..=32_u8, any::<bool>()), 0..60),
            v6 in proptest::collection::vec((any::<u128>(), 0..=128_u8), 0..40),
            wanted in 1..20_usize,
            limit in 3..40_usize,
        ) {
            let v4: BTreeSet<PrefixKey> = v4.into_iter().map(|(ip, length, is_near)| {
                let ip = if is_near { ip & 0xff } else { ip };
                (IpAddr::from(Ipv4Addr::from_bits(u32::try_from(u128::from(ip) & !low(32 - length)).unwrap())), length)
            }).collect();
            prop_assert!(walked(&v4, false, wanted, limit).0.iter().eq(v4.iter()));
            let v6: BTreeSet<PrefixKey> =
                v6.into_iter().map(|(ip, length)| (IpAddr::from(Ipv6Addr::from_bits(ip & !low(128 - length))), length)).collect();
            prop_assert!(walked(&v6, true, wanted, limit).0.iter().eq(v6.iter()));
        }
    }
}
