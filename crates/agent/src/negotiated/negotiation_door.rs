//! Door of the owner for a negotiation with another agent: its document, the choice, and the gateways where nothing is shared. Sends no call.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_proto::capability::constraints::{AssuranceLevel, ProtocolSecurity};
use agent_proto::capability::document::{CAPABILITIES, CapabilityDocument, OfferedProtocol, TRANSLATIONS, is_this_machine};
use agent_proto::capability::lifecycle::LifecycleStatus;
use agent_proto::capability::negotiation::{NegotiatingParty, NegotiatingSide, Negotiation, NoProtocol, RejectedProtocol, negotiate};
use agent_proto::capability::signed::{SIGNED_DOCUMENT, SignedClaims};
use audit::record::{Changed, Record, Text};
use banyan_model::{Principal, PrincipalKind};
use bytes::Bytes;
use call::words::party::Party;
use call::words::refusal::Refusal;
use door::body;
use door::entrance::Entrance;
use door::port::Door;
use door::reply::{self, Payload, typed};
use futures_util::future::BoxFuture;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use json::{Duplicates, Members, quote};
use runtime::clock;
use runtime::reach::Reach;
use url::Url;

use crate::evidence::notary::{NewToken, Notary};
use crate::negotiated::documents::{CapabilityDocuments, FetchedDocument};
use crate::served::capability_door::offered;
use crate::served::life::KeptLife;
use crate::settings::section::AgentSettings;

/// Path for the owner, below the admin API.
const NEGOTIATION: &str = "/-/agent/negotiation";
/// Longest wish, in bytes.
const LONGEST_WISH: usize = 16 << 10;
/// Most gateways that are asked, and most questions to all.
const MOST_GATEWAYS: usize = 8;
const MOST_QUESTIONS: usize = 16;
/// Principal of the owner in the record.
const OWNER: &str = "owner";

/// Negotiations of one gate, at the listener.
pub struct NegotiationDoor {
    pub entrance: Arc<Entrance>,
    pub notary: Arc<Notary>,
    pub life: Arc<KeptLife>,
    pub documents: CapabilityDocuments,
}

/// Wish of the owner.
struct NegotiationWish {
    url: Url,
    /// The document has to be signed by a known issuer.
    is_signed: bool,
    least_security: Option<ProtocolSecurity>,
    least_assurance: AssuranceLevel,
}

/// An answer of a gateway about a pair.
struct AskedGateway {
    gateway: String,
    from: String,
    to: String,
    /// Address of the translation, if there is any.
    endpoint: Option<String>,
}

impl Door for NegotiationDoor {
    fn is_here(&self, path: &str) -> bool {
        path == NEGOTIATION && self.settings().is_some()
    }

    fn answer(&self, request: Request<Incoming>, _: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        Box::pin(async move {
            let (parts, mut body) = request.into_parts();
            let answered = Box::pin(self.negotiated(&parts, &mut body)).await;
            body::pass_over(&mut body).await;
            match answered {
                Ok(text) => {
                    let mut response = typed(StatusCode::OK, "application/json", text.into());
                    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                    response
                }
                Err(refusal) => reply::refusal(refusal, self.entrance.gate.config.load().wants_credential()),
            }
        })
    }
}

impl NegotiationDoor {
    fn settings(&self) -> Option<AgentSettings> {
        self.entrance.gate.config.load().values.get::<AgentSettings>().cloned()
    }

    async fn negotiated(&self, parts: &Parts, body: &mut Incoming) -> Result<String, Refusal> {
        if !self.entrance.is_owner(parts) {
            return Err(Refusal::refused("this takes the admin token, which the `banyan` command has"));
        }
        if parts.method != Method::POST {
            return Err(Refusal::failed("a negotiation is asked for by POST"));
        }
        let Some(settings) = self.settings() else { return Err(Refusal::not_found("the gate is no agent")) };
        let text = body::posted(body, LONGEST_WISH).await.map_err(|why| Refusal::failed(why.to_string()))?;
        let wish = NegotiationWish::read(&text)?;
        let (document, fetched) = self.document(&wish).await?;
        let own = own_party(&settings, &wish, self.life.now().status);
        let peer = NegotiatingParty::new(&document);
        let negotiation = negotiate(&own, &peer);
        let asked = match negotiation.chosen {
            Err(NoProtocol::NotShared) => self.asked(&wish, &own, &document).await,
            Ok(_) | Err(NoProtocol::TooWeak(_) | NoProtocol::LittleAssurance(_) | NoProtocol::NoNewWork(_)) => Vec::new(),
        };
        self.record(&wish, &document, &negotiation, &asked).await?;
        Ok(written((&wish, &own), (&document, &fetched), &negotiation, &asked))
    }

