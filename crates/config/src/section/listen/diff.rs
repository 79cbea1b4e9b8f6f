//! Differences of the listener. Opens none.

use crate::diff::{self, Change, Subject};
use crate::resolved::Config;

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let changes = [
        diff::value("listen", old.listen != new.listen).map(Change::at_restart),
        diff::value("allowed_hosts", old.allowed_hosts != new.allowed_hosts),
        diff::value(Subject::SHUT.word(), old.shut != new.shut),
        diff::value("behind_proxy", old.behind_proxy != new.behind_proxy),
    ];
    changes.into_iter().flatten().collect()
}
