//! The sections `[axcp]`, `[axcp.peer.NAME]`, `[context.NAME]` and `[offered.NAME]`: each context mounts a server under its name, and so do the
//! tools of a peer. Opens nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axcp_proto::context::operation::MOST_ID;
use config::diff::{Change, differing, optional};
use config::file::At;
use config::reading::FileReading;
use config::resolved::{Config, FamilySettings, FamilyTransport, Mount, Sharing, Transport};
use config::{Flaw, Section};
use schemars::JsonSchema;
use serde::Deserialize;

/// Time for which patches are kept for a peer that is away, by default.
const KEEP: Duration = Duration::from_secs(3600);

/// Shortest interval of telemetry.
const SHORTEST: Duration = Duration::from_millis(100);

/// Contexts and the peers that share them.
pub(crate) struct AxcpSection;

/// The keys of shared contexts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct AxcpForm {
    /// Connections with other nodes of AXCP, which share contexts with this gate.
    axcp: Option<At<AxcpTable>>,
    /// Contexts, by the name in front of their tools: 1 to 63 of a-z, 0-9, `_` and `-`.
    context: BTreeMap<At<String>, ContextTable>,
}

/// Connections with other nodes of AXCP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AxcpTable {
    /// Address and UDP port for peers. Without one, only this gate dials.
    #[schemars(example = &"0.0.0.0:7143")]
    listen: Option<At<String>>,
    /// PEM file with the certificate to show to peers, and its chain.
    #[schemars(example = &"gate.pem")]
    certificate: At<String>,
    /// PEM file with the private key of the certificate.
    #[schemars(example = &"gate.key")]
    key: At<String>,
    /// PEM file with the authorities of the peers' certificates.
    #[schemars(example = &"ca.pem")]
    ca: At<String>,
    /// Peers, by the name that `peers` of the contexts says.
    #[serde(default)]
    peer: BTreeMap<At<String>, PeerTable>,
}

/// Another node of AXCP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PeerTable {
    /// Name that the peer's certificate proves: `dns:` and a DNS name, or a SPIFFE id.
    #[schemars(example = &"dns:edge.example.com")]
    id: At<String>,
    /// Host and UDP port of the peer, where this gate dials. Give it on one side only.
    #[schemars(example = &"edge.example.com:7143")]
    address: Option<At<String>>,
    /// Tools of this gate that the peer may call, by name, with `*` for any text. Default: none.
    #[serde(default)]
    #[schemars(example = &["plant.*"])]
    tools: Vec<At<String>>,
    /// Interval at which the peer is sent the state of this machine, 100 ms at least. Default: never.
    #[schemars(example = &"10s")]
    telemetry: Option<At<String>>,
}

/// A context shared with peers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ContextTable {
    /// Id of the context at all its nodes. Default: the name of the section.
    #[schemars(example = &"factory-status")]
    id: Option<At<String>>,
    /// Peers that share the context, each with a section `[axcp.peer.NAME]`.
    #[schemars(example = &["edge"])]
    peers: Vec<At<String>>,
    /// Peers that read the context and may not write, besides `peers`.
    #[schemars(example = &["display"])]
    readers: Vec<At<String>>,
    /// Time for which patches are kept for a peer that is away, before the peer has to ask for them. Default: `1h`.
    #[schemars(example = &"1h")]
    keep: Option<At<String>>,
}

/// Tools that peers offer, as servers.
pub(crate) struct OfferedSection;

/// The key of the tools of peers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct OfferedForm {
    /// Tools that a peer offers over AXCP, by the name in front of them: 1 to 63 of a-z, 0-9, `_` and `-`.
    offered: BTreeMap<At<String>, OfferedTable>,
}

/// Tools that a peer offers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct OfferedTable {
    /// Peer with the tools, which has a section `[axcp.peer.NAME]`. Default: the name of the section.
    #[schemars(example = &"edge")]
    peer: Option<At<String>>,
}

/// Tools of a peer as a server, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedSettings {
    /// Id of the peer.
    pub peer: Arc<str>,
}

impl FamilySettings for OfferedSettings {
    const FAMILY: &'static str = "axcp";

