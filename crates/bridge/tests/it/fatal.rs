//! Meaning that a binding cannot express: nothing comes out, and the answer says so. No loss here is a mere warning.

use std::borrow::Cow;

use bridge::{BindingId, BridgeError, BridgeProblem, CanonicalField, Hop, translate};

use crate::invented::hop;

fn refused(from: BindingId, to: BindingId, text: &str) -> BridgeError {
    let given = Hop { id: Some(Cow::Borrowed(b"1")), envelope: hop().envelope, ..Hop::default() };
    translate((from, to), text.as_bytes(), &given, |_| {}).err().unwrap_or_else(|| panic!("translated: {text}"))
}

#[test]
fn ae_15_a_fatal_loss_leaves_nothing_to_send() {
    let working = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"}}}}"#;
    let silent = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}}"#;
    let failed = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let cancel = r#"{"jsonrpc":"2.0","id":1,"method":"CancelTask","params":{"id":"t"}}"#;
    let image = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"AA=="}]}}}"#;
    let (a2a, mcp, uacp, ainp) = (BindingId::A2a, BindingId::Mcp, BindingId::Uacp, BindingId::Ainp);
    for (from, to, text, field, path) in [
        (a2a, mcp, working, CanonicalField::State, "/result/task/status/state"),
        (a2a, mcp, silent, CanonicalField::Op, "op"),
        (mcp, a2a, failed, CanonicalField::Task, "task"),
        (mcp, a2a, ping, CanonicalField::Kind, "/method"),
        (a2a, uacp, silent, CanonicalField::Op, "op"),
        (a2a, uacp, cancel, CanonicalField::Kind, "/method"),
        (a2a, ainp, cancel, CanonicalField::Kind, "/method"),
        (a2a, ainp, image, CanonicalField::Op, "op"),
        (mcp, ainp, ping, CanonicalField::Kind, "/method"),
    ] {
        let error = refused(from, to, text);
        let BridgeError::SemanticLoss(loss) = &error else { panic!("{error}") };
        assert_eq!((loss.field, loss.path), (field, path));
        let problem = BridgeProblem::from(&error);
        assert_eq!((problem.status, problem.code), (422, "semantic_loss"));
    }
}

#[test]
fn ae_04_a_binding_without_a_codec_has_no_path() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let problem = BridgeProblem::from(&refused(BindingId::Mcp, BindingId::Slim, ping));
    let expected =
        r#"{"title":"No translation is known","status":404,"code":"no_translation_path","detail":"no translation is known for slim-v1"}"#;
    assert_eq!(String::from_utf8(problem.document()).unwrap(), expected);
    assert_eq!(BindingId::pairs().count(), 12, "every ordered pair of the four others");
}
