//! Progress along the versions of a sender, and the gaps in them. Applies no patch: joining needs no order, and gaps are only asked for.

use crate::error::AxcpError;
use crate::message::{ContextGraphVersion, ContextPatch, SyncRequest, SyncSubscribe};

/// Versions of a sender's context that came without a gap, and those behind the first gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFollower {
    context_id: String,
    known: u64,
    /// Epoch of `known`; 0: not told yet.
    epoch: u64,
    /// First and last version behind the gap, once a patch left one.
    behind: Option<(u64, u64)>,
    snapshot: SnapshotParts,
    /// A patch was refused, or a snapshot was not whole.
    lacks: bool,
    /// Number of patches that brought the next versions, or told that there are none.
    advances: u64,
}

/// Parts of a snapshot that came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SnapshotParts {
    /// Number of the last part, 0 before the first.
    last: u64,
    /// Version of the sender at which the snapshot began.
    version: u64,
    /// A part was refused or passed over.
    is_torn: bool,
}

impl PatchFollower {
    /// Begins after a version of the sender, 0 at first, and its epoch, 0 where unknown.
    pub fn new(context_id: &str, known: u64, epoch: u64) -> Self {
        let (behind, snapshot, lacks) = (None, SnapshotParts::default(), false);
        Self { context_id: context_id.to_owned(), known, epoch, behind, snapshot, lacks, advances: 0 }
    }

    /// Gives the last version without a gap, to be kept over a restart.
    pub fn known(&self) -> u64 {
        self.known
    }

    /// Gives the epoch of the known version, to be kept with the version.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Gives the number of patches that went on from the known version. A question to the sender had no effect while the number stays.
    pub fn advances(&self) -> u64 {
        self.advances
    }

    /// Tells if all versions came that the sender is known to have.
    pub fn is_whole(&self) -> bool {
        self.behind.is_none() && !self.lacks
    }

    /// Subscribes to all after the known version. Whatever stood behind a gap, and what was refused, comes again.
    pub fn subscribe(&mut self) -> SyncSubscribe {
        (self.behind, self.lacks) = (None, false);
        SyncSubscribe { from: Some(self.version()), ..SyncSubscribe::default() }
    }

    /// Notes that a patch was not applied.
    pub fn note_refused(&mut self, patch: &ContextPatch) {
        self.lacks = true;
        if patch.is_part {
            self.snapshot.is_torn = true;
        }
    }

    /// Notes that something was refused which may have been a patch.
    pub fn note_unread(&mut self) {
        (self.lacks, self.snapshot.is_torn) = (true, true);
    }

    /// Notes the versions of an applied patch. Gives a request when a gap opens, and no second one for the same gap.
    ///
    /// # Errors
    /// When the patch is of another context, or counts further than a number goes.
    pub fn note(&mut self, patch: &ContextPatch) -> Result<Option<SyncRequest>, AxcpError> {
        if patch.context_id != self.context_id {
            return Err(AxcpError::Context);
        }
        let last = if patch.is_part { 0 } else { last_of(patch)? };
        self.note_epoch(patch.epoch);
        if patch.is_part {
            self.snapshot.add(patch.part, patch.new_version);
            return Ok(None);
        }
        let base = patch.base_version;
        let is_unnumbered_snapshot = patch.new_version != 0 && self.snapshot.last == 0;
        if base == 0 && (patch.part != 0 || is_unnumbered_snapshot) {
            self.end_snapshot(patch.part, last);
            return Ok(None);
        }
        if base > self.known {
            return Ok(self.leap(base, last));
        }
        let is_answer = patch.ops.is_empty() && base == self.known;
        self.advances += u64::from(last > self.known || is_answer);
        self.known = self.known.max(last);
        if let Some((_, last)) = self.behind.take_if(|(base, _)| *base <= self.known) {
            self.known = self.known.max(last);
        }
        Ok(None)
    }

    /// Notes the epoch of a patch. In another epoch a version means nothing: the sender has lost what it had, and counts anew.
    fn note_epoch(&mut self, epoch: u64) {
        if epoch == 0 || epoch == self.epoch {
            return;
        }
        if self.epoch != 0 {
            (self.known, self.behind) = (0, None);
        }
        self.epoch = epoch;
    }

    /// Notes the last part of a snapshot. A snapshot that is not whole counts for nothing, and is asked for again.
    fn end_snapshot(&mut self, part: u64, version: u64) {
        self.snapshot.add(part, version);
        if std::mem::take(&mut self.snapshot).is_torn {
            self.lacks = true;
        } else {
            // Whatever was known before, the sender goes on from here.
            (self.known, self.behind, self.lacks) = (version, None, false);
            self.advances += 1;
        }
    }

