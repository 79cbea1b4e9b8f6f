//! The record of refused confirmations. Decides about none.

use audit::record::{Intent, Refused, Text};
use banyan_model::Era;
use policy::approval::{Confirm, Refusal};
use runtime::clock;
use store::Way;

use crate::judge::gate::Gate;
use crate::way::error::CallError;

/// Records a refused confirmation. `principal` is empty if unknown. Confirmations of unknown ids are not recorded, since anybody can make
/// up ids by the thousand.
pub fn unconfirmed(gate: &Gate, id: &str, principal: &str, why: &Refusal) {
    if !gate.rules.approvals.may_know(id) && gate.rules.approvals.below.find(id).is_none() {
        return;
    }
    let journal = &gate.record.journal;
    let way = journal.count_refusal(principal, why.reason());
    if way == Way::Counted {
        return;
    }
    let intent = Intent {
        approval: Some(Text::Borrowed(id)),
        began: clock::wall(),
        call: Text::Owned(journal.ids().spelled(journal.ids().next_call())),
        method: Text::Borrowed(Confirm::METHOD),
        principal: Text::Borrowed(principal),
        request: Text::Borrowed("null"),
        ..Intent::default()
    };
    let code = CallError::Approval(why.clone()).tell(Era::Stateless).code;
    let refused = Refused { code, count: None, intent, reason: Text::Borrowed(why.reason()), rules: Vec::new() };
    journal.refuse(way, store::Refusal::Call(refused));
}
