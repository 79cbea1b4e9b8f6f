//! Pinned definitions for people: differences from the last good one, with invisible characters written out. Decides nothing.

use std::collections::{BTreeSet, HashMap};

use mcp_proto::hidden;
pub use policy::pin::Difference;
use policy::pin::{Concern, Kind, Other, Others, Standing, Why, concerns, differences};
use serde::{Deserialize, Serialize};
use store::pins::{Pin, Source};

/// Answer to `GET /-/pins`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinsShown {
    /// By mount: tools first, each by name.
    pub pins: Vec<PinShown>,
}

/// Definition in the admin API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinShown {
    pub mount: String,
    /// Server's own name of the tool; or by `kind` a prompt's name, a resource's URI, a template, `instructions`.
    pub tool: String,
    #[serde(default)]
    pub kind: Kind,
    /// SHA-256 of the definition, in hexadecimal.
    pub hash: String,
    /// `accepted`, `held` or `refused`.
    pub standing: Standing,
    /// `new`, `changed` or `replaced`: the reason for waiting.
    pub why: Why,
    /// Since when: Unix time, in seconds.
    pub since: u64,
    /// Canonical JSON of the definition, with invisible characters written out.
    pub definition: String,
    /// Differences from the last good definition, if any.
    pub differences: Vec<Difference>,
    /// Warnings to read before accepting.
    pub concerns: Vec<Concern>,
}

impl PinShown {
    /// Name of the definition for people.
    pub fn named(&self) -> String {
        crate::judge::pins::judged::named(&self.mount, self.kind, &self.tool)
    }
}

/// Shows definitions of `sources`, if servers are known, and accepted ones only with `all`. The cost of each does not grow with their
/// number.
pub fn of_pins(mut kept: Vec<Pin>, sources: Option<&[Source]>, all: bool) -> PinsShown {
    let sources: Option<BTreeSet<&Source>> = sources.map(|sources| sources.iter().collect());
    kept.retain(|pin| sources.as_ref().is_none_or(|sources| sources.contains(&pin.source)));
    let mut good: HashMap<Whose<'_>, Good<'_>> = HashMap::new();
    for pin in kept.iter().filter(|pin| pin.standing == Standing::Accepted) {
        good.entry(whose(pin)).or_default().add(pin);
    }
    let tools = kept.iter().filter(|pin| pin.kind == Kind::Tool);
    let others = tools.map(|pin| Other { mount: &pin.source.mount, tool: &pin.name }).collect();
    let wanted = kept.iter().filter(|pin| all || pin.standing != Standing::Accepted);
    PinsShown { pins: wanted.map(|pin| shown(pin, good.get(&whose(pin)).and_then(|good| good.besides(pin)), &others)).collect() }
}

/// Identity of a definition: mount, server, kind and name.
type Whose<'a> = (&'a str, &'a str, Kind, &'a str);

fn whose(pin: &Pin) -> Whose<'_> {
    (&pin.source.mount, &pin.source.server, pin.kind, &pin.name)
}

/// The two newest good definitions under one name, the newest first.
#[derive(Default)]
struct Good<'a>(Option<&'a Pin>, Option<&'a Pin>);

impl<'a> Good<'a> {
    fn add(&mut self, pin: &'a Pin) {
        let is_newer = |than: Option<&Pin>| than.is_none_or(|than| pin.since >= than.since);
        if is_newer(self.0) {
            self.1 = self.0.replace(pin);
        } else if is_newer(self.1) {
            self.1 = Some(pin);
        }
    }

    /// Newest good definition other than this.
    fn besides(&self, pin: &Pin) -> Option<&'a Pin> {
        self.0.filter(|good| good.definition != pin.definition).or(self.1)
    }
}

fn shown(pin: &Pin, before: Option<&Pin>, others: &Others<'_>) -> PinShown {
    let visible = |text: Option<String>| text.map(|text| hidden::shown(&text));
    let differences = before.map(|before| differences(&before.definition, &pin.definition)).unwrap_or_default();
    let differences = differences.into_iter().map(|one| Difference {
        path: hidden::shown(&one.path),
        before: visible(one.before),
        after: visible(one.after),
        what: one.what,
    });
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
        concerns: concerns(&pin.source.mount, (pin.kind == Kind::Tool).then_some(&pin.name), &pin.definition, others, hidden::is_hidden),
    }
}