    fn description(&self) -> String {
        format!("the tools that {} offers over AXCP", self.peer)
    }

    fn differing(&self, old: &Self) -> Vec<&'static str> {
        differing([("peer", self.peer != old.peer)])
    }
}

impl Section for OfferedSection {
    type Form = OfferedForm;

    const MOUNTS: Option<&'static str> = Some("offered");

    /// The peers are resolved before.
    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        let peers = config.values.get::<AxcpSettings>().map(|settings| settings.peers.clone()).unwrap_or_default();
        for (name, table) in &form.offered {
            let Some(segment) = reading.free_segment(name, "offered", config) else { continue };
            let named = table.peer.as_ref().unwrap_or(name);
            let Some(peer) = peer_ids(std::slice::from_ref(named), &peers, reading).pop() else { continue };
            let transport = Transport::Family(FamilyTransport::new(OfferedSettings { peer }));
            let mount = Mount { sharing: Sharing::Always, ..Mount::new(segment.clone(), transport, "banyan.toml") };
            config.mounts.insert(segment, Arc::new(mount));
        }
    }

    /// A changed peer shows as a changed mount.
    fn compare(&self, _old: &Config, _new: &Config) -> Vec<Change> {
        Vec::new()
    }
}

/// Connections of the gate, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxcpSettings {
    pub listen: Option<SocketAddr>,
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub ca: PathBuf,
    /// By the name of the section.
    pub peers: BTreeMap<Arc<str>, PeerSettings>,
}

/// A peer, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    pub id: Arc<str>,
    /// Host and port.
    pub address: Option<(String, u16)>,
    /// Patterns for the names of the tools that the peer may call.
    pub tools: Vec<String>,
    /// Interval of telemetry for the peer.
    pub telemetry: Option<Duration>,
}

/// A context, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextSettings {
    /// Name of the section, and of the mount.
    pub name: Arc<str>,
    pub id: Arc<str>,
    /// Ids of the peers that share the context, readers included.
    pub peers: Vec<Arc<str>>,
    /// Ids of the peers without the right to write.
    pub readers: Vec<Arc<str>>,
    pub keep: Duration,
}

impl FamilySettings for ContextSettings {
    const FAMILY: &'static str = "context";

    fn description(&self) -> String {
        format!("the context {} shared with {} peers", self.id, self.peers.len())
    }

    fn differing(&self, old: &Self) -> Vec<&'static str> {
        differing([
            ("id", self.id != old.id),
            ("peers", self.peers != old.peers),
            ("readers", self.readers != old.readers),
            ("keep", self.keep != old.keep),
        ])
    }
}

impl Section for AxcpSection {
    type Form = AxcpForm;

    const MOUNTS: Option<&'static str> = Some("context");

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        let mut peers = BTreeMap::new();
        if let Some(table) = &form.axcp {
            let settings = settings(table.get(), reading);
            peers.clone_from(&settings.peers);
            config.values.set(settings);
        }
        let mut ids: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
        for (name, table) in &form.context {
            let Some(segment) = reading.free_segment(name, "context", config) else { continue };
            let settings = context(name, table, &peers, reading);
            if let Some(other) = ids.insert(Arc::clone(&settings.id), Arc::clone(&settings.name)) {
                let flaw = Flaw::new(name.span(), format!("the contexts `{other}` and `{}` have one id", name.get()));
                reading.refuse(flaw.help("give each context an `id` of its own"));
            }
            let transport = Transport::Family(FamilyTransport::new(settings));
            config.mounts.insert(segment.clone(), Arc::new(Mount::new(segment, transport, "banyan.toml")));
        }
    }

    /// A changed context shows as a changed mount.
    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        let change = optional("axcp", old.values.get::<AxcpSettings>(), new.values.get(), |old, new| {
            differing([
                ("listen", old.listen != new.listen),
                ("certificate", old.certificate != new.certificate),
                ("key", old.key != new.key),
                ("ca", old.ca != new.ca),
                ("peer", old.peers != new.peers),
            ])
        });
        change.into_iter().collect()
    }
}

