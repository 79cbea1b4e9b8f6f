//! What a gate is to serve: a configuration, the servers of one file, those that other clients' files name, or the demonstration.
//! Starts nothing.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use gateway::config::resolved::Config;
use gateway::config::secret::SystemSources;
use gateway::import::{self, Found, ImportError, Places};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::{consent, listing, places};

/// What is to be served.
pub(crate) struct Plan {
    pub(crate) config: Config,
    /// What it is, for people.
    pub(crate) serves: String,
    /// The configuration file, which is read again when it changes.
    pub(crate) watched: Option<PathBuf>,
}

/// What a person asked for.
pub(crate) struct Wish<'a> {
    /// One file with `mcpServers`.
    pub(crate) from: Option<&'a Path>,
    /// Where to listen, whatever a configuration says.
    pub(crate) listen: Option<SocketAddr>,
    /// Whether everything that is found may be started.
    pub(crate) yes: bool,
}

/// Finds out what to serve, and makes sure that somebody wants what others configured to be started.
pub(crate) fn plan(wish: &Wish<'_>, place: &Place, output: &Output) -> Result<Plan, Failure> {
    let mut plan = sought(wish, place, output)?;
    plan.config.listen = wish.listen.unwrap_or(plan.config.listen);
    Ok(plan)
}

fn sought(wish: &Wish<'_>, place: &Place, output: &Output) -> Result<Plan, Failure> {
    if let Some(from) = wish.from {
        let found = import::from_file(from, &clients(wish)?)?;
        let serves = std::path::absolute(from).unwrap_or_else(|_| from.to_owned()).display().to_string();
        return agreed(found, serves, wish, output);
    }
    if let Some(path) = places::config_file(place.config.as_deref())? {
        return configured(&path);
    }
    let found = import::discover(&clients(wish)?);
    if found.servers.iter().any(|s| s.enabled) {
        return agreed(found, "the files of your clients".to_owned(), wish, output);
    }
    listing::notes(&found, false).iter().for_each(|n| output.remark(&format!("{} {n}", output.paint_remark(Look::Dim, "note:"))));
    Err(Failure::NotFound("there is no banyan.toml, and no client's file names a server".to_owned()))
}

fn configured(path: &Path) -> Result<Plan, Failure> {
    let config = gateway::config::load(path, &SystemSources)?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(Plan { config, serves: path.display().to_string(), watched: Some(path) })
}

fn agreed(mut found: Found, serves: String, wish: &Wish<'_>, output: &Output) -> Result<Plan, Failure> {
    consent::obtain(&mut found, wish.yes, output)?;
    let config = Config { mounts: found.mounts(), ..Config::default() };
    Ok(Plan { config, serves, watched: None })
}

/// This machine, as clients' files depend on it.
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
