//! Finds the running gate of a command. Does not start one.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use gateway::admin::client::{AdminClient, AdminError};
use gateway::admin::presence::Presence;
use gateway::admin::shapes::RefusalKind;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::places;
use crate::turn::canonical;

/// Finds the gate meant by `place`; `None` when none is running (for that configuration, where one was named).
pub(crate) fn running(place: &Place) -> Result<Option<AdminClient>, Failure> {
    Ok(found(place)?.map(AdminClient::new))
}

fn found(place: &Place) -> Result<Option<Presence>, Failure> {
    chosen(all()?, place)
}

/// Lists running gates.
pub(crate) fn all() -> Result<Vec<Presence>, Failure> {
    let dir = places::runtime_dir()?;
    let advice = "running gates are found there: it has to be a directory of your own, and XDG_RUNTIME_DIR names another one";
    Presence::all(&dir).map_err(|e| Failure::Failed(format!("{} can't be read: {e}\n  {advice}", dir.display())))
}

/// Lists clients of the running gates with the configuration in `file`.
pub(crate) fn all_of(file: &Path) -> Result<Vec<AdminClient>, Failure> {
    Ok(serving(file)?.into_iter().map(AdminClient::new).collect())
}

/// Gives a network address of a running gate with the configuration in `file`, if any.
pub(crate) fn network_address(file: &Path) -> Result<Option<SocketAddr>, Failure> {
    let bound = serving(file)?.into_iter().filter_map(|gate| gate.listen);
    Ok(bound.into_iter().find(|address| !address.ip().is_loopback()))
}

/// Lists the running gates of `file`, as they announced themselves.
pub(crate) fn serving(file: &Path) -> Result<Vec<Presence>, Failure> {
    Ok(all()?.into_iter().filter(|gate| serves(gate, file)).collect())
}

/// Lists the running gates without a file: those with servers found in clients' files, or with the demonstration.
pub(crate) fn without_file() -> Result<Vec<Presence>, Failure> {
    Ok(all()?.into_iter().filter(|gate| !Path::new(&gate.serves).is_absolute()).collect())
}

/// Checks whether a gate serves `file`, by whichever path.
pub(crate) fn serves(gate: &Presence, file: &Path) -> bool {
    canonical(Path::new(&gate.serves)) == canonical(file)
}

/// Gives address and owner's token of the running gate.
pub(crate) fn presence(place: &Place) -> Result<Presence, Failure> {
    found(place)?.ok_or_else(|| none_runs(place))
}

/// Finds the gate as [`running`] does, for commands of no use without a gate.
pub(crate) fn needed(place: &Place) -> Result<AdminClient, Failure> {
    running(place)?.ok_or_else(|| none_runs(place))
}

fn none_runs(place: &Place) -> Failure {
    let others: Vec<String> = all().unwrap_or_default().iter().map(line).collect();
    Failure::NotFound(match &place.config {
        Some(config) if !others.is_empty() => format!(
            "no gate runs with {0}\n  start one with `banyan up --config {0}`, or name one that runs instead of a file:\n{1}",
            config.display(),
            others.join("\n")
        ),
        _ => "no gate is running\n  start one with `banyan up`".to_owned(),
    })
}

fn chosen(all: Vec<Presence>, place: &Place) -> Result<Option<Presence>, Failure> {
    if let Some(which) = &place.gate {
        let others: Vec<String> = all.iter().map(line).collect();
        return match all.into_iter().find(|p| which.is(p)) {
            Some(found) => Ok(Some(found)),
            None if others.is_empty() => {
                Err(Failure::NotFound(format!("no gate runs {which}, and no other either\n  start one with `banyan up`")))
            }
            None => Err(Failure::NotFound(format!("no gate runs {which}; name one that does:\n{}", others.join("\n")))),
        };
    }
    let mut meant: Vec<Presence> = match &place.config {
        None => all,
        Some(config) => all.into_iter().filter(|gate| serves(gate, config)).collect(),
    };
    if meant.len() > 1 {
        let each: Vec<String> = meant.iter().map(line).collect();
        return Err(Failure::Usage(format!("several gates are running; say which one is meant:\n{}", each.join("\n"))));
    }
    Ok(meant.pop())
}

