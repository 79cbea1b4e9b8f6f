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
        start: None,
        failures: 0,
        is_unanswered: false,
    };
    ChangeRecord { count: 1, change: Some(change), kept: None, unsaved: None }
}

fn phase(transaction: &Transaction) -> Option<Phase> {
    transaction.record().change.as_ref().map(|change| change.phase)
}

/// A confirmation of a healthy device.
fn confirmation(record: &ChangeRecord, now: &Now) -> Transaction {
    let mut begun = Transaction::confirm(record, None, now).unwrap();
    assert!(matches!(begun.want(), Want::CheckAgain(_)));
    begun.hear(StepResult::Done, now);
    begun
}

fn refusal(code: Code) -> StepResult {
    StepResult::Failed(Fault::new(code, "refused"))
}

#[test]
fn nm_09_a_refused_first_confirmation_keeps_nothing() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    let mut first = confirmation(&record(Phase::Applied, &now), &now);
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

#[test]
fn nm_09_a_commit_that_nobody_answered_keeps_a_deadline() {
    let at = |seconds: u64| Now { wall: seconds * 1000, boot: "b".to_owned(), up: seconds * 1000 };
    let (sent, later) = (at(1), at(100));
    let mut commit = Transaction { window: 60_000, ..Transaction::new(record(Phase::Armed, &sent), ChangeStep::Apply) };
    commit.hear(refusal(Code::Timeout), &at(61));
    commit.hear(StepResult::Running(OLD.to_owned()), &at(61));
    commit.hear(StepResult::Done, &at(61));
    // The device knows of no commit yet: it has not begun.
    commit.hear(refusal(Code::InvalidParams), &at(61));
    commit.hear(StepResult::Running(OLD.to_owned()), &at(61));
    assert_eq!(phase(&commit), Some(Phase::RollingBack));
    let kept = commit.record().clone();
    assert!(kept.due(&at(61)).is_some());
    commit.hear(StepResult::Done, &at(61));
    assert_eq!(commit.finish().map_err(|fault| fault.code), Err(Code::Timeout));
    // A look before the deadline ends nothing, and one after the deadline does.
    for (now, ended) in [(later, Phase::RollingBack), (at(121), Phase::RolledBack)] {
        let mut look = Transaction::roll_back(kept.clone(), Reason::Timeout).unwrap();
        look.hear(StepResult::Done, &now);
        assert_eq!(look.want(), Want::Restore(OLD));
        look.hear(refusal(Code::InvalidParams), &now);
        look.hear(StepResult::Running(OLD.to_owned()), &now);
        assert_eq!(phase(&look), Some(ended));
    }
    // A device that has taken it back does not begin any more.
    let mut look = Transaction::roll_back(kept, Reason::Timeout).unwrap();
    look.hear(StepResult::Done, &at(62));
    look.hear(StepResult::Done, &at(62));
    look.hear(StepResult::Running(OLD.to_owned()), &at(62));
    assert_eq!(phase(&look), Some(Phase::RolledBack));
}

#[test]
fn nm_09_a_commit_whose_sender_died_keeps_a_deadline() {
    let at = |seconds: u64| Now { wall: seconds * 1000, boot: "b".to_owned(), up: seconds * 1000 };
    let armed = record(Phase::Armed, &at(1));
    let end = armed.change.as_ref().and_then(|change| change.deadline.clone()).unwrap().left(&at(0)) / 1000;
    for (now, ended) in [(at(2), Phase::RollingBack), (at(end + 1), Phase::RolledBack)] {
        let mut look = Transaction::roll_back(armed.clone(), Reason::Interrupted).unwrap();
        look.hear(StepResult::Done, &now);
        assert_eq!(look.want(), Want::Restore(OLD), "what the device has not begun is withdrawn first");
        look.hear(refusal(Code::InvalidParams), &now);
        look.hear(StepResult::Running(OLD.to_owned()), &now);
        assert_eq!(phase(&look), Some(ended));
    }
}

#[test]
fn nm_09_a_device_that_is_away_has_failed_nothing() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    let mut commit = Transaction { window: 60_000, ..Transaction::new(record(Phase::Armed, &now), ChangeStep::Apply) };
    commit.hear(refusal(Code::Unreachable), &now);
    commit.hear(refusal(Code::Unreachable), &now);
    commit.hear(StepResult::Done, &now);
    while !matches!(commit.want(), Want::Keep(_)) {
        commit.hear(refusal(Code::Unreachable), &now);
    }
    assert_eq!(phase(&commit), Some(Phase::RollingBack));
    commit.hear(StepResult::Done, &now);
    assert_eq!(commit.finish().map_err(|fault| fault.code), Err(Code::Unreachable));
}

