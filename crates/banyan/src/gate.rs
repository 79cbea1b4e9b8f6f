//! Finds the running gate that a command is about. Does not start one.

use std::net::SocketAddr;

use gateway::admin::client::{AdminClient, AdminError};
use gateway::admin::presence::Presence;
use gateway::admin::shapes::RefusalKind;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::places;

/// The gate that `place` means; `None` when none is running (for that configuration, where one was named).
pub(crate) fn running(place: &Place) -> Result<Option<AdminClient>, Failure> {
    Ok(found(place)?.map(AdminClient::new))
}

fn found(place: &Place) -> Result<Option<Presence>, Failure> {
    let dir = places::runtime_dir()?;
    let all = Presence::all(&dir).map_err(|e| Failure::Failed(format!("{} can't be read: {e}", dir.display())))?;
    chosen(all, place)
}

/// Where the running gate listens, if one runs.
pub(crate) fn address(place: &Place) -> Result<Option<SocketAddr>, Failure> {
    let gate = found(place)?;
    Ok(gate.and_then(|p| p.url.split_once("://")?.1.parse().ok()))
}

/// Where the running gate is, and by what its owner is known there.
pub(crate) fn presence(place: &Place) -> Result<Presence, Failure> {
    found(place)?.ok_or_else(none_runs)
}

/// As [`running`], for commands that are of no use without a gate.
pub(crate) fn needed(place: &Place) -> Result<AdminClient, Failure> {
    running(place)?.ok_or_else(none_runs)
}

fn none_runs() -> Failure {
    Failure::NotFound("no gate is running\n  start one with `banyan up`".to_owned())
}

fn chosen(all: Vec<Presence>, place: &Place) -> Result<Option<Presence>, Failure> {
    if let Some(pid) = place.gate {
        let found = all.into_iter().find(|p| p.pid == pid);
        return found.map(Some).ok_or_else(|| Failure::NotFound(format!("no gate runs as process {pid}")));
    }
    let mut meant: Vec<Presence> = match &place.config {
        None => all,
        Some(config) => {
            let config = std::path::absolute(config).unwrap_or_else(|_| config.clone());
            all.into_iter().filter(|p| *config == *p.serves).collect()
        }
    };
    if meant.len() > 1 {
        let each: Vec<String> = meant.iter().map(|p| format!("  --gate {}  {}  {}", p.pid, p.url, p.serves)).collect();
        return Err(Failure::Usage(format!("several gates are running; say which one is meant:\n{}", each.join("\n"))));
    }
    Ok(meant.pop())
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        let text = error.to_string();
        match error {
            AdminError::Malformed { .. } | AdminError::Unreachable { .. } => Self::Failed(text),
            AdminError::Refused(refusal) => match refusal.kind {
                RefusalKind::Failed => Self::Failed(text),
                RefusalKind::NotFound => Self::NotFound(text),
                RefusalKind::Refused => Self::Refused(text),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presence(pid: u32, serves: &str) -> Presence {
        Presence { url: format!("http://127.0.0.1:{pid}"), certificate: None, pid, token: String::new(), serves: serves.to_owned() }
    }

    fn place(gate: Option<u32>, config: Option<&str>) -> Place {
        Place { config: config.map(Into::into), gate }
    }

    #[test]
    fn the_only_gate_is_meant_and_one_of_several_has_to_be_named() {
        let two = || vec![presence(1, "/a/banyan.toml"), presence(2, "/b/banyan.toml")];
        let pid = |r: Result<Option<Presence>, Failure>| r.unwrap().map(|p| p.pid);
        assert_eq!(pid(chosen(vec![], &place(None, None))), None);
        assert_eq!(pid(chosen(vec![presence(1, "x")], &place(None, None))), Some(1));
        assert!(matches!(chosen(two(), &place(None, None)), Err(Failure::Usage(_))));
        assert_eq!(pid(chosen(two(), &place(Some(2), None))), Some(2));
        assert_eq!(pid(chosen(two(), &place(None, Some("/a/banyan.toml")))), Some(1));
        assert_eq!(pid(chosen(two(), &place(None, Some("/c/banyan.toml")))), None);
        assert!(matches!(chosen(two(), &place(Some(3), None)), Err(Failure::NotFound(_))));
    }
}