/// Words the choice of one among several gates.
fn line(gate: &Presence) -> String {
    format!("  --gate {}  {}  {}", gate.pid, gate.url, gate.serves)
}

/// A running gate as named by `--gate` and `BANYAN_GATE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// By process id.
    Pid(u32),
    /// By host and port of the address.
    At(String),
}

impl Which {
    fn is(&self, gate: &Presence) -> bool {
        match self {
            Self::Pid(pid) => gate.pid == *pid,
            Self::At(place) => gate.url.split_once("://").is_some_and(|(_, url)| url.split('/').next() == Some(place)),
        }
    }
}

impl FromStr for Which {
    type Err = String;

    /// A process id, a URL with any path, or `HOST:PORT`; `localhost` is 127.0.0.1, as is a port alone (`:7411`).
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(pid) = text.parse() {
            return Ok(Self::Pid(pid));
        }
        let place = text.split_once("://").map_or(text, |(_, rest)| rest);
        let place = place.split('/').next().unwrap_or_default();
        match place.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => {
                let host = if matches!(host, "" | "localhost") { "127.0.0.1" } else { host };
                Ok(Self::At(format!("{host}:{port}")))
            }
            _ => Err("give a process id, as 4711, or an address with its port, as http://127.0.0.1:7411".to_owned()),
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "as process {pid}"),
            Self::At(place) => write!(f, "at {place}"),
        }
    }
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        let text = error.to_string();
        match error {
            AdminError::Malformed { .. } | AdminError::Unreachable { .. } => Self::Failed(text),
            AdminError::Refused(refusal) => match refusal.kind {
                RefusalKind::Failed | RefusalKind::TooMany => Self::Failed(text),
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
        let (url, token, serves) = (format!("http://127.0.0.1:{pid}"), String::new(), serves.to_owned());
        Presence { url, listen: None, certificate: None, pid, token, serves, digest: None, while_used: false }
    }

    fn place(gate: Option<&str>, config: Option<&str>) -> Place {
        Place { config: config.map(Into::into), gate: gate.map(|text| text.parse().unwrap()) }
    }

    #[test]
    fn the_only_gate_is_meant_and_one_of_several_has_to_be_named() {
        let two = || vec![presence(1, "/a/banyan.toml"), presence(2, "/b/banyan.toml")];
        let pid = |r: Result<Option<Presence>, Failure>| r.unwrap().map(|p| p.pid);
        assert_eq!(pid(chosen(vec![], &place(None, None))), None);
        assert_eq!(pid(chosen(vec![presence(1, "x")], &place(None, None))), Some(1));
        assert!(matches!(chosen(two(), &place(None, None)), Err(Failure::Usage(_))));
        assert_eq!(pid(chosen(two(), &place(Some("2"), None))), Some(2));
        assert_eq!(pid(chosen(two(), &place(None, Some("/a/banyan.toml")))), Some(1));
        assert_eq!(pid(chosen(two(), &place(None, Some("/c/banyan.toml")))), None);
        assert!(matches!(chosen(two(), &place(Some("3"), None)), Err(Failure::NotFound(_))));
    }
    #[test]
    fn a_gate_is_named_by_its_address_too() {
        let found = |text: &str| {
            let all = vec![presence(7411, "/a/banyan.toml"), presence(7412, "/b/banyan.toml")];
            chosen(all, &place(Some(text), None)).map(|p| p.unwrap().pid).map_err(|e| e.to_string())
        };
        for text in ["http://127.0.0.1:7412/mcp", "127.0.0.1:7412", "localhost:7412", ":7412", "7412"] {
            assert_eq!(found(text).unwrap(), 7412, "{text}");
        }
        assert!(found("http://127.0.0.1:9/").unwrap_err().contains("--gate 7411"));
        assert!("http://somewhere".parse::<Which>().unwrap_err().contains("with its port"));
    }
}
