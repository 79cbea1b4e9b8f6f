//! Tools of both ends of one link: words of the peer about tools, and the offers of this gate. Reads no frame and writes none.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axcp_proto::capability::offers::{OfferProof, PeerOffers};
use axcp_proto::capability::{CapabilityAck, CapabilityDescriptor, CapabilityKind, CapabilityMessage, CapabilityOffer};
use axcp_proto::envelope::ReceivedEnvelope;
use axcp_proto::error::AxcpError;
use axcp_proto::message::{EnvelopePayload, ErrorMessage, ToolOutcome, ToolResult};
use bytes::Bytes;
use call::words::party::Party;
use quinn::Connection;
use runtime::{clock, random};
use tokio::sync::mpsc;

use crate::answer::LinkAnswer;
use crate::section::{AxcpSettings, PeerSettings};
use crate::tools::ground::ToolGround;
use crate::tools::outgoing::{OutgoingCalls, PeerWord};
use crate::tools::served::ServedTools;
use crate::tools::shelf::PeerTools;
use crate::tools::signer::{NodeSigner, PeerProof};

/// Tools of both ends of a link.
pub(crate) struct LinkTools {
    peer: Arc<str>,
    ground: Arc<ToolGround>,
    pub(crate) served: Arc<ServedTools>,
    proof: PeerProof,
    signer: Option<NodeSigner>,
    /// Offers of the peer.
    offers: Mutex<PeerOffers>,
    /// Calls to the peer, once its stream is open.
    outgoing: OnceLock<Arc<OutgoingCalls>>,
    /// Number of tools that the peer has taken of the last list.
    accepted: Mutex<Option<usize>>,
}

/// Numbers of a link's tools, for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolCounts {
    /// Tools that the peer offers, and this gate has taken.
    pub(crate) offered: usize,
    /// Tools of this gate that the peer has taken; `None`: the peer has not said.
    pub(crate) accepted: Option<usize>,
    /// Answers of the peer to calls that nobody made.
    pub(crate) astray: u64,
}

impl LinkTools {
    /// Makes the tools of a new connection with a known peer.
    pub(crate) fn new(
        ground: &Arc<ToolGround>,
        settings: &AxcpSettings,
        peer: &PeerSettings,
        party: &Arc<Party>,
        connection: &Connection,
    ) -> Arc<Self> {
        let signer = if peer.tools.is_empty() { None } else { NodeSigner::read(&settings.certificate, &settings.key) };
        Arc::new(Self {
            peer: Arc::clone(&peer.id),
            ground: Arc::clone(ground),
            served: ServedTools::new(ground, &peer.id, party, &peer.tools),
            proof: PeerProof::of_connection(connection),
            signer,
            offers: Mutex::default(),
            outgoing: OnceLock::new(),
            accepted: Mutex::default(),
        })
    }

    /// Begins to call the peer's tools, with envelopes by way of `answers`.
    pub(crate) fn begin(&self, answers: &mpsc::Sender<LinkAnswer>) {
        let room = Arc::clone(&self.ground.outgoing);
        self.outgoing.get_or_init(|| OutgoingCalls::new(Arc::clone(&self.peer), answers.clone(), room));
    }

    /// Ends all calls, both ways, with the link.
    pub(crate) fn end_calls(&self) {
        self.served.withdraw_all();
        if let Some(outgoing) = self.outgoing.get() {
            self.ground.offers.hide(&self.peer, outgoing);
            outgoing.end_calls();
        }
    }

    pub(crate) fn counts(&self) -> ToolCounts {
        let offered = self.offers.lock().unwrap_or_else(PoisonError::into_inner).tools().len();
        let accepted = *self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        ToolCounts { offered, accepted, astray: self.outgoing.get().map_or(0, |outgoing| outgoing.astray()) }
    }

