//! Progress along the versions of a sender, and the gaps in them. Applies no patch: joining needs no order, and gaps are only asked for.

use crate::error::AxcpError;
use crate::message::{ContextGraphVersion, ContextPatch, SyncRequest, SyncSubscribe};

/// Versions of a sender's context that came without a gap, and those behind the first gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFollower {
    context_id: String,
    known: u64,
    /// First and last version behind the gap, once a patch left one.
    behind: Option<(u64, u64)>,
}

impl PatchFollower {
    /// Begins after a version of the sender, 0 at first.
    pub fn new(context_id: &str, known: u64) -> Self {
        Self { context_id: context_id.to_owned(), known, behind: None }
    }

    /// Gives the last version without a gap, to be kept over a restart.
    pub fn known(&self) -> u64 {
        self.known
    }

    /// Subscribes, once a connection. Whatever stood behind a gap comes again.
    pub fn subscribe(&mut self) -> SyncSubscribe {
        self.behind = None;
        SyncSubscribe { from: Some(self.version()), ..SyncSubscribe::default() }
    }

    /// Asks again for the versions of a gap, whose patches were refused before.
    pub fn ask_again(&self) -> Option<SyncRequest> {
        let (base, _) = self.behind?;
        Some(SyncRequest { missing_from: Some(self.version()), to_version: base })
    }

    /// Notes the versions of an applied patch. Gives a request when a gap opens, and no second one for the same gap.
    ///
    /// # Errors
    /// When the patch is of another context, or counts further than a number goes.
    pub fn note(&mut self, patch: &ContextPatch) -> Result<Option<SyncRequest>, AxcpError> {
        if patch.context_id != self.context_id {
            return Err(AxcpError::Context);
        }
        if patch.is_part {
            return Ok(None);
        }
        let base = patch.base_version;
        let last = last_of(patch)?;
        if base == 0 && patch.new_version != 0 {
            // A snapshot: whatever was known before, the sender goes on from here.
            self.known = last;
            self.behind = None;
            return Ok(None);
        }
        if base > self.known {
            return Ok(self.leap(base, last));
        }
        self.known = self.known.max(last);
        if let Some((_, last)) = self.behind.take_if(|(base, _)| *base <= self.known) {
            self.known = self.known.max(last);
        }
        Ok(None)
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
        ContextGraphVersion { context_id: self.context_id.clone(), version: self.known }
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
        SyncRequest { missing_from: Some(ContextGraphVersion { context_id: "chat".into(), version: from }), to_version }
    }

    /// The picture of 6.4: subscribed at 42, then 43 to 45, and 46 to 48 after a pause.
    #[test]
    fn xc_12_versions_advance_by_one_an_operation() {
        let mut follower = PatchFollower::new("chat", 42);
        assert_eq!(follower.subscribe().from.unwrap().version, 42);
        assert_eq!((follower.note(&patch(42, 3)), follower.known()), (Ok(None), 45));
        assert_eq!((follower.note(&patch(45, 3)), follower.known()), (Ok(None), 48));
    }

    #[test]
    fn xc_12_a_gap_is_asked_for_once() {
        let mut follower = PatchFollower::new("chat", 42);
        assert_eq!(follower.note(&patch(45, 1)), Ok(Some(request(42, 45))));
        assert_eq!((follower.note(&patch(46, 2)), follower.known()), (Ok(None), 42));
        assert_eq!((follower.note(&patch(42, 3)), follower.known()), (Ok(None), 48));
        assert_eq!((follower.note(&patch(42, 1)), follower.known()), (Ok(None), 48));
    }

    #[test]
    fn xc_12_a_snapshot_is_known_with_its_last_part() {
        let mut follower = PatchFollower::new("chat", 42);
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
    fn xc_12_a_refused_gap_is_asked_for_again() {
        let mut follower = PatchFollower::new("chat", 42);
        assert_eq!(follower.ask_again(), None);
        follower.note(&patch(45, 1)).unwrap();
        assert_eq!(follower.ask_again(), Some(request(42, 45)));
        follower.note(&patch(42, 3)).unwrap();
        assert_eq!(follower.ask_again(), None);
    }

    #[test]
    fn xc_12_versions_beyond_numbers_are_refused() {
        let mut follower = PatchFollower::new("chat", 42);
        assert!(matches!(follower.note(&patch(u64::MAX, 1)), Err(AxcpError::Malformed(_))));
        assert_eq!(follower.note(&ContextPatch::default()), Err(AxcpError::Context));
        assert_eq!(follower, PatchFollower::new("chat", 42));
    }

    proptest! {
        /// Any patches are lost, repeated and out of order; each request is answered, and the next patch shows the next gap.
        #[test]
        fn xc_12_no_version_is_known_before_it_came(steps in prop::collection::vec((0_u64..60, 1_usize..6, any::<bool>()), 0..40)) {
            let mut follower = PatchFollower::new("chat", 0);
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
