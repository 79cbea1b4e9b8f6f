//! Door of AEPB: the capability document, the translated pairs, and transitions of the lifecycle for the owner. Translates no message.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use agent_proto::capability::constraints::AssuranceLevel;
use agent_proto::capability::document::{CAPABILITIES, OfferedProtocol, TRANSLATIONS};
use agent_proto::capability::lifecycle::{LifecycleChange, LifecycleStatus};
use agent_proto::capability::signed::{self, SIGNED_DOCUMENT};
use agent_proto::capability::written::{ServedCapabilities, TranslationPair, translations};
use bridge::BindingId;
use bytes::Bytes;
use call::words::party::Party;
use call::words::refusal::Refusal;
use door::body;
use door::entrance::Entrance;
use door::entry;
use door::port::{Door, fields, query};
use door::reply::{self, Payload, typed};
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, VARY};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use json::{Duplicates, Members, quote};
use runtime::clock;

use crate::evidence::notary::Notary;
use crate::served::agent_door::{cached, shut};
use crate::served::life::KeptLife;
use crate::served::problem::problem;
use crate::settings::section::AgentSettings;
use crate::translated::TRANSLATE;
use crate::translated::target::binding_of;

/// Path of the public keys for tokens: a local profile, as AEPB names none.
const KEYS: &str = "/.well-known/aepb/keys";
/// Path for the owner, below the admin API.
const LIFE: &str = "/-/agent";
/// Longest wish for a transition, in bytes.
const LONGEST_WISH: usize = 16 << 10;
/// Time to keep a document: the default of the draft.
const KEPT: &str = "public, max-age=3600";
/// Seconds after which a signed document is signed anew, and the time to keep one: both together are no longer than its life.
const SIGNED_ANEW: u64 = 900;
const KEPT_SIGNED: &str = "public, max-age=2400";
/// Version of the agent, which is the gate's.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Versions of MCP at the gate's door, the preferred one first.
const MCP_VERSIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// The gate's capabilities, at the listener.
pub struct CapabilityDoor {
    pub entrance: Arc<Entrance>,
    pub life: Arc<KeptLife>,
    pub notary: Arc<Notary>,
    pub signed: Mutex<Option<SignedDocument>>,
}

/// The last signed form of the document.
pub struct SignedDocument {
    document: String,
    /// Time of the signature, in seconds since 1970.
    at: u64,
    text: String,
}

impl Door for CapabilityDoor {
    fn is_here(&self, path: &str) -> bool {
        matches!(path, CAPABILITIES | TRANSLATIONS | KEYS | LIFE) && self.settings().is_some()
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let Some(settings) = self.settings() else { return reply::empty(StatusCode::NOT_FOUND).into_http() };
            if parts.uri.path() == LIFE {
                self.owned(&parts, body, &settings).await
            } else {
                self.public(&parts, party.as_ref(), &settings)
            }
        })
    }
}

impl CapabilityDoor {
    fn settings(&self) -> Option<AgentSettings> {
        self.entrance.gate.config.load().values.get::<AgentSettings>().cloned()
    }

    /// Answers everybody who can reach the gate: the documents name no tool and no caller.
    fn public(&self, parts: &Parts, party: Option<&Arc<Party>>, settings: &AgentSettings) -> Response<Payload> {
        let config = self.entrance.gate.config.load_full();
        if let Err(refused) = entry::outer(&config, party, &fields(parts)) {
            return shut(&refused);
        }
        if parts.method != Method::GET {
            return reply::empty(StatusCode::METHOD_NOT_ALLOWED).into_http();
        }
        let answered = match parts.uri.path() {
            _ if self.life.now().status == LifecycleStatus::Retired => problem(StatusCode::GONE, "retired", "This agent is retired."),
            KEYS => self.keys(parts, settings),
            CAPABILITIES if wants_signed(parts) => in_forms(self.signed(parts, settings)),
            CAPABILITIES => in_forms(cached(parts, self.document(settings), KEPT)),
            _ => self.translations(parts, settings),
        };
        self.life.mark(answered)
    }

    fn document(&self, settings: &AgentSettings) -> String {
        let protocols = offered(settings);
        let (agent, lifecycle) = (settings.agent_id(), &self.life.now());
        ServedCapabilities { agent: &agent, version: VERSION, protocols: &protocols, assurance: assurance(settings), lifecycle }.write()
    }