    /// Takes a word of the peer about tools. Gives the answer, if the word wants one at once.
    pub(crate) fn capability(&self, content: &Bytes, envelope: &ReceivedEnvelope) -> Result<Option<LinkAnswer>, AxcpError> {
        let trace_id = envelope.trace_id().to_owned();
        match CapabilityMessage::read(content)? {
            Some(CapabilityKind::Offer(offer)) => {
                let accepted = self.offered(*offer, envelope)?;
                let ack = |accepted| LinkAnswer::new(trace_id, CapabilityKind::Ack(CapabilityAck { accepted }).payload());
                Ok(accepted.map(ack))
            }
            Some(CapabilityKind::Request(_)) if !self.served.is_offering() => {
                Err(AxcpError::Unauthorized("this node offers you no tools: ask its operator for `tools`"))
            }
            Some(CapabilityKind::Request(request)) => {
                let place = self.served.take_place(content.len())?;
                Ok(Some(LinkAnswer { place: Some(place), ..LinkAnswer::offers(trace_id, without_repeats(request.ids)) }))
            }
            Some(CapabilityKind::Ack(ack)) => {
                *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(ack.accepted.len());
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Takes an offer, and shows the tools of a whole list. A gate without a mount for the peer takes none.
    fn offered(&self, offer: CapabilityOffer, envelope: &ReceivedEnvelope) -> Result<Option<Vec<String>>, AxcpError> {
        let offers = &self.ground.offers;
        if !offers.is_wanted(&self.peer) {
            return Ok(Some(Vec::new()));
        }
        let (wall, room) = (clock::wall() / 1000, offers.room(&self.peer));
        let proof = OfferProof { signer: self.proof.signer(envelope), session: &self.proof.session, wall, room };
        let mut known = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = known.take_offer(envelope.trace_id(), offer, &proof)?;
        if let (Some(_), Some(calls)) = (&accepted, self.outgoing.get()) {
            let tools = PeerTools { tools: Arc::clone(known.tools()), calls: Arc::clone(calls), held: known.held() };
            offers.show(&self.peer, tools);
        }
        Ok(accepted)
    }

    /// Takes the peer's word about a call of ours. A word about another call is no word.
    pub(crate) fn result(&self, trace_id: &str, result: ToolResult) {
        let is_news = result.outcome == i32::from(ToolOutcome::Waiting);
        let word = if is_news { PeerWord::Waits } else { PeerWord::Result(result.result) };
        if let Some(outgoing) = self.outgoing.get()
            && !outgoing.hear(trace_id, word)
        {
            tracing::debug!(peer = %self.peer, "the peer answers a call that nobody makes");
        }
    }

    /// Takes a refusal of a call of ours. Tells if there is such a call.
    pub(crate) fn refused(&self, trace_id: &str, code: u32, reason: &str) -> bool {
        let refused = ErrorMessage { code, reason: reason.to_owned(), diagnostics: Bytes::new() };
        !trace_id.is_empty()
            && self
                .outgoing
                .get()
                .is_some_and(|outgoing| outgoing.is_under_way(trace_id) && outgoing.hear(trace_id, PeerWord::Refused(refused)))
    }

    /// Makes the offers of the tools of `ids`, or of all tools. An id without a tool is refused. `None`: the tools cannot be listed.
    pub(crate) async fn make_offers(&self, ids: &[String]) -> Option<Vec<EnvelopePayload>> {
        let Some(signer) = &self.signer else {
            let words = "this node has no key that signs offers: its operator gives it a certificate with a P-256 or an Ed25519 key";
            tracing::warn!(peer = %self.peer, "tools are not offered: the certificate of [axcp] needs a P-256 or an Ed25519 key");
            return Some(vec![EnvelopePayload::Error(AxcpError::Unauthorized(words).message())]);
        };
        let tools = self.served.describe().await?;
        let size = u32::try_from(tools.len()).unwrap_or(u32::MAX);
        let (created_ms, session) = (clock::wall() / 1000, Bytes::copy_from_slice(&self.proof.session));
        let offer = |desc: Option<CapabilityDescriptor>, list_size| {
            let sender_did = signer.key.did().to_owned();
            CapabilityKind::Offer(Box::new(CapabilityOffer { desc, sender_did, created_ms, session: session.clone(), list_size })).payload()
        };
        if ids.is_empty() && tools.is_empty() {
            return Some(vec![offer(None, 0)]);
        }
        if ids.is_empty() {
            return Some(tools.into_iter().map(|tool| offer(Some(tool), size)).collect());
        }
        let wanted = ids.iter().map(|id| match tools.iter().find(|tool| tool.tool_id == *id) {
            Some(tool) => offer(Some(tool.clone()), 0),
            None => EnvelopePayload::Error(AxcpError::Tool.message()),
        });
        Some(wanted.collect())
    }

    /// Signs the envelope of an offer.
    pub(crate) fn sign(&self, signed: &[u8]) -> Bytes {
        self.signer.as_ref().map_or_else(Bytes::new, |signer| signer.sign(signed))
    }
}

/// Keeps the first of equal ids.
fn without_repeats(mut ids: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    ids
}

/// Draws a trace id for a list of offers that nobody asked for.
pub(crate) fn list_id() -> String {
    random::token()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xc_21_repeated_ids_are_answered_once() {
        let ids = ["b", "a", "b", "", "a"].map(str::to_owned).to_vec();
        assert_eq!(without_repeats(ids), ["b", "a", ""]);
    }
}
