//! MCP-AX annotation of a tool in this tree (AX-33, AX-34): read from its definition and the configuration, raised by measured calls. Does
//! not interpret definitions (`mesh-proto` does) or choose who sees them (`view` does).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcp_proto::catalog::Entry;
use mcp_proto::glob::Glob;
use mcp_proto::hidden;
use mcp_proto::json::Members;
use mcp_proto::splice::{self, Change};
use mesh_proto::annotation::{Annotation, Availability, LatencyClass, OPERATORS, Transport, Wishes, key};
use mesh_proto::route_cursor::PREFIX;
use policy::approval::{Cause, Mode, Risk};
use telemetry::metrics::ToolSlot;

use crate::tree::role::Role;

/// Lead of calls over the limit of a latency class, above those within it, from which the next class is listed.
const OUTNUMBERED: u8 = 3;

/// Facts about a tool.
#[derive(Debug)]
pub struct ToolFacts {
    annotation: Annotation,
    /// Members that another gate wrote into the definition, as a raw object. For gates alone; clients get the definition without.
    said: Option<Bytes>,
    /// The server or the configuration names the latency class.
    is_classed: bool,
    /// The tool is for operators, by the word of a gate below.
    pub is_for_operators: bool,
    /// Risk by the configuration; the worst where it says nothing.
    configured: Risk,
    pub pace: Arc<Pace>,
    /// Slot of the tool in metrics.
    pub counted: ToolSlot,
}

/// Duration of a tool's calls, as far as it matters: whether they exceed the tool's class. Asked after every call, so that keeping a class
/// costs no more than two relaxed loads.
#[derive(Debug, Default)]
pub struct Pace {
    /// Class measured, by its place in [`LatencyClass::ALL`].
    class: AtomicU8,
    over: AtomicU8,
}

impl ToolFacts {
    /// Reads the definition of a tool whose server is reached by `transport`, and removes members written by another gate.
    pub fn of_entry(entry: &mut Entry, transport: &Transport, wishes: &[(String, Wishes)], role: Role, pace: Option<Arc<Pace>>) -> Self {
        let mut annotation = Annotation::of_tool(&entry.raw, transport);
        let wanted: Vec<&Wishes> = wishes.iter().filter(|(glob, _)| Glob::new(glob).matches(&entry.key)).map(|(_, w)| w).collect();
        wanted.iter().for_each(|wishes| wishes.apply(&mut annotation));
        let configured = configured(&wanted);
        let meta = Members::again(&entry.raw).object("_meta").unwrap_or_default();
        let said = if role.is_gate() { between_gates(&meta) } else { None };
        let is_for_operators = role.is_gate() && meta.str(key::AUDIENCE).as_deref() == Some(OPERATORS);
        // The gate below is nearer to the tool, and ends its calls by its class; a mere claim to be a gate does not count.
        let is_classed = (annotation.names_class && !role.is_vouched()) || wanted.iter().any(|w| w.latency_class.is_some());
        if said.is_some() {
            entry.raw = without(&entry.raw, &meta);
        }
        Self { annotation, said, is_classed, is_for_operators, configured, pace: pace.unwrap_or_default(), counted: ToolSlot::default() }
    }

    /// Longest silence of a call; `None` if the tool names none, or any time (AX-31).
    pub fn patience(&self) -> Option<Duration> {
        if self.is_classed { self.class().timeout() } else { None }
    }

    /// Notes the duration of a call, and one beyond the limit only if it `counts`; `true` if the tool is listed as slower from now on.
    pub fn took(&self, took: Duration, counts: impl FnOnce() -> bool) -> bool {
        let is_over = self.class().timeout().is_some_and(|most| took > most);
        if is_over { counts() && self.pace.outlasted(took) } else { self.pace.kept() }
    }