    /// Answers with the document as a JWT, where the gate has a key. A signed document serves all who ask for a while, for signing takes time.
    fn signed(&self, parts: &Parts, settings: &AgentSettings) -> Response<Payload> {
        let document = self.document(settings);
        if settings.evidence.is_none() {
            return cached(parts, document, KEPT);
        }
        let now = clock::wall() / 1_000_000;
        let mut last = self.signed.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|last| last.document != document || last.at + SIGNED_ANEW <= now) {
            match self.notary.sign_document(SIGNED_DOCUMENT, &signed::claims(&document, &settings.agent_id(), now)) {
                Ok(text) => *last = Some(SignedDocument { document, at: now, text }),
                Err(why) => {
                    tracing::error!(why, "the document of the gate can't be signed");
                    let text = "This gate can't sign its document now; its operator finds why in its log.";
                    return problem(StatusCode::SERVICE_UNAVAILABLE, "internal_error", text);
                }
            }
        }
        let text = last.as_ref().map(|last| last.text.clone()).unwrap_or_default();
        let mut response = cached(parts, text, KEPT_SIGNED);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/jwt"));
        response
    }

    /// Answers with the public keys of the tokens of the gate, as a JWK set.
    fn keys(&self, parts: &Parts, settings: &AgentSettings) -> Response<Payload> {
        match settings.evidence.as_ref().map(|_| self.notary.key_set()) {
            Some(Ok(set)) => cached(parts, set, KEPT),
            Some(Err(why)) => {
                tracing::error!(why, "the keys of the gate can't be served");
                problem(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "internal_error",
                    "This gate can't read its keys now; its operator finds why in its log.",
                )
            }
            None => problem(StatusCode::NOT_FOUND, "no_evidence", "This gate makes no tokens."),
        }
    }

    /// Answers with every pair, or with one that was asked for.
    fn translations(&self, parts: &Parts, settings: &AgentSettings) -> Response<Payload> {
        let pairs = self.pairs(settings);
        match (query(parts, "from"), query(parts, "to")) {
            (None, None) => cached(parts, translations(&settings.agent_id(), &pairs), KEPT),
            (Some(from), Some(to)) => match pairs.iter().find(|pair| pair.from == from && pair.to == to) {
                Some(pair) => cached(parts, pair.write(), KEPT),
                None => problem(StatusCode::NOT_FOUND, "no_translation_path", "This gate does not translate the pair."),
            },
            _ => problem(StatusCode::BAD_REQUEST, "incomplete", "A pair has both `from` and `to`: give the two, or none for all pairs."),
        }
    }

    /// Lists the pairs that the gate translates for some server behind it.
    fn pairs(&self, settings: &AgentSettings) -> Vec<TranslationPair> {
        if !self.life.now().status.takes_work() {
            return Vec::new();
        }
        let targets: BTreeSet<BindingId> = self.entrance.gate.config.load().mounts.values().map(|mount| binding_of(mount)).collect();
        let known = BindingId::pairs().filter(|(from, to)| targets.contains(to) && settings.translation.allows(*from, *to));
        let endpoint = || format!("{}{TRANSLATE}", settings.url);
        known.map(|(from, to)| TranslationPair { from: from.id(), to: to.id(), endpoint: endpoint() }).collect()
    }

    /// Answers the owner: the present state, or a transition.
    async fn owned(&self, parts: &Parts, mut body: Incoming, settings: &AgentSettings) -> Response<Payload> {
        let answered = if !self.entrance.is_owner(parts) {
            Err(Refusal::refused("this takes the admin token, which the `banyan` command has"))
        } else if parts.method == Method::POST {
            self.change(&mut body, settings).await
        } else {
            Ok(())
        };
        body::pass_over(&mut body).await;
        match answered {
            Ok(()) => {
                let (agent, notice) = (quote(&settings.agent_id()), self.life.now().notice(VERSION));
                let keys = settings.evidence.as_ref().and_then(|_| self.notary.key_set().ok()).unwrap_or_else(|| "null".into());
                let text = format!(
                    "{{\"agent_id\":{agent},\"url\":{},\"keys\":{keys},\"lifecycle\":{notice},\"working\":{}}}",
                    quote(&settings.url),
                    self.life.working()
                );
                let mut response = typed(StatusCode::OK, "application/json", text.into());
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
            Err(refusal) => reply::refusal(refusal, self.entrance.gate.config.load().wants_credential()),
        }
    }

    async fn change(&self, body: &mut Incoming, settings: &AgentSettings) -> Result<(), Refusal> {
        let text = body::posted(body, LONGEST_WISH).await.map_err(|why| Refusal::failed(why.to_string()))?;
        let (wish, reason) = wish(&text)?;
        self.life.change(&self.entrance.gate, &settings.agent_id(), wish, &reason).await.map(drop)
    }
}

/// Reads `{"to", "reason", "successor", "sunset"}`, of which the first alone is needed.
fn wish(text: &Bytes) -> Result<(LifecycleChange, String), Refusal> {
    let wrong = |what: &str| Refusal::failed(format!("the wish has no sound `{what}`"));
    let whole =
        Members::parse(text, Duplicates::RefuseDeep).map_err(|error| Refusal::failed(format!("the wish can't be read: {error}")))?;
    let to = whole.str("to").and_then(|to| LifecycleStatus::parse(&to)).ok_or_else(|| wrong("to"))?;
    let present = |member| whole.get(member).filter(|raw| *raw != b"null");
    let word =
        |member| present(member).map(|raw| json::as_str(raw).map(std::borrow::Cow::into_owned).ok_or_else(|| wrong(member))).transpose();
    let sunset =
        present("sunset").map(|raw| std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok()).ok_or_else(|| wrong("sunset")));
    Ok((LifecycleChange { to, successor: word("successor")?, sunset: sunset.transpose()? }, word("reason")?.unwrap_or_default()))
}

/// Lists the protocols at the doors of a gate.
pub fn offered(settings: &AgentSettings) -> Vec<OfferedProtocol> {
    let url = &settings.url;
    let mcp = (1..).zip(MCP_VERSIONS).map(|(place, version)| OfferedProtocol::at("mcp-v1", version, format!("{url}/mcp"), 10 + 10 * place));
    std::iter::once(OfferedProtocol::at("a2a-v1", "1.0", format!("{url}/a2a"), 10)).chain(mcp).collect()
}

/// Tells caches that the form of the answer goes by `Accept`.
fn in_forms(mut response: Response<Payload>) -> Response<Payload> {
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// Checks for a client that asks for a signed document.
fn wants_signed(parts: &Parts) -> bool {
    let accepted = parts.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted.flat_map(|value| value.split(',')).map(|kind| kind.split(';').next().unwrap_or_default().trim());
    kinds.any(|kind| kind.eq_ignore_ascii_case("application/jwt"))
}

/// Level of the evidence: tokens are signed where the gate makes any.
fn assurance(settings: &AgentSettings) -> AssuranceLevel {
    if settings.evidence.is_some() { AssuranceLevel::L2 } else { AssuranceLevel::L1 }
}
