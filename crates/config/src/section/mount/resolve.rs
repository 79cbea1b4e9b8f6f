//! Resolves `[mount.NAME]`. Looks for no program, and reaches no server.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use banyan_model::Segment;
use mesh_proto::annotation::Wishes;

use super::family::FamilyTransport;
use super::file::{self, OAuthSetting};
use super::resolved::{Grant, Mount, OAuth, Process, Remote, RemoteAgent, Sharing, Transport};
use super::tool::Tool;
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;
use crate::secret::SecretRef;
use crate::suggest;

impl FileReading<'_> {
    pub(super) fn mounts(&mut self, form: &file::MountForm) -> BTreeMap<Segment, Arc<Mount>> {
        let mut found = BTreeMap::new();
        let passed = self.globs(&form.pass_env);
        for (name, mount) in &form.mount {
            let segment = self.segment(name, "mount");
            let lowered = self.mount(name, &segment, mount);
            if let (Some(mut lowered), false) = (lowered, mount.disabled) {
                if let Transport::Stdio(process) = &mut lowered.transport {
                    process.pass_env.extend(passed.iter().cloned());
                }
                found.insert(segment, Arc::new(lowered));
            }
        }
        found
    }

    fn mount(&mut self, name: &At<String>, segment: &Segment, mount: &file::Mount) -> Option<Mount> {
        let transport = match (&mount.command, &mount.url) {
            (Some(command), None) => Some(Transport::Stdio(self.process(name.get(), command, mount))),
            (None, Some(url)) => self.remote(name.get(), url, mount),
            (Some(_), Some(url)) => {
                let flaw = Flaw::new(url.span(), format!("mount `{}` has both `command` and `url`", name.get())).secret();
                self.flaws.push(flaw.help("keep `command` for a program to start, or `url` for a server that runs elsewhere"));
                None
            }
            (None, None) => {
                let flaw = Flaw::new(name.span(), format!("mount `{}` has neither `command` nor `url`", name.get()));
                let others: Vec<String> = self.families().into_iter().map(|key| format!("[{key}.NAME]")).collect();
                let others = if others.is_empty() { String::new() } else { format!("; other servers have sections {}", others.join(", ")) };
                self.flaws.push(flaw.help(format!("add command = \"PROGRAM\" for a program to start, or url = \"https://…\"{others}")));
                None
            }
        };
        let timeout = self.duration(mount.timeout.as_ref());
        let longest = self.duration(mount.longest.as_ref());
        let start_timeout = self.duration(mount.start_timeout.as_ref());
        let grace = self.duration_or_none(mount.grace.as_ref());
        let list_ttl = self.duration(mount.list_ttl.as_ref());
        let (include, exclude) = (self.globs(&mount.include), self.globs(&mount.exclude));
        let rename = self.mount_renames(&mount.rename);
        let tools = self.wishes(&mount.tools);
        let defaults = Mount::new(segment.clone(), transport?, "banyan.toml");
        Some(Mount {
            era: match mount.era {
                file::Era::Auto => None,
                file::Era::Initialize => Some(banyan_model::Era::Initialize),
                file::Era::Stateless => Some(banyan_model::Era::Stateless),
            },
            sharing: match mount.sharing {
                file::Sharing::Auto => Sharing::Auto,
                file::Sharing::Always => Sharing::Always,
                file::Sharing::Never => Sharing::Never,
            },
            timeout: timeout.unwrap_or(defaults.timeout),
            longest: longest.unwrap_or(defaults.longest),
            start_timeout: start_timeout.unwrap_or(defaults.start_timeout),
            grace: grace.unwrap_or(defaults.grace),
            list_ttl: list_ttl.unwrap_or(defaults.list_ttl),
            is_gate: mount.gate,
            include,
            exclude,
            rename,
            tools,
            ..defaults
        })
    }

    /// Orders the wishes: of several matching globs the longer holds over the shorter.
    pub(crate) fn wishes(&mut self, tools: &BTreeMap<At<String>, Tool>) -> Vec<(String, Wishes)> {
        drop(self.globs(&tools.keys().cloned().collect::<Vec<_>>()));
        let mut found: Vec<(String, Wishes)> = tools.iter().map(|(glob, tool)| (glob.get().clone(), tool.wishes())).collect();
        found.sort_by_key(|(glob, _)| glob.len());
        found
    }

    /// A new name is a segment of the tree, as every tool's is (AX-10).
    fn mount_renames(&mut self, renames: &BTreeMap<At<String>, At<String>>) -> BTreeMap<String, String> {
        for shown in renames.values() {
            if let Err(bad) = Segment::new(shown.get()) {
                let near = suggest::segment(shown.get());
                self.flaws.push(Flaw::new(shown.span(), bad.to_string()).help(format!("for example \"{near}\"")));
            }
        }
        self.renames(renames)
    }

    fn process(&mut self, name: &str, command: &At<String>, mount: &file::Mount) -> Process {
        if command.get().trim().is_empty() {
            self.flaws.push(Flaw::new(command.span(), "`command` is empty").help("name the program to start"));
        }
        for (key, span) in [
            ("transport", mount.transport.as_ref().map(At::span)),
            ("headers", mount.headers.as_ref().map(At::span)),
            ("oauth", mount.oauth.as_ref().map(At::span)),
            ("tls", mount.tls.as_ref().map(At::span)),
            ("insecure", mount.insecure.as_ref().map(At::span)),
        ] {
            self.misplaced(name, key, "command", span);
        }
        let args = mount.args.iter().flat_map(|args| args.get()).enumerate();
        let args = args.map(|(i, arg)| self.secret(arg, &format!("mount.{name}.args[{i}]"))).collect();
        let env = mount.env.iter().flat_map(|env| env.get());
        let env = env.map(|(key, value)| self.variable(name, key, value)).collect();
        let pass_env = mount.pass_env.as_ref().map(|names| self.globs(names.get())).unwrap_or_default();
        let cwd = mount.cwd.as_ref().map(|cwd| self.path(cwd));
        Process { command: command.get().clone(), args, env, pass_env, cwd, shared: None }
    }

    fn variable(&mut self, mount: &str, key: &At<String>, value: &At<String>) -> (String, SecretRef) {
        if key.get().is_empty() || key.get().contains(['=', '\0']) {
            let flaw = Flaw::new(key.span(), format!("`{}` can't be the name of a variable", key.get()));
            self.flaws.push(flaw.help("write env = { NAME = \"value\" }"));
        }
        (key.get().clone(), self.secret(value, &format!("mount.{mount}.env.{}", key.get())))
    }

    fn remote(&mut self, name: &str, url: &At<String>, mount: &file::Mount) -> Option<Transport> {
        for (key, span) in [
            ("args", mount.args.as_ref().map(At::span)),
            ("env", mount.env.as_ref().map(At::span)),
            ("pass_env", mount.pass_env.as_ref().map(At::span)),
            ("cwd", mount.cwd.as_ref().map(At::span)),
        ] {
            self.misplaced(name, key, "url", span);
        }
        let headers = self.headers(name, mount);
        let oauth = mount.oauth.as_ref().map(|oauth| self.oauth(name, oauth.get()));
        let tls = mount.tls.as_ref().map(|tls| self.client_tls(name, tls));
        let url = self.address(url)?;
        if let Some(tls) = mount.tls.as_ref().filter(|_| url.scheme() != "https") {
            let flaw = Flaw::new(tls.span(), format!("`tls` of mount `{name}` has no meaning for an http:// address"));
            self.flaws.push(flaw.help("write https:// in its `url`, or leave `tls` out"));
        }
        let own = tls.as_ref().is_some_and(|tls| tls.own.is_some());
        let oauth = oauth.unwrap_or_else(|| Remote::default_oauth(&url, &headers).filter(|_| !own));
        let insecure = mount.insecure.as_ref().is_some_and(|insecure| *insecure.get());
        let remote = Remote { url, headers, oauth, tls, insecure };
        Some(match mount.transport.as_ref().map(At::get) {
            Some(file::Transport::Sse) => Transport::Sse(remote),
            Some(file::Transport::A2a) => Transport::Family(FamilyTransport::new(self.agent(name, mount, remote))),
            Some(file::Transport::Http) | None => Transport::Http(remote),
        })
    }

    /// Settings about MCP mean nothing for an agent, and sign-in by OAuth is for MCP servers: an agent takes the credential of a header.
    fn agent(&mut self, name: &str, mount: &file::Mount, remote: Remote) -> RemoteAgent {
        let oauth = mount.oauth.as_ref().filter(|oauth| !matches!(oauth.get(), OAuthSetting::Switch(false)));
        if let Some(oauth) = oauth {
            let flaw = Flaw::new(oauth.span(), format!("`oauth` of mount `{name}` has no meaning for an agent"));
            self.flaws.push(flaw.help("give the agent a credential: headers = { Authorization = \"Bearer ${env:NAME}\" }"));
        }
        let Some(place) = mount.transport.as_ref().map(At::span) else { return RemoteAgent(remote) };
        for (key, is_set) in [
            ("gate", mount.gate),
            ("era", !matches!(mount.era, file::Era::Auto)),
            ("sharing", !matches!(mount.sharing, file::Sharing::Auto)),
            ("insecure", mount.insecure.is_some()),
        ] {
            if is_set {
                let flaw = Flaw::new(place.clone(), format!("`{key}` of mount `{name}` has no meaning for an agent"));
                self.flaws.push(flaw.help("leave it out"));
            }
        }
        if !remote.url.username().is_empty() || remote.url.password().is_some() {
            let flaw = Flaw::new(place, format!("the `url` of mount `{name}` has a user or a password"));
            self.flaws.push(flaw.help("an address is shown in lists and logs: give the credential in `headers`"));
        }
        RemoteAgent(Remote { oauth: None, ..remote })
    }

    fn headers(&mut self, mount: &str, section: &file::Mount) -> BTreeMap<String, SecretRef> {
        let mut found = BTreeMap::new();
        for (name, value) in section.headers.iter().flat_map(|headers| headers.get()) {
            let lower = name.get().to_ascii_lowercase();
            if http::HeaderName::from_bytes(lower.as_bytes()).is_err() {
                self.flaws.push(Flaw::new(name.span(), format!("`{}` can't be the name of a header", name.get())));
            } else if crate::is_own_header(&lower) {
                let flaw = Flaw::new(name.span(), format!("the header `{}` is written by Banyan itself", name.get()));
                self.flaws.push(flaw.help("leave it out"));
            } else if found.keys().any(|other: &String| other.eq_ignore_ascii_case(&lower)) {
                self.flaws.push(Flaw::new(name.span(), format!("the header `{}` is there twice", name.get())));
            }
            let secret = self.secret(value, &format!("mount.{mount}.headers.{}", name.get()));
            if value.get().chars().any(char::is_control) {
                self.flaws.push(Flaw::new(value.span(), "a header's value is one line of text").secret());
            }
            found.insert(name.get().clone(), secret);
        }
        found
    }

    fn oauth(&mut self, mount: &str, setting: &OAuthSetting) -> Option<OAuth> {
        let OAuthSetting::With(oauth) = setting else {
            return matches!(setting, OAuthSetting::Switch(true)).then(OAuth::default);
        };
        let place = format!("mount.{mount}.oauth.client_secret");
        let document = oauth.client_metadata_url.as_ref();
        if let Some(document) = document.filter(|url| !url.get().starts_with("https://")) {
            let flaw = Flaw::new(document.span(), "a client id metadata document has an https:// address");
            self.flaws.push(flaw.help("leave it out to be registered by the server itself"));
        }
        let grant = oauth.grant.as_ref();
        let complete = oauth.client_id.is_some() && oauth.client_secret.is_some();
        if let Some(grant) = grant.filter(|grant| *grant.get() == file::Grant::ClientCredentials && !complete) {
            let flaw = Flaw::new(grant.span(), "the client credentials grant needs `client_id` and `client_secret`");
            self.flaws.push(flaw.help("give both, or leave `grant` out to sign in with a browser"));
        }
        Some(OAuth {
            client_id: oauth.client_id.clone(),
            client_secret: oauth.client_secret.as_ref().map(|secret| self.secret(secret, &place)),
            client_metadata_url: document.map(|url| url.get().clone()),
            scopes: oauth.scopes.clone(),
            redirect_port: oauth.redirect_port,
            grant: match grant.map(At::get) {
                None | Some(file::Grant::AuthorizationCode) => Grant::AuthorizationCode,
                Some(file::Grant::ClientCredentials) => Grant::ClientCredentials,
            },
        })
    }

    fn misplaced(&mut self, mount: &str, key: &str, beside: &str, span: Option<Range<usize>>) {
        let Some(span) = span else { return };
        let wants = if beside == "command" { "url" } else { "command" };
        let flaw = Flaw::new(span, format!("`{key}` of mount `{mount}` has no meaning beside `{beside}`")).secret();
        self.flaws.push(flaw.help(format!("it belongs to a mount with `{wants}`: leave it out")));
    }
}
