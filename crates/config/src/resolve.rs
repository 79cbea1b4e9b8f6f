//! From the text of `banyan.toml` to a [`Config`], one lowering function a section. All that is wrong is collected; a
//! value that is wrong is replaced by its default so that the rest can still be looked at. Does not fetch secrets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use banyan_model::Segment;
use toml::de::DeTable;

use super::file::{self, At, File};
use super::problem::{ConfigError, Flaw, invalid};
use super::resolved::{Config, Limits, NameStyle, Profile, Search, Telemetry, Token};
use super::secret::{SecretRef, Sources};
use super::snippet::Shown;
use super::{shape, suggest, units};

mod audit;
mod gate;
mod mount;
mod parent;
mod pins;
mod policy;
mod registry;
mod room;
mod trust;

/// Reads the configuration file at `path`. References in addresses are looked up in the environment of `sources`.
pub fn load(path: &Path, sources: &dyn Sources) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    parse(&text, path, sources)
}

/// Reads a configuration from `text`; `path` stands in errors, and relative directories start beside it.
pub fn parse(text: &str, path: &Path, sources: &dyn Sources) -> Result<Config, ConfigError> {
    let refuse = |flaws| invalid(path, text, flaws);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(refuse(errors.iter().map(|error| syntax(error, text)).collect()));
    }
    let flaws = shape::flaws(&table, super::schema());
    if !flaws.is_empty() {
        return Err(refuse(flaws));
    }
    let file: File = toml::from_str(text).map_err(|error| refuse(vec![syntax(&error, text)]))?;
    let dir = std::path::absolute(path).ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    let mut lowering = Lowering { dir, sources, flaws: Vec::new(), elsewhere: None };
    let config = lowering.config(&file);
    match lowering {
        Lowering { flaws, .. } if !flaws.is_empty() => Err(refuse(flaws)),
        Lowering { elsewhere: Some(error), .. } => Err(error),
        Lowering { .. } => Ok(config),
    }
}

/// An address that other machines reach while nobody needs a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}\n  {}", self.message(), Self::HELP)]
pub struct OpenListen(pub SocketAddr);

impl OpenListen {
    const HELP: &str = "make a token with `banyan token add NAME`, or listen on 127.0.0.1";

    fn message(self) -> String {
        format!("{} can be reached from other machines, and no token is configured: anybody could call every tool", self.0)
    }
}

/// Refuses an address that other machines reach while nobody needs a credential.
pub fn check_listen(listen: SocketAddr, config: &Config) -> Result<(), OpenListen> {
    if listen.ip().is_loopback() || config.wants_credential() { Ok(()) } else { Err(OpenListen(listen)) }
}

/// What others can listen in on at that address, for people; `None`: nothing.
pub fn exposed(listen: SocketAddr, config: &Config) -> Option<String> {
    let open = !listen.ip().is_loopback() && config.trust.tls.is_none();
    open.then(|| {
        format!(
            "tokens and calls to {listen} travel in plain text, for everybody in between to read and change: `banyan ca init` makes \
             certificates for TLS, or let a proxy on this machine speak it and listen on 127.0.0.1"
        )
    })
}

/// Longer ones overflow when they are added to the time.
const MAX_DURATION: Duration = Duration::from_secs(365 * 86_400);

/// Everything that one pass over a file needs and collects.
struct Lowering<'a> {
    /// The directory of the file; absolute, so that what it names stays the same when it is read again by another name.
    dir: PathBuf,
    sources: &'a dyn Sources,
    flaws: Vec<Flaw>,
    /// What is wrong with another file that this one names.
    elsewhere: Option<ConfigError>,
}