    /// Definition with the annotation in its `_meta`. `is_lost`: the server is away (AX-61). `is_gated`: this gate wants a person to agree
    /// to calls. A gate below's own statement about that stays (AX-47).
    pub fn written(&self, definition: &Bytes, is_lost: bool, is_gated: bool) -> Bytes {
        let mut annotation = self.annotation.clone();
        annotation.raise_latency(self.class().timeout().unwrap_or(Duration::MAX));
        let own = annotation.additions(is_lost);
        let visible = self.said.as_ref().map(|said| hidden::cleaned(said).map_or_else(|| said.clone(), Into::into));
        let said = visible.as_ref().map(|said| Members::again(said)).unwrap_or_default();
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

    /// Definition of a gate's tool as that gate wrote it; `None` if nothing was removed.
    pub fn as_said(&self, definition: &Bytes) -> Option<Bytes> {
        let said = Members::again(self.said.as_ref()?);
        let said: Vec<(String, &[u8])> = said.iter().map(|(key, raw)| (key.into_owned(), raw)).collect();
        let changes: Vec<(&str, Change<'_>)> = said.iter().map(|(key, raw)| (&**key, Change::Set(raw))).collect();
        let meta = Members::again(definition).get("_meta").filter(|raw| raw.starts_with(b"{")).unwrap_or(b"{}").to_vec();
        Some(splice::edit(definition, &[("_meta", Change::Set(&splice::edit(&meta, &changes)))]).into())
    }

    /// Annotation without measurements.
    pub fn annotation(&self) -> &Annotation {
        &self.annotation
    }

    /// Checks if a gate below wants a person to agree to calls (AX-47).
    pub fn is_gated_below(&self) -> bool {
        self.said.as_ref().is_some_and(|said| Members::again(said).get(key::GATED) == Some(b"true"))
    }

    /// Risk by annotation and configuration.
    pub fn risk(&self) -> Risk {
        Risk { mutable: self.annotation.mutable, reversible: self.annotation.reversible, listed: self.configured.listed }
    }

    /// Causes for asking a person about a call of a tool in this mode. Without any word about the tool, the worst is assumed.
    pub fn causes(noted: Option<&Self>, mode: Mode, by_policy: bool) -> Vec<Cause> {
        let risk = noted.map_or(Risk { mutable: true, reversible: false, listed: false }, Self::risk);
        mode.causes(risk, by_policy, noted.is_some_and(Self::is_gated_below))
    }

    /// Checks if calls go without approval in this mode only because of the server's own claims.
    pub fn is_ungated_by_server(&self, mode: Mode) -> bool {
        mode.asks(self.configured) && !mode.asks(self.risk())
    }

    /// Checks if a repeated call has no further effect.
    pub fn is_idempotent(&self) -> bool {
        self.annotation.idempotent
    }

    /// Number of gates from here to the tool's server, this one included.
    pub fn hops(&self) -> u8 {
        self.annotation.hops
    }

    /// Availability of the tool, in the schema's word.
    pub fn availability(&self, is_lost: bool) -> &'static str {
        if is_lost { Availability::Degraded } else { self.annotation.availability }.as_str()
    }

    /// Latency class as listed.
    pub fn class(&self) -> LatencyClass {
        self.annotation.latency_class.max(self.pace.class())
    }
}

// Measurements are not part of a server's list.
impl PartialEq for ToolFacts {
    fn eq(&self, other: &Self) -> bool {
        (&self.annotation, &self.said, self.is_classed, self.configured)
            == (&other.annotation, &other.said, other.is_classed, other.configured)
    }
}

/// Reads the configured risk of a tool. The last of several globs counts; without any, the worst is assumed.
fn configured(wanted: &[&Wishes]) -> Risk {
    let listed = wanted.iter().filter_map(|wishes| wishes.mutable).next_back() == Some(false);
    let reversible = wanted.iter().filter_map(|wishes| wishes.reversible).next_back() == Some(true);
    Risk { mutable: !listed, reversible, listed }
}

impl Pace {
    /// Checks for measurements that must outlive the list.
    pub fn is_noted(&self) -> bool {
        self.class.load(Ordering::Relaxed) > 0 || self.over.load(Ordering::Relaxed) > 0
    }

    fn class(&self) -> LatencyClass {
        let place = usize::from(self.class.load(Ordering::Relaxed));
        LatencyClass::ALL.get(place).copied().unwrap_or(LatencyClass::Realtime)
    }

    /// Notes a call within its class.
    fn kept(&self) -> bool {
        let over = self.over.load(Ordering::Relaxed);
        if over > 0 {
            self.over.store(over - 1, Ordering::Relaxed);
        }
        false
    }