/// Lists the contexts of a configuration.
pub(crate) fn contexts_of(config: &Config) -> Vec<ContextSettings> {
    let mounts = config.mounts.values().filter_map(|mount| match &mount.transport {
        Transport::Family(family) => family.settings::<ContextSettings>().cloned(),
        Transport::Http(_) | Transport::Sse(_) | Transport::Stdio(_) => None,
    });
    mounts.collect()
}

fn settings(table: &AxcpTable, reading: &mut FileReading<'_>) -> AxcpSettings {
    let listen = table.listen.as_ref().and_then(|text| {
        let address = text.get().parse().ok();
        if address.is_none() {
            let flaw = Flaw::new(text.span(), format!("`{}` is no address to listen on", text.get()));
            reading.refuse(flaw.help("write an IP address and a UDP port, for example \"0.0.0.0:7143\""));
        }
        address
    });
    let (certificate, key, ca) = (reading.path(&table.certificate), reading.path(&table.key), reading.path(&table.ca));
    let mut peers: BTreeMap<Arc<str>, PeerSettings> = BTreeMap::new();
    for (name, peer) in &table.peer {
        let checked = self::peer(peer, reading);
        if peers.values().any(|other| other.id == checked.id) {
            let flaw = Flaw::new(name.span(), format!("two peers have the id `{}`", checked.id));
            reading.refuse(flaw.help("leave one of the two sections out"));
        }
        peers.insert(name.get().as_str().into(), checked);
    }
    AxcpSettings { listen, certificate, key, ca, peers }
}

fn peer(table: &PeerTable, reading: &mut FileReading<'_>) -> PeerSettings {
    let id = table.id.get();
    let is_id = id.len() <= MOST_ID && (id.starts_with("dns:") && id.len() > 4 || id.starts_with("spiffe://") && id.len() > 9);
    if !is_id {
        let flaw = Flaw::new(table.id.span(), format!("`{id}` is no name that a certificate proves"));
        reading.refuse(flaw.help("write `dns:` and the DNS name of the peer's certificate, for example \"dns:edge.example.com\""));
    }
    let address = table.address.as_ref().and_then(|text| {
        let address = host_and_port(text.get());
        if address.is_none() {
            let flaw = Flaw::new(text.span(), format!("`{}` is no address of a peer", text.get()));
            reading.refuse(flaw.help("write a host and a UDP port, for example \"edge.example.com:7143\""));
        }
        address
    });
    let telemetry = reading.duration(table.telemetry.as_ref());
    if let (Some(text), Some(_)) = (&table.telemetry, telemetry.filter(|interval| *interval < SHORTEST)) {
        let flaw = Flaw::new(text.span(), "telemetry goes out ten times a second at most: a peer drops more");
        reading.refuse(flaw.help("write \"100ms\" or more"));
    }
    PeerSettings { id: id.as_str().into(), address, tools: reading.globs(&table.tools), telemetry }
}

fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some((host.to_owned(), port.parse().ok()?)).filter(|(host, port)| !host.is_empty() && *port > 0)
}

fn context(
    name: &At<String>,
    table: &ContextTable,
    peers: &BTreeMap<Arc<str>, PeerSettings>,
    reading: &mut FileReading<'_>,
) -> ContextSettings {
    let id = table.id.as_ref().unwrap_or(name);
    if id.get().is_empty() || id.get().len() > MOST_ID {
        let flaw = Flaw::new(id.span(), format!("the id of a context has 1 to {MOST_ID} bytes"));
        reading.refuse(flaw.help("give the context a shorter `id`"));
    }
    let mut ids = peer_ids(&table.peers, peers, reading);
    let readers = peer_ids(&table.readers, peers, reading);
    if let Some(both) = table.readers.iter().find(|reader| table.peers.iter().any(|peer| peer.get() == reader.get())) {
        let flaw = Flaw::new(both.span(), format!("`{}` reads only, and writes as well", both.get()));
        reading.refuse(flaw.help("name the peer in `peers` or in `readers`"));
    }
    ids.extend(readers.iter().cloned());
    let keep = reading.duration(table.keep.as_ref()).unwrap_or(KEEP);
    ContextSettings { name: name.get().as_str().into(), id: id.get().as_str().into(), peers: ids, readers, keep }
}