    /// Fetches the document of the wish.
    async fn document(&self, wish: &NegotiationWish) -> Result<(CapabilityDocument, FetchedDocument), Refusal> {
        let accept = if wish.is_signed { "application/jwt" } else { "application/json" };
        let fetched = self.documents.fetch(&wish.url, accept, Reach::new(&wish.url, Vec::new())).await.map_err(Refusal::failed)?;
        if fetched.status == StatusCode::GONE {
            return Err(Refusal::failed(format!("the agent at {} is retired", wish.url)));
        }
        if fetched.status != StatusCode::OK {
            let text = format!("{} answers with status {}: there is no capability document (AEPB)", wish.url, fetched.status.as_u16());
            return Err(Refusal::failed(text));
        }
        let read = if wish.is_signed {
            self.verified(&fetched)
        } else {
            CapabilityDocument::read(&fetched.body).map_err(|error| error.to_string())
        };
        let document = read.map_err(|why| Refusal::failed(format!("{}: {why}", wish.url)))?;
        Ok((document, fetched))
    }

    /// Verifies a signed document against the known issuers.
    fn verified(&self, fetched: &FetchedDocument) -> Result<CapabilityDocument, String> {
        if !fetched.kind.starts_with("application/jwt") {
            return Err("it gave no signed document".into());
        }
        let terms = self.notary.terms()?.ok_or("a signed document takes `issuers` in [agent.evidence], whose keys verify it")?;
        let text = std::str::from_utf8(&fetched.body).map_err(|_| "its signed document is no text")?;
        let (issuer, payload) = terms.issuers.document(text.trim(), SIGNED_DOCUMENT).map_err(|fault| fault.to_string())?;
        let document = CapabilityDocument::read(&payload).map_err(|error| error.to_string())?;
        SignedClaims::read(&payload)?.judge((&issuer, &document.agent), seconds())?;
        Ok(document)
    }

    /// Asks the gateways of the peer, all of them for a pair before any for the next, until one translates. A gateway without an answer is not
    /// asked again.
    async fn asked(&self, wish: &NegotiationWish, own: &NegotiatingParty, peer: &CapabilityDocument) -> Vec<AskedGateway> {
        let mut asked = Vec::new();
        let named = peer.gateways.iter().filter_map(|gateway| Some((gateway.clone(), translations(gateway)?)));
        let mut gateways: Vec<(String, Url)> = named.take(MOST_GATEWAYS).collect();
        for (from, to) in pairs(&own.protocols, &peer.protocols) {
            for (gateway, at) in std::mem::take(&mut gateways) {
                if asked.len() >= MOST_QUESTIONS {
                    return asked;
                }
                let answer = self.question(wish, &at, (&from, &to)).await;
                let (is_there, endpoint) = (answer.is_ok(), answer.ok().flatten());
                let is_found = endpoint.is_some();
                asked.push(AskedGateway { gateway: gateway.clone(), from: from.clone(), to: to.clone(), endpoint });
                if is_found {
                    return asked;
                }
                gateways.extend(is_there.then_some((gateway, at)));
            }
        }
        asked
    }

    /// Asks a gateway for a pair, and gives the address of the translation. The error is of a gateway without an answer.
    async fn question(&self, wish: &NegotiationWish, at: &Url, (from, to): (&str, &str)) -> Result<Option<String>, String> {
        // An address of the peer's choice leads to the internet alone, or back to where the owner has sent us.
        let reach = if at.origin() == wish.url.origin() { Reach::new(at, Vec::new()) } else { Reach::public() };
        let mut url = at.clone();
        url.query_pairs_mut().append_pair("from", from).append_pair("to", to);
        let answer = self.documents.fetch(&url, "application/json", reach).await?;
        Ok((answer.status == StatusCode::OK).then(|| {
            let found = Members::parse(&answer.body, Duplicates::RefuseTop).ok();
            found.and_then(|pair| pair.str("endpoint").map(std::borrow::Cow::into_owned)).unwrap_or_else(|| at.to_string())
        }))
    }

