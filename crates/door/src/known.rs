//! A client known by its connection, so that repeated credentials are not proved anew.
//!
//! Holds only for the same fields under the same configuration. Leaves admission to `entry.rs`.

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
use crate::entry::EntryRefusal;
use call::tree::by_session::caller_of;
use call::tree::caller::{Caller, Last};
use call::words::entered::{AboutClient, AdmittedCaller};
use call::words::party::Party;
use call::words::session::Session;
use trust::Trust;

/// Fields that decide admission.
const SHOWN: [&str; 3] = ["authorization", "host", "origin"];

/// Credentials and texts of the last request on a connection, copied so that read buffers can go.
#[derive(Default)]
pub struct KnownClient {
    /// Configuration in force, once read.
    config: Option<Cache<InForce, Arc<Config>>>,
    /// The other end of the connection.
    party: Option<Arc<Party>>,
    entry: Option<Arc<Entry>>,
    calls: Option<Arc<Calls>>,
    of_session: Option<(AdmittedCaller, Arc<Caller>)>,
    /// Texts of the last message about the client.
    pub before: Before,
    /// Meta read from `before`, with the count of `before` at the time.
    meta: Option<(u64, Arc<RequestMeta>)>,
    last: u64,
}

/// Place of the configuration in force.
struct InForce(Arc<Entrance>);

impl Deref for InForce {
    type Target = ArcSwap<Config>;

    fn deref(&self) -> &ArcSwap<Config> {
        &self.0.gate.config
    }
}

thread_local! {
    // Shared by the connections of one thread, since most show and say the same.
    static ENTRIES: RefCell<Recent<Entry>> = RefCell::new(Recent::new(RandomState::new()));
    static CALLS: RefCell<Recent<Calls>> = RefCell::new(Recent::new(RandomState::new()));
}

struct Entry {
    config: Arc<Config>,
    party: Option<Arc<Party>>,
    shown: [Option<Box<[u8]>>; SHOWN.len()],
    entered: AdmittedCaller,
}

impl Entry {
    /// Checks that the same fields under the same configuration are admitted as before.
    fn is_of(&self, config: &Arc<Config>, shown: &[Option<&[u8]>; SHOWN.len()]) -> bool {
        Arc::ptr_eq(&self.config, config) && self.shown.iter().zip(shown).all(|(then, now)| then.as_deref() == *now) && self.entered.holds()
    }
}

struct Calls {
    config: Arc<Config>,
    entered: AdmittedCaller,
    style: Option<Style>,
    caller: Arc<Caller>,
    /// Texts of the caller's first message about the client; most callers repeat them in every message.
    before: Before,
}