#[test]
fn nm_09_what_somebody_else_replaced_ends_as_overtaken() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    let foreign = || StepResult::Overtaken("somebody else's".to_owned());
    for (shown, ended) in [
        (StepResult::Running("other\n".to_owned()), Phase::Overtaken),
        (foreign(), Phase::Overtaken),
        (StepResult::Running(OLD.to_owned()), Phase::RolledBack),
    ] {
        let mut back = Transaction::roll_back(record(Phase::Applied, &now), Reason::Timeout).unwrap();
        back.hear(StepResult::Done, &now);
        back.hear(foreign(), &now);
        assert_eq!(back.want(), Want::Restore(OLD));
        back.hear(foreign(), &now);
        back.hear(shown, &now);
        assert_eq!(phase(&back), Some(ended));
        back.hear(StepResult::Done, &now);
        assert!(back.record().live().is_none());
        let confirmation = Transaction::confirm(back.record(), None, &now).err().map(|fault| fault.code);
        assert_eq!(confirmation, Some(if ended == Phase::Overtaken { Code::InvalidParams } else { Code::ConfirmedCommitTimeout }));
        assert_eq!(back.finish().is_err(), ended == Phase::Overtaken);
    }
}

#[test]
fn nm_09_a_refused_confirmation_stays_refused_when_unread() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    for shown in [refusal(Code::AccessDenied), StepResult::Running("other\n".to_owned())] {
        let mut applied = record(Phase::Applied, &now);
        applied.change.as_mut().unwrap().form = crate::change::ConfigForm::Text;
        let mut first = confirmation(&applied, &now);
        first.hear(StepResult::Done, &now);
        first.hear(refusal(Code::InvalidParams), &now);
        first.hear(shown, &now);
        assert_eq!(phase(&first), Some(Phase::Applied));
    }
    // Nor does a second answer keep a text that does not run.
    let mut waiting = record(Phase::Confirming, &now);
    waiting.change.as_mut().unwrap().form = crate::change::ConfigForm::Text;
    let mut second = Transaction::settle(waiting);
    second.hear(refusal(Code::InvalidParams), &now);
    second.hear(StepResult::Running("other\n".to_owned()), &now);
    assert_eq!(phase(&second), Some(Phase::Applied));
}

/// An applied change of a device without a timer.
fn untimed(now: &Now) -> ChangeRecord {
    let mut record = record(Phase::Applied, now);
    record.change.iter_mut().for_each(|change| (change.persist, change.hash) = (None, "h1".to_owned()));
    record
}

#[test]
fn nm_09_a_restarted_device_is_not_confirmed() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    let mut confirmation = confirmation(&untimed(&now), &now);
    assert_eq!(confirmation.want(), Want::Read);
    confirmation.hear(StepResult::Running(OLD.to_owned()), &now);
    assert_eq!(phase(&confirmation), Some(Phase::RolledBack));
    assert!(matches!(confirmation.want(), Want::Keep(_)));
    confirmation.hear(StepResult::Done, &now);
    let fault = confirmation.finish().unwrap_err();
    assert!(fault.code == Code::ConfirmedCommitTimeout && fault.detail.contains("nothing is left to take back"), "{fault}");
}

#[test]
fn nm_09_drift_is_not_confirmed_and_keeps_its_deadline() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    for shown in [StepResult::Running("hostname other\nend\n".to_owned()), refusal(Code::Unreachable)] {
        let mut confirmation = confirmation(&untimed(&now), &now);
        confirmation.hear(shown, &now);
        assert_eq!(confirmation.want(), Want::End);
        assert_eq!(confirmation.record(), &untimed(&now), "what is on the disk restores the device");
        let fault = confirmation.finish().unwrap_err();
        assert!(
            fault.code == Code::Unreachable || fault.detail.starts_with("drift: ") && fault.detail.contains("hostname other"),
            "{fault}"
        );
    }
}

#[test]
fn nm_09_a_read_past_the_deadline_confirms_nothing() {
    let (now, later) = (Now { wall: 1, boot: "b".to_owned(), up: 1 }, Now { wall: 60_001, boot: "b".to_owned(), up: 60_001 });
    for (at, is_kept) in [(&now, true), (&later, false)] {
        let mut confirmation = confirmation(&untimed(&now), &now);
        confirmation.hear(StepResult::Running(NEW.to_owned()), at);
        assert_eq!(phase(&confirmation) == Some(Phase::Confirmed), is_kept);
    }
}

#[test]
fn nm_09_a_hash_binds_a_confirmation_too() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    for (hash, is_taken) in [(None, true), (Some("h1"), true), (Some("h2"), false)] {
        assert_eq!(Transaction::confirm(&untimed(&now), hash, &now).is_ok(), is_taken, "{hash:?}");
    }
}