    /// Notes a patch behind a gap. A second gap behind the first is found by the next patch after the first is filled.
    fn leap(&mut self, base: u64, last: u64) -> Option<SyncRequest> {
        match &mut self.behind {
            Some((first, end)) if base >= *first => {
                if base <= *end {
                    *end = last.max(*end);
                }
                None
            }
            Some(_) | None => {
                self.behind = Some((base, last));
                Some(SyncRequest { missing_from: Some(self.version()), to_version: base })
            }
        }
    }

    fn version(&self) -> ContextGraphVersion {
        ContextGraphVersion { context_id: self.context_id.clone(), version: self.known, epoch: self.epoch }
    }
}

impl SnapshotParts {
    /// Adds a part. The first of numbered parts begins anew, and a sender without numbers is believed to leave none out.
    fn add(&mut self, part: u64, version: u64) {
        if part == 1 {
            *self = Self { version, ..Self::default() };
        }
        self.is_torn |= part != 0 && (part != self.last.saturating_add(1) || version != self.version);
        self.last = part;
    }
}

/// Checks the versions of a patch, before anything of the patch is applied.
///
/// # Errors
/// When the versions go backwards, or further than a number.
pub(super) fn check_versions(patch: &ContextPatch) -> Result<(), AxcpError> {
    if patch.is_part { Ok(()) } else { last_of(patch).map(drop) }
}

