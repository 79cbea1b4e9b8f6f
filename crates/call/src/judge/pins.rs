//! Pinned definitions: people look at waiting ones and decide. Leaves the choice of those that wait to `policy::pin`, and does not compare
//! catalogs (`pins/judged.rs` does), queue the lists of many servers (`pins/desk.rs`), or refuse calls (`way/resolve.rs`).

pub mod follow;
pub mod judged;
pub mod role;
pub mod shown;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use audit::record::{Changed, Record, Text};
use config::resolved::Config;
use mcp_proto::catalog;
use policy::pin::{Kind, Standing};
use store::pins::{Pin, Source};
use store::{Pins, StoreError, Stores};

pub use crate::judge::pins::follow::follow;
pub use crate::judge::pins::judged::{clean, hold, server, was_gate};
pub use crate::judge::pins::shown::{Difference, PinShown, PinsShown};

use crate::judge::approvals::now;
use crate::judge::gate::Gate;
use crate::tree::gate::{Mounts, Recorder};
use crate::words::refusal::Refusal;

/// Most names in a line.
const NAMED: usize = 20;

fn record(recorder: &Recorder, lines: Vec<String>) {
    let more = lines.len().saturating_sub(NAMED);
    let mut lines: Vec<Text<'_>> = lines.into_iter().take(NAMED).map(Text::Owned).collect();
    if more > 0 {
        lines.push(format!("and {more} more").into());
    }
    recorder.journal.append(&Record::Changed(Changed { lines, version: None, what: "definitions".into() }));
}

/// A person's decision about definitions: about those listed now, or with `hash` only the one shown.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Look {
    pub mount: String,
    /// Server's own name of a tool, or of a thing of `kind`; absent: all that wait.
    #[serde(default)]
    pub tool: Option<String>,
    /// Absent: every kind with that name.
    #[serde(default)]
    pub kind: Option<Kind>,
    /// Hash of the definition shown.
    #[serde(default)]
    pub hash: Option<String>,
}

/// Takes a changed configuration: lists are judged anew where something else is done with them.
pub fn apply(mounts: &Mounts, old: &Config, new: &Config) {
    if old.pins != new.pins {
        mounts.all.load().iter().for_each(|mount| mount.connections.dirty(&catalog::Kind::ALL));
    }
}

impl Gate {
    /// Definitions that wait or were refused; with `all`, accepted ones too.
    pub async fn pins(&self, all: bool) -> Result<PinsShown, Refusal> {
        let (stores, sources) = (Arc::clone(&self.stores), self.sources());
        let shown =
            tokio::task::spawn_blocking(move || Ok::<_, StoreError>(shown::of_pins(stores.pins()?.all(None)?, Some(&sources), all)));
        shown.await.map_err(|error| Refusal::failed(error.to_string()))?.map_err(|error| Refusal::failed(error.to_string()))
    }

    /// Sets the standing of definitions by a person's decision; returns those changed.
    pub async fn look(&self, look: Look, standing: Standing) -> Result<PinsShown, Refusal> {
        let (stores, sources, mount) = (Arc::clone(&self.stores), self.sources(), look.mount.clone());
        let set = tokio::task::spawn_blocking(move || set(&*stores, Some(&sources), &look, standing)).await;
        let shown = set.map_err(|error| Refusal::failed(error.to_string()))??;
        record(&self.record, shown.pins.iter().map(|pin| format!("{}: {}", standing.as_str(), pin.named())).collect());
        if let Some(mount) = self.mounts.all.load().iter().find(|one| one.config.name.as_str() == mount) {
            let kinds: Vec<catalog::Kind> = shown.pins.iter().map(|pin| judged::fetched_with(pin.kind)).collect();
            mount.connections.dirty(&kinds);
        }
        Ok(shown)
    }

    /// Servers mounted now.
    fn sources(&self) -> Vec<Source> {
        self.mounts.all.load().iter().flat_map(|mount| judged::sources(mount)).collect()
    }
}

/// Definitions without a running gate, from the store alone, of any server.
///
/// # Errors
/// If the store can't be read.
pub fn kept(stores: &dyn Stores, all: bool) -> Result<PinsShown, StoreError> {
    Ok(shown::of_pins(stores.pins()?.all(None)?, None, all))
}

/// Sets the standing of definitions without a running gate.
///
/// # Errors
/// If no definition is meant, or it can't be written.
pub fn look(stores: &dyn Stores, look: &Look, standing: Standing) -> Result<PinsShown, Refusal> {
    set(stores, None, look, standing)
}

fn set(stores: &dyn Stores, sources: Option<&[Source]>, look: &Look, standing: Standing) -> Result<PinsShown, Refusal> {
    let failed = |error: StoreError| Refusal::failed(error.to_string());
    let mut pins = stores.pins().map_err(failed)?;
    let kept = pins.all(Some(&look.mount)).map_err(failed)?;
    let present: Option<BTreeSet<&Source>> = sources.map(|sources| sources.iter().collect());
    let is_meant = |pin: &Pin| {
        let hash = policy::approval::hex(&pin.definition.hash());
        let named = look.tool.as_ref().is_none_or(|tool| *tool == pin.name)
            && look.kind.is_none_or(|kind| kind == pin.kind)
            && look.hash.as_ref().is_none_or(|wanted| *wanted == hash);
        // A refused definition is accepted only by name.
        let is_open =
            pin.standing == Standing::Held || (look.tool.is_some() && pin.standing != standing && pin.standing != Standing::Accepted);
        named && is_open && present.as_ref().is_none_or(|present| present.contains(&pin.source))
    };
    let meant: Vec<Pin> = kept.iter().filter(|pin| is_meant(pin)).cloned().collect();
    if meant.is_empty() {
        let what = look.tool.as_ref().map_or_else(|| look.mount.clone(), |tool| format!("{}.{tool}", look.mount));
        return Err(Refusal::not_found(format!(
            "no definition of `{what}` waits, or it is another one by now: `banyan pins` shows what does"
        )));
    }
    let shown = shown::of_pins(kept, sources, true);
    // In one commit: a person who decides about a thousand definitions waits for the disk once.
    let mut done = Ok(());
    let mut all = |pins: &mut dyn Pins| meant.iter().try_for_each(|pin| pins.set(pin, standing, now()));
    pins.together(&mut |pins| done = pins.apart(&mut all)).map_err(failed)?;
    done.map_err(failed)?;
    stores.looks().tell();
    let meant: HashSet<(Kind, &str, String)> =
        meant.iter().map(|pin| (pin.kind, &*pin.name, policy::approval::hex(&pin.definition.hash()))).collect();
    let is_meant = |shown: &PinShown| meant.contains(&(shown.kind, &*shown.tool, shown.hash.clone()));
    let mut shown: Vec<PinShown> = shown.pins.into_iter().filter(is_meant).collect();
    shown.iter_mut().for_each(|pin| pin.standing = standing);
    Ok(PinsShown { pins: shown })
}
