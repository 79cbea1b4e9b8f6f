//! No silent loss: whatever is written is read again, but for what was reported as dropped.

use bridge::{BindingId, BridgeError, CanonicalField, CanonicalMessage, Loss, LossFate, MessageKind, WorkState, decode, encode};
use proptest::prelude::*;

use crate::invented::{hop, message};

/// The message without what a report names as dropped.
fn minus<'a>(message: &CanonicalMessage<'a>, losses: &[Loss]) -> CanonicalMessage<'a> {
    let mut left = message.clone();
    for loss in losses.iter().filter(|loss| loss.fate == LossFate::Dropped) {
        assert_eq!(loss.field, CanonicalField::PushSecret, "nothing else is ever dropped");
        left.wants.push_secret = false;
    }
    left
}

/// The messages that a binding cannot say.
fn is_unspeakable(binding: BindingId, message: &CanonicalMessage<'_>) -> bool {
    match (binding, message.kind) {
        (BindingId::A2a, MessageKind::Probe) => true,
        (BindingId::Ainp, kind) => matches!(kind, MessageKind::Cancel | MessageKind::Probe),
        (BindingId::Uacp, kind) => kind == MessageKind::Cancel,
        (BindingId::Mcp, MessageKind::Response) => matches!(message.state, Some(WorkState::Submitted | WorkState::Working)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn ae_15_what_is_written_is_read_again_but_for_reported_losses(message in message()) {
        for binding in BindingId::ALL.into_iter().filter(|binding| binding.has_codec()) {
            match encode(binding, &message, &hop()) {
                Ok(sent) => {
                    let found = decode(binding, &sent.text).map_err(|error| TestCaseError::fail(format!("{error}: {}", String::from_utf8_lossy(&sent.text))))?;
                    prop_assert_eq!(&found.message, &minus(&message, &sent.losses), "{}", String::from_utf8_lossy(&sent.text));
                }
                Err(BridgeError::SemanticLoss(_)) => prop_assert!(is_unspeakable(binding, &message)),
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }

    #[test]
    fn ae_15_a_message_comes_back_over_every_ordered_pair(message in message()) {
        for (from, to) in BindingId::pairs() {
            let Ok(sent) = encode(from, &message, &hop()) else { continue };
            let there = decode(from, &sent.text).unwrap();
            let Ok(crossed) = encode(to, &there.message, &hop()) else {
                prop_assert!(is_unspeakable(to, &message));
                continue;
            };
            let back = decode(to, &crossed.text).unwrap();
            let again = encode(from, &back.message, &hop()).unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&again.text), String::from_utf8_lossy(&sent.text));
        }
    }

    #[test]
    fn ae_15_no_warning_holds_content(mut message in message()) {
        message.op = Some(bridge::QuotedText::quote("CANARY"));
        message.trail.ects = vec![bridge::QuotedText::quote("CANARY")];
        for binding in BindingId::ALL {
            let told = match encode(binding, &message, &hop()) {
                Ok(sent) => bridge::warnings(&sent.losses).concat() + &format!("{:?}", sent.losses),
                Err(error) => error.to_string(),
            };
            prop_assert!(!told.contains("CANARY"));
        }
    }
}
