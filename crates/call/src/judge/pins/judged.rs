//! Compares a fresh catalog with what is known of its server before it enters the tree: removes what waits, and invisible characters in
//! texts. Does not ask people.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use config::resolved::Config;
use mcp_proto::catalog::{self, Entry};
use mcp_proto::hidden;
use mesh_proto::annotation::key;
use policy::pin::{Definition, Kind, Known, Mode, Standing, Verdict, Why, judge};
use sha2::{Digest, Sha256};
use store::pins::{Pin, Source};
use store::{Pins, StoreError};

use crate::judge::approvals::now;
use crate::judge::pins::record;
use crate::tree::catalog::{Catalog, HeldDefinition, Offer};
use crate::tree::mount::Mount;
use crate::tree::port::Opens;
use crate::tree::role::Role;

/// Members of a tool's definition about the risk of a call, besides `annotations`.
const RISKS: [&str; 11] = [
    key::AUTH_SCOPE,
    key::COST_CLASS,
    key::IDEMPOTENT,
    key::MUTABLE,
    key::REVERSIBLE,
    key::SAFETY,
    "auth_scope",
    "cost_class",
    "idempotent",
    "mutable",
    "reversible",
];
/// Name of the only definition of its kind.
const INSTRUCTIONS: &str = "instructions";

/// List of a server, of one kind: names and definitions as they came.
struct ServerList {
    kind: Kind,
    mode: Mode,
    all: Vec<(String, Bytes)>,
}

/// List of a server, with its definitions in the form kept.
struct DefinedList {
    kind: Kind,
    mode: Mode,
    all: Vec<(String, Definition)>,
}

/// Verdicts on lists, and the last good instructions in place of waiting ones.
struct Judgement {
    verdicts: Vec<Vec<Verdict>>,
    before: Option<String>,
}

/// Removes waiting definitions of `kinds` from a fresh catalog and notes them; new ones are on the disk afterwards. `said` are the server's
/// instructions, `old` is the catalog before.
pub async fn hold(mount: &Mount, (catalog, old): (&mut Catalog, &Catalog), kinds: &[catalog::Kind], said: Option<&str>) {
    let role = **mount.role.load();
    let listed = {
        let config = mount.gate.config.load();
        listed(catalog, (kinds, said), role, &|kind| mode(&config, mount, role, kind))
    };
    catalog.held.retain(|held| !listed.iter().any(|one| one.kind == held.kind));
    catalog.instructions = said.map(Arc::from);
    let mut fresh = Vec::new();
    if listed.iter().any(|one| one.mode != Mode::Trust && !one.all.is_empty()) {
        let Judgement { verdicts, before } = judged(mount, (catalog, old), &listed).await;
        for (ServerList { kind, .. }, verdicts) in listed.iter().zip(verdicts) {
            let from = catalog.held.len();
            let news: Vec<bool> = verdicts.iter().filter(|one| one.standing != Standing::Accepted).map(|one| one.is_new).collect();
            part(catalog, *kind, verdicts, before.as_deref());
            let new = catalog.held[from..].iter().zip(news).filter(|(_, is_new)| *is_new);
            fresh.extend(
                new.map(|(held, _)| format!("held: {} ({})", named(mount.config.name.as_str(), *kind, &held.key), held.why.as_str())),
            );
        }
    }
    note_fresh(mount, catalog, fresh);
}

