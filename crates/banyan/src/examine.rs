//! Findings of `banyan doctor` without starting anything: programs, directories, secrets, addresses. Each names the actual
//! attempt, the broken thing and its remedy. Says nothing to a server.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use config::resolved::{Config, Join, Mount, Parent, Process, Remote, Transport};
use config::secret::{Piece, SecretRef, SystemSources};
use runtime::tls::Connector;
use serde::Serialize;
use stub::settings::StubSettings;

use crate::port;
use crate::program::{self, MissingProgram};
use crate::tried::Attempt;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// In order.
    Ok,
    /// Works, with a catch.
    Warning,
    Problem,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// The examined thing: `server NAME`, `listen`, ...
    pub(crate) subject: String,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
}

impl Finding {
    pub(crate) fn ok(subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: Level::Ok, subject: subject.into(), message: message.into(), fix: None }
    }

    pub(crate) fn problem(subject: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { level: Level::Problem, subject: subject.into(), message: message.into(), fix: Some(fix.into()) }
    }

    pub(crate) fn warning(subject: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { level: Level::Warning, subject: subject.into(), message: message.into(), fix: Some(fix.into()) }
    }
}

/// Examines everything in a configuration but its servers.
pub(crate) fn configuration(config: &Config) -> Vec<Finding> {
    let mut findings = vec![address(config.listen)];
    if let Err(error) = gateway::trust::check(config) {
        let text = error.to_string();
        let (message, fix) = text.split_once("\n  ").unwrap_or((&text, "correct the paths under [tls]"));
        findings.push(Finding::problem("tls", message, fix));
    }
    if let Some(why) = config::exposed(config.listen, config) {
        let (message, fix) = why.split_once(": ").unwrap_or((&why, ""));
        findings.push(Finding::warning("listen", message, fix));
    }
    findings
}

/// Tries the addresses of parents.
pub(crate) fn parents(join: &Join) -> Vec<Finding> {
    let begun = |parent: &Parent| {
        let url = &parent.url;
        (format!("parent {url}"), Attempt::begin(url.host_str(), url.port_or_known_default()))
    };
    let attempts: Vec<_> = join.parents.iter().map(begun).collect();
    let finding = |(subject, attempt): (String, Attempt)| match attempt.outcome() {
        Ok(place) => Finding::ok(subject, format!("{place} takes connections; whether it takes this gate shows when `banyan up` runs")),
        Err(why) => Finding::problem(subject, why, "see that the parent runs there, or correct `url`"),
    };
    attempts.into_iter().map(finding).collect()
}

/// Examines servers.
pub(crate) fn servers<'a>(mounts: impl Iterator<Item = &'a Mount>) -> Vec<Finding> {
    let attempt = |mount: &Mount| match &mount.transport {
        Transport::Http(remote) | Transport::Sse(remote) => Some(Attempt::begin(remote.url.host_str(), remote.url.port_or_known_default())),
        Transport::Family(_) | Transport::Stdio(_) => None,
    };
    // All begin before the first is waited for.
    let tried: Vec<(&Mount, Option<Attempt>)> = mounts.map(|mount| (mount, attempt(mount))).collect();
    tried.into_iter().flat_map(|(mount, attempt)| server(mount, attempt)).collect()
}

/// Examines the programs, directories and variables of servers. Tries no address and asks no keyring.
pub(crate) fn programs<'a>(mounts: impl Iterator<Item = &'a Mount>) -> Vec<Finding> {
    let findings = mounts.flat_map(|mount| {
        let subject = format!("server {}", mount.name);
        match &mount.transport {
            Transport::Stdio(process) => {
                let here = process.env.values().filter(|secret| !asks_keyring(secret));
                [secrets(&subject, here), program_of(&subject, process).0].concat()
            }
            Transport::Http(remote) | Transport::Sse(remote) => {
                secrets(&subject, remote_secrets(remote).filter(|secret| !asks_keyring(secret)))
            }
            Transport::Family(family) => family.settings::<StubSettings>().map(|part| part_at_broker(&subject, part)).unwrap_or_default(),
        }
    });
    findings.collect()
}

