//! Records of approvals, operators and grants. Decides nothing and waits for nothing: a call needs only its own intent on the disk before
//! it leaves, and that follows these records.

use audit::hash::Hash;
use audit::record::{Asked, Changed, Decided, Record, Text};
use config::hex_digest;
use policy::approval::{Approval, Event, News, Standing};

use crate::judge::approvals::shown::name_of;
use crate::judge::approvals::{GrantShown, OperatorShown};
use crate::tree::gate::Recorder;

/// Records the news of an approval. The call's own entries tell the rest.
pub fn news(recorder: &Recorder, news: &News, approval: &Approval) {
    let challenge = &approval.challenge;
    let digest = Hash(challenge.statement().digest());
    let record = match news.event {
        Event::Requested => Record::ApprovalAsked(Asked {
            approval: Text::Borrowed(&challenge.id),
            causes: approval.causes.iter().map(|cause| Text::Borrowed(cause.as_str())).collect(),
            challenge: digest,
            expires: challenge.expires * 1_000_000,
            policy: Text::Borrowed(&challenge.call.policy),
            principal: Text::Borrowed(&challenge.call.caller),
            required: challenge.required,
            tool: Text::Borrowed(&challenge.call.tool),
        }),
        Event::Expiring | Event::Moved(Standing::Pending | Standing::Dispatched | Standing::Below | Standing::Done) => return,
        Event::Approved | Event::Moved(Standing::Released) => {
            let vote = approval.votes.last();
            Record::ApprovalDecided(Decided {
                by: vote.map(|vote| Text::Borrowed(vote.person.as_str())),
                key: vote.map(|vote| Text::Borrowed(vote.by.as_str())),
                proof: vote.and_then(|vote| hex_digest(&vote.proof).map(Hash)),
                ..decided(news, approval, digest)
            })
        }
        Event::Moved(Standing::Denied | Standing::Expired | Standing::Withdrawn | Standing::Void | Standing::OutcomeUnknown) => {
            Record::ApprovalDecided(decided(news, approval, digest))
        }
    };
    recorder.journal.append_for(&challenge.call.caller, &record);
}

fn decided<'a>(news: &News, approval: &'a Approval, challenge: Hash) -> Decided<'a> {
    Decided {
        approval: Text::Borrowed(approval.id()),
        by: None,
        challenge,
        decision: Text::Borrowed(name_of(news.event)),
        key: None,
        proof: None,
        reason: approval.reason.as_deref().map(Text::Borrowed),
        tool: Text::Borrowed(&approval.challenge.call.tool),
    }
}

/// Records a change of an operator's key (`what`: `enrolled`, `removed`).
pub fn operator(recorder: &Recorder, what: &str, operator: &OperatorShown) {
    let OperatorShown { id, name, passkey, .. } = operator;
    let kind = if *passkey { "passkey" } else { "key" };
    changed(recorder, "operators", id, format!("{what}: {kind} {id} of {name}"));
}

/// Records a change of a grant (`what`: `given`, `revoked`).
pub fn grant(recorder: &Recorder, what: &str, grant: &GrantShown) {
    let GrantShown { id, terms, given, .. } = grant;
    let by: Vec<&str> = given.iter().map(|vote| vote.person.as_str()).collect();
    changed(recorder, "grants", id, format!("{what}: {id} by {}: {} for {}", by.join(", "), terms.tool, terms.caller));
}

fn changed(recorder: &Recorder, what: &str, version: &str, line: String) {
    let lines = vec![Text::Owned(line)];
    recorder.journal.append(&Record::Changed(Changed { lines, version: Some(Text::Borrowed(version)), what: Text::Borrowed(what) }));
}