    /// Records the outcome: as a token, where the gate makes tokens (AEPB, section 4.1).
    async fn record(
        &self,
        wish: &NegotiationWish,
        peer: &CapabilityDocument,
        negotiation: &Negotiation,
        asked: &[AskedGateway],
    ) -> Result<(), Refusal> {
        let outcome = match (&negotiation.chosen, asked.iter().find(|one| one.endpoint.is_some())) {
            (Ok(choice), _) => format!("{} {}", choice.peer.id, choice.peer.version),
            (Err(_), Some(one)) => format!("{} to {} by {}", one.from, one.to, one.gateway),
            (Err(why), None) => why.to_string(),
        };
        // A name in a document that nobody has signed is a claim of whoever is at the address.
        let name = if wish.is_signed { "peer" } else { "claimed_peer" };
        let short = |text: &str| text.chars().take(500).collect::<String>();
        if let Some(terms) = self.notary.terms().map_err(Refusal::failed)? {
            let extension = format!(
                "{{\"banyan.address\":{},\"banyan.{name}\":{},\"banyan.outcome\":{}}}",
                quote(&short(wish.url.as_str())),
                quote(&short(&peer.agent)),
                quote(&short(&outcome))
            );
            let input = audit::ect::spelled_hash(&peer.raw);
            let audience = [terms.agent.as_str()];
            let (action, input) = ("aepb:negotiate", Some(input.as_str()));
            let new = NewToken { audience: &audience, workflow: None, action, parents: &[], input, output: None, extension: &extension };
            if self.notary.make(&terms, &Principal::new(PrincipalKind::Local, OWNER), &new).is_some() {
                return Ok(());
            }
        }
        let lines = [("address", wish.url.as_str()), (name, &peer.agent), ("outcome", &outcome)];
        let lines = lines.map(|(name, text)| Text::Owned(format!("{name} {}", short(text)))).to_vec();
        let entry = Record::Changed(Changed { lines, version: None, what: Text::Borrowed("aepb:negotiate") });
        let journal = &self.entrance.gate.record.journal;
        journal.append_durable(&journal.part(OWNER), &entry).await.map_err(|error| Refusal::failed(error.to_string()))
    }
}

impl NegotiationWish {
    fn read(text: &Bytes) -> Result<Self, Refusal> {
        let wrong = |what: &str| Refusal::failed(format!("the wish has no sound `{what}`"));
        let whole =
            Members::parse(text, Duplicates::RefuseDeep).map_err(|error| Refusal::failed(format!("the wish can't be read: {error}")))?;
        let url = whole.str("url").and_then(|url| Url::parse(&url).ok()).filter(|url| url.has_host() && url.username().is_empty());
        let mut url = url.ok_or_else(|| wrong("url"))?;
        if url.path() == "/" {
            url.set_path(CAPABILITIES);
        }
        let present = |member| whole.get(member).filter(|raw| *raw != b"null");
        let least_security = match present("least_security").map(json::as_str) {
            None => None,
            Some(Some(word)) if word == "loopback" => Some(ProtocolSecurity::Loopback),
            Some(word) => Some(word.and_then(|word| ProtocolSecurity::parse(&word)).ok_or_else(|| wrong("least_security"))?),
        };
        let least_assurance = match present("least_assurance").map(json::as_str) {
            None => AssuranceLevel::L1,
            Some(word) => word.and_then(|word| AssuranceLevel::parse(&word)).ok_or_else(|| wrong("least_assurance"))?,
        };
        Ok(Self { url, is_signed: present("signed") == Some(b"true"), least_security, least_assurance })
    }
}

