//! Claims in memory. Does not judge claims.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use banyan_model::Segment;
use futures_util::future::{BoxFuture, ready};
use mesh_proto::parent::Claim;

use super::lock;
use crate::stores::OpenClaims;
use crate::{ClaimChange, Claims, StoreError};

pub(super) type ClaimMap = Mutex<BTreeMap<(String, Segment), Claim>>;

struct MemoryClaims {
    shared: Arc<ClaimMap>,
    gate: String,
}

pub(super) fn open(shared: &Arc<ClaimMap>, gate: &str) -> OpenClaims {
    let kept = lock(shared).iter().filter(|((own, _), _)| own == gate).map(|(_, claim)| claim.clone()).collect();
    (Arc::new(MemoryClaims { shared: Arc::clone(shared), gate: gate.to_owned() }), kept)
}

impl Claims for MemoryClaims {
    fn keep(&self, changes: Vec<ClaimChange>) -> BoxFuture<'static, Result<(), StoreError>> {
        let mut all = lock(&self.shared);
        for change in changes {
            match change {
                ClaimChange::Made(claim) => drop(all.insert((self.gate.clone(), claim.segment.clone()), claim)),
                ClaimChange::Released(segment) => drop(all.remove(&(self.gate.clone(), segment))),
            }
        }
        Box::pin(ready(Ok(())))
    }

    fn works(&self) -> bool {
        true
    }
}
