//! Pinned definitions: what a server lists is held against what is known of it before it is in the tree, and people look at what waits.
//! Which definition waits is not decided here but in `policy::pin`; that a call of one is refused, in `call/resolve.rs`.

mod shown;

use std::path::Path;
use std::sync::Arc;

use audit::record::{Changed, Record, Text};
use bytes::Bytes;
use mcp_proto::catalog::Kind;
use mcp_proto::hidden;
use mesh_proto::annotation::key;
use policy::pin::{Definition, Mode, Standing, Verdict, Why, judge};
use sha2::{Digest, Sha256};

pub use shown::{Difference, PinShown, PinsShown};

use crate::Inner;
use crate::admin::shapes::Refusal;
use crate::approvals::now;
use crate::catalog::{Catalog, Held};
use crate::config::resolved::{Config, Transport};
use crate::store::{Pin, Pins, Source, StoreError};
use crate::upstream::mount::Mount;

/// What a definition says of the risk of a call, beside `annotations`.
const RISKS: [&str; 6] = [key::AUTH_SCOPE, key::COST_CLASS, key::IDEMPOTENT, key::MUTABLE, key::REVERSIBLE, key::SAFETY];
/// How many names a line holds.
const NAMED: usize = 20;

/// Takes out of a fresh catalog the tools whose definitions wait, and says so in its notes. What is remembered is on the disk then.
pub(crate) async fn hold(mount: &Mount, catalog: &mut Catalog, is_gate: bool) {
    catalog.held.clear();
    let mode = mode(&mount.gateway.config.load(), mount, is_gate);
    if mode == Mode::Trust || catalog.tools.is_empty() {
        return;
    }
    let listed: Vec<(String, Bytes)> = catalog.tools.iter().map(|offer| (offer.entry.key.clone(), offer.entry.raw.clone())).collect();
    let (dir, source) = (mount.gateway.state_dir.clone(), source(mount));
    let judged = tokio::task::spawn_blocking(move || remembered(&dir, mode, &source, &listed)).await;
    let verdicts = match judged.unwrap_or_else(|error| Err(StoreError::Io(std::io::Error::other(error)))) {
        Ok(verdicts) => verdicts,
        Err(error) => {
            tracing::error!(mount = %mount.config.name, %error, "definitions of tools can't be pinned: see that the state directory can be written");
            catalog.notes.push(format!("its definitions can't be pinned: {error}"));
            let standing = if mode == Mode::Hold { Standing::Held } else { Standing::Accepted };
            vec![Verdict { standing, why: Why::New, is_new: false }; catalog.tools.len()]
        }
    };
    let mut fresh = Vec::new();
    let tools = std::mem::take(&mut catalog.tools);
    for (offer, Verdict { standing, why, is_new }) in tools.into_iter().zip(verdicts) {
        if standing == Standing::Accepted {
            catalog.tools.push(offer);
            continue;
        }
        if is_new {
            fresh.push(format!("held: {}.{} ({})", mount.config.name, offer.local, why.as_str()));
        }
        catalog.held.push(Held { key: offer.entry.key, name: offer.name, local: offer.local, why, standing });
    }
    told(mount, catalog, fresh);
}

fn told(mount: &Mount, catalog: &mut Catalog, fresh: Vec<String>) {
    if !fresh.is_empty() {
        tracing::warn!(mount = %mount.config.name, tools = fresh.len(), "definitions of tools wait: `banyan pins` shows them");
        record(&mount.gateway, fresh);
    }
    let waiting = catalog.held.iter().filter(|held| held.standing == Standing::Held).count();
    if waiting > 0 {
        let name = &mount.config.name;
        catalog.notes.push(format!("{waiting} of its tools wait until somebody looks at their definitions: `banyan pins show {name}`"));
    }
}

