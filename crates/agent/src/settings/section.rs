//! The section `[agent]`: the gate as an agent. Without it, the door is shut.

use std::net::IpAddr;
use std::sync::Arc;

use agent_proto::capability::constraints::DEFAULT_HOPS;
use bridge::BindingId;
use config::diff::{Change, differing, optional};
use config::file::At;
use config::reading::FileReading;
use config::resolved::Config;
use config::{Flaw, Section};
use ipnet::IpNet;
use runtime::reach::Reach;
use schemars::JsonSchema;
use serde::Deserialize;
use url::{Host, Origin, Url};

use crate::settings::evidence::{EvidenceSettings, EvidenceTable};

/// Translated messages of a caller in a minute.
const RATE: u32 = 600;

/// The gate as an agent: `[agent]`.
pub struct AgentSection;

/// The key of the gate as an agent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentForm {
    /// The gate as an A2A agent, whose skills are the tools open to its caller.
    agent: Option<AgentTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentTable {
    /// Address of this gate for its clients, as the agent card names it.
    #[schemars(example = &"https://gate.example.com")]
    url: At<String>,
    /// Name of the agent. Default: `Banyan`.
    name: Option<String>,
    /// Words about the agent for everybody who can reach the gate.
    description: Option<String>,
    /// Addresses to which clients may have notifications of their tasks sent: origins such as `https://hooks.example.com`, or `*` for every
    /// https address on the internet. Default: none.
    #[schemars(example = &["https://hooks.example.com"])]
    push: Option<Vec<At<String>>>,
    /// Protocols from which messages are translated. Default: all that the gate knows.
    translate_from: Option<Vec<At<String>>>,
    /// Protocols to which messages are translated. Default: all that the gate knows.
    translate_to: Option<Vec<At<String>>>,
    /// Most gateways that translate a message on its way, this one included. Default: 3.
    translate_hops: Option<u32>,
    /// Most messages of a caller that are translated in a minute. Default: 600.
    translate_rate: Option<u32>,
    /// Networks with public addresses that are the operator's own: `*` in `push` leads to none of them. Default: none.
    #[schemars(example = &["198.51.100.0/24"])]
    push_except: Option<Vec<At<String>>>,
    /// Signed evidence of each hop: Execution Context Tokens. Without the table, the gate makes and takes none.
    evidence: Option<EvidenceTable>,
}

/// The gate as an agent, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSettings {
    /// Address without a slash at the end.
    pub url: String,
    pub name: String,
    pub description: String,
    pub push: PushScope,
    pub translation: TranslationScope,
    pub evidence: Option<Arc<EvidenceSettings>>,
}

/// Bounds of translated requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationScope {
    /// `None`: every protocol.
    from: Option<Vec<BindingId>>,
    to: Option<Vec<BindingId>>,
    pub hops: u64,
    pub rate: u32,
}

impl TranslationScope {
    /// Checks that a pair may be translated.
    pub fn allows(&self, from: BindingId, to: BindingId) -> bool {
        let is_in = |list: &Option<Vec<BindingId>>, one| list.as_ref().is_none_or(|list| list.contains(&one));
        is_in(&self.from, from) && is_in(&self.to, to)
    }
}

/// Reads names of protocols.
fn protocols(places: Option<&Vec<At<String>>>, reading: &mut FileReading<'_>) -> Option<Vec<BindingId>> {
    let mut known = Vec::new();
    for place in places? {
        match BindingId::parse(place.get()).filter(|binding| binding.has_codec()) {
            Some(binding) => known.push(binding),
            None => {
                let flaw = Flaw::new(place.span(), "this gate translates no such protocol");
                reading.refuse(flaw.help("write one of \"a2a-v1\", \"ainp-v1\", \"mcp-v1\" and \"uacp-v1\""));
            }
        }
    }
    Some(known)
}

/// Addresses of notifications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushScope {
    /// Every https address on the internet.
    is_open: bool,
    origins: Vec<Origin>,
    /// Networks that the star leaves out.
    except: Vec<IpNet>,
}

/// Addresses open to one wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushReach {
    reach: Reach,
    except: Vec<IpNet>,
}

impl PushReach {
    /// Tells if a connection to `ip` is permitted.
    pub fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.reach.allows(ip) && !self.except.iter().any(|network| network.contains(&ip))
    }
}

impl PushScope {
    /// Checks for a gate without notifications.
    pub fn is_empty(&self) -> bool {
        !self.is_open && self.origins.is_empty()
    }

    /// Finds the addresses to which a URL may lead; `None`: nothing is sent there.
    pub fn reach(&self, url: &Url) -> Option<PushReach> {
        if self.origins.contains(&url.origin()) {
            return Some(PushReach { reach: Reach::new(url, Vec::new()), except: Vec::new() });
        }
        Some(PushReach { reach: Reach::public(), except: self.except.clone() })
            .filter(|reach| self.is_open && url.scheme() == "https" && is_reached(url, reach))
    }
}

/// Checks a host that is written as an address, for which no name is looked up.
fn is_reached(url: &Url, reach: &PushReach) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => reach.allows(ip.into()),
        Some(Host::Ipv6(ip)) => reach.allows(ip.into()),
        Some(Host::Domain(_)) => true,
        None => false,
    }
}

/// Reads an origin. What stands besides would limit nothing: every path of the origin is open to every client.
fn origin(place: &At<String>, reading: &mut FileReading<'_>) -> Option<Origin> {
    let url = reading.address(place)?;
    let is_origin = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if !is_origin || !url.username().is_empty() || url.password().is_some() {
        let flaw = Flaw::new(place.span(), "an address in `push` has a path, a query, a fragment or a name in it").secret();
        reading
            .refuse(flaw.help("write the origin alone, for example \"https://hooks.example.com\": all its paths are open to every client"));
        return None;
    }
    Some(url.origin())
}

