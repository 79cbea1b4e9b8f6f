//! Offers of a peer: which count, and which are forged or stale. Checks no signature: the driver says if one holds.
//!
//! An offer counts by the key of the peer's certificate, for this connection, and never behind a newer one: an offer from another
//! connection, of another node or from an earlier list is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::capability::{CapabilityDescriptor, CapabilityOffer, MOST_TOOLS};
use crate::error::AxcpError;

/// Bytes of the offers of one peer.
pub const MOST_OFFERED: usize = 4 * 1024 * 1024;
/// Milliseconds by which the clock of a peer may differ.
pub const MOST_SKEW: u64 = 300_000;

/// Tools of a peer, by their ids.
pub type OfferedTools = BTreeMap<String, Arc<CapabilityDescriptor>>;

/// Circumstances of an offer, as the receiver knows them.
#[derive(Debug, Clone, Copy)]
pub struct OfferProof<'a> {
    /// Name of the key in the peer's certificate, where that key signed the envelope.
    pub signer: Option<&'a str>,
    /// Id of the connection.
    pub session: &'a [u8],
    /// Milliseconds since 1970.
    pub wall: u64,
    /// Bytes that the receiver has left for the peer.
    pub room: usize,
}

/// Offers of one peer on one connection.
#[derive(Debug, Default)]
pub struct PeerOffers {
    tools: Arc<OfferedTools>,
    newest: u64,
    coming: Option<ComingList>,
}

/// A list whose offers have not all come.
#[derive(Debug)]
struct ComingList {
    trace_id: String,
    created: u64,
    /// Offers still to come.
    left: u32,
    tools: OfferedTools,
    bytes: usize,
}

impl PeerOffers {
    /// Gives the tools of the last whole list.
    pub fn tools(&self) -> &Arc<OfferedTools> {
        &self.tools
    }

    /// Gives the bytes of the last whole list.
    pub fn held(&self) -> usize {
        held(&self.tools)
    }

    /// Takes an offer in an envelope with `trace_id`. Gives the ids of the taken tools once their list is whole; a tool that was refused
    /// is none of them.
    ///
    /// # Errors
    /// When the offer is forged or stale, or its descriptor breaks a bound. A refused descriptor leaves the rest of its list as it is.
    pub fn take_offer(&mut self, trace_id: &str, offer: CapabilityOffer, proof: &OfferProof<'_>) -> Result<Option<Vec<String>>, AxcpError> {
        self.judge(&offer, proof)?;
        if offer.list_size == 0 {
            return self.take_single(offer, proof).map(Some);
        }
        if usize::try_from(offer.list_size).map_or(true, |size| size > MOST_TOOLS) {
            return Err(AxcpError::TooLarge { what: "the tools in a list", most: MOST_TOOLS });
        }
        if self.coming.as_ref().is_none_or(|coming| coming.trace_id != trace_id || coming.created != offer.created_ms) {
            let (tools, bytes) = (OfferedTools::new(), 0);
            let (trace_id, created, left) = (trace_id.to_owned(), offer.created_ms, offer.list_size);
            self.coming = Some(ComingList { trace_id, created, left, tools, bytes });
        }
        let Some(coming) = &mut self.coming else { return Ok(None) };
        coming.left = coming.left.saturating_sub(1);
        let taken = offer.desc.map_or(Ok(()), |desc| coming.add(desc, proof.room));
        if coming.left == 0
            && let Some(whole) = self.coming.take()
        {
            self.newest = whole.created;
            self.tools = Arc::new(whole.tools);
            // The refusal of the last descriptor is told by its absence: the list counts without it.
            return Ok(Some(self.tools.keys().cloned().collect()));
        }
        taken.map(|()| None)
    }

    /// Takes an offer without a list: a tool more, another descriptor of a tool, or an empty list.
    fn take_single(&mut self, offer: CapabilityOffer, proof: &OfferProof<'_>) -> Result<Vec<String>, AxcpError> {
        let Some(desc) = offer.desc else {
            self.newest = offer.created_ms;
            self.tools = Arc::default();
            return Ok(Vec::new());
        };
        let mut tools = OfferedTools::clone(&self.tools);
        tools.remove(&desc.tool_id);
        let (bytes, id) = (held(&tools), desc.tool_id.clone());
        let mut list = ComingList { trace_id: String::new(), created: offer.created_ms, left: 0, tools, bytes };
        list.add(desc, proof.room)?;
        self.newest = list.created;
        self.tools = Arc::new(list.tools);
        Ok(vec![id])
    }