/// The texts of a fresh list without what nobody sees in them; all else stays byte for byte.
pub(crate) fn clean(catalog: &mut Catalog, kind: Kind) {
    let entries: Box<dyn Iterator<Item = &mut mcp_proto::catalog::Entry>> = match kind {
        Kind::Prompts => Box::new(catalog.prompts.iter_mut().map(|offer| &mut offer.entry)),
        Kind::Resources => Box::new(Arc::make_mut(&mut catalog.resources).iter_mut()),
        Kind::Templates => Box::new(Arc::make_mut(&mut catalog.templates).iter_mut()),
        Kind::Tools => Box::new(catalog.tools.iter_mut().map(|offer| &mut offer.entry)),
    };
    for entry in entries {
        if let Some(raw) = hidden::cleaned(&entry.raw) {
            entry.raw = raw.into();
        }
    }
}

fn mode(config: &Config, mount: &Mount, is_gate: bool) -> Mode {
    let pins = &config.pins;
    let usual = if is_gate {
        pins.gates
    } else if mount.registration.is_some() {
        pins.registered
    } else {
        pins.mode
    };
    pins.mounts.get(&mount.config.name).copied().unwrap_or(usual)
}

/// By what a mount's server is known again. Its environment and headers hold what changes, such as tokens, and say little of who it is.
fn source(mount: &Mount) -> Source {
    let server = match (&mount.registration, &mount.config.transport) {
        (Some(registration), _) => format!("registered by {}", registration.principal),
        (None, Transport::Http(remote) | Transport::Sse(remote)) => remote.url.to_string(),
        (None, Transport::Stdio(process)) => {
            let args: Vec<String> = process.args.iter().map(ToString::to_string).collect();
            format!("{:?} {args:?} {:?}", process.command, process.cwd)
        }
    };
    let server = policy::approval::hex(&Sha256::digest(server)[..16]);
    Source { mount: mount.config.name.to_string(), server }
}

/// Judges a list and remembers what is new in it.
fn remembered(dir: &Path, mode: Mode, source: &Source, listed: &[(String, Bytes)]) -> Result<Vec<Verdict>, StoreError> {
    let definitions: Vec<Definition> = listed.iter().map(|(_, raw)| Definition::of(raw, &RISKS)).collect();
    let hashes: Vec<(&str, [u8; 32])> = listed.iter().zip(&definitions).map(|((tool, _), d)| (tool.as_str(), d.hash())).collect();
    let mut pins = Pins::open(dir)?;
    let verdicts = judge(mode, &pins.known(source)?, &hashes);
    let since = now();
    let all = verdicts.iter().zip(listed).zip(definitions);
    let new: Vec<Pin> = all
        .filter(|((verdict, _), _)| verdict.is_new)
        .map(|((verdict, (tool, _)), definition)| {
            let Verdict { standing, why, .. } = *verdict;
            Pin { source: source.clone(), tool: tool.clone(), standing, why, since, definition }
        })
        .collect();
    if !new.is_empty() {
        pins.add(source, &new)?;
    }
    Ok(verdicts)
}

fn record(gateway: &Inner, lines: Vec<String>) {
    let more = lines.len().saturating_sub(NAMED);
    let mut lines: Vec<Text<'_>> = lines.into_iter().take(NAMED).map(Text::Owned).collect();
    if more > 0 {
        lines.push(format!("and {more} more").into());
    }
    gateway.journal.append(&Record::Changed(Changed { lines, version: None, what: "definitions".into() }));
}

/// What somebody says of definitions: `mount` and `tool` as they are listed, `hash` where only the one that was shown is meant.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Look {
    /// The mount.
    pub mount: String,
    /// One of its tools; absent: all of them.
    #[serde(default)]
    pub tool: Option<String>,
    /// The hash of the definition that was shown.
    #[serde(default)]
    pub hash: Option<String>,
}

/// Takes a changed configuration: lists are judged anew where something else is done with them.
pub(crate) fn apply(gateway: &Inner, old: &Config, new: &Config) {
    if old.pins != new.pins {
        gateway.mounts.load().iter().for_each(|mount| mount.dirty(&[Kind::Tools]));
    }
}