fn listed(catalog: &Catalog, (kinds, said): (&[catalog::Kind], Option<&str>), role: Role, mode: &dyn Fn(Kind) -> Mode) -> Vec<ServerList> {
    let of = |kind, entries: &mut dyn Iterator<Item = &Entry>| {
        let all = entries.map(|entry| (entry.key.clone(), entry.raw.clone())).collect();
        ServerList { kind, mode: mode(kind), all }
    };
    let list = |kind: &catalog::Kind| match kind {
        catalog::Kind::Prompts => of(Kind::Prompt, &mut catalog.prompts.iter().map(|offer| &offer.entry)),
        catalog::Kind::Resources => of(Kind::Resource, &mut catalog.resources.iter()),
        catalog::Kind::Templates => of(Kind::Template, &mut catalog.templates.iter()),
        catalog::Kind::Tools => {
            let all = catalog.tools.iter().map(|offer| (offer.entry.key.clone(), as_listed(offer, role))).collect();
            ServerList { kind: Kind::Tool, mode: mode(Kind::Tool), all }
        }
    };
    let said = said.filter(|said| !said.trim().is_empty()).map(|said| (INSTRUCTIONS.to_owned(), Bytes::copy_from_slice(said.as_bytes())));
    let said = ServerList { kind: Kind::Instructions, mode: mode(Kind::Instructions), all: said.into_iter().collect() };
    kinds.iter().map(list).chain([said]).collect()
}

/// Definition of a tool. The members that a gate writes for gates belong to it if the gate is pinned as a server, since they decide about
/// approval.
fn as_listed(offer: &Offer, role: Role) -> Bytes {
    let noted = offer.noted.as_ref().filter(|_| !role.is_vouched());
    noted.and_then(|noted| noted.as_said(&offer.entry.raw)).unwrap_or_else(|| offer.entry.raw.clone())
}

/// Kind of list with which a definition is judged anew.
pub fn fetched_with(kind: Kind) -> catalog::Kind {
    match kind {
        Kind::Prompt => catalog::Kind::Prompts,
        Kind::Resource => catalog::Kind::Resources,
        Kind::Template => catalog::Kind::Templates,
        Kind::Instructions | Kind::Tool => catalog::Kind::Tools,
    }
}

async fn judged(mount: &Mount, (catalog, old): (&mut Catalog, &Catalog), listed: &[ServerList]) -> Judgement {
    let source = Whose { source: source(mount), opens: Arc::clone(&mount.opens), has_turned: **mount.role.load() == Role::Turned };
    let owned: Vec<ServerList> = listed.iter().map(|one| ServerList { all: one.all.clone(), ..*one }).collect();
    let count = owned.iter().map(|one| one.all.len()).sum();
    let take_in = move || owned.into_iter().map(defined).collect::<Vec<_>>();
    match mount.gate.pinning.judged(count, take_in, move |pins, all| remembered(pins, &source, all)).await {
        Ok(judged) => judged,
        Err(error) => {
            tracing::error!(mount = %mount.config.name, %error, "definitions can't be pinned: see that the state directory can be written");
            catalog.notes.push(format!("its definitions can't be pinned: {error}"));
            let role = **mount.role.load();
            let verdicts = listed.iter().map(|one| from_memory(old, role, one)).collect();
            Judgement { verdicts, before: old.instructions.as_deref().map(str::to_owned) }
        }
    }
}

fn defined(ServerList { kind, mode, all }: ServerList) -> DefinedList {
    let of = |(name, raw): (String, Bytes)| (name, definition(kind, &raw));
    DefinedList { kind, mode, all: all.into_iter().map(of).collect() }
}

/// Judges by this gate's last catalog where the store can't be read.
fn from_memory(old: &Catalog, role: Role, ServerList { kind, mode, all }: &ServerList) -> Vec<Verdict> {
    let entry = |entry: &Entry| (entry.key.clone(), entry.raw.clone());
    let before: Vec<(String, Bytes)> = match kind {
        Kind::Instructions => {
            old.instructions.iter().map(|said| (INSTRUCTIONS.to_owned(), Bytes::copy_from_slice(said.as_bytes()))).collect()
        }
        Kind::Prompt => old.prompts.iter().map(|offer| entry(&offer.entry)).collect(),
        Kind::Resource => old.resources.iter().map(entry).collect(),
        Kind::Template => old.templates.iter().map(entry).collect(),
        Kind::Tool => old.tools.iter().map(|offer| (offer.entry.key.clone(), as_listed(offer, role))).collect(),
    };
    let good = |raw: &[u8]| vec![Known { hash: definition(*kind, raw).hash(), standing: Standing::Accepted, why: Why::New }];
    let known: BTreeMap<String, Vec<Known>> = before.iter().map(|(name, raw)| (name.clone(), good(raw))).collect();
    let hash = |raw: &Bytes| definition(*kind, &plain(*kind, raw)).hash();
    let hashes: Vec<(&str, [u8; 32])> = all.iter().map(|(name, raw)| (name.as_str(), hash(raw))).collect();
    let mut verdicts = judge(*mode, *kind, &known, &hashes);
    for (verdict, (name, _)) in verdicts.iter_mut().zip(all).filter(|_| *mode != Mode::Trust) {
        if let Some(held) = old.held.iter().find(|held| held.kind == *kind && held.key == *name) {
            *verdict = Verdict { standing: held.standing, why: held.why, is_new: false };
        }
        verdict.is_new = false;
    }
    verdicts
}