/// Examines the files and variables of a part behind a broker.
fn part_at_broker(subject: &str, part: &StubSettings) -> Vec<Finding> {
    let Some(broker) = &part.broker else { return Vec::new() };
    let mut findings = secrets(subject, broker.password.iter().filter(|secret| !asks_keyring(secret)));
    if let Some(why) = broker.authority.as_ref().and_then(|file| Connector::with_extra_roots(Some(file.clone())).verifier().err()) {
        findings.push(Finding::problem(subject, stub::broker::unusable(&why), "correct `mqtt.authority`"));
    }
    findings
}

fn asks_keyring(secret: &SecretRef) -> bool {
    secret.pieces().iter().any(|piece| matches!(piece, Piece::Keyring(_)))
}

/// Checks that the address is free to listen on.
fn address(listen: SocketAddr) -> Finding {
    match TcpListener::bind(listen) {
        Ok(_) => Finding::ok("listen", format!("{listen} is free")),
        Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => match port::holder(listen) {
            Some(holder) if holder.program == "`banyan`" => {
                Finding::ok("listen", format!("a gate runs at {listen} already (process {})", holder.pid))
            }
            Some(_) | None => {
                let text = port::taken(listen);
                let (message, fix) = text.split_once("\n  ").unwrap_or((&text, ""));
                Finding::problem("listen", message, fix)
            }
        },
        Err(e) => Finding::problem("listen", format!("{listen} can't be used: {e}"), "choose an address of this machine with `listen`"),
    }
}

/// Examines one server; a healthy server gives one finding.
fn server(mount: &Mount, attempt: Option<Attempt>) -> Vec<Finding> {
    let subject = format!("server {}", mount.name);
    let (mut findings, good) = match &mount.transport {
        Transport::Stdio(process) => child(&subject, process),
        Transport::Http(remote) | Transport::Sse(remote) => {
            let (mut findings, tried) = (secrets(&subject, remote_secrets(remote)), attempt.map(Attempt::outcome));
            if let Some(Err(why)) = &tried {
                findings.push(Finding::problem(&subject, why, format!("start what listens at {}, or correct `url`", remote.url)));
            }
            let place = tried.and_then(Result::ok).unwrap_or_default();
            (findings, format!("{place} takes connections; the server there was not asked"))
        }
        Transport::Family(family) => {
            let findings = family.settings::<StubSettings>().map(|part| part_at_broker(&subject, part)).unwrap_or_default();
            (findings, family.description())
        }
    };
    if findings.is_empty() {
        findings.push(Finding::ok(subject, good));
    }
    findings
}

fn remote_secrets(remote: &Remote) -> impl Iterator<Item = &SecretRef> {
    remote.headers.values().chain(remote.oauth.iter().filter_map(|o| o.client_secret.as_ref()))
}

fn child(subject: &str, process: &Process) -> (Vec<Finding>, String) {
    let mut findings = secrets(subject, process.env.values());
    let (more, good) = program_of(subject, process);
    findings.extend(more);
    (findings, good)
}

fn program_of(subject: &str, process: &Process) -> (Vec<Finding>, String) {
    let mut findings = Vec::new();
    let here = PathBuf::from(".");
    let directory = process.cwd.as_deref().unwrap_or(&here);
    if !directory.is_dir() {
        let message = format!("its working directory {} does not exist", directory.display());
        findings.push(Finding::problem(subject, message, "make it, or correct `cwd`"));
    }
    match found(process, directory) {
        Ok(at) => (findings, format!("{} is there; it was not started", at.display())),
        Err(missing) => {
            findings.push(absent(subject, &process.command, &missing));
            (findings, String::new())
        }
    }
}

fn found(process: &Process, directory: &Path) -> Result<PathBuf, MissingProgram> {
    let own = process.env.get("PATH").and_then(|p| p.resolve(&SystemSources).ok()).map(|p| OsString::from(p.expose()));
    let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    program::find(&process.command, &path, &std::env::home_dir().unwrap_or_default(), directory)
}