impl Inner {
    /// Definitions that wait or were refused; `all`: and those that are good.
    pub(crate) async fn pins(self: &Arc<Self>, all: bool) -> Result<PinsShown, Refusal> {
        let (dir, sources) = (self.state_dir.clone(), self.sources());
        let shown = tokio::task::spawn_blocking(move || Ok::<_, StoreError>(shown::of(Pins::open(&dir)?.all(None)?, Some(&sources), all)));
        shown.await.map_err(|error| Refusal::failed(error.to_string()))?.map_err(|error| Refusal::failed(error.to_string()))
    }

    /// Somebody looked: what is meant is good from now on, or is not. The definitions that now stand otherwise.
    pub(crate) async fn look(self: &Arc<Self>, look: Look, standing: Standing) -> Result<PinsShown, Refusal> {
        let (dir, sources, mount) = (self.state_dir.clone(), self.sources(), look.mount.clone());
        let set = tokio::task::spawn_blocking(move || set(&dir, Some(&sources), &look, standing)).await;
        let shown = set.map_err(|error| Refusal::failed(error.to_string()))??;
        record(self, shown.pins.iter().map(|pin| format!("{}: {}.{}", standing.as_str(), pin.mount, pin.tool)).collect());
        if let Some(mount) = self.mounts.load().iter().find(|one| one.config.name.as_str() == mount) {
            mount.dirty(&[Kind::Tools]);
        }
        Ok(shown)
    }

    /// The servers that there are.
    fn sources(&self) -> Vec<Source> {
        self.mounts.load().iter().map(|mount| source(mount)).collect()
    }
}

/// The same where no gate runs: by the files in `dir` alone, of whatever servers there were.
///
/// # Errors
/// When they can't be read.
pub fn kept(dir: &Path, all: bool) -> Result<PinsShown, StoreError> {
    Ok(shown::of(Pins::open(dir)?.all(None)?, None, all))
}

/// Says how definitions stand from now on, where no gate runs.
///
/// # Errors
/// When nothing is meant, and when it can't be written.
pub fn look(dir: &Path, look: &Look, standing: Standing) -> Result<PinsShown, Refusal> {
    set(dir, None, look, standing)
}

fn set(dir: &Path, sources: Option<&[Source]>, look: &Look, standing: Standing) -> Result<PinsShown, Refusal> {
    let failed = |error: StoreError| Refusal::failed(error.to_string());
    let mut pins = Pins::open(dir).map_err(failed)?;
    let kept = pins.all(Some(&look.mount)).map_err(failed)?;
    let is_meant = |pin: &Pin| {
        let hash = policy::approval::hex(&pin.definition.hash());
        let named = look.tool.as_ref().is_none_or(|tool| *tool == pin.tool) && look.hash.as_ref().is_none_or(|wanted| *wanted == hash);
        // What was refused is taken by its own name only.
        let is_open =
            pin.standing == Standing::Held || (look.tool.is_some() && pin.standing != standing && pin.standing != Standing::Accepted);
        named && is_open && sources.is_none_or(|sources| sources.contains(&pin.source))
    };
    let meant: Vec<Pin> = kept.iter().filter(|pin| is_meant(pin)).cloned().collect();
    if meant.is_empty() {
        let what = look.tool.as_ref().map_or_else(|| look.mount.clone(), |tool| format!("{}.{tool}", look.mount));
        return Err(Refusal::not_found(format!(
            "no definition of `{what}` waits, or it is another one by now: `banyan pins` shows what does"
        )));
    }
    let shown = shown::of(kept, sources, true);
    for pin in &meant {
        pins.set(pin, standing, now()).map_err(failed)?;
    }
    let hashes: Vec<String> = meant.iter().map(|pin| policy::approval::hex(&pin.definition.hash())).collect();
    let mut shown: Vec<PinShown> = shown.pins.into_iter().filter(|pin| hashes.contains(&pin.hash)).collect();
    shown.iter_mut().for_each(|pin| pin.standing = standing);
    Ok(PinsShown { pins: shown })
}