/// Gives the version of the sender after a patch.
fn last_of(patch: &ContextPatch) -> Result<u64, AxcpError> {
    let ContextPatch { base_version, new_version, ops, .. } = patch;
    match new_version {
        0 => base_version.checked_add(u64::try_from(ops.len()).unwrap_or(u64::MAX)),
        after => Some(*after).filter(|after| after >= base_version),
    }
    .ok_or(AxcpError::Malformed("the versions of a patch go backwards, or have more than 64 bits"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::DeltaOp;

    fn patch(base_version: u64, count: usize) -> ContextPatch {
        ContextPatch { context_id: "chat".into(), base_version, ops: vec![DeltaOp::default(); count], ..ContextPatch::default() }
    }

    fn request(from: u64, to_version: u64) -> SyncRequest {
        SyncRequest { missing_from: Some(ContextGraphVersion { context_id: "chat".into(), version: from, epoch: 0 }), to_version }
    }

    /// The picture of 6.4: subscribed at 42, then 43 to 45, and 46 to 48 after a pause.
    #[test]
    fn xc_12_versions_advance_by_one_an_operation() {
        let mut follower = PatchFollower::new("chat", 42, 0);
        assert_eq!(follower.subscribe().from.unwrap().version, 42);
        assert_eq!((follower.note(&patch(42, 3)), follower.known()), (Ok(None), 45));
        assert_eq!((follower.note(&patch(45, 3)), follower.known()), (Ok(None), 48));
    }

    #[test]
    fn xc_12_a_gap_is_asked_for_once() {
        let mut follower = PatchFollower::new("chat", 42, 0);
        assert_eq!(follower.note(&patch(45, 1)), Ok(Some(request(42, 45))));
        assert_eq!((follower.note(&patch(46, 2)), follower.known()), (Ok(None), 42));
        assert_eq!((follower.note(&patch(42, 3)), follower.known()), (Ok(None), 48));
        assert_eq!((follower.note(&patch(42, 1)), follower.known()), (Ok(None), 48));
    }

    #[test]
    fn xc_12_a_snapshot_is_known_with_its_last_part() {
        let mut follower = PatchFollower::new("chat", 42, 0);
        let part = ContextPatch { is_part: true, ..patch(0, 3) };
        assert_eq!((follower.note(&part), follower.known()), (Ok(None), 42));
        let last = ContextPatch { new_version: 17, ..patch(0, 2) };
        assert_eq!((follower.note(&last), follower.known()), (Ok(None), 17));
        let filtered = ContextPatch { new_version: 20, ..patch(17, 0) };
        assert_eq!((follower.note(&filtered), follower.known()), (Ok(None), 20));
        let backwards = ContextPatch { new_version: 19, ..patch(20, 1) };
        assert!(matches!(follower.note(&backwards), Err(AxcpError::Malformed(_))));
    }

    #[test]
    fn xc_12_a_refused_patch_is_lacking_until_asked_for() {
        let mut follower = PatchFollower::new("chat", 42, 0);
        assert!(follower.is_whole());
        follower.note_refused(&patch(42, 1));
        assert!(!follower.is_whole());
        assert_eq!((follower.subscribe().from.unwrap().version, follower.is_whole()), (42, true));
        follower.note(&patch(45, 1)).unwrap();
        assert!(!follower.is_whole(), "there is a gap");
    }

    /// Delivers a snapshot of version 9 in `count` numbered parts and the last, but for those refused or lost.
    fn snapshot(follower: &mut PatchFollower, count: u64, refused: Option<u64>, lost: Option<u64>) {
        for number in 1..=count {
            let part = ContextPatch { is_part: true, part: number, new_version: 9, ..patch(0, 1) };
            if refused == Some(number) {
                follower.note_refused(&part);
            } else if lost != Some(number) {
                follower.note(&part).unwrap();
            }
        }
        follower.note(&ContextPatch { new_version: 9, part: count + 1, ..patch(0, 0) }).unwrap();
    }

    #[test]
    fn xc_12_a_torn_snapshot_counts_for_nothing() {
        let whole = |count, refused, lost| {
            let mut follower = PatchFollower::new("chat", 4, 0);
            snapshot(&mut follower, count, refused, lost);
            (follower.known(), follower.is_whole())
        };
        for count in 0..4 {
            assert_eq!(whole(count, None, None), (9, true));
            for gone in 1..=count {
                assert_eq!(whole(count, Some(gone), None), (4, false), "part {gone} of {count} is refused");
                assert_eq!(whole(count, None, Some(gone)), (4, false), "part {gone} of {count} is lost");
            }
        }
        let mut follower = PatchFollower::new("chat", 4, 0);
        snapshot(&mut follower, 3, Some(2), None);
        follower.subscribe();
        snapshot(&mut follower, 3, None, None);
        assert_eq!((follower.known(), follower.is_whole()), (9, true), "the next one is whole");
    }

    #[test]
    fn xc_12_a_snapshot_of_nothing_is_one_too() {
        let mut follower = PatchFollower::new("chat", 4, 0);
        follower.note(&ContextPatch { part: 1, ..patch(0, 0) }).unwrap();
        assert_eq!(follower.known(), 0, "the sender has no version");
    }

    #[test]
    fn xc_12_parts_of_two_snapshots_make_none() {
        let mut follower = PatchFollower::new("chat", 4, 0);
        follower.note(&ContextPatch { is_part: true, part: 1, new_version: 8, ..patch(0, 1) }).unwrap();
        follower.note(&ContextPatch { part: 2, new_version: 9, ..patch(0, 0) }).unwrap();
        assert_eq!((follower.known(), follower.is_whole()), (4, false));
    }

    #[test]
    fn xc_12_an_unnumbered_part_may_not_be_refused_either() {
        let mut follower = PatchFollower::new("chat", 4, 0);
        follower.note_refused(&ContextPatch { is_part: true, ..patch(0, 1) });
        follower.note(&ContextPatch { is_part: true, ..patch(0, 1) }).unwrap();
        follower.note(&ContextPatch { new_version: 9, ..patch(0, 0) }).unwrap();
        assert_eq!((follower.known(), follower.is_whole()), (4, false));
    }

    #[test]
    fn xc_12_another_epoch_makes_versions_unknown() {
        let mut follower = PatchFollower::new("chat", 42, 0);
        follower.note(&ContextPatch { epoch: 7, ..patch(42, 1) }).unwrap();
        assert_eq!((follower.known(), follower.epoch()), (43, 7), "the first epoch told is that of the known version");
        let asked = follower.note(&ContextPatch { epoch: 8, ..patch(43, 1) }).unwrap().unwrap();
        assert_eq!((asked.missing_from.unwrap().version, asked.to_version), (0, 43));
        assert_eq!((follower.known(), follower.epoch()), (0, 8));
    }

    #[test]
    fn xc_12_versions_beyond_numbers_are_refused() {
        let mut follower = PatchFollower::new("chat", 42, 0);
        assert!(matches!(follower.note(&patch(u64::MAX, 1)), Err(AxcpError::Malformed(_))));
        assert_eq!(follower.note(&ContextPatch::default()), Err(AxcpError::Context));
        assert_eq!(follower, PatchFollower::new("chat", 42, 0));
    }

    proptest! {
        /// Any patches are lost, repeated and out of order; each request is answered, and the next patch shows the next gap.
        #[test]
        fn xc_12_no_version_is_known_before_it_came(steps in prop::collection::vec((0_u64..60, 1_usize..6, any::<bool>()), 0..40)) {
            let mut follower = PatchFollower::new("chat", 0, 0);
            let mut came = [false; 200];
            let mut deliver = |follower: &mut PatchFollower, base: u64, count: usize| {
                let first = usize::try_from(base).unwrap();
                came[first..first + count].fill(true);
                let asked = follower.note(&patch(base, count)).unwrap();
                let known = usize::try_from(follower.known()).unwrap();
                assert!(came[..known].iter().all(|came| *came), "{known} is known too early");
                asked
            };
            for (base, count, is_answered) in steps {
                let asked = deliver(&mut follower, base, count);
                if let Some(asked) = asked.filter(|_| is_answered) {
                    let from = asked.missing_from.unwrap().version;
                    deliver(&mut follower, from, usize::try_from(asked.to_version - from).unwrap());
                    prop_assert!(follower.known() >= asked.to_version);
                }
            }
            follower.subscribe();
            let known = follower.known();
            deliver(&mut follower, known, usize::try_from(100 - known).unwrap());
            prop_assert_eq!(follower.known(), 100);
        }
    }
}
