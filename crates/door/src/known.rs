//! What is known of whoever holds a connection, so that not every request on it has to prove it anew.
//!
//! It holds good only for the same words under the same configuration. Who may come in is decided in `door.rs`.

use std::cell::RefCell;
use std::hash::RandomState;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Cache};
use banyan_model::{Era, Segment};
use bytes::Bytes;
use config::resolved::Config;
use mcp_proto::era::{RequestMeta, STATELESS};
use mcp_proto::http1::Fields;
use mcp_proto::json::{Before, Object};
use mcp_proto::projection::Style;
use mcp_proto::recent::Recent;

use crate::entrance::Entrance;
use crate::entry;
use crate::entry::Refused;
use call::words::by_session::caller_of;
use call::words::caller::{Caller, Last};
use call::words::entered::{AboutClient, Entered};
use call::words::party::Party;
use call::words::session::Session;
use trust::Trust;

/// The fields by which the door decides.
const SHOWN: [&str; 3] = ["authorization", "host", "origin"];

/// What the last request on a connection has shown. It keeps copies, for what was read must not stay for it.
#[derive(Default)]
pub struct Known {
    /// The configuration in force, once somebody asked for it.
    config: Option<Cache<InForce, Arc<Config>>>,
    /// The other end of the connection.
    party: Option<Arc<Party>>,
    entry: Option<Arc<Entry>>,
    calls: Option<Arc<Calls>>,
    of_session: Option<(Entered, Arc<Caller>)>,
    /// What its last message said of itself.
    pub before: Before,
    /// The same, read; by its count.
    meta: Option<(u64, Arc<RequestMeta>)>,
    /// The count of the last one.
    last: u64,
}

/// Where a gate keeps the configuration in force.
struct InForce(Arc<Entrance>);

impl Deref for InForce {
    type Target = ArcSwap<Config>;

    fn deref(&self) -> &ArcSwap<Config> {
        &self.0.gate.config
    }
}

thread_local! {
    /// What other connections of this thread have shown and said.
    static ENTRIES: RefCell<Recent<Entry>> = RefCell::new(Recent::new(RandomState::new()));
    static CALLS: RefCell<Recent<Calls>> = RefCell::new(Recent::new(RandomState::new()));
}

struct Entry {
    config: Arc<Config>,
    party: Option<Arc<Party>>,
    shown: [Option<Box<[u8]>>; SHOWN.len()],
    entered: Entered,
}

impl Entry {
    /// Whether who shows this under that configuration comes in as before.
    fn is_of(&self, config: &Arc<Config>, shown: &[Option<&[u8]>; SHOWN.len()]) -> bool {
        Arc::ptr_eq(&self.config, config) && self.shown.iter().zip(shown).all(|(then, now)| then.as_deref() == *now) && self.entered.holds()
    }
}

struct Calls {
    config: Arc<Config>,
    entered: Entered,
    style: Option<Style>,
    caller: Arc<Caller>,
    /// What the first message of such a caller said of itself; most say the same in all of them.
    before: Before,
}

impl Calls {
    fn is_of(
        &self,
        config: &Arc<Config>,
        entered: &Entered,
        (mount, style): (Option<&Segment>, Option<Style>),
        about: AboutClient<'_>,
    ) -> bool {
        Arc::ptr_eq(&self.config, config)
            && self.caller.info == about.info
            && self.caller.capabilities == about.capabilities
            && self.style == style
            && self.caller.scope.mount.as_ref() == mount
            && self.entered == *entered
    }
}

impl Known {
    /// What there is to know of whoever has connected.
    pub fn of(party: Option<Arc<Party>>) -> Self {
        Self { party, ..Self::default() }
    }

    /// The configuration in force.
    pub fn config(&mut self, entrance: &Arc<Entrance>) -> &Arc<Config> {
        in_force(&mut self.config, entrance)
    }