    /// Judges the origin and the age of an offer.
    fn judge(&self, offer: &CapabilityOffer, proof: &OfferProof<'_>) -> Result<(), AxcpError> {
        if proof.signer.is_none_or(|signer| signer != offer.sender_did) {
            return Err(AxcpError::Unauthorized(
                "the offer is not signed by the key of the sender's certificate: sign the envelope with it",
            ));
        }
        if offer.session != Bytes::copy_from_slice(proof.session) {
            return Err(AxcpError::Unauthorized("the offer was made for another connection: make a new one"));
        }
        if offer.created_ms.abs_diff(proof.wall) > MOST_SKEW {
            return Err(AxcpError::Unauthorized("the offer is more than five minutes old, or ahead: set the clock, and make a new one"));
        }
        let newest = self.coming.as_ref().map_or(self.newest, |coming| coming.created.max(self.newest));
        if offer.created_ms < newest {
            return Err(AxcpError::Unauthorized("a newer offer has come before: make a new one"));
        }
        Ok(())
    }
}

impl ComingList {
    fn add(&mut self, desc: CapabilityDescriptor, room: usize) -> Result<(), AxcpError> {
        desc.check()?;
        let size = desc.held();
        if self.bytes + size > room.min(MOST_OFFERED) || self.tools.len() >= MOST_TOOLS {
            return Err(AxcpError::TooLarge { what: "the bytes of a node's offers", most: room.min(MOST_OFFERED) });
        }
        if self.tools.contains_key(&desc.tool_id) {
            return Err(AxcpError::Malformed("a list offers one tool twice"));
        }
        self.bytes += size;
        self.tools.insert(desc.tool_id.clone(), Arc::new(desc));
        Ok(())
    }
}

fn held(tools: &OfferedTools) -> usize {
    tools.values().map(|desc| desc.held()).sum()
}