    /// Notes a call beyond its class; `true` once such calls outnumber the others, since a single slow call proves nothing. A raised class
    /// is never lowered (AX-34).
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

/// Members written between gates, as a raw object, if any.
fn between_gates(meta: &Members<'_>) -> Option<Bytes> {
    let keys: Vec<String> = meta.beginning_with(PREFIX).map(|key| key.into_owned()).collect();
    let members: Vec<(&str, Change<'_>)> = keys.iter().filter_map(|key| Some((&**key, Change::Set(meta.get(key)?)))).collect();
    (!members.is_empty()).then(|| splice::edit(b"{}", &members).into())
}

/// Removes those members, and a `_meta` with no others.
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
    fn ax_33_a_tool_has_the_transport_of_its_registration() {
        let uart = Transport::parse("uart_cbor").unwrap();
        let listed = |raw: &'static str| {
            text(&ToolFacts::of_entry(&mut entry(raw), &uart, &[], Role::Server, None).written(&entry(raw).raw, false, false))
        };
        assert!(listed(r#"{"name":"t"}"#).contains(r#""x-mcpax-transport":"uart_cbor""#));
        let own = listed(r#"{"name":"t","_meta":{"x-mcpax-transport":"can_cbor"}}"#);
        assert!(own.contains(r#""x-mcpax-transport":"can_cbor""#) && !own.contains("uart"), "{own}");
    }

    #[test]
    fn ax_33_members_between_gates_are_hidden_from_clients() {
        let raw = r#"{"name":"t","inputSchema":{"n":1.0},"_meta":{"own":1,"x-mcpax-hops":2,"x-mcpax-mutable":false,"x-mcpax-new":[3]}}"#;
        let mut tool = entry(raw);
        let noted = ToolFacts::of_entry(&mut tool, &native(), &[], Role::Vouched, None);
        assert_eq!(text(&tool.raw), r#"{"name":"t","inputSchema":{"n":1.0},"_meta":{"own":1}}"#);
        let written = text(&noted.written(&tool.raw, false, false));
        for part in
            [r#""own":1"#, r#""x-mcpax-hops":3"#, r#""x-mcpax-mutable":false"#, r#""x-mcpax-new":[3]"#, r#""inputSchema":{"n":1.0}"#]
        {
            assert_eq!(written.matches(part).count(), 1, "{part}: {written}");
        }
        let mut only = entry(r#"{"name":"t","_meta":{"x-mcpax-hops":1}}"#);
        drop(ToolFacts::of_entry(&mut only, &native(), &[], Role::Vouched, None));
        assert_eq!(text(&only.raw), r#"{"name":"t"}"#);
        let mut plain = entry(raw);
        drop(ToolFacts::of_entry(&mut plain, &native(), &[], Role::Server, None));
        assert_eq!(text(&plain.raw), raw);
    }

    #[test]
    fn ax_47_every_gate_above_lists_a_gate_below() {
        let raw = r#"{"name":"t","_meta":{"x-mcpax-gated":true,"x-mcpax-mutable":false,"x-mcpax-auth-scope":"read"}}"#;
        for is_gated in [false, true] {
            let mut below = entry(raw);
            let noted = ToolFacts::of_entry(&mut below, &native(), &[], Role::Vouched, None);
            assert!(noted.is_gated_below());
            let written = text(&noted.written(&below.raw, false, is_gated));
            assert_eq!(written.matches(r#""x-mcpax-gated":true"#).count(), 1, "{written}");
        }
        let mut open = entry(r#"{"name":"t"}"#);
        let noted = ToolFacts::of_entry(&mut open, &native(), &[], Role::Vouched, None);
        assert!(!noted.is_gated_below() && !text(&noted.written(&open.raw, false, false)).contains("gated"));
        assert!(text(&noted.written(&open.raw, false, true)).contains(r#""x-mcpax-gated":true"#));
    }

    #[test]
    fn ax_33_the_configuration_may_say_what_a_server_does_not() {
        let wishes = [("t*".to_owned(), Wishes { latency_class: Some(LatencyClass::Slow), ..Wishes::default() })];
        let noted = ToolFacts::of_entry(&mut entry(r#"{"name":"t"}"#), &native(), &wishes, Role::Server, None);
        assert!(text(&noted.written(&entry(r#"{"name":"t"}"#).raw, false, false)).contains(r#""x-mcpax-latency-class":"slow""#));
        assert_eq!(noted.patience(), Some(Duration::from_secs(120)));
    }

    #[test]
    fn m12_claimed_and_configured_readers_are_told_apart() {
        let hint = r#"{"name":"t","annotations":{"readOnlyHint":true}}"#;
        let listed = Wishes { mutable: Some(false), ..Wishes::default() };
        let noted = |raw, wishes: &[(String, Wishes)]| ToolFacts::of_entry(&mut entry(raw), &native(), wishes, Role::Server, None);
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
        let patience = |raw, role| ToolFacts::of_entry(&mut entry(raw), &native(), &[], role, None).patience();
        let fast = r#"{"name":"t","_meta":{"x-mcpax-latency-class":"fast"}}"#;
        assert_eq!(patience(fast, Role::Server), Some(Duration::from_secs(5)));
        assert_eq!(patience(r#"{"name":"t","_meta":{"x-mcpax-latency-class":"batch"}}"#, Role::Server), None);
        assert_eq!(patience(r#"{"name":"t"}"#, Role::Server), None);
        assert_eq!(patience(fast, Role::Vouched), None);
        assert_eq!(patience(fast, Role::Declared), Some(Duration::from_secs(5)), "its own word takes no limit away");
        let wishes = [("t".to_owned(), Wishes { latency_class: Some(LatencyClass::Slow), ..Wishes::default() })];
        let wished = ToolFacts::of_entry(&mut entry(r#"{"name":"t"}"#), &native(), &wishes, Role::Vouched, None);
        assert_eq!(wished.patience(), Some(Duration::from_secs(120)), "what the configuration names holds for a gate as well");
    }

    #[test]
    fn ax_34_slow_calls_raise_a_class_for_good() {
        let fast = r#"{"name":"t","_meta":{"x-mcpax-latency-class":"fast"}}"#;
        let noted = ToolFacts::of_entry(&mut entry(fast), &native(), &[], Role::Server, None);
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