impl Calls {
    fn is_of(
        &self,
        config: &Arc<Config>,
        entered: &AdmittedCaller,
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

impl KnownClient {
    /// Begins without any request.
    pub fn of_party(party: Option<Arc<Party>>) -> Self {
        Self { party, ..Self::default() }
    }

    /// Configuration in force.
    pub fn config(&mut self, entrance: &Arc<Entrance>) -> &Arc<Config> {
        in_force(&mut self.config, entrance)
    }

    /// Admits or refuses a request; without a check where the fields are those of the request before.
    pub fn enter(&mut self, entrance: &Arc<Entrance>, fields: &Fields) -> Result<AdmittedCaller, EntryRefusal> {
        let config = in_force(&mut self.config, entrance);
        enter(&mut self.entry, config, &entrance.trust, self.party.as_ref(), fields)
    }

    /// Repeats the admission if the credential may have ended meanwhile, for a body may be long on its way and a stream open for long.
    pub fn again(&mut self, entrance: &Arc<Entrance>, fields: &Fields, entered: &AdmittedCaller) -> Result<(), EntryRefusal> {
        // Over a link no request carries credentials.
        let Some(entry) = &self.entry else { return Ok(()) };
        if Arc::ptr_eq(&entry.config, in_force(&mut self.config, entrance)) && entry.entered.holds() {
            return Ok(());
        }
        let now = self.enter(entrance, fields)?;
        if now.principal == entered.principal { Ok(()) } else { Err(entry::another()) }
    }

    /// Meta of a stateless request, for the message read last.
    pub fn meta(&mut self, params: &Object) -> Arc<RequestMeta> {
        let count = self.before.count();
        if let Some((_, meta)) = self.meta.as_ref().filter(|(of, _)| *of == count) {
            return Arc::clone(meta);
        }
        let meta = RequestMeta::of(params);
        // A copy is worth its while only where the next meta is the same.
        if std::mem::replace(&mut self.last, count) == count {
            self.meta = Some((count, Arc::new(meta.owned())));
        }
        Arc::new(meta)
    }

    /// Caller of a stateless request: the same as before for the same texts.
    pub fn caller(
        &mut self,
        config: &Arc<Config>,
        entered: &AdmittedCaller,
        mount: Option<&Segment>,
        style: Option<Style>,
        meta: &RequestMeta,
    ) -> Arc<Caller> {
        let about = AboutClient { info: or_empty(meta.client_info.as_ref()), capabilities: or_empty(meta.capabilities.as_ref()) };
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

    /// Caller of a session's request: the same as before for the same credential and an unchanged view. Rights follow the credential of
    /// this request, not of the request that opened the session.
    pub fn of_session(&mut self, session: &Arc<Session>, entered: &AdmittedCaller) -> Arc<Caller> {
        let same = |(before, caller): &&(AdmittedCaller, Arc<Caller>)| {
            caller.session.as_ref().is_some_and(|own| Arc::ptr_eq(own, session)) && session.is_shown(&caller.scope) && before == entered
        };
        match self.of_session.as_ref().filter(same) {
            Some((_, caller)) => Arc::clone(caller),
            None => Arc::clone(&self.of_session.insert((entered.clone(), caller_of(session, entered))).1),
        }
    }
}

// The cache compares a pointer without a write shared between threads, where a fresh load would write.
fn in_force<'a>(kept: &'a mut Option<Cache<InForce, Arc<Config>>>, entrance: &Arc<Entrance>) -> &'a Arc<Config> {
    kept.get_or_insert_with(|| Cache::new(InForce(Arc::clone(entrance)))).load()
}

fn enter(
    entry: &mut Option<Arc<Entry>>,
    config: &Arc<Config>,
    trust: &Trust,
    party: Option<&Arc<Party>>,
    fields: &Fields,
) -> Result<AdmittedCaller, EntryRefusal> {
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
    // Revocations and expiries come without a change of the configuration.
    if now.entered.is_anybody() {
        ENTRIES.with_borrow_mut(|recent| recent.put(&shown, &now));
    }
    Ok(entry.insert(now).entered.clone())
}

/// Makes the caller of a stateless request.
pub fn stateless(
    config: &Config,
    entered: &AdmittedCaller,
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

fn or_empty(raw: Option<&Bytes>) -> &[u8] {
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
    fn alike_connections_share_a_caller_but_no_credential() {
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
        let local = AdmittedCaller::local();
        let mut connections = [(); 4].map(|()| KnownClient::default());
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
    fn a_repeated_meta_is_read_once() {
        let mut known = KnownClient::default();
        let mut read = |meta: &str| {
            let text = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{{meta}}}}}}}"#));
            let Ok(Message::Request(request)) = Message::parse_after(&text, &mut known.before) else { panic!() };
            let meta = known.meta(&request.params);
            assert_eq!(*meta, RequestMeta::of(&request.params));
            meta
        };
        let (x, y) = (r#""io.modelcontextprotocol/logLevel":"info""#, r#""progressToken":"a""#);
        let [_, second, third, other, fourth, _, last] = [x, x, x, y, x, x, x].map(&mut read);
        assert!(!Arc::ptr_eq(&second, &third) && *third == *second);
        assert!(*other != *third && other.progress_token.is_some() && *fourth == *third && !Arc::ptr_eq(&fourth, &third));
        assert!(Arc::ptr_eq(&last, &read(x)));
        assert_eq!(*read(""), RequestMeta::default());
    }

    #[test]
    fn a_caller_stays_the_same_for_the_same_texts() {
        let (config, mut known) = (config("a"), KnownClient::default());
        let trust = Trust::default();
        let entered = enter(&mut None, &config, &trust, None, &fields("a")).unwrap();
        let mount = Segment::new("m").unwrap();
        let first = known.caller(&config, &entered, None, None, &meta(r#"{"name":"x"}"#));
        assert!(Arc::ptr_eq(&first, &known.caller(&config, &entered, None, None, &meta(r#"{"name":"x"}"#))));
        let other = [
            known.caller(&config, &entered, None, None, &meta(r#"{"name":"y"}"#)),
            known.caller(&config, &entered, Some(&mount), None, &meta(r#"{"name":"y"}"#)),
            known.caller(&config, &entered, Some(&mount), Some(Style::Dotted), &meta(r#"{"name":"y"}"#)),
            known.caller(&config, &AdmittedCaller::local(), Some(&mount), Some(Style::Dotted), &meta(r#"{"name":"y"}"#)),
        ];
        let told: Vec<_> =
            other.iter().map(|c| (&c.info[..], c.scope.mount.is_some(), c.scope.style == Style::Dotted, &*c.principal.name)).collect();
        let y = &br#"{"name":"y"}"#[..];
        assert_eq!(told, [(y, false, false, "a"), (y, true, false, "a"), (y, true, true, "a"), (y, true, true, "local")]);
    }
}
