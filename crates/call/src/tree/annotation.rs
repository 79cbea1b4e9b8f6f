//! What MCP-AX says of a tool as it stands here (AX-33, AX-34): read from its definition and the configuration, raised by what calls take.
//! What a definition means is not decided here but in `mesh-proto`; who is shown it, in `view`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcp_proto::catalog::Entry;
use mcp_proto::glob::Glob;
use mcp_proto::json::Members;
use mcp_proto::splice::{self, Change};
use mesh_proto::annotation::{Annotation, Availability, LatencyClass, Transport, Wishes, key};
use mesh_proto::route_cursor::PREFIX;
use policy::approval::{Mode, Risk};
use telemetry::metrics::ToolSlot;

use crate::tree::role::Role;

/// By how many the calls that outlast a class must outnumber those that keep it, before the next class is listed.
const OUTNUMBERED: u8 = 3;

/// What is known of one tool.
#[derive(Debug)]
pub struct Noted {
    annotation: Annotation,
    /// What another gate wrote into the definition, as a raw object. It is for gates alone, so clients get the definition without.
    said: Option<Bytes>,
    /// Whether its own server or the configuration names its latency class.
    is_classed: bool,
    /// Risk by the configuration; the worst, where that says nothing.
    configured: Risk,
    pub pace: Arc<Pace>,
    /// What it is counted as.
    pub counted: ToolSlot,
}

/// How long calls of a tool take, as far as it matters: whether they outlast its class. Never slower than what is listed by two
/// relaxed loads, for it is asked after every call.
#[derive(Debug, Default)]
pub struct Pace {
    /// The class that was measured, by its place in [`LatencyClass::ALL`].
    class: AtomicU8,
    over: AtomicU8,
}

impl Noted {
    /// Reads the definition of a tool of a server that is reached by `transport`; takes out of it what another gate wrote there.
    pub fn of(entry: &mut Entry, transport: &Transport, wishes: &[(String, Wishes)], role: Role, pace: Option<Arc<Pace>>) -> Self {
        let mut annotation = Annotation::of_tool(&entry.raw, transport);
        let wanted: Vec<&Wishes> = wishes.iter().filter(|(glob, _)| Glob::new(glob).matches(&entry.key)).map(|(_, w)| w).collect();
        wanted.iter().for_each(|wishes| wishes.apply(&mut annotation));
        let configured = configured(&wanted);
        let meta = Members::again(&entry.raw).object("_meta").unwrap_or_default();
        let named = meta.str(key::LATENCY_CLASS).is_some_and(|class| LatencyClass::parse(&class).is_some());
        let said = if role.is_gate() { between_gates(&meta) } else { None };
        // The gate below is nearer to the tool, and ends its calls by its class; one that only calls itself a gate may not.
        let is_classed = (named && !role.is_vouched()) || wanted.iter().any(|w| w.latency_class.is_some());
        if said.is_some() {
            entry.raw = without(&entry.raw, &meta);
        }
        Self { annotation, said, is_classed, configured, pace: pace.unwrap_or_default(), counted: ToolSlot::default() }
    }

    /// Longest silence of a call; `None`: the tool says nothing of it, or any time (AX-31).
    pub fn patience(&self) -> Option<Duration> {
        if self.is_classed { self.class().timeout() } else { None }
    }

    /// Notes how long a call took; one that took too long counts only if it `counts`. `true`: the tool is listed as slower from now on.
    pub fn took(&self, took: Duration, counts: impl FnOnce() -> bool) -> bool {
        let is_over = self.class().timeout().is_some_and(|most| took > most);
        if is_over { counts() && self.pace.outlasted(took) } else { self.pace.kept() }
    }