/// Definition as the catalog keeps it.
fn plain(kind: Kind, raw: &[u8]) -> Cow<'_, [u8]> {
    if kind == Kind::Instructions {
        return hidden::without(&String::from_utf8_lossy(raw)).into_bytes().into();
    }
    hidden::cleaned(raw).map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// Keeps the good part of a list, and notes the rest as held.
fn part(catalog: &mut Catalog, kind: Kind, verdicts: Vec<Verdict>, before: Option<&str>) {
    let held = &mut catalog.held;
    match kind {
        Kind::Instructions => {
            let Some(Verdict { standing, why, .. }) = verdicts.first().copied().filter(|one| one.standing != Standing::Accepted) else {
                return;
            };
            catalog.instructions = before.map(Arc::from);
            held.push(HeldDefinition { kind, key: INSTRUCTIONS.to_owned(), place: None, why, standing });
        }
        Kind::Prompt => parted(&mut catalog.prompts, kind, verdicts, held, offered),
        Kind::Resource => parted(Arc::make_mut(&mut catalog.resources), kind, verdicts, held, |entry| (entry.key, None)),
        Kind::Template => parted(Arc::make_mut(&mut catalog.templates), kind, verdicts, held, |entry| (entry.key, None)),
        Kind::Tool => parted(&mut catalog.tools, kind, verdicts, held, offered),
    }
}

fn offered(offer: Offer) -> (String, Option<Place>) {
    (offer.entry.key, Some((offer.name, offer.local)))
}

type Place = (Arc<str>, Arc<banyan_model::Route>);

fn parted<T>(
    all: &mut Vec<T>,
    kind: Kind,
    verdicts: Vec<Verdict>,
    held: &mut Vec<HeldDefinition>,
    named: impl Fn(T) -> (String, Option<Place>),
) {
    if verdicts.iter().all(|one| one.standing == Standing::Accepted) {
        return;
    }
    for (one, Verdict { standing, why, .. }) in std::mem::take(all).into_iter().zip(verdicts) {
        if standing == Standing::Accepted {
            all.push(one);
        } else {
            let (key, place) = named(one);
            held.push(HeldDefinition { kind, key, place, why, standing });
        }
    }
}

/// Name of a definition for people.
pub fn named(mount: &str, kind: Kind, name: &str) -> String {
    match kind {
        Kind::Instructions | Kind::Tool => format!("{mount}.{name}"),
        Kind::Prompt | Kind::Resource | Kind::Template => format!("{} {mount}.{name}", kind.as_str()),
    }
}

fn note_fresh(mount: &Mount, catalog: &mut Catalog, fresh: Vec<String>) {
    if !fresh.is_empty() {
        tracing::warn!(mount = %mount.config.name, definitions = fresh.len(), "definitions wait: `banyan pins` shows them");
        record(&mount.gate.record, fresh);
    }
    let waiting = |kind: Kind| catalog.held.iter().filter(|held| held.kind == kind && held.standing == Standing::Held).count();
    let counted = |kind: Kind| match (waiting(kind), kind) {
        (0, _) => None,
        (_, Kind::Instructions) => Some("its instructions".to_owned()),
        (some, _) => Some(format!("{some} of its {}s", kind.as_str())),
    };
    let all: Vec<String> = Kind::ALL.into_iter().rev().filter_map(counted).collect();
    if !all.is_empty() {
        let (name, all) = (&mount.config.name, all.join(", "));
        catalog.notes.push(format!("{all} wait until somebody looks at their definitions: `banyan pins show {name}`"));
    }
}