impl AgentSettings {
    /// Name of the gate as `did:web`, made of its address.
    pub fn web_did(&self) -> Option<String> {
        let url = Url::parse(&self.url).ok()?;
        let port = url.port().map(|port| format!("%3A{port}")).unwrap_or_default();
        url.host_str().map(|host| format!("did:web:{host}{port}"))
    }

    /// Identity of the gate as an agent: a SPIFFE id of its host and its name.
    pub fn agent_id(&self) -> String {
        let host = Url::parse(&self.url).ok().and_then(|url| url.host_str().map(|host| host.trim_matches(['[', ']']).replace(':', "-")));
        let name = self.name.to_lowercase();
        let path: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' }).collect();
        format!("spiffe://{}/agent/{path}", host.unwrap_or_default())
    }
}

impl Section for AgentSection {
    type Form = AgentForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        let Some(table) = &form.agent else { return };
        let Some(url) = reading.address(&table.url) else { return };
        let name = table.name.clone().unwrap_or_else(|| "Banyan".into());
        let description = table.description.clone().unwrap_or_else(|| "A gate in front of tools. Each skill is a tool.".into());
        let mut push = PushScope::default();
        for place in table.push.iter().flatten() {
            match place.get().as_str() {
                "*" => push.is_open = true,
                _ => push.origins.extend(origin(place, reading)),
            }
        }
        for place in table.push_except.iter().flatten() {
            let text = place.get();
            match text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from)) {
                Some(network) => push.except.push(network),
                None => reading.refuse(
                    Flaw::new(place.span(), "there is no such network")
                        .help("write an address or a network, for example \"198.51.100.0/24\""),
                ),
            }
        }
        let evidence = table.evidence.as_ref().map(|table| table.resolve(reading));
        let translation = TranslationScope {
            from: protocols(table.translate_from.as_ref(), reading),
            to: protocols(table.translate_to.as_ref(), reading),
            hops: table.translate_hops.map_or(DEFAULT_HOPS, u64::from),
            rate: table.translate_rate.unwrap_or(RATE),
        };
        let url = url.as_str().trim_end_matches('/').to_owned();
        config.values.set(AgentSettings { url, name, description, push, evidence, translation });
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        let change = optional("agent", old.values.get::<AgentSettings>(), new.values.get(), |old, new| {
            differing([
                ("url", old.url != new.url),
                ("name", old.name != new.name),
                ("description", old.description != new.description),
                ("push", old.push != new.push),
                ("translate", old.translation != new.translation),
                ("evidence", old.evidence != new.evidence),
            ])
        });
        change.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use config::Sections;
    use config::secret::SystemSources;

    use super::*;

    #[test]
    fn an_entry_is_an_origin_and_no_more() {
        let parsed = |place: &str| {
            let text = format!("[agent]\nurl = \"https://gate.example\"\npush = [\"{place}\"]\n");
            Sections::default().with(AgentSection).parse(&text, Path::new("banyan.toml"), &SystemSources).map_err(|error| error.to_string())
        };
        for place in ["https://a.example", "https://a.example/", "http://a.example:8080", "*"] {
            assert!(parsed(place).is_ok(), "{place}");
        }
        for place in ["https://a.example/me", "https://a.example?x", "https://a.example/#f", "https://me@a.example", "https://:p@a.example"]
        {
            let refused = parsed(place).err().unwrap_or_else(|| panic!("{place} is taken"));
            assert!(refused.contains("write the origin alone"), "{refused}");
        }
    }

    fn reach(scope: &PushScope, url: &str) -> Option<PushReach> {
        scope.reach(&Url::parse(url).unwrap())
    }

    #[test]
    fn notifications_go_to_listed_origins_alone() {
        let origin = |url: &str| Url::parse(url).unwrap().origin();
        let listed = PushScope {
            is_open: false,
            origins: vec![origin("https://hooks.example.com"), origin("http://127.0.0.1:8000")],
            except: Vec::new(),
        };
        assert!(reach(&listed, "https://hooks.example.com/a?b=1").is_some_and(|reach| !reach.allows([127, 0, 0, 1].into())));
        assert!(reach(&listed, "http://127.0.0.1:8000/x").is_some_and(|reach| reach.allows([127, 0, 0, 1].into())));
        for other in ["http://hooks.example.com/", "https://hooks.example.com:444/", "https://a.example/", "http://127.0.0.1:8001/"] {
            assert_eq!(reach(&listed, other), None, "{other}");
        }
        assert!(PushScope::default().is_empty());
    }

    #[test]
    fn an_open_scope_leads_into_no_private_network() {
        let open = PushScope { is_open: true, origins: Vec::new(), except: vec!["198.51.0.0/16".parse().unwrap()] };
        assert!(reach(&open, "https://a.example/").is_some_and(
            |reach| reach.allows([1, 1, 1, 1].into()) && ![[10, 0, 0, 1], [198, 51, 1, 1]].iter().any(|ip| reach.allows((*ip).into()))
        ));
        for other in [
            "http://a.example/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://10.0.0.1/",
            "https://169.254.169.254/",
            "https://2130706433/",
            "https://198.51.1.1/",
            "https://[::ffff:198.51.1.1]/",
        ] {
            assert_eq!(reach(&open, other), None, "{other}");
        }
    }
}
