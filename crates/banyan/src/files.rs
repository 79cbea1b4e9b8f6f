//! Open files that the system allows this process. Opens none.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files for which a process is prepared; more would only be a burden to children that close all they may have.
const MOST: u64 = 65_536;

/// Raises the limit of open files as far as the system lets it, for a process that serves more than a few hundred servers.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(MOST).min(MOST);
    if current.is_some_and(|current| current < wanted) && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_err() {
        tracing::debug!("the limit of open files can't be raised");
    }
}