fn absent(subject: &str, command: &str, missing: &MissingProgram) -> Finding {
    match missing {
        MissingProgram::Interpreter(name) => {
            let message = format!("`{command}` is a script for `{name}`, which is not to be found");
            Finding::problem(subject, message, format!("install `{name}`, or add its directory to PATH in `env`"))
        }
        MissingProgram::NotExecutable(at) => {
            Finding::problem(subject, format!("{} may not be executed", at.display()), format!("chmod +x {}", at.display()))
        }
        MissingProgram::NotFound => {
            let fix = match command {
                "npx" | "node" | "npm" => "install Node.js (https://nodejs.org)",
                "uvx" | "uv" => "install uv (https://docs.astral.sh/uv)",
                "docker" => "install Docker, or start the server in another way",
                "python" => "write `python3`, or install Python",
                several if several.contains(char::is_whitespace) => "put the words behind the program into `args`, each a text of its own",
                _ => "install it, or correct `command`",
            };
            Finding::problem(subject, format!("`{command}` is not installed"), fix)
        }
        MissingProgram::OutsidePath(at) => {
            let message = format!("`{command}` is not in PATH, but it is at {}", at.display());
            let directory = at.parent().unwrap_or(at).display().to_string();
            let fix = format!(
                "write command = \"{}\", and if it needs its neighbours: env = {{ PATH = \"{directory}:${{env:PATH}}\" }}",
                at.display()
            );
            Finding::problem(subject, message, fix)
        }
    }
}

fn secrets<'a>(subject: &str, secrets: impl Iterator<Item = &'a SecretRef>) -> Vec<Finding> {
    let finding = |secret: &SecretRef| {
        let Err(error) = secret.resolve(&SystemSources) else { return literal(subject, secret) };
        let text = error.to_string();
        let (message, fix) = text.split_once("\n  ").unwrap_or((&text, "correct the reference"));
        Some(Finding::problem(subject, message, fix))
    };
    secrets.filter_map(finding).collect()
}

/// Finds a variable written as in a shell, which stays as written.
fn literal(subject: &str, secret: &SecretRef) -> Option<Finding> {
    // The whole value only: part of a password is not shown.
    let [Piece::Plain(text)] = secret.pieces() else { return None };
    let name = text.strip_prefix("Bearer ").unwrap_or(text).strip_prefix('$')?;
    let is_name = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if !is_name || !name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') {
        return None;
    }
    let message = format!("`${name}` is plain text here: the server gets these letters, and no variable's value");
    Some(Finding::warning(subject, message, format!("write ${{env:{name}}}")))
}

#[cfg(test)]
mod tests {
    use config::parse;

    use super::*;

    #[test]
    fn a_variable_of_a_shell_is_warned_of() {
        let text = "[mount.a]\ncommand = 'sh'\nenv = { TOKEN = '$TOKEN', PRICE = '5$', OK = '${env:PATH}' }\n";
        let config = parse(text, Path::new("banyan.toml"), &SystemSources).unwrap();
        let found = programs(config.mounts.values().map(|mount| &**mount));
        let found: Vec<_> = found.iter().map(|finding| (finding.level, finding.fix.as_deref())).collect();
        assert_eq!(found, [(Level::Warning, Some("write ${env:TOKEN}"))]);
    }

    fn problems(text: &str) -> Vec<String> {
        let config = parse(text, Path::new("banyan.toml"), &SystemSources).unwrap();
        let findings = servers(config.mounts.values().map(|mount| &**mount));
        findings
            .into_iter()
            .filter(|f| f.level == Level::Problem)
            .map(|f| format!("{}: {} -> {}", f.subject, f.message, f.fix.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn the_broken_thing_and_its_fix_are_named() {
        let all =
            problems("[mount.a]\ncommand = 'no-such-program'\ncwd = '/no/such/directory'\nenv = { KEY = '${env:NO_SUCH_VARIABLE}' }\n");
        let [secret, directory, program] = &all[..] else { panic!("{all:?}") };
        assert!(secret.contains("server a: ") && secret.contains("NO_SUCH_VARIABLE"), "{secret}");
        assert!(directory.contains("/no/such/directory does not exist"), "{directory}");
        assert!(program.contains("`no-such-program` is not installed -> install it"), "{program}");
    }

    #[test]
    fn an_address_where_nothing_listens_is_a_problem() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let [refused] = &problems(&format!("[mount.b]\nurl = 'http://{free}/mcp'\n"))[..] else { panic!() };
        assert!(refused.contains(&format!("{free} takes no connection")) && refused.contains("-> start what listens"), "{refused}");
    }

    #[test]
    fn what_works_is_no_problem() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        assert_eq!(problems(&format!("[mount.a]\ncommand = 'sh'\n[mount.b]\nurl = '{url}'\n")), [""; 0]);
    }
}