impl Lowering<'_> {
    fn config(&mut self, file: &File) -> Config {
        let defaults = Config::default();
        let tokens = self.tokens(&file.token, &file.profile);
        let trust = self.trust(file);
        let config = Config { tokens, trust, ..Config::default() };
        let rooms = self.rooms(file);
        Config {
            listen: self.listen(file.listen.as_ref(), &config).unwrap_or(defaults.listen),
            allowed_hosts: self.allowed_hosts(&file.allowed_hosts),
            behind_proxy: self.behind_proxy(file.behind_proxy.as_ref(), &config),
            policy: file.policy.as_ref().and_then(|section| self.policy(section)),
            groups: self.groups(&file.group),
            budgets: self.budgets(&file.budget),
            limits: self.limits(&file.limits),
            mounts: self.mounts(&file.mount).into_iter().chain(self.mounted(file, &rooms)).collect(),
            gate: file.gate.as_ref().map(|section| Arc::new(self.gate(section, file))),
            pins: self.pins(&file.pins),
            registry: file.registry.as_ref().map(|section| self.registry(section)),
            rooms: Arc::new(rooms),
            join: self.join(file.node.as_ref(), &file.parent),
            profiles: self.profiles(&file.profile),
            telemetry: self.telemetry(&file.telemetry),
            audit: self.audit(&file.audit),
            names: file.names.map_or(defaults.names, name_style),
            ..config
        }
    }

    fn listen(&mut self, listen: Option<&At<String>>, config: &Config) -> Option<SocketAddr> {
        let listen = listen?;
        let text = listen.get().replacen("localhost:", "127.0.0.1:", 1);
        let Ok(address) = text.parse() else {
            let flaw = Flaw::new(listen.span(), format!("`listen` is \"{text}\", and must be an IP address with a port"));
            self.flaws.push(flaw.help("for example \"127.0.0.1:7411\", or \"0.0.0.0:7411\" for all interfaces"));
            return None;
        };
        if let Err(open) = check_listen(address, config) {
            self.flaws.push(Flaw::new(listen.span(), open.message()).help(OpenListen::HELP));
        }
        Some(address)
    }

    fn allowed_hosts(&mut self, hosts: &[At<String>]) -> Vec<String> {
        for host in hosts {
            let text = host.get();
            if text.is_empty() || text.contains(['/', '*', ' ']) || (text.contains(':') && !text.starts_with('[')) {
                let flaw = Flaw::new(host.span(), format!("`{text}` is not the name of a host"));
                self.flaws.push(flaw.help("write it without scheme, port and path, for example \"gate.example.com\""));
            }
        }
        hosts.iter().map(|host| host.get().to_ascii_lowercase()).collect()
    }

    /// Without credentials whoever is on this machine may come in: behind a proxy that is everybody, or nobody.
    fn behind_proxy(&mut self, behind: Option<&At<bool>>, config: &Config) -> bool {
        let Some(behind) = behind.filter(|behind| *behind.get()) else { return false };
        if !config.wants_credential() {
            let flaw = Flaw::new(
                behind.span(),
                "behind a proxy nobody counts as being on this machine, and nobody else comes in without a credential",
            );
            self.flaws.push(flaw.help("make a token with `banyan token add NAME`"));
        }
        true
    }

    fn tokens(&mut self, tokens: &[file::Token], profiles: &BTreeMap<At<String>, file::Profile>) -> Vec<Token> {
        let mut found: Vec<Token> = Vec::new();
        for token in tokens {
            let name = token.name.get();
            if name.is_empty() || found.iter().any(|other| *other.name == **name) {
                let message = if name.is_empty() { "a token needs a name".into() } else { format!("there are two tokens named `{name}`") };
                self.flaws.push(Flaw::new(token.name.span(), message).help("names tell the holders apart in logs and records"));
            }
            let Some(sha256) = hex_digest(token.sha256.get()) else {
                let flaw = Flaw::new(token.sha256.span(), "`sha256` is not a SHA-256 hash of 64 hexadecimal digits").secret();
                self.flaws.push(flaw.help("`banyan token add NAME` makes a token and writes its hash here"));
                continue;
            };
            if let Some(profile) = &token.profile {
                self.known_profile(profile, profiles);
            }
            let profile = token.profile.as_ref().map(|profile| profile.get().as_str().into());
            found.push(Token { name: name.as_str().into(), sha256, profile, metrics: token.metrics });
        }
        found
    }

    fn known_profile(&mut self, profile: &At<String>, profiles: &BTreeMap<At<String>, file::Profile>) {
        let name = profile.get();
        if profiles.keys().any(|known| known.get() == name) {
            return;
        }
        let flaw = Flaw::new(profile.span(), format!("there is no profile `{name}`"));
        self.flaws.push(match suggest::nearest(name, profiles.keys().map(|known| known.get().as_str())) {
            Some(near) => flaw.help(format!("did you mean `{near}`?")),
            None => flaw.help(format!("add a section [profile.{name}]")),
        });
    }

    fn limits(&mut self, limits: &file::Limits) -> Limits {
        let defaults = Limits::default();
        Limits {
            request_bytes: self.size(limits.request_size.as_ref()).unwrap_or(defaults.request_bytes),
            response_bytes: self.size(limits.response_size.as_ref()).unwrap_or(defaults.response_bytes),
            calls: limits.calls.unwrap_or(defaults.calls),
            calls_per_mount: limits.calls_per_mount.unwrap_or(defaults.calls_per_mount),
            wait: self.duration(limits.wait.as_ref()).unwrap_or(defaults.wait),
            sessions: limits.sessions.unwrap_or(defaults.sessions),
            session_idle: self.duration(limits.session_idle.as_ref()).unwrap_or(defaults.session_idle),
            tools_per_mount: limits.tools_per_mount.unwrap_or(defaults.tools_per_mount),
            share: limits.share.unwrap_or(defaults.share),
            connections: limits.connections.unwrap_or(defaults.connections),
            connections_per_address: limits.connections_per_address,
            body_bytes: self.size(limits.bodies.as_ref()).unwrap_or(defaults.body_bytes),
            stream_bytes: self.size(limits.streams.as_ref()).unwrap_or(defaults.stream_bytes),
            parked: limits.parked.unwrap_or(defaults.parked),
            listeners: limits.listeners.unwrap_or(defaults.listeners),
            subscriptions: limits.subscriptions.unwrap_or(defaults.subscriptions),
            question: self.duration(limits.question.as_ref()).unwrap_or(defaults.question),
        }
    }

    fn profiles(&mut self, profiles: &BTreeMap<At<String>, file::Profile>) -> Vec<Arc<Profile>> {
        let mut in_order: Vec<_> = profiles.iter().collect();
        in_order.sort_by_key(|(name, _)| name.span().start);
        in_order.into_iter().map(|(name, profile)| Arc::new(self.profile(name.get(), profile))).collect()
    }

    fn profile(&mut self, name: &str, profile: &file::Profile) -> Profile {
        for shown in profile.rename.values() {
            let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let text = shown.get();
            if text.is_empty() || text.len() > 128 || !text.chars().all(legal) {
                let flaw = Flaw::new(shown.span(), format!("`{text}` can't be the name of a tool"));
                self.flaws.push(flaw.help("use 1 to 128 letters, digits, `_`, `-` and `.`"));
            }
        }
        Profile {
            name: name.into(),
            clients: self.globs(&profile.clients),
            include: self.globs(&profile.include),
            exclude: self.globs(&profile.exclude),
            rename: self.renames(&profile.rename),
            names: profile.names.map(name_style),
            search: match profile.search {
                Some(file::Search::Above(tools)) => Search::Above(tools),
                Some(file::Search::Always) => Search::Always,
                Some(file::Search::Never) => Search::Never,
                None => Search::default(),
            },
        }
    }

    fn telemetry(&mut self, telemetry: &file::Telemetry) -> Telemetry {
        Telemetry { otlp: telemetry.otlp.as_ref().and_then(|otlp| self.address(otlp)) }
    }

    fn globs(&mut self, globs: &[At<String>]) -> Vec<String> {
        for glob in globs.iter().filter(|glob| glob.get().trim().is_empty()) {
            let flaw = Flaw::new(glob.span(), "an empty text matches nothing");
            self.flaws.push(flaw.help("write a name, or `*` for all"));
        }
        globs.iter().map(|glob| glob.get().clone()).collect()
    }

    /// Two tools under one name are refused: one of them would be lost.
    fn renames(&mut self, renames: &BTreeMap<At<String>, At<String>>) -> BTreeMap<String, String> {
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for (tool, shown) in renames {
            if let Some(other) = taken.insert(shown.get(), tool.get()) {
                let message = format!("`{other}` and `{}` would both be named `{}`", tool.get(), shown.get());
                self.flaws.push(Flaw::new(shown.span(), message).help("give each tool a name of its own"));
            }
        }
        renames.iter().map(|(tool, shown)| (tool.get().clone(), shown.get().clone())).collect()
    }

    fn size(&mut self, text: Option<&At<String>>) -> Option<usize> {
        let text = text?;
        let size = units::size(text.get()).filter(|size| *size > 0);
        if size.is_none() {
            let flaw = Flaw::new(text.span(), format!("\"{}\" is not a size", text.get()));
            self.flaws.push(flaw.help("write a whole number with B, kB, MB, GB, KiB, MiB or GiB, for example \"16MiB\""));
        }
        size
    }

    /// What is said of single mounts, by name. Whether there are any of these names is not asked: they may come later.
    fn by_mount<T: Copy, M>(&mut self, written: &BTreeMap<At<String>, T>, example: &str, lowered: impl Fn(T) -> M) -> BTreeMap<Segment, M> {
        let mut mounts = BTreeMap::new();
        for (name, own) in written {
            match Segment::new(name.get()) {
                Ok(segment) => drop(mounts.insert(segment, lowered(*own))),
                Err(bad) => {
                    let near = suggest::segment(name.get());
                    self.flaws.push(Flaw::new(name.span(), bad.to_string()).help(format!("for example {near} = \"{example}\"")));
                }
            }
        }
        mounts
    }

    fn duration(&mut self, text: Option<&At<String>>) -> Option<Duration> {
        let text = text?;
        let duration = units::duration(text.get()).filter(|duration| (Duration::from_millis(1)..=MAX_DURATION).contains(duration));
        if duration.is_none() {
            let flaw = Flaw::new(text.span(), format!("\"{}\" is not a duration of 1ms to 365d", text.get()));
            self.flaws.push(flaw.help("write whole numbers with ms, s, m, h or d, for example \"30s\" or \"1h30m\""));
        }
        duration
    }

    /// An `http` or `https` address; environment references in it are replaced.
    fn address(&mut self, text: &At<String>) -> Option<url::Url> {
        let flaw = |message: String| Flaw::new(text.span(), message).secret();
        let address = match super::address(text.get(), self.sources) {
            Ok(address) => address,
            Err(message) => {
                self.flaws.push(flaw(message).help("secrets belong into `headers`; addresses are shown in lists and logs"));
                return None;
            }
        };
        match url::Url::parse(&address) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
            Ok(_) | Err(_) => {
                let flaw = flaw("this is not an http:// or https:// address".into());
                self.flaws.push(flaw.help("for example \"https://mcp.example.com/mcp\""));
                None
            }
        }
    }

    fn secret(&mut self, text: &At<String>, place: &str) -> SecretRef {
        SecretRef::parse(text.get()).map(|reference| reference.used_by(place)).unwrap_or_else(|error| {
            self.flaws.push(Flaw::new(text.span(), error.to_string()).secret());
            SecretRef::plain("")
        })
    }

    /// A directory: absolute, below the home directory, or beside the file.
    fn directory(&mut self, text: &At<String>) -> PathBuf {
        let written = text.get();
        match written.strip_prefix("~/").or_else(|| (written == "~").then_some("")) {
            Some(rest) => match self.sources.env("HOME").map_or_else(std::env::home_dir, |home| Some(home.into())) {
                Some(home) => home.join(rest),
                None => {
                    let flaw = Flaw::new(text.span(), "no home directory is known for `~`");
                    self.flaws.push(flaw.help("write the whole path"));
                    PathBuf::from(written)
                }
            },
            None => self.dir.join(written),
        }
    }
}

fn name_style(names: file::Names) -> NameStyle {
    match names {
        file::Names::Dotted => NameStyle::Dotted,
        file::Names::Safe => NameStyle::Safe,
    }
}

/// The 32 bytes that 64 hexadecimal digits are; `None`: they are not.
pub fn hex_digest(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(digest)
}

fn syntax(error: &toml::de::Error, text: &str) -> Flaw {
    let end = text.trim_end().len();
    let span: Range<usize> = error.span().unwrap_or(end..end);
    let message = error.message();
    let flaw = Flaw { shown: Shown::Keys, ..Flaw::new(span, format!("this is not TOML: {message}")) };
    if message.starts_with("string values must be quoted") {
        flaw.help("put the text between quotes")
    } else if message.starts_with("duplicate key") {
        flaw.help("a section or key stands in the file once; give the second one another name")
    } else {
        flaw
    }
}

#[cfg(test)]
mod tests;