/// Finds the ids of named peers.
fn peer_ids(named: &[At<String>], peers: &BTreeMap<Arc<str>, PeerSettings>, reading: &mut FileReading<'_>) -> Vec<Arc<str>> {
    let mut ids = Vec::new();
    for name in named {
        match peers.get(name.get().as_str()) {
            Some(peer) => ids.push(Arc::clone(&peer.id)),
            None => {
                let flaw = Flaw::new(name.span(), format!("there is no peer `{}`", name.get()));
                reading.refuse(flaw.help(format!("add a section [axcp.peer.{}]", name.get())));
            }
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use config::Sections;
    use config::secret::SystemSources;

    use super::*;

    const WHOLE: &str = "[axcp]\nlisten = \"127.0.0.1:7143\"\ncertificate = \"c\"\nkey = \"k\"\nca = \"a\"\n\
                         [axcp.peer.edge]\nid = \"dns:edge.example\"\naddress = \"[::1]:7143\"\n\
                         [context.chat]\npeers = [\"edge\"]\nkeep = \"5m\"\n";

    fn parsed(text: &str) -> Result<Config, String> {
        let sections = Sections::default().with(AxcpSection).with(OfferedSection);
        sections.parse(text, Path::new("banyan.toml"), &SystemSources).map_err(|error| error.to_string())
    }

    #[test]
    fn a_context_is_a_mount_shared_with_named_peers() {
        let config = parsed(WHOLE).unwrap();
        let context = contexts_of(&config).remove(0);
        assert_eq!((&*context.id, context.peers, context.keep.as_secs()), ("chat", vec!["dns:edge.example".into()], 300));
        let peers = &config.values.get::<AxcpSettings>().unwrap().peers;
        assert_eq!(peers["edge"].address, Some(("::1".to_owned(), 7143)));
    }

    #[test]
    fn tools_of_a_peer_are_a_mount() {
        let config = parsed(&format!("{WHOLE}[offered.machines]\npeer = \"edge\"\n")).unwrap();
        let mount = &config.mounts[&banyan_model::Segment::nearest("machines")];
        let Transport::Family(family) = &mount.transport else { panic!("no family") };
        assert_eq!(family.settings::<OfferedSettings>().map(|settings| &*settings.peer), Some("dns:edge.example"));
        for (more, wanted) in [("[offered.cloud]\n", "[axcp.peer.cloud]"), ("[offered.chat]\npeer = \"edge\"\n", "another section")] {
            let refused = parsed(&format!("{WHOLE}{more}")).unwrap_err();
            assert!(refused.contains(wanted), "{refused}");
        }
    }

    #[test]
    fn a_peer_may_call_nothing_by_default() {
        let tools = |text: &str| parsed(text).unwrap().values.get::<AxcpSettings>().unwrap().peers["edge"].tools.clone();
        assert!(tools(WHOLE).is_empty());
        assert_eq!(tools(&WHOLE.replace("[context", "tools = [\"plant.*\"]\n[context")), ["plant.*"]);
    }

    #[test]
    fn a_wrong_peer_is_refused_with_advice() {
        for (text, wanted) in [
            (WHOLE.replace("dns:edge.example", "edge"), "`dns:`"),
            (WHOLE.replace("[::1]:7143", "edge.example"), "edge.example.com:7143"),
            (WHOLE.replace("127.0.0.1:7143", "nowhere"), "0.0.0.0:7143"),
            (WHOLE.replace("[context", "telemetry = \"10ms\"\n[context"), "ten times a second"),
            (WHOLE.replace("[\"edge\"]", "[\"cloud\"]"), "[axcp.peer.cloud]"),
            (format!("{WHOLE}[axcp.peer.other]\nid = \"dns:edge.example\"\n"), "two peers"),
            (WHOLE.replace("keep = ", "readers = [\"edge\"]\nkeep = "), "`readers`"),
            (format!("{WHOLE}[context.other]\nid = \"chat\"\n"), "one id"),
        ] {
            let refused = parsed(&text).unwrap_err();
            assert!(refused.contains(wanted), "{refused}");
        }
    }
}
