//! Some nodes, their disks and clocks, and the links between them, all from a seed. Whatever went wrong, all have the same context in the
//! end, and the context of a reference that took every kept write once. `BANYAN_SIM_SEEDS=10000` lives through more seeds, `BANYAN_SIM_SEED=N`
//! through a single one. Opens no connection: a driver's part is played by queues.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::context::kept::{read_version, write_version};
use crate::context::peers::{ContextMoment, KnownVersion, SharedContext};
use crate::context::replica::{HistoryBounds, Replica};
use crate::message::{ContextPatch, DeltaKind, DeltaOp, EnvelopePayload};
use bytes::Bytes;
use prost::Message as _;

/// Microseconds of wall time at the beginning.
const EPOCH: u64 = 1_700_000_000_000_000;
/// Milliseconds for which patches are kept for a node that is away.
const TTL: u32 = 20_000;
/// Messages in one direction of a link.
const MOST_WAITING: usize = 8;
/// Rounds after which nodes that are not equal never will be.
const MOST_ROUNDS: usize = 2000;

const PATHS: [&str; 9] = ["/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f", "/g/h", "/g/h/i", "/g/j"];
const VALUES: [&str; 7] = ["1", "\"text\"", "[1,2]", "{}", r#"{"b":2}"#, r#"{"b":{"c":3},"f":null}"#, r#"{"h":{"i":[]}}"#];
const KINDS: [DeltaKind; 4] = [DeltaKind::Add, DeltaKind::Replace, DeltaKind::Remove, DeltaKind::Merge];

/// Random numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(most.max(1)).unwrap()).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Content of a disk, which outlives the end of a node.
#[derive(Clone)]
struct HistoryDisk {
    epoch: u64,
    base: u64,
    snapshot: Option<ContextPatch>,
    versions: Vec<(u64, Vec<u8>)>,
    known: BTreeMap<String, KnownVersion>,
    /// Bounds of the replica, where they are small.
    bounds: Option<HistoryBounds>,
}

struct HistoryNode {
    name: String,
    peers: Vec<usize>,
    shared: SharedContext,
    disk: HistoryDisk,
    /// Microseconds by which the wall clock is wrong.
    skew: i64,
}

/// Messages on their way from one node to another.
type HistoryWire = VecDeque<EnvelopePayload>;

/// All nodes, and what happened to them.
struct Nodes {
    dice: Dice,
    /// Milliseconds since the beginning.
    now: u64,
    nodes: Vec<HistoryNode>,
    /// Live links, both directions of each.
    wires: BTreeMap<(usize, usize), HistoryWire>,
    /// Writes on a disk that was never lost.
    kept: Vec<DeltaOp>,
    /// Author and time of each write that was ever on a disk.
    ever: BTreeSet<(String, u64)>,
    has_lost_disks: bool,
    /// A receiver is told of what is lost on its way, as of an envelope that could not be read; and nothing else is greeted anew in the end.
    tells_losses: bool,
    counts: BTreeMap<&'static str, usize>,
}

impl HistoryDisk {
    fn new(epoch: u64, bounds: Option<HistoryBounds>) -> Self {
        Self { epoch, base: 0, snapshot: None, versions: Vec::new(), known: BTreeMap::new(), bounds }
    }

    fn replica(&self, name: &str) -> Replica {
        let empty = || Replica::new("c", name).unwrap();
        let made = self.snapshot.as_ref().map_or_else(empty, |snapshot| Replica::restore(snapshot, name, self.base).unwrap());
        let mut replica = if let Some(bounds) = self.bounds { made.bounded(bounds) } else { made };
        for (number, text) in &self.versions {
            replica.replay(&read_version(*number, text).unwrap()).unwrap();
        }
        replica
    }
}

impl HistoryNode {
    /// Begins with what the disk has.
    fn start(&mut self, names: &[String]) {
        let known = |peer: &usize| (names[*peer].as_str().into(), self.disk.known.get(&names[*peer]).copied().unwrap_or_default());
        let peers: Vec<_> = self.peers.iter().map(known).collect();
        self.shared = SharedContext::new(self.disk.replica(&self.name), self.disk.epoch, TTL, peers);
    }
}

impl Nodes {
    /// Lives through the history of a seed. Gives what happened, and how often.
    fn live(seed: u64) -> BTreeMap<&'static str, usize> {
        let mut world = Self::new(seed);
        for _ in 0..world.dice.below(300) {
            world.step();
        }
        world.settle(seed);
        world.counts
    }

    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let count = 2 + dice.below(4);
        let mut peers: Vec<Vec<usize>> = vec![Vec::new(); count];
        for node in 1..count {
            // A tree, and some links that make rings.
            let mut others = vec![dice.below(node)];
            if dice.one_in(3) {
                others.push(dice.below(node));
            }
            others.dedup();
            for other in others {
                peers[node].push(other);
                peers[other].push(node);
            }
        }
        // A few versions in memory, and a few registers in a batch.
        let bounds = seed.is_multiple_of(3).then_some(HistoryBounds { journal: 2000, batch: 300 });
        let made = |(at, peers): (usize, Vec<usize>)| {
            let name = format!("n{at}");
            let shared = SharedContext::new(Replica::new("c", &name).unwrap(), 1, TTL, []);
            HistoryNode { name, peers, shared, disk: HistoryDisk::new(1 + u64::try_from(at).unwrap(), bounds), skew: 0 }
        };
        let nodes = peers.into_iter().enumerate().map(made).collect();
        let mut world = Self {
            dice,
            now: 0,
            nodes,
            wires: BTreeMap::new(),
            kept: Vec::new(),
            ever: BTreeSet::new(),
            has_lost_disks: false,
            tells_losses: seed % 2 == 1,
            counts: BTreeMap::new(),
        };
        (0..count).for_each(|node| world.start(node));
        world
    }

    fn start(&mut self, node: usize) {
        let names: Vec<String> = self.nodes.iter().map(|node| node.name.clone()).collect();
        self.nodes[node].start(&names);
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now.saturating_add(millis);
    }

    fn moment(&self, node: usize) -> ContextMoment {
        let wall = EPOCH + self.now * 1000;
        ContextMoment { wall: wall.saturating_add_signed(self.nodes[node].skew), now: self.now }
    }

    fn step(&mut self) {
        let node = self.dice.below(self.nodes.len());
        match self.dice.below(40) {
            0..6 => self.write(node),
            6..11 => self.keep(node),
            11..14 => self.link(node),
            14 if self.dice.one_in(2) => self.part(node),
            14..24 => {
                for _ in 0..self.dice.below(4) {
                    self.send(node);
                }
            }
            24..34 => self.receive(node),
            34 => self.restart(node),
            35 => self.put_together(node),
            36..38 => {
                let millis = u64::try_from(self.dice.below(10_000)).unwrap();
                self.pass(millis);
            }
            38 => self.set_clock(node),
            _ => self.lose_disk(node),
        }
    }

    fn write(&mut self, node: usize) {
        let (kind, path, value) = (KINDS[self.dice.below(4)], PATHS[self.dice.below(PATHS.len())], VALUES[self.dice.below(VALUES.len())]);
        let at = self.moment(node);
        if self.nodes[node].shared.write(&[(kind, path, Bytes::from_static(value.as_bytes()))], at.wall).is_err() {
            self.count("a write is refused");
        }
    }

    /// Puts on the disk what is in memory only.
    fn keep(&mut self, node: usize) {
        let (now, names) = (self.now, self.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>());
        let HistoryNode { shared, disk, peers, name, .. } = &mut self.nodes[node];
        self.ever.extend(shared.unkept().map(|version| (version.op.node_id.clone(), version.op.ts)));
        let own = shared.unkept().filter(|version| *version.stamp.node == **name).map(|version| version.op.clone());
        self.kept.extend(own);
        disk.versions.extend(shared.unkept().map(|version| (version.version, write_version(version))));
        for peer in peers.iter().map(|peer| &names[*peer]) {
            let progress = shared.progress(peer);
            disk.known.insert(peer.clone(), KnownVersion { version: progress.known, epoch: progress.epoch });
        }
        shared.note_kept(shared.replica().version(), now);
    }

    fn link(&mut self, node: usize) {
        let peer = self.nodes[node].peers[self.dice.below(self.nodes[node].peers.len())];
        self.meet(node, peer);
    }

    /// Lets two nodes greet each other, over a link in the place of any other between them.
    fn meet(&mut self, one: usize, other: usize) {
        for (from, to) in [(one, other), (other, one)] {
            let name = self.nodes[to].name.clone();
            let greeting = self.nodes[from].shared.greet(&name).unwrap();
            self.wires.insert((from, to), [greeting].into());
        }
    }

    fn part(&mut self, node: usize) {
        let gone: Vec<_> = self.wires.keys().copied().filter(|(from, to)| *from == node || *to == node).collect();
        if !gone.is_empty() {
            self.count("a link breaks");
        }
        for (from, to) in gone {
            self.wires.remove(&(from, to));
            let name = self.nodes[to].name.clone();
            self.nodes[from].shared.part_from(&name);
        }
    }

    /// Lets a node send a message to a peer. Tells if there was any.
    fn send(&mut self, node: usize) -> bool {
        let mut is_any = false;
        for peer in self.nodes[node].peers.clone() {
            if self.wires.get(&(node, peer)).is_none_or(|wire| wire.len() >= MOST_WAITING) {
                continue;
            }
            let name = self.nodes[peer].name.clone();
            let Some(payload) = self.nodes[node].shared.next(&name, self.now) else { continue };
            is_any = true;
            if matches!(payload, EnvelopePayload::SyncSubscribe(_)) {
                self.count("a node asks again");
                if self.tells_losses && self.dice.one_in(4) {
                    // Nobody is told of that: a peer may take a question and give no answer.
                    self.count("a question has no effect");
                    continue;
                }
            }
            self.wires.entry((node, peer)).or_default().push_back(payload);
        }
        is_any
    }

    /// Brings a message to a node, or loses, doubles or delays the message.
    fn receive(&mut self, node: usize) {
        let from = self.nodes[node].peers[self.dice.below(self.nodes[node].peers.len())];
        let waiting = self.wires.get(&(from, node)).map_or(0, VecDeque::len);
        if waiting == 0 {
            return;
        }
        let (luck, at, tells_losses) = (self.dice.below(30), self.dice.below(waiting), self.tells_losses);
        let wire = self.wires.entry((from, node)).or_default();
        // No node reads a greeting without understanding it.
        let may_lose = !tells_losses || !matches!(wire.front(), Some(EnvelopePayload::SyncSubscribe(_)));
        let (event, payload) = match luck {
            0 if may_lose => (Some("a message is lost"), wire.pop_front().filter(|_| false)),
            1 => (Some("a message is doubled"), wire.front().cloned()),
            2 if at > 0 => (Some("a message is late"), wire.remove(at)),
            _ => (None, wire.pop_front()),
        };
        event.into_iter().for_each(|event| self.count(event));
        match payload {
            Some(payload) => self.handle(node, from, payload),
            None if tells_losses => {
                let name = self.nodes[from].name.clone();
                self.nodes[node].shared.note_unread(&name, self.now);
            }
            None => {}
        }
    }

    fn handle(&mut self, node: usize, from: usize, payload: EnvelopePayload) {
        let (name, at) = (self.nodes[from].name.clone(), self.moment(node));
        let shared = &mut self.nodes[node].shared;
        if let EnvelopePayload::ContextPatch(patch) = &payload {
            self.patch(node, from, patch);
        } else if let EnvelopePayload::Retry(retry) = &payload {
            self.count("a retry comes");
            // The rest of a refused retry is refused too.
            let _ = retry.buffered_patches.iter().all(|patch| self.patch(node, from, patch));
        } else if let EnvelopePayload::SyncSubscribe(wish) = payload {
            shared.subscribe(&name, wish, at.now).unwrap();
        } else if let EnvelopePayload::SyncRequest(wish) = &payload {
            // Versions that are not held are refused; the asker subscribes later.
            drop(shared.request(&name, wish));
        }
    }

    /// Takes in a patch. Tells if the patch was applied.
    fn patch(&mut self, node: usize, from: usize, patch: &ContextPatch) -> bool {
        let (name, at) = (self.nodes[from].name.clone(), self.moment(node));
        let is_kept = |op: &DeltaOp| self.ever.contains(&(op.node_id.clone(), op.ts));
        assert!(patch.ops.iter().all(is_kept), "{name} has sent what was on no disk: {patch:?}");
        match self.nodes[node].shared.patch(&name, patch, at) {
            Ok(asked) => {
                if patch.is_part {
                    self.count("a snapshot comes");
                }
                if let Some(asked) = asked {
                    let is_gap = matches!(asked, EnvelopePayload::SyncRequest(_));
                    self.count(if is_gap { "a gap is asked for" } else { "a part of a patch is refused" });
                    self.wires.entry((node, from)).or_default().push_back(asked);
                }
                true
            }
            Err(_) => {
                self.count("a patch is refused");
                false
            }
        }
    }

    /// Ends a node, which begins again with what is on its disk.
    fn restart(&mut self, node: usize) {
        self.part(node);
        if self.nodes[node].shared.unkept().next().is_some() {
            self.count("a node ends before the disk has a write");
        }
        self.start(node);
    }

    /// Puts a snapshot in the place of the versions on a disk.
    fn put_together(&mut self, node: usize) {
        let HistoryNode { disk, name, .. } = &mut self.nodes[node];
        let replica = disk.replica(name);
        (disk.base, disk.snapshot) = (replica.version(), Some(replica.snapshot()));
        disk.versions.clear();
        self.count("versions are put together");
    }

    fn set_clock(&mut self, node: usize) {
        let seconds = i64::try_from(self.dice.below(80)).unwrap() - 40;
        let seconds = if self.dice.one_in(4) { 3600 } else { seconds };
        self.nodes[node].skew = seconds * 1_000_000;
    }

    fn lose_disk(&mut self, node: usize) {
        if !self.dice.one_in(8) {
            return;
        }
        self.count("a disk is lost");
        self.has_lost_disks = true;
        self.part(node);
        let name = self.nodes[node].name.clone();
        self.kept.retain(|op| op.node_id != name);
        self.nodes[node].disk = HistoryDisk::new(self.dice.next().max(1), self.nodes[node].disk.bounds);
        self.start(node);
    }

    /// Sets the clocks right, brings all links back, and lets nodes talk until they have nothing more to say. Where receivers are told of
    /// losses, a link that lives goes on as it is: what got stuck there stays stuck.
    fn settle(&mut self, seed: u64) {
        self.nodes.iter_mut().for_each(|node| node.skew = 0);
        // What an hour ahead wrote is no longer ahead.
        self.pass(2 * 3600 * 1000);
        let mut links: Vec<_> =
            (0..self.nodes.len()).flat_map(|one| self.nodes[one].peers.clone().into_iter().map(move |to| (one, to))).collect();
        links.retain(|link| link.0 < link.1 && !(self.tells_losses && self.wires.contains_key(link)));
        if self.tells_losses && !self.wires.is_empty() {
            self.count("a link goes on");
        }
        links.into_iter().for_each(|(one, other)| self.meet(one, other));
        for _ in 0..MOST_ROUNDS {
            let mut is_any = false;
            for node in 0..self.nodes.len() {
                self.keep(node);
                is_any |= self.send(node);
                for from in self.nodes[node].peers.clone() {
                    while let Some(payload) = self.wires.get_mut(&(from, node)).and_then(VecDeque::pop_front) {
                        is_any = true;
                        self.handle(node, from, payload);
                    }
                }
            }
            let lacks = |node: &HistoryNode| node.peers.iter().any(|peer| node.shared.due(&self.nodes[*peer].name).is_some());
            if !is_any && !self.nodes.iter().any(lacks) {
                return self.check(seed);
            }
            self.pass(if is_any { 1 } else { 1000 });
        }
        panic!("seed {seed}: the nodes never have enough of each other: {:?}", self.counts);
    }

    fn check(&self, seed: u64) {
        let bytes = |of: &Replica| of.snapshot().encode_to_vec();
        let first = self.nodes[0].shared.replica();
        for node in &self.nodes {
            let (one, other) = (first.json(), node.shared.replica().json());
            assert_eq!(bytes(first), bytes(node.shared.replica()), "seed {seed}: n0 has {one:?}, {} has {other:?}", node.name);
            let again = node.disk.replica(&node.name);
            assert_eq!(bytes(first), bytes(&again), "seed {seed}: {} has another context on its disk", node.name);
        }
        let (mut reference, wall) = (Replica::new("c", "reference").unwrap(), EPOCH + self.now * 1000);
        let patch = |ops: &[DeltaOp]| ContextPatch { context_id: "c".into(), ops: ops.to_vec(), ..ContextPatch::default() };
        for ops in self.kept.chunks(100) {
            reference.apply(&patch(ops), "reference", wall).unwrap();
        }
        if !self.has_lost_disks {
            assert_eq!(bytes(first), bytes(&reference), "seed {seed}: the reference has {:?}", reference.json());
        }
        // With a lost disk there may be more, of what had been sent before.
        let mut with = first.clone();
        let added: u64 = self.kept.chunks(100).map(|ops| with.apply(&patch(ops), "reference", wall).unwrap()).sum();
        assert_eq!(added, 0, "seed {seed}: a kept write is missing");
    }
}

/// So many by default: seconds.
const SEEDS: u64 = 1000;

/// Events that have to occur somewhere among the seeds.
const MET: [&str; 16] = [
    "a disk is lost",
    "a gap is asked for",
    "a link breaks",
    "a link goes on",
    "a message is doubled",
    "a message is late",
    "a message is lost",
    "a node asks again",
    "a node ends before the disk has a write",
    "a part of a patch is refused",
    "a patch is refused",
    "a question has no effect",
    "a retry comes",
    "a snapshot comes",
    "a write is refused",
    "versions are put together",
];

#[expect(clippy::disallowed_methods, reason = "a long run sets the seeds in the environment")]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn xc_11_nodes_converge_whatever_goes_wrong() {
    if let Some(seed) = setting("BANYAN_SIM_SEED") {
        println!("{:#?}", Nodes::live(seed));
        return;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..setting("BANYAN_SIM_SEEDS").unwrap_or(SEEDS) {
        Nodes::live(seed).into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    println!("{counts:#?}");
    // A world in which something never happens proves nothing of it.
    for what in MET {
        assert!(counts.contains_key(what), "nothing of the kind `{what}` happened: {counts:?}");
    }
}
