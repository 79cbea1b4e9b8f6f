//! The content of a gate: a configuration, the servers of one file, those in other clients' files, or the demonstration.
//! Starts nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use banyan_model::Segment;
use config::resolved::{Config, Mount, Process, Transport};
use config::secret::{SecretRef, SystemSources};
use import::{self, Found, ImportError, Places};
use sha2::{Digest, Sha256};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::{consent, listing, places};

/// First words on the servers of a gate that serves a demonstration.
pub(crate) const DEMONSTRATION: &str = "the demonstration";

/// The content of a gate.
pub(crate) struct Plan {
    pub(crate) config: Config,
    /// Description for people.
    pub(crate) serves: String,
    /// The configuration file, read again on changes.
    pub(crate) watched: Option<PathBuf>,
    /// SHA-256 of another served file, in hexadecimal, at the time of reading.
    pub(crate) digest: Option<String>,
}

/// A person's wishes.
pub(crate) struct Wish<'a> {
    /// A file with `mcpServers`.
    pub(crate) from: Option<&'a Path>,
    /// Address to listen on, before any configuration's.
    pub(crate) listen: Option<SocketAddr>,
    /// All found servers may be started.
    pub(crate) yes: bool,
}

/// Chooses the content, and makes sure that a person wants servers configured by others to be started.
pub(crate) fn plan(wish: &Wish<'_>, place: &Place, output: &Output) -> Result<Plan, Failure> {
    let mut plan = sought(wish, place, output)?;
    plan.config.listen = wish.listen.unwrap_or(plan.config.listen);
    Ok(plan)
}

fn sought(wish: &Wish<'_>, place: &Place, output: &Output) -> Result<Plan, Failure> {
    if let Some(from) = wish.from {
        let digest = digest(from);
        let found = import::from_file(from, &clients(wish)?)?;
        let serves = std::path::absolute(from).unwrap_or_else(|_| from.to_owned()).display().to_string();
        return Ok(Plan { digest, ..agreed(found, serves, wish, output)? });
    }
    if let Some(path) = places::config_file(place.config.as_deref())? {
        return configured(&path);
    }
    let found = import::discover(&clients(wish)?);
    if found.servers.iter().any(|s| s.enabled) {
        return agreed(found, "the files of your clients".to_owned(), wish, output);
    }
    listing::notes(&found, false).iter().for_each(|n| output.remark(&format!("{} {n}", output.paint_remark(Look::Dim, "note:"))));
    demonstration()
}

/// Computes the SHA-256 of a file, in hexadecimal; `None` for an unreadable file.
pub(crate) fn digest(file: &Path) -> Option<String> {
    let bytes = std::fs::read(file).ok()?;
    Some(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Chooses the content for a program started by a client: as told, or the user's own configuration. A file
/// in the working directory is not enough: nobody looks at programs that a client starts in a strange place.
pub(crate) fn for_client(from: Option<&Path>, place: &Place, output: &Output) -> Result<Plan, Failure> {
    if from.is_some() {
        return sought(&Wish { from, listen: None, yes: true }, place, output);
    }
    let own = places::config_dir()?.join(places::CONFIG_NAME);
    let path = place.config.clone().unwrap_or_else(|| own.clone());
    if !path.exists() {
        let advice = format!("name one with --config FILE or --from FILE, make {}, or start a gate with `banyan up`", own.display());
        return Err(Failure::NotFound(format!("there is no {}\n  {advice}", path.display())));
    }
    configured(&path)
}

/// Plans the servers in this binary, each a process of its own.
fn demonstration() -> Result<Plan, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::Failed(format!("this program's own path is not known: {e}")))?;
    let mut config = gateway::parts::sections().empty();
    for name in demo::NAMES {
        let segment = Segment::new(name).map_err(|e| Failure::Failed(e.to_string()))?;
        let process = Process {
            command: program.display().to_string(),
            args: ["demo", name].map(SecretRef::plain).into(),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            cwd: None,
            shared: None,
        };
        let mount = Mount::new(segment.clone(), Transport::Stdio(process), "the demonstration");
        config.mounts.insert(segment, Arc::new(mount));
    }
    Ok(Plan { config, serves: format!("{DEMONSTRATION}: no configuration and no client's file was found"), watched: None, digest: None })
}

fn configured(path: &Path) -> Result<Plan, Failure> {
    let config = gateway::parts::sections().load(path, &SystemSources)?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(Plan { config, serves: path.display().to_string(), watched: Some(path), digest: None })
}

fn agreed(mut found: Found, serves: String, wish: &Wish<'_>, output: &Output) -> Result<Plan, Failure> {
    consent::obtain(&mut found, wish.yes, output)?;
    let config = Config { mounts: found.mounts(), ..gateway::parts::sections().empty() };
    Ok(Plan { config, serves, watched: None, digest: None })
}

/// Describes this machine, as clients' files depend on it.
pub(crate) fn clients(wish: &Wish<'_>) -> Result<Places, Failure> {
    let mut here = Places::here().ok_or_else(|| Failure::Failed("no home directory or working directory is known: set HOME".to_owned()))?;
    here.listen = wish.listen.unwrap_or(here.listen);
    Ok(here)
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        let ImportError::Unreadable { path, .. } = &error;
        if path.exists() { Self::Failed(error.to_string()) } else { Self::NotFound(error.to_string()) }
    }
}
