//! Pinned definitions as people are shown them: what differs from the one that was good before, with everything that nobody would see
//! written out. Nothing is decided here.

use mcp_proto::hidden;
pub use policy::pin::Difference;
use policy::pin::{Concern, Kind, Other, Standing, Why, concerns, differences};
use serde::{Deserialize, Serialize};

use crate::store::{Pin, Source};

/// `GET /-/pins`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinsShown {
    /// By mount: tools first, each by its name.
    pub pins: Vec<PinShown>,
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinShown {
    /// The mount.
    pub mount: String,
    /// The tool, as its server names it; or what `kind` says: a prompt's name, a resource's URI, a template, `instructions`.
    pub tool: String,
    /// What it is a definition of.
    #[serde(default)]
    pub kind: Kind,
    /// SHA-256 of the definition, in hexadecimal.
    pub hash: String,
    /// `accepted`, `held` or `refused`.
    pub standing: Standing,
    /// `new`, `changed` or `replaced`: why it waits, or did.
    pub why: Why,
    /// Since when: Unix time, in seconds.
    pub since: u64,
    /// What it says: canonical JSON, with characters that nobody sees written out.
    pub definition: String,
    /// What differs from the last one that was good, where there was one.
    pub differences: Vec<Difference>,
    /// What to know about it before taking it.
    pub concerns: Vec<Concern>,
}

impl PinShown {
    /// How it is called where people read of it.
    pub fn named(&self) -> String {
        super::judged::named(&self.mount, self.kind, &self.tool)
    }
}

/// Those of `sources`, where servers are known; those that are good only where `all` are wanted.
pub(super) fn of(kept: Vec<Pin>, sources: Option<&[Source]>, all: bool) -> PinsShown {
    let mut kept = kept;
    kept.retain(|pin| sources.is_none_or(|sources| sources.contains(&pin.source)));
    let wanted = kept.iter().filter(|pin| all || pin.standing != Standing::Accepted);
    PinsShown { pins: wanted.map(|pin| shown(pin, &kept)).collect() }
}

fn shown(pin: &Pin, kept: &[Pin]) -> PinShown {
    let same =
        |other: &&Pin| other.source == pin.source && other.kind == pin.kind && other.name == pin.name && other.definition != pin.definition;
    let before = kept.iter().filter(same).filter(|other| other.standing == Standing::Accepted).max_by_key(|other| other.since);
    let visible = |text: Option<String>| text.map(|text| hidden::shown(&text));
    let differences = before.map(|before| differences(&before.definition, &pin.definition)).unwrap_or_default();
    let differences = differences.into_iter().map(|one| Difference {
        path: hidden::shown(&one.path),
        before: visible(one.before),
        after: visible(one.after),
        what: one.what,
    });
    let elsewhere = kept.iter().filter(|other| other.kind == Kind::Tool && other.source.mount != pin.source.mount);
    let others: Vec<Other<'_>> = elsewhere.map(|other| Other { mount: &other.source.mount, tool: &other.name }).collect();
    PinShown {
        mount: pin.source.mount.clone(),
        tool: pin.name.clone(),
        kind: pin.kind,
        hash: policy::approval::hex(&pin.definition.hash()),
        standing: pin.standing,
        why: pin.why,
        since: pin.since,
        definition: hidden::shown(pin.definition.text()),
        differences: differences.collect(),
        concerns: concerns((pin.kind == Kind::Tool).then_some(&pin.name), &pin.definition, &others, hidden::is_hidden),
    }
}
