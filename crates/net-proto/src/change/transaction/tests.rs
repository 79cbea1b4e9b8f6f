//! Answers of a device that say less than they seem to.

use super::*;

const OLD: &str = "hostname old\nend\n";
const NEW: &str = "hostname new\nend\n";

fn record(phase: Phase, now: &Now) -> ChangeRecord {
    let (id, owner, base) = ("r1-1".to_owned(), "mcp".to_owned(), revision(OLD));
    let (candidate, snapshot) = (NEW.to_owned(), Some(OLD.to_owned()));
    let (deadline, persist) = (Some(Deadline::after(now, 60_000)), Some("p".to_owned()));
    let (form, commands, hash, reason) = (crate::change::ConfigForm::default(), Vec::new(), String::new(), None);
    let change = DeviceChange {
        id,
        owner,
        phase,
        lease: 0,
        base,
        candidate,
        form,
        persist,
        commands,
        hash,
        deadline,
        snapshot,
        reason,
        failures: 0,
    };
    ChangeRecord { count: 1, change: Some(change) }
}

fn phase(transaction: &Transaction) -> Option<Phase> {
    transaction.record().change.as_ref().map(|change| change.phase)
}

fn refusal(code: Code) -> StepResult {
    StepResult::Failed(Fault::new(code, "refused"))
}

#[test]
fn nm_09_a_refused_first_confirmation_keeps_nothing() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    let mut first = Transaction::confirm(&record(Phase::Applied, &now), &now).unwrap();
    first.hear(StepResult::Done, &now);
    first.hear(refusal(Code::InvalidParams), &now);
    first.hear(StepResult::Running(NEW.to_owned()), &now);
    assert_eq!(phase(&first), Some(Phase::Applied));
    // The same answer to a second one says that the first arrived.
    let mut second = Transaction::settle(record(Phase::Confirming, &now));
    second.hear(refusal(Code::InvalidParams), &now);
    second.hear(StepResult::Running(NEW.to_owned()), &now);
    assert_eq!(phase(&second), Some(Phase::Confirmed));
}

#[test]
fn nm_09_an_unanswered_commit_is_cancelled_whatever_runs() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    for (code, is_cancelled) in [(Code::Timeout, true), (Code::ConfigIncompatible, false)] {
        let mut commit = Transaction { window: 60_000, ..Transaction::new(record(Phase::Armed, &now), ChangeStep::Apply) };
        commit.hear(refusal(code), &now);
        commit.hear(StepResult::Running(OLD.to_owned()), &now);
        commit.hear(StepResult::Done, &now);
        assert_eq!(commit.step == ChangeStep::Restore, is_cancelled, "{code:?}");
    }
}
