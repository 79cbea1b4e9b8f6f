//! Owners of segments beyond sessions and restarts (AX-12). Does not store claims.

use std::collections::BTreeMap;

use banyan_model::Segment;
use serde_json::{Value, json};

use crate::authority::Authority;
use crate::id::NodeId;
use crate::json::{invalid, object};
use crate::refusal::Refusal;

/// A segment owned by an authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub segment: Segment,
    pub authority: Authority,
    /// The authority was proved at the time of the claim. A proof beats a claim without proof.
    pub proven: bool,
    /// The last registrant.
    pub subserver_id: NodeId,
}

impl Claim {
    /// Reads the text of [`Self::encode`].
    ///
    /// # Errors
    /// Any fault of the text.
    pub fn decode(text: &[u8]) -> Result<Self, Refusal> {
        let claim = object(text, 4096)?;
        let segment = claim.required("segment", |v| Segment::new(v.as_str()?).ok(), "a segment")?;
        let authority = claim.required("authority", |v| Authority::parse(v.as_str()?), "a dns: name")?;
        let proven = claim.required("proven", Value::as_bool, "true or false")?;
        let subserver_id = claim.get("subserver_id").and_then(|v| NodeId::parse(v.as_str()?));
        let subserver_id = subserver_id.ok_or_else(|| invalid("subserver_id", "must be a UUID".into()))?;
        Ok(Self { segment, authority, proven, subserver_id })
    }

    /// Writes the JSON.
    pub fn encode(&self) -> String {
        json!({
            "segment": self.segment.as_str(),
            "authority": self.authority.to_string(),
            "proven": self.proven,
            "subserver_id": self.subserver_id.to_string(),
        })
        .to_string()
    }
}

/// All claims of an aggregator.
#[derive(Debug, Default)]
pub(super) struct Claims {
    by_segment: BTreeMap<Segment, Claim>,
    /// Proved owners of ids.
    owners: BTreeMap<NodeId, Authority>,
}

impl Claims {
    /// Decides whether an authority, `proven` or not, may register the segment.
    pub(super) fn allow(&self, segment: &Segment, authority: Option<&Authority>, proven: bool) -> bool {
        let Some(claim) = self.by_segment.get(segment) else { return true };
        let same = authority == Some(&claim.authority);
        if claim.proven { same && proven } else { same || proven }
    }

    /// Decides whether an authority, proved or absent, may have this id: an id in a proved claim belongs to the owner of that claim.
    pub(super) fn allow_subserver(&self, id: NodeId, proved: Option<&Authority>) -> bool {
        self.owners.get(&id).is_none_or(|owner| Some(owner) == proved)
    }

    /// Tells whether an id has a proved owner.
    pub(super) fn is_owned(&self, id: NodeId) -> bool {
        self.owners.contains_key(&id)
    }

    /// Enters a claim; tells whether anything changed.
    pub(super) fn enter(&mut self, claim: Claim) -> bool {
        if let Some(before) = self.by_segment.get(&claim.segment).filter(|before| before.subserver_id != claim.subserver_id) {
            self.owners.remove(&before.subserver_id);
        }
        if claim.proven {
            self.owners.insert(claim.subserver_id, claim.authority.clone());
        }
        self.by_segment.insert(claim.segment.clone(), claim.clone()) != Some(claim)
    }

    pub(super) fn release(&mut self, segment: &Segment) -> bool {
        let Some(claim) = self.by_segment.remove(segment) else { return false };
        self.owners.remove(&claim.subserver_id);
        true
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.by_segment.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_12_a_claim_is_read_as_it_was_written() {
        let authority = Authority::parse("dns:a.example").unwrap();
        let claim = Claim { segment: Segment::nearest("a"), authority, proven: true, subserver_id: NodeId::new(7) };
        assert_eq!(Claim::decode(claim.encode().as_bytes()), Ok(claim));
        assert!(Claim::decode(b"{}").is_err());
    }
}