/// Removes invisible characters from the texts of `kinds` and the instructions; every other byte stays.
pub fn clean(catalog: &mut Catalog, kinds: &[catalog::Kind]) {
    catalog.instructions = catalog.instructions.take().map(|said| hidden::without(&said).into());
    kinds.iter().for_each(|kind| clean_list(catalog, *kind));
}

fn clean_list(catalog: &mut Catalog, kind: catalog::Kind) {
    let entries: Box<dyn Iterator<Item = &mut Entry>> = match kind {
        catalog::Kind::Prompts => Box::new(catalog.prompts.iter_mut().map(|offer| &mut offer.entry)),
        catalog::Kind::Resources => Box::new(Arc::make_mut(&mut catalog.resources).iter_mut()),
        catalog::Kind::Templates => Box::new(Arc::make_mut(&mut catalog.templates).iter_mut()),
        catalog::Kind::Tools => Box::new(catalog.tools.iter_mut().map(|offer| &mut offer.entry)),
    };
    for entry in entries {
        if let Some(raw) = hidden::cleaned(&entry.raw) {
            entry.raw = raw.into();
        }
    }
}

/// Mode for a kind of a mount's definitions.
fn mode(config: &Config, mount: &Mount, role: Role, kind: Kind) -> Mode {
    let pins = &config.pins;
    let usual = if role.is_vouched() {
        pins.gates
    } else if mount.registration.is_some() || is_rooms(mount) {
        // Participants come by themselves, like servers that register.
        pins.registered
    } else {
        pins.mode
    };
    let mode = pins.mounts.get(&mount.config.name).copied().unwrap_or(usual);
    let own = pins.resources.filter(|_| kind == Kind::Resource && mode != Mode::Trust);
    own.unwrap_or(mode)
}

/// Checks that the server of `mount`, which claims to be a gate, claimed so when first seen; an unseen server is remembered.
///
/// # Errors
/// If the store can't be read or written.
pub async fn was_gate(mount: &Mount) -> Result<bool, StoreError> {
    let source = source(mount);
    // Where gates are pinned, old pins may be those of a gate from before gates were recorded as such.
    let is_pinned_as_gate = mount.gate.config.load().pins.gates != Mode::Trust;
    mount.gate.pinning.judged(0, || (), move |pins, ()| pins.was_gate(&source, is_pinned_as_gate, now())).await
}

/// Identity of a mount's server for pins. Leaves out environment and headers, which hold changing things such as tokens.
pub fn source(mount: &Mount) -> Source {
    let server = match &mount.registration {
        Some(registration) => format!("registered by {}", registration.principal),
        None => mount.opens.identity(),
    };
    let server = policy::approval::hex(&Sha256::digest(server)[..16]);
    Source { mount: mount.config.name.to_string(), server }
}

/// Identity of a tool's server, in hexadecimal: for a mount of rooms, of the participant who offers the tool.
pub fn server(mount: &Mount, tool: &str) -> String {
    let source = source(mount);
    if is_rooms(mount) { of_participant(&source, mount.opens.part_of(tool)).server } else { source.server }
}

/// Identities of a mount's servers: a single one, or one for each participant in a mount of rooms.
struct Whose {
    source: Source,
    opens: Arc<dyn Opens>,
    /// The server claims to be a gate, but did not when first seen.
    has_turned: bool,
}

impl Whose {
    /// Identity of the owner of a name.
    fn of_name(&self, name: &str) -> Source {
        if self.opens.has_parts() { of_participant(&self.source, self.opens.part_of(name)) } else { self.source.clone() }
    }