    /// Lets a request in, or not: at once, where it shows what the one before has shown.
    pub fn enter(&mut self, entrance: &Arc<Entrance>, fields: &Fields) -> Result<Entered, Refused> {
        let config = in_force(&mut self.config, entrance);
        enter(&mut self.entry, config, &entrance.trust, self.party.as_ref(), fields)
    }

    /// Lets in once more whoever was let in, where that was taken away or has ended since: a body may be long on its way, and a stream may
    /// stand open for long.
    pub fn again(&mut self, entrance: &Arc<Entrance>, fields: &Fields, entered: &Entered) -> Result<(), Refused> {
        // Over a link nobody shows anything.
        let Some(entry) = &self.entry else { return Ok(()) };
        if Arc::ptr_eq(&entry.config, in_force(&mut self.config, entrance)) && entry.entered.holds() {
            return Ok(());
        }
        let now = self.enter(entrance, fields)?;
        if now.principal == entered.principal { Ok(()) } else { Err(entry::another()) }
    }

    /// What a stateless request, the message that was read last, says of itself.
    pub fn meta(&mut self, params: &Object) -> Arc<RequestMeta> {
        let count = self.before.count();
        if let Some((_, meta)) = self.meta.as_ref().filter(|(of, _)| *of == count) {
            return Arc::clone(meta);
        }
        let meta = RequestMeta::of(params);
        // A copy is worth its while where the next one will be the same.
        if std::mem::replace(&mut self.last, count) == count {
            self.meta = Some((count, Arc::new(meta.owned())));
        }
        Arc::new(meta)
    }

    /// The caller of a stateless request: the one before, where it says the same of itself.
    pub fn caller(
        &mut self,
        config: &Arc<Config>,
        entered: &Entered,
        mount: Option<&Segment>,
        style: Option<Style>,
        meta: &RequestMeta,
    ) -> Arc<Caller> {
        let about = AboutClient { info: said(meta.client_info.as_ref()), capabilities: said(meta.capabilities.as_ref()) };
        let is_same = |calls: &Calls| calls.is_of(config, entered, (mount, style), about);
        if let Some(calls) = &self.calls
            && is_same(calls)
        {
            return Arc::clone(&calls.caller);
        }
        let calls = CALLS.with_borrow_mut(|recent| {
            let by = (about.info, about.capabilities);
            recent.find(&by, is_same).unwrap_or_else(|| {
                let caller = Arc::new(stateless(config, entered, (mount, style), about));
                let (config, entered, before) = (Arc::clone(config), entered.clone(), self.before.clone());
                let calls = Arc::new(Calls { config, entered, style, caller, before });
                recent.put(&by, &calls);
                calls
            })
        });
        self.before.share(&calls.before);
        Arc::clone(&self.calls.insert(calls).caller)
    }

    /// The caller of a session's requests: the one before, where that is shown the same still, and came in by the same. What it may do is
    /// what the credential of this request says, not that of the one that opened the session.
    pub fn of_session(&mut self, session: &Arc<Session>, entered: &Entered) -> Arc<Caller> {
        let same = |(before, caller): &&(Entered, Arc<Caller>)| {
            caller.session.as_ref().is_some_and(|own| Arc::ptr_eq(own, session)) && session.is_shown(&caller.scope) && before == entered
        };
        match self.of_session.as_ref().filter(same) {
            Some((_, caller)) => Arc::clone(caller),
            None => Arc::clone(&self.of_session.insert((entered.clone(), caller_of(session, entered))).1),
        }
    }
}

/// To ask whether it is still the one before takes nothing that another thread writes, as taking it anew would.
fn in_force<'a>(kept: &'a mut Option<Cache<InForce, Arc<Config>>>, entrance: &Arc<Entrance>) -> &'a Arc<Config> {
    kept.get_or_insert_with(|| Cache::new(InForce(Arc::clone(entrance)))).load()
}