/// Makes this gate's side. Without a word of the owner, only two ends on this machine do without TLS 1.3.
fn own_party(settings: &AgentSettings, wish: &NegotiationWish, status: LifecycleStatus) -> NegotiatingParty {
    let is_here = Url::parse(&settings.url).is_ok_and(|url| is_this_machine(&url)) && is_this_machine(&wish.url);
    let least = wish.least_security.unwrap_or(if is_here { ProtocolSecurity::Loopback } else { ProtocolSecurity::Tls13 });
    let assurance = if settings.evidence.is_some() { AssuranceLevel::L2 } else { AssuranceLevel::L1 };
    NegotiatingParty { protocols: offered(settings), assurance, least_security: least, least_assurance: wish.least_assurance, status }
}

/// Writes what was found, compared and chosen, and why not the others.
fn written(
    (wish, own): (&NegotiationWish, &NegotiatingParty),
    (document, fetched): (&CapabilityDocument, &FetchedDocument),
    negotiation: &Negotiation,
    asked: &[AskedGateway],
) -> String {
    let chosen = negotiation.chosen.as_ref().map_or_else(
        |_| "null".into(),
        |choice| {
            let (priority, security) = (choice.priority, choice.security.name());
            format!(
                "{{\"own\":{},\"peer\":{},\"priority\":{priority},\"security\":\"{security}\"}}",
                protocol(&choice.own),
                protocol(&choice.peer)
            )
        },
    );
    let reason = negotiation.chosen.as_ref().err().map_or_else(|| "null".into(), |why| quote(&why.to_string()));
    let has_path = negotiation.chosen.is_ok() || asked.iter().any(|one| one.endpoint.is_some());
    let code = match &negotiation.chosen {
        _ if has_path => "null",
        Err(NoProtocol::NotShared) => "\"no_translation_path\"",
        Ok(_) | Err(NoProtocol::TooWeak(_) | NoProtocol::LittleAssurance(_) | NoProtocol::NoNewWork(_)) => "\"policy_violation\"",
    };
    let rejected: Vec<String> = negotiation.rejected.iter().map(rejected).collect();
    let asked: Vec<String> = asked.iter().map(AskedGateway::write).collect();
    format!(
        "{{\"url\":{},\"agent_id\":{},\"kept\":{},\"signed\":{},\"status\":\"{}\",\"assurance\":\"{}\",\"least_security\":\"{}\",\
         \"least_assurance\":\"{}\",\"chosen\":{chosen},\"reason\":{reason},\"code\":{code},\"rejected\":[{}],\"gateways\":[{}]}}",
        quote(wish.url.as_str()),
        quote(&document.agent),
        fetched.is_kept,
        wish.is_signed,
        document.lifecycle.status.name(),
        document.assurance.name(),
        own.least_security.name(),
        own.least_assurance.name(),
        rejected.join(","),
        asked.join(","),
    )
}

fn protocol(one: &OfferedProtocol) -> String {
    let (id, version, endpoint, security) = (quote(&one.id), quote(&one.version), quote(&one.endpoint), one.security.name());
    format!("{{\"id\":{id},\"version\":{version},\"endpoint\":{endpoint},\"priority\":{},\"security\":\"{security}\"}}", one.priority)
}

fn rejected(one: &RejectedProtocol) -> String {
    let side = match one.side {
        NegotiatingSide::Own => "own",
        NegotiatingSide::Peer => "peer",
    };
    format!("{{\"side\":\"{side}\",\"protocol\":{},\"reason\":{}}}", protocol(&one.protocol), quote(&one.reason.to_string()))
}

impl AskedGateway {
    fn write(&self) -> String {
        let endpoint = self.endpoint.as_ref().map_or_else(|| "null".into(), |endpoint| quote(endpoint));
        let (gateway, from, to) = (quote(&self.gateway), quote(&self.from), quote(&self.to));
        format!("{{\"gateway\":{gateway},\"from\":{from},\"to\":{to},\"endpoint\":{endpoint}}}")
    }
}

/// Lists the pairs of a protocol of this side and one of the other, each once and in order.
fn pairs(own: &[OfferedProtocol], peer: &[OfferedProtocol]) -> BTreeSet<(String, String)> {
    own.iter().flat_map(|one| peer.iter().map(|other| (one.id.clone(), other.id.clone()))).collect()
}

/// Finds the place where a gateway lists its pairs.
fn translations(gateway: &str) -> Option<Url> {
    Url::parse(gateway).ok()?.join(TRANSLATIONS).ok()
}

fn seconds() -> u64 {
    clock::wall() / 1_000_000
}