    /// A definition with the annotation in its `_meta`. `is_lost`: its server is not there at present (AX-61). `is_gated`: this gate asks
    /// somebody to agree to calls of it; what a gate below says of that stays (AX-47).
    pub fn written(&self, definition: &Bytes, is_lost: bool, is_gated: bool) -> Bytes {
        let mut annotation = self.annotation.clone();
        annotation.raise_latency(self.class().timeout().unwrap_or(Duration::MAX));
        let own = annotation.additions(is_lost);
        let said = self.said.as_ref().map(|said| Members::again(said)).unwrap_or_default();
        let said: Vec<(String, &[u8])> = said.iter().map(|(key, raw)| (key.into_owned(), raw)).collect();
        let mut changes: Vec<(&str, Change<'_>)> = own.iter().map(|(key, raw)| (*key, Change::Set(raw.as_bytes()))).collect();
        changes.extend(is_gated.then_some((key::GATED, Change::Set(b"true"))));
        let is_own = |name: &str| own.iter().any(|(own, _)| *own == name) || (is_gated && name == key::GATED);
        changes.extend(said.iter().filter(|(key, _)| !is_own(key)).map(|(key, raw)| (&**key, Change::Set(raw))));
        let members = Members::again(definition);
        let meta = members.get("_meta").filter(|raw| raw.starts_with(b"{")).unwrap_or(b"{}");
        let meta = splice::edit(meta, &changes);
        splice::edit(definition, &[("_meta", Change::Set(&meta))]).into()
    }

    /// The definition of a gate's tool as that gate wrote it; `None`: nothing was taken out of it.
    pub fn as_said(&self, definition: &Bytes) -> Option<Bytes> {
        let said = Members::again(self.said.as_ref()?);
        let said: Vec<(String, &[u8])> = said.iter().map(|(key, raw)| (key.into_owned(), raw)).collect();
        let changes: Vec<(&str, Change<'_>)> = said.iter().map(|(key, raw)| (&**key, Change::Set(raw))).collect();
        let meta = Members::again(definition).get("_meta").filter(|raw| raw.starts_with(b"{")).unwrap_or(b"{}").to_vec();
        Some(splice::edit(definition, &[("_meta", Change::Set(&splice::edit(&meta, &changes)))]).into())
    }

    /// What is known, without what was measured.
    pub fn annotation(&self) -> &Annotation {
        &self.annotation
    }

    /// Whether a gate below asks somebody to agree to calls of it (AX-47).
    pub fn is_gated_below(&self) -> bool {
        self.said.as_ref().is_some_and(|said| Members::again(said).get(key::GATED) == Some(b"true"))
    }

    /// What it may do.
    pub fn risk(&self) -> Risk {
        Risk { mutable: self.annotation.mutable, reversible: self.annotation.reversible, listed: self.configured.listed }
    }

    /// Checks whether nobody is asked about calls of it in this mode only because its server says that it may do little.
    pub fn is_ungated_by_server(&self, mode: Mode) -> bool {
        mode.asks(self.configured) && !mode.asks(self.risk())
    }

    /// Whether calling it twice is calling it once.
    pub fn is_idempotent(&self) -> bool {
        self.annotation.idempotent
    }

    /// How many gates a call passes from here to the tool's server, this one included.
    pub fn hops(&self) -> u8 {
        self.annotation.hops
    }

    /// Whether the tool is there, in the word of the schema.
    pub fn availability(&self, is_lost: bool) -> &'static str {
        if is_lost { Availability::Degraded } else { self.annotation.availability }.as_str()
    }

    /// The latency class as it is listed.
    pub fn class(&self) -> LatencyClass {
        self.annotation.latency_class.max(self.pace.class())
    }
}

/// What was measured is not part of what a server lists.
impl PartialEq for Noted {
    fn eq(&self, other: &Self) -> bool {
        (&self.annotation, &self.said, self.is_classed, self.configured)
            == (&other.annotation, &other.said, other.is_classed, other.configured)
    }
}

/// Reads what is wanted of a tool's risk. Of several globs the last holds; where they say nothing, it may do the worst.
fn configured(wanted: &[&Wishes]) -> Risk {
    let listed = wanted.iter().filter_map(|wishes| wishes.mutable).next_back() == Some(false);
    let reversible = wanted.iter().filter_map(|wishes| wishes.reversible).next_back() == Some(true);
    Risk { mutable: !listed, reversible, listed }
}

impl Pace {
    /// Whether anything was noted that must outlive the list.
    pub fn is_noted(&self) -> bool {
        self.class.load(Ordering::Relaxed) > 0 || self.over.load(Ordering::Relaxed) > 0
    }

    fn class(&self) -> LatencyClass {
        let place = usize::from(self.class.load(Ordering::Relaxed));
        LatencyClass::ALL.get(place).copied().unwrap_or(LatencyClass::Realtime)
    }

    /// A call kept its class.
    fn kept(&self) -> bool {
        let over = self.over.load(Ordering::Relaxed);
        if over > 0 {
            self.over.store(over - 1, Ordering::Relaxed);
        }
        false
    }