#[cfg(test)]
mod tests {
    use crate::capability::{CapabilityKind, CapabilityMessage};
    use crate::message::EnvelopePayload;

    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn proof() -> OfferProof<'static> {
        OfferProof { signer: Some("did:key:z1"), session: b"session", wall: NOW, room: usize::MAX }
    }

    fn desc(id: &str) -> CapabilityDescriptor {
        CapabilityDescriptor { tool_id: id.into(), input_schema: "{}".into(), ..CapabilityDescriptor::default() }
    }

    fn offer(id: &str, list_size: u32) -> CapabilityOffer {
        CapabilityOffer {
            desc: (!id.is_empty()).then(|| desc(id)),
            sender_did: "did:key:z1".into(),
            created_ms: NOW,
            session: Bytes::from_static(b"session"),
            list_size,
        }
    }

    #[test]
    fn xc_20_a_list_counts_once_it_is_whole() {
        let mut offers = PeerOffers::default();
        assert_eq!(offers.take_offer("t", offer("a", 2), &proof()), Ok(None));
        assert!(offers.tools().is_empty());
        assert_eq!(offers.take_offer("t", offer("b", 2), &proof()), Ok(Some(vec!["a".into(), "b".into()])));
        assert_eq!(offers.take_offer("u", offer("c", 1), &proof()), Ok(Some(vec!["c".into()])));
        assert_eq!(offers.tools().keys().collect::<Vec<_>>(), ["c"]);
        assert_eq!(offers.take_offer("v", offer("d", 0), &proof()), Ok(Some(vec!["d".into()])));
        assert_eq!(offers.tools().len(), 2, "an offer without a list adds a tool");
        assert_eq!(offers.take_offer("w", offer("", 0), &proof()), Ok(Some(Vec::new())));
        assert_eq!((offers.tools().len(), offers.held()), (0, 0));
    }

    #[test]
    fn xc_20_a_forged_offer_is_refused() {
        let mut offers = PeerOffers::default();
        let unsigned = OfferProof { signer: None, ..proof() };
        let another = OfferProof { signer: Some("did:key:z2"), ..proof() };
        let elsewhere = OfferProof { session: b"another", ..proof() };
        for forged in [unsigned, another, elsewhere] {
            let refused = offers.take_offer("t", offer("a", 1), &forged).unwrap_err();
            assert_eq!(refused.code().number(), 2, "{forged:?}");
        }
        assert!(offers.tools().is_empty());
    }

    #[test]
    fn xc_20_a_stale_offer_is_refused() {
        let mut offers = PeerOffers::default();
        for wall in [NOW + MOST_SKEW + 1, NOW - MOST_SKEW - 1] {
            let refused = offers.take_offer("t", offer("a", 1), &OfferProof { wall, ..proof() }).unwrap_err();
            assert_eq!(refused.code().number(), 2);
        }
        offers.take_offer("t", offer("a", 1), &proof()).unwrap();
        let old = CapabilityOffer { created_ms: NOW - 1, ..offer("b", 1) };
        assert_eq!(offers.take_offer("u", old.clone(), &proof()).unwrap_err().code().number(), 2);
        assert_eq!(offers.take_offer("u", CapabilityOffer { list_size: 0, ..old }, &proof()).unwrap_err().code().number(), 2);
        assert_eq!(offers.tools().keys().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn xc_20_a_bad_descriptor_spoils_no_other() {
        let mut offers = PeerOffers::default();
        let bad = CapabilityOffer { desc: Some(CapabilityDescriptor { input_schema: "7".into(), ..desc("bad") }), ..offer("", 3) };
        assert_eq!(offers.take_offer("t", offer("a", 3), &proof()), Ok(None));
        assert_eq!(offers.take_offer("t", bad, &proof()).unwrap_err().code().number(), 8);
        assert_eq!(offers.take_offer("t", offer("a", 3), &proof()), Ok(Some(vec!["a".into()])), "one tool twice counts once");
    }

    #[test]
    fn xc_20_a_long_descriptor_spoils_no_other() {
        let mut offers = PeerOffers::default();
        let description = "x".repeat(crate::capability::MOST_DESCRIPTOR);
        let long = CapabilityOffer { desc: Some(CapabilityDescriptor { description, ..desc("long") }), ..offer("", 2) };
        let EnvelopePayload::Capability(content) = CapabilityKind::Offer(Box::new(long)).payload() else { panic!("no capability") };
        let Ok(Some(CapabilityKind::Offer(long))) = CapabilityMessage::read(&content) else { panic!("not read") };
        assert_eq!(offers.take_offer("t", *long, &proof()).unwrap_err().code().number(), 7);
        assert_eq!(offers.take_offer("t", offer("a", 2), &proof()), Ok(Some(vec!["a".into()])));
    }

    #[test]
    fn xc_20_the_offers_of_a_peer_are_bounded() {
        let mut offers = PeerOffers::default();
        assert_eq!(offers.take_offer("t", offer("a", u32::MAX), &proof()).unwrap_err().code().number(), 7);
        let long = |id: &str, size| CapabilityOffer {
            desc: Some(CapabilityDescriptor { description: "x".repeat(60_000), ..desc(id) }),
            ..offer("", size)
        };
        let taken = (0..100).filter(|number| offers.take_offer("t", long(&number.to_string(), 100), &proof()).is_ok()).count();
        assert!(taken < 75 && offers.held() <= MOST_OFFERED && offers.held() > MOST_OFFERED / 2, "{taken}");
        let crowded = OfferProof { room: 10, ..proof() };
        assert_eq!(PeerOffers::default().take_offer("t", long("a", 0), &crowded).unwrap_err().code().number(), 7);
        for number in 0..MOST_TOOLS {
            offers.take_offer("u", offer(&number.to_string(), u32::try_from(MOST_TOOLS).unwrap()), &proof()).unwrap();
        }
        assert_eq!(offers.take_offer("v", offer("more", 0), &proof()).unwrap_err().code().number(), 7);
    }
}