    /// Checks that two names have the same owner.
    fn is_one(&self, a: &str, b: &str) -> bool {
        !self.opens.has_parts() || self.opens.part_of(a) == self.opens.part_of(b)
    }
}

fn of_participant(rooms: &Source, whose: &str) -> Source {
    let server = policy::approval::hex(&Sha256::digest(format!("{} {whose}", rooms.server))[..16]);
    Source { mount: rooms.mount.clone(), server }
}

/// Identities of a mount's servers at present.
pub fn sources(mount: &Mount) -> Vec<Source> {
    let source = source(mount);
    if !is_rooms(mount) {
        return vec![source];
    }
    let catalog = mount.catalog.load();
    let offers = catalog.tools.iter().chain(catalog.prompts.iter()).map(|offer| &offer.entry.key);
    let resources = catalog.resources.iter().chain(catalog.templates.iter()).map(|entry| &entry.key);
    let names = offers.chain(resources).chain(catalog.held.iter().map(|held| &held.key));
    let all: BTreeSet<&str> = names.map(|name| mount.opens.part_of(name)).collect();
    all.into_iter().map(|whose| of_participant(&source, whose)).collect()
}

fn is_rooms(mount: &Mount) -> bool {
    mount.opens.has_parts()
}

/// Judges lists and remembers new definitions.
fn remembered(pins: &mut dyn Pins, whose: &Whose, listed: Vec<DefinedList>) -> Result<Judgement, StoreError> {
    let mut found = Judgement { verdicts: Vec::with_capacity(listed.len()), before: None };
    for DefinedList { kind, mode, all } in listed {
        let mut verdicts = Vec::with_capacity(all.len());
        // Names of one owner are adjacent.
        for own in all.chunk_by(|(a, _), (b, _)| whose.is_one(a, b)) {
            let source = whose.of_name(own.first().map_or("", |(name, _)| name));
            verdicts.extend(remembered_of(pins, &source, (kind, mode, whose.has_turned), own)?);
        }
        if kind == Kind::Instructions && verdicts.iter().any(|one: &Verdict| one.standing != Standing::Accepted) {
            found.before = pins.last_good(&whose.source, kind, INSTRUCTIONS)?.and_then(|definition| definition.instructions());
        }
        found.verdicts.push(verdicts);
    }
    Ok(found)
}

/// Judges a list of one owner and remembers new definitions.
fn remembered_of(
    pins: &mut dyn Pins,
    source: &Source,
    (kind, mode, has_turned): (Kind, Mode, bool),
    all: &[(String, Definition)],
) -> Result<Vec<Verdict>, StoreError> {
    let since = now();
    let hashes: Vec<(&str, [u8; 32])> = all.iter().map(|(name, definition)| (name.as_str(), definition.hash())).collect();
    let mut verdicts = judge(mode, kind, &pins.known(source, kind)?, &hashes);
    for verdict in verdicts.iter_mut().filter(|one| has_turned && one.is_new && one.standing == Standing::Held) {
        verdict.why = Why::BecameGate;
    }
    let new = verdicts.iter().zip(all).filter(|(verdict, (_, definition))| {
        // Thousands of files without a description need not be remembered.
        let is_data = kind.comes_and_goes() && verdict.standing == Standing::Accepted && mode == Mode::Pin && definition.is_bare();
        verdict.is_new && !is_data
    });
    let new = new.map(|(verdict, (name, definition))| {
        let Verdict { standing, why, .. } = *verdict;
        Pin { source: source.clone(), kind, name: name.clone(), standing, why, since, definition: definition.clone() }
    });
    let new: Vec<Pin> = new.collect();
    if !new.is_empty() {
        pins.add(source, kind, &new)?;
    }
    Ok(verdicts)
}

fn definition(kind: Kind, raw: &[u8]) -> Definition {
    match kind {
        Kind::Instructions => Definition::of_instructions(&String::from_utf8_lossy(raw)),
        Kind::Prompt | Kind::Resource | Kind::Template | Kind::Tool => Definition::of(kind, raw, &RISKS),
    }
}