fn enter(
    entry: &mut Option<Arc<Entry>>,
    config: &Arc<Config>,
    trust: &Trust,
    party: Option<&Arc<Party>>,
    fields: &Fields,
) -> Result<Entered, Refused> {
    let shown = SHOWN.map(|name| fields.get(name));
    if let Some(entry) = entry
        && entry.is_of(config, &shown)
    {
        return Ok(entry.entered.clone());
    }
    let is_same = |other: &Entry| other.party.as_ref() == party && other.is_of(config, &shown);
    if let Some(known) = ENTRIES.with_borrow(|recent| recent.find(&shown, is_same)) {
        return Ok(entry.insert(known).entered.clone());
    }
    let entered = entry::enter(config, trust, party, fields)?;
    let owned = shown.map(|value| value.map(Into::into));
    let now = Arc::new(Entry { config: Arc::clone(config), party: party.cloned(), shown: owned, entered });
    // What else lets somebody in may be taken away without a word in the configuration.
    if now.entered.is_anybody() {
        ENTRIES.with_borrow_mut(|recent| recent.put(&shown, &now));
    }
    Ok(entry.insert(now).entered.clone())
}

/// The caller of a request of the stateless era.
pub fn stateless(
    config: &Config,
    entered: &Entered,
    (mount, style): (Option<&Segment>, Option<Style>),
    about @ AboutClient { info, capabilities }: AboutClient<'_>,
) -> Caller {
    Caller {
        principal: entered.principal.clone(),
        is_owner: entered.is_owner(),
        subject: Arc::new(entered.subject(info)),
        party: entered.party.clone(),
        era: Era::Stateless,
        version: STATELESS,
        capabilities: Bytes::copy_from_slice(capabilities),
        info: Bytes::copy_from_slice(info),
        scope: entered.scope(config, mount.cloned(), about, style),
        session: None,
        shown: Last::default(),
        standing: Last::default(),
        share: OnceLock::new(),
    }
}

fn said(raw: Option<&Bytes>) -> &[u8] {
    raw.map_or(b"{}", |raw| raw)
}

#[cfg(test)]
mod tests {
    use mcp_proto::envelope::Message;
    use sha2::{Digest, Sha256};

    use super::*;
    use config::resolved::Token;

    fn config(token: &str) -> Arc<Config> {
        let token = Token { name: token.into(), sha256: Sha256::digest(token).into(), profile: None, metrics: false };
        Arc::new(Config { tokens: vec![token], ..Config::default() })
    }

    fn fields(token: &str) -> Fields {
        let value = format!("Bearer {token}");
        Fields::new([("host", &b"127.0.0.1"[..]), ("authorization", value.as_bytes())])
    }