#[test]
fn nm_09_a_device_that_fell_ill_is_not_confirmed() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    for applied in [record(Phase::Applied, &now), untimed(&now)] {
        let mut confirmation = Transaction::confirm(&applied, None, &now).unwrap();
        assert!(matches!(confirmation.want(), Want::CheckAgain(_)));
        confirmation.hear(refusal(Code::ConfigIncompatible), &now);
        assert_eq!(confirmation.want(), Want::End);
        assert_eq!(confirmation.record(), &applied, "the deadline stays");
        let fault = confirmation.finish().unwrap_err();
        assert!(
            fault.may_retry && fault.detail.ends_with("so nothing was confirmed, and the old configuration comes back at the deadline"),
            "{fault}"
        );
    }
}

#[test]
fn nm_09_slow_checks_confirm_nothing_past_the_deadline() {
    let (now, later) = (Now { wall: 1, boot: "b".to_owned(), up: 1 }, Now { wall: 60_001, boot: "b".to_owned(), up: 60_001 });
    let mut confirmation = Transaction::confirm(&record(Phase::Applied, &now), None, &now).unwrap();
    confirmation.hear(StepResult::Done, &later);
    assert_eq!((confirmation.want(), phase(&confirmation)), (Want::End, Some(Phase::Applied)));
    assert_eq!(confirmation.finish().unwrap_err().code, Code::ConfirmedCommitTimeout);
}

/// A confirmation up to the word of the device about the save.
fn unsaved(now: &Now) -> Transaction {
    let mut confirmation = confirmation(&untimed(now), now);
    confirmation.hear(StepResult::Running(NEW.to_owned()), now);
    assert!(confirmation.record().unsaved.is_some(), "on the disk before the device is told");
    confirmation.hear(StepResult::Done, now);
    assert_eq!(confirmation.want(), Want::Save);
    confirmation
}

#[test]
fn nm_09_a_confirmed_change_is_unsaved_until_it_is_saved() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    for (said, is_left, is_saved) in [(StepResult::Done, false, true), (StepResult::Unable, false, false)] {
        let mut confirmation = unsaved(&now);
        confirmation.hear(said, &now);
        assert!(matches!(confirmation.want(), Want::Keep(record) if record.unsaved.is_some() == is_left));
        confirmation.hear(StepResult::Done, &now);
        assert_eq!(confirmation.finish().unwrap(), ChangeOutcome::Confirmed { is_saved });
    }
    let mut failed = unsaved(&now);
    failed.hear(refusal(Code::HardwareFailure), &now);
    assert!(matches!(failed.want(), Want::Keep(record) if record.unsaved.as_deref() == Some("refused")), "the reason is kept");
    failed.hear(StepResult::Done, &now);
    assert_eq!(failed.finish().unwrap(), ChangeOutcome::Confirmed { is_saved: false });
}

#[test]
fn nm_09_a_late_save_keeps_only_what_was_confirmed() {
    let now = Now { wall: 1, boot: "b".to_owned(), up: 1 };
    let left = unsaved(&now).record().clone();
    for (running, is_saved) in [(NEW, true), (OLD, false), ("hostname hand\nend\n", false)] {
        let mut late = Transaction::save(left.clone(), false).unwrap();
        assert_eq!(late.want(), Want::Read);
        late.hear(StepResult::Running(running.to_owned()), &now);
        assert_eq!(late.want() == Want::Save, is_saved, "{running}");
        assert!(late.record().unsaved.is_some());
    }
    assert_eq!(Transaction::save(left, true).unwrap().want(), Want::Save, "a person looks first");
    assert!(Transaction::save(untimed(&now), true).is_err(), "nothing is left");
    let waiting = ChangeRecord { unsaved: Some(String::new()), ..untimed(&now) };
    assert!(Transaction::save(waiting, true).is_err(), "a save would keep a change that waits");
}

#[test]
fn nm_09_nothing_is_applied_past_the_deadline() {
    let (now, later) = (Now { wall: 1, boot: "b".to_owned(), up: 1 }, Now { wall: 6_000, boot: "b".to_owned(), up: 6_000 });
    let mut open = record(Phase::Open, &now);
    open.change.iter_mut().for_each(|change| (change.deadline, change.snapshot, change.persist) = (None, None, None));
    let terms = Terms { who: "mcp", window: 5_000, hash: None, can_undo: true, persist: None };
    let mut commit = Transaction::commit(open, terms, &now).unwrap();
    commit.hear(StepResult::Running(OLD.to_owned()), &now);
    commit.hear(StepResult::Done, &now);
    assert!(matches!(commit.want(), Want::Arm(_)));
    commit.hear(StepResult::Done, &later);
    assert!(matches!(commit.want(), Want::Keep(_)) && phase(&commit) == Some(Phase::Open));
    commit.hear(StepResult::Done, &later);
    assert_eq!(commit.finish().unwrap_err().code, Code::ConfirmedCommitTimeout);
}
