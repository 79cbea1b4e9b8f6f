//! Pinned definitions as people are shown them: what differs from the one that was good before, with everything that nobody would see
//! written out. Nothing is decided here.

use std::collections::{BTreeSet, HashMap};

use mcp_proto::hidden;
pub use policy::pin::Difference;
use policy::pin::{Concern, Kind, Other, Others, Standing, Why, concerns, differences};
use serde::{Deserialize, Serialize};
use store::pins::{Pin, Source};

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
        crate::judge::pins::judged::named(&self.mount, self.kind, &self.tool)
    }
}

/// Those of `sources`, where servers are known; those that are good only where `all` are wanted. What one costs does not grow with their number.
pub fn of(mut kept: Vec<Pin>, sources: Option<&[Source]>, all: bool) -> PinsShown {
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

/// Of what a definition is one: the mount and its server, what it defines, and the name.
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

    /// The newest that is another one.
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