    fn meta(info: &'static str) -> RequestMeta {
        let text = format!(r#"{{"_meta":{{"io.modelcontextprotocol/clientInfo":{info}}}}}"#);
        RequestMeta::of(&Object::from(Bytes::from(text)))
    }

    #[test]
    fn another_token_or_another_configuration_is_looked_at_anew() {
        let (first, second) = (config("a"), config("b"));
        let (mut entry, trust) = (None, Trust::default());
        for _ in 0..2 {
            assert_eq!(&*enter(&mut entry, &first, &trust, None, &fields("a")).unwrap().principal.name, "a");
            assert!(enter(&mut entry, &first, &trust, None, &fields("b")).is_err());
            assert!(enter(&mut entry, &first, &trust, None, &Fields::new([("host", &b"127.0.0.1"[..])])).is_err());
            assert!(enter(&mut entry, &second, &trust, None, &fields("a")).is_err());
            assert_eq!(&*enter(&mut entry, &second, &trust, None, &fields("b")).unwrap().principal.name, "b");
        }
    }

    #[test]
    fn connections_that_show_and_say_the_same_share_what_is_known_of_them_but_no_credential() {
        let (open, other) = (Arc::new(Config::default()), Arc::new(Config::default()));
        let (guarded, trust) = (config("a"), Trust::default());
        let host = || Fields::new([("host", &b"127.0.0.1"[..])]);
        let enter = |config, fields| {
            let mut entry = None;
            enter(&mut entry, config, &trust, None, &fields).unwrap();
            entry.unwrap()
        };
        let first = enter(&open, host());
        assert!(Arc::ptr_eq(&first, &enter(&open, host())));
        assert!(!Arc::ptr_eq(&first, &enter(&open, Fields::new([("host", &b"localhost"[..])]))));
        assert!(!Arc::ptr_eq(&first, &enter(&other, host())));
        let token = enter(&guarded, fields("a"));
        assert!(!Arc::ptr_eq(&token, &enter(&guarded, fields("a"))));
        let local = Entered::local();
        let mut connections = [(); 4].map(|()| Known::default());
        let mut calls = [(&token.entered, "x"), (&token.entered, "x"), (&token.entered, "y"), (&local, "x")].into_iter();
        let callers = connections.each_mut().map(|known| {
            let (entered, name) = calls.next().unwrap();
            let info = Bytes::from(format!(r#"{{"name":"{name}"}}"#));
            known.caller(&guarded, entered, None, None, &RequestMeta { client_info: Some(info), ..RequestMeta::default() })
        });
        let [one, same, other, local] = &callers;
        assert!(Arc::ptr_eq(one, same) && !Arc::ptr_eq(one, other));
        assert_eq!((&*one.principal.name, &*local.principal.name), ("a", "local"));
    }

    #[test]
    fn what_is_said_again_is_read_once_and_what_is_said_anew_each_time() {
        let mut known = Known::default();
        let mut said = |meta: &str| {
            let text = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{{meta}}}}}}}"#));
            let Ok(Message::Request(request)) = Message::parse_after(&text, &mut known.before) else { panic!() };
            let meta = known.meta(&request.params);
            assert_eq!(*meta, RequestMeta::of(&request.params));
            meta
        };
        let (x, y) = (r#""io.modelcontextprotocol/logLevel":"info""#, r#""progressToken":"a""#);
        let [_, second, third, other, fourth, _, last] = [x, x, x, y, x, x, x].map(&mut said);
        assert!(!Arc::ptr_eq(&second, &third) && *third == *second);
        assert!(*other != *third && other.progress_token.is_some() && *fourth == *third && !Arc::ptr_eq(&fourth, &third));
        assert!(Arc::ptr_eq(&last, &said(x)));
        assert_eq!(*said(""), RequestMeta::default());
    }

    #[test]
    fn a_caller_stays_the_same_while_it_says_the_same() {
        let (config, mut known) = (config("a"), Known::default());
        let trust = Trust::default();
        let entered = enter(&mut None, &config, &trust, None, &fields("a")).unwrap();
        let mount = Segment::new("m").unwrap();
        let first = known.caller(&config, &entered, None, None, &meta(r#"{"name":"x"}"#));
        assert!(Arc::ptr_eq(&first, &known.caller(&config, &entered, None, None, &meta(r#"{"name":"x"}"#))));
        let other = [
            known.caller(&config, &entered, None, None, &meta(r#"{"name":"y"}"#)),
            known.caller(&config, &entered, Some(&mount), None, &meta(r#"{"name":"y"}"#)),
            known.caller(&config, &entered, Some(&mount), Some(Style::Dotted), &meta(r#"{"name":"y"}"#)),
            known.caller(&config, &Entered::local(), Some(&mount), Some(Style::Dotted), &meta(r#"{"name":"y"}"#)),
        ];
        let told: Vec<_> =
            other.iter().map(|c| (&c.info[..], c.scope.mount.is_some(), c.scope.style == Style::Dotted, &*c.principal.name)).collect();
        let y = &br#"{"name":"y"}"#[..];
        assert_eq!(told, [(y, false, false, "a"), (y, true, false, "a"), (y, true, true, "a"), (y, true, true, "local")]);
    }
}