    /// One slow call says nothing of a tool: the slow must outnumber the others. What was raised is not lowered again (AX-34).
    fn outlasted(&self, took: Duration) -> bool {
        if self.over.fetch_add(1, Ordering::Relaxed) + 1 < OUTNUMBERED {
            return false;
        }
        self.over.store(0, Ordering::Relaxed);
        let class = LatencyClass::of_duration(took);
        let place = LatencyClass::ALL.iter().position(|c| *c == class).and_then(|place| u8::try_from(place).ok()).unwrap_or_default();
        self.class.fetch_max(place, Ordering::Relaxed) < place
    }
}

/// The members that gates write for each other, as a raw object; `None`: there are none.
fn between_gates(meta: &Members<'_>) -> Option<Bytes> {
    let keys: Vec<String> = meta.beginning_with(PREFIX).map(|key| key.into_owned()).collect();
    let members: Vec<(&str, Change<'_>)> = keys.iter().filter_map(|key| Some((&**key, Change::Set(meta.get(key)?)))).collect();
    (!members.is_empty()).then(|| splice::edit(b"{}", &members).into())
}

/// A definition without them, and without a `_meta` that held nothing else.
fn without(definition: &Bytes, meta: &Members<'_>) -> Bytes {
    let keys: Vec<String> = meta.beginning_with(PREFIX).map(|key| key.into_owned()).collect();
    if keys.len() == meta.len() {
        return splice::edit(definition, &[("_meta", Change::Remove)]).into();
    }
    let changes: Vec<(&str, Change<'_>)> = keys.iter().map(|key| (&**key, Change::Remove)).collect();
    let raw = Members::again(definition).get("_meta").unwrap_or(b"{}").to_vec();
    splice::edit(definition, &[("_meta", Change::Set(&splice::edit(&raw, &changes)))]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(raw: &'static str) -> Entry {
        Entry { key: "t".into(), raw: Bytes::from_static(raw.as_bytes()) }
    }

    fn text(bytes: &Bytes) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn native() -> Transport {
        Transport::default()
    }

    #[test]
    fn ax_33_a_tool_is_reached_as_its_server_was_registered_unless_it_says_otherwise() {
        let uart = Transport::parse("uart_cbor").unwrap();
        let listed =
            |raw: &'static str| text(&Noted::of(&mut entry(raw), &uart, &[], Role::Server, None).written(&entry(raw).raw, false, false));
        assert!(listed(r#"{"name":"t"}"#).contains(r#""x-mcpax-transport":"uart_cbor""#));
        let own = listed(r#"{"name":"t","_meta":{"x-mcpax-transport":"can_cbor"}}"#);
        assert!(own.contains(r#""x-mcpax-transport":"can_cbor""#) && !own.contains("uart"), "{own}");
    }

    #[test]
    fn ax_33_what_a_gate_wrote_is_for_gates_and_the_definition_is_the_servers() {
        let raw = r#"{"name":"t","inputSchema":{"n":1.0},"_meta":{"own":1,"x-mcpax-hops":2,"x-mcpax-mutable":false,"x-mcpax-new":[3]}}"#;
        let mut tool = entry(raw);
        let noted = Noted::of(&mut tool, &native(), &[], Role::Vouched, None);
        assert_eq!(text(&tool.raw), r#"{"name":"t","inputSchema":{"n":1.0},"_meta":{"own":1}}"#);
        let written = text(&noted.written(&tool.raw, false, false));
        for part in
            [r#""own":1"#, r#""x-mcpax-hops":3"#, r#""x-mcpax-mutable":false"#, r#""x-mcpax-new":[3]"#, r#""inputSchema":{"n":1.0}"#]
        {
            assert_eq!(written.matches(part).count(), 1, "{part}: {written}");
        }
        let mut only = entry(r#"{"name":"t","_meta":{"x-mcpax-hops":1}}"#);
        drop(Noted::of(&mut only, &native(), &[], Role::Vouched, None));
        assert_eq!(text(&only.raw), r#"{"name":"t"}"#);
        let mut plain = entry(raw);
        drop(Noted::of(&mut plain, &native(), &[], Role::Server, None));
        assert_eq!(text(&plain.raw), raw);
    }

    #[test]
    fn ax_47_a_gate_below_is_listed_by_every_gate_above_and_none_takes_it_away() {
        let raw = r#"{"name":"t","_meta":{"x-mcpax-gated":true,"x-mcpax-mutable":false,"x-mcpax-auth-scope":"read"}}"#;
        for is_gated in [false, true] {
            let mut below = entry(raw);
            let noted = Noted::of(&mut below, &native(), &[], Role::Vouched, None);
            assert!(noted.is_gated_below());
            let written = text(&noted.written(&below.raw, false, is_gated));
            assert_eq!(written.matches(r#""x-mcpax-gated":true"#).count(), 1, "{written}");
        }
        let mut open = entry(r#"{"name":"t"}"#);
        let noted = Noted::of(&mut open, &native(), &[], Role::Vouched, None);
        assert!(!noted.is_gated_below() && !text(&noted.written(&open.raw, false, false)).contains("gated"));
        assert!(text(&noted.written(&open.raw, false, true)).contains(r#""x-mcpax-gated":true"#));
    }

    #[test]
    fn ax_33_the_configuration_may_say_what_a_server_does_not() {
        let wishes = [("t*".to_owned(), Wishes { latency_class: Some(LatencyClass::Slow), ..Wishes::default() })];
        let noted = Noted::of(&mut entry(r#"{"name":"t"}"#), &native(), &wishes, Role::Server, None);
        assert!(text(&noted.written(&entry(r#"{"name":"t"}"#).raw, false, false)).contains(r#""x-mcpax-latency-class":"slow""#));
        assert_eq!(noted.patience(), Some(Duration::from_secs(120)));
    }

    #[test]
    fn m12_a_tool_that_reads_by_its_own_word_is_known_from_one_that_the_configuration_lists() {
        let hint = r#"{"name":"t","annotations":{"readOnlyHint":true}}"#;
        let listed = Wishes { mutable: Some(false), ..Wishes::default() };
        let noted = |raw, wishes: &[(String, Wishes)]| Noted::of(&mut entry(raw), &native(), wishes, Role::Server, None);
        let (own, by_both) = (noted(hint, &[]), noted(hint, &[("t".to_owned(), listed.clone())]));
        for (mode, is_own) in [(Mode::Off, false), (Mode::Irreversible, true), (Mode::Mutable, true), (Mode::Unlisted, false)] {
            assert_eq!((own.is_ungated_by_server(mode), by_both.is_ungated_by_server(mode)), (is_own, false), "{mode:?}");
        }
        assert!(Mode::Unlisted.asks(own.risk()) && !Mode::Unlisted.asks(by_both.risk()));
        let stricter = [("*".to_owned(), listed.clone()), ("t".to_owned(), Wishes { mutable: Some(true), ..Wishes::default() })];
        assert!(Mode::Unlisted.asks(noted(hint, &stricter).risk()), "the longer glob holds");
        let trusted = Wishes { trust: true, ..listed };
        assert!(!Mode::Unlisted.asks(noted(r#"{"name":"t"}"#, &[("t".to_owned(), trusted)]).risk()));
    }

    #[test]
    fn ax_31_only_a_class_that_somebody_named_bounds_a_call() {
        let patience = |raw, role| Noted::of(&mut entry(raw), &native(), &[], role, None).patience();
        let fast = r#"{"name":"t","_meta":{"x-mcpax-latency-class":"fast"}}"#;
        assert_eq!(patience(fast, Role::Server), Some(Duration::from_secs(5)));
        assert_eq!(patience(r#"{"name":"t","_meta":{"x-mcpax-latency-class":"batch"}}"#, Role::Server), None);
        assert_eq!(patience(r#"{"name":"t"}"#, Role::Server), None);
        assert_eq!(patience(fast, Role::Vouched), None);
        assert_eq!(patience(fast, Role::Declared), Some(Duration::from_secs(5)), "its own word takes no limit away");
        let wishes = [("t".to_owned(), Wishes { latency_class: Some(LatencyClass::Slow), ..Wishes::default() })];
        let wished = Noted::of(&mut entry(r#"{"name":"t"}"#), &native(), &wishes, Role::Vouched, None);
        assert_eq!(wished.patience(), Some(Duration::from_secs(120)), "what the configuration names holds for a gate as well");
    }

    #[test]
    fn ax_34_a_class_is_raised_by_what_calls_take_and_never_lowered() {
        let fast = r#"{"name":"t","_meta":{"x-mcpax-latency-class":"fast"}}"#;
        let noted = Noted::of(&mut entry(fast), &native(), &[], Role::Server, None);
        let (slow, quick) = (Duration::from_secs(20), Duration::from_millis(3));
        let steps = [slow, quick, slow, slow, quick, slow].map(|took| noted.took(took, || true));
        assert_eq!((steps, noted.class()), ([false; 6], LatencyClass::Fast));
        assert!(!noted.took(slow, || false) && noted.took(slow, || true) && !noted.took(slow, || true));
        assert_eq!(noted.class(), LatencyClass::Standard);
        (0..100).for_each(|_| assert!(!noted.took(quick, || true)));
        assert_eq!(noted.class(), LatencyClass::Standard);
        assert!(text(&noted.written(&entry(fast).raw, false, false)).contains(r#""x-mcpax-latency-class":"standard""#));
    }
}
