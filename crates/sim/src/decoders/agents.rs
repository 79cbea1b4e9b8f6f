//! Checks for what agents send: capability documents, cards, and answers. Knows no connection.

use agent_proto::capability::constraints::{AssuranceLevel, NodeConstraints, ProtocolSecurity};
use agent_proto::capability::document::CapabilityDocument;
use agent_proto::capability::lifecycle::Lifecycle;
use agent_proto::capability::negotiation::{NegotiatingParty, negotiate};
use agent_proto::card::{AgentCard, Binding};
use agent_proto::fault::AgentFault;
use agent_proto::operation::AgentRequest;
use agent_proto::part::MessagePart;
use agent_proto::turn::AgentTurn;

/// Most bytes of a turn here.
const MOST: usize = 1 << 20;

/// A capability document is read or refused, and kept unchanged. An agent in negotiation with its like loses no protocol and is never weaker
/// than its own demands. A kept life is written as read.
pub(super) fn capabilities(data: &[u8]) {
    if let Ok(life) = Lifecycle::read(data) {
        assert_eq!(Lifecycle::read(life.write().as_bytes()), Ok(life.clone()));
        assert!(life.fields().iter().all(|(_, value)| value.bytes().all(|byte| (b' '..=b'~').contains(&byte))));
    }
    if let Ok(constraints) = NodeConstraints::read(data) {
        assert_eq!(constraints.stricter(&constraints), constraints);
    }
    let Ok(document) = CapabilityDocument::read(data) else { return };
    assert_eq!(document.raw, data);
    let peer = NegotiatingParty::new(&document);
    let own = NegotiatingParty { least_security: ProtocolSecurity::Tls13, least_assurance: AssuranceLevel::L2, ..peer.clone() };
    let outcome = negotiate(&own, &peer);
    let chosen = if outcome.chosen.is_ok() { 2 } else { 0 };
    assert_eq!(outcome.rejected.len() + chosen, 2 * document.protocols.len());
    assert!(
        outcome.chosen.is_ok_and(|chosen| chosen.security >= own.least_security && own.assurance >= own.least_assurance) || chosen == 0
    );
}

/// A card is read or refused, and what is chosen is one of its interfaces.
pub(super) fn card(data: &[u8]) {
    let Ok(card) = AgentCard::read(data) else { return };
    let held: usize = card.skills.iter().map(|skill| skill.tags.iter().chain(&skill.examples).map(String::len).sum::<usize>()).sum();
    assert!(held <= data.len(), "a card holds more than its text");
    assert!(!card.name.is_empty() && card.skills.iter().all(|skill| !skill.id.is_empty()));
    if let Ok((interface, binding)) = card.choose() {
        assert!(card.interfaces.contains(interface) && interface.binding == binding.name());
        assert!(card.required.is_none());
    }
}

/// Answers, one on each line: a turn holds no more than it may, and every part that it holds can be written and read again.
pub(super) fn turn(data: &[u8]) {
    let mut turn = AgentTurn::new(MOST, None, None);
    for line in data.split(|byte| *byte == b'\n') {
        let answer = AgentRequest::read(Binding::JsonRpc, 200, 1, line).unwrap_or(line);
        if turn.handle_reply(answer).is_err() && turn.handle_task(answer).is_err() {
            assert!(AgentFault::from_rest(line).message.chars().count() <= 2_000);
        }
    }
    let parts = turn.artifacts().iter().flat_map(|artifact| &artifact.parts).chain(turn.words());
    for part in parts {
        let mut text = String::new();
        part.write(&mut text);
        assert_eq!(MessagePart::read(text.as_bytes()).as_ref(), Some(part));
    }
}
