//! A server as a child process: started in a process group of its own, fed by lines, ended cleanly.
//!
//! Does not read messages; the pipe does.

use std::io::ErrorKind;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use config::resolved::Process;
use config::secret::Sources;
use mcp_proto::glob::Glob;
use mcp_proto::lines::{Line, Lines};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::upstream::pipe::{Carrier, ServerInput};
use call::tree::stderr::Stderr;

/// Time from the end of a process's input to SIGTERM, and from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(700);
const TERM: Duration = Duration::from_secs(3);

/// Factor over the allowed length at which a line counts as endless.
const ENDLESS: usize = 4;

/// Environment variables passed on to every child.
const PASSED: [&str; 36] = [
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TEMP",
    "TMP",
    "XDG_*",
    "SystemRoot",
    "SYSTEMDRIVE",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "PATHEXT",
    "ComSpec",
    "NVM_DIR",
    "ALL_PROXY",
    "all_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Longest name of a variable looked for in a process's last words.
const LONGEST_NAME: usize = 64;

/// Words in the names of variables that hold secrets.
const SECRET_WORDS: [&str; 7] = ["AUTH", "CREDENTIAL", "KEY", "PASS", "PWD", "SECRET", "TOKEN"];

/// Starts the process; the error says why it could not be started and what to do.
pub fn start(
    process: &Process,
    sources: &dyn Sources,
    stderr: &Arc<Stderr>,
    line_limit: usize,
    probe: Duration,
) -> Result<Carrier, String> {
    let mut child = command(process, sources)?.spawn().map_err(|e| cannot_start(process, &e))?;
    let (Some(stdin), Some(stdout), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
        return Err("its standard streams could not be opened".into());
    };
    stderr.begin();
    let (incoming_tx, incoming) = mpsc::channel(256);
    let (outgoing, outgoing_rx) = mpsc::channel(256);
    let (close, ended) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn(write_lines(stdin, outgoing_rx, close.clone()));
    let errors = tokio::spawn(read_errors(errors, Arc::clone(stderr)));
    let guard = Guard { child, close: close.clone(), ended: ended.clone() };
    tokio::spawn(async move {
        let reading = read_lines(stdout, line_limit, incoming_tx.clone());
        let status = guard.watch(reading).await;
        // The last words of a dying process are the best explanation there is.
        drop(tokio::time::timeout(Duration::from_millis(200), errors).await);
        drop(incoming_tx.send(ServerInput::Ended(status)).await);
    });
    Ok(Carrier { incoming, outgoing, close, ended, probe })
}

fn command(process: &Process, sources: &dyn Sources) -> Result<Command, String> {
    let mut command = Command::new(&process.command);
    for arg in &process.args {
        command.arg(arg.resolve(sources).map_err(|e| e.to_string())?.expose());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).env_clear();
    for (name, value) in std::env::vars_os() {
        let (text, held) = (name.to_string_lossy(), value.to_string_lossy());
        if is_asked_for(process, &text) || (passes(process, &text) && !holds_credentials(&text, &held)) {
            command.env(&name, value);
        }
    }
    for (name, value) in &process.env {
        command.env(name, value.resolve(sources).map_err(|e| e.to_string())?.expose());
    }
    if let Some(cwd) = &process.cwd {
        command.current_dir(cwd);
    }
    #[cfg(unix)]
    command.process_group(0);
    Ok(command)
}

/// Checks if a variable of the gate reaches the process.
fn passes(process: &Process, name: &str) -> bool {
    PASSED.iter().any(|pattern| Glob::new(pattern).matches(name)) || is_asked_for(process, name)
}

/// Checks if the configuration passes a variable of the gate to the process.
fn is_asked_for(process: &Process, name: &str) -> bool {
    process.pass_env.iter().any(|pattern| Glob::new(pattern).matches(name))
}

/// Checks if the value of a variable is the address of a proxy with a user's name or password in front of `@`.
fn holds_credentials(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.ends_with("_PROXY") && name != "NO_PROXY" && value.contains('@')
}

/// Checks if the name of a variable is the name of a secret. No remedy passes a secret on: a server could ask for any.
fn is_secret(name: &str) -> bool {
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Remedy for a process whose last words name a variable that the gate has and the process lacks.
pub(super) fn withheld(process: &Process, words: &[String]) -> Option<String> {
    let is_name = |text: &&str| {
        let is_variable = text.contains('_') && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        text.len() <= LONGEST_NAME && is_variable
    };
    let lacks = |name: &&str| !process.env.contains_key(*name) && !passes(process, name) && std::env::var_os(name).is_some();
    let words = words.iter().flat_map(|line| line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')));
    let name = words.filter(is_name).find(|name| lacks(name) && !is_secret(name))?;
    Some(format!("`{name}` is set for the gate and does not reach the server: pass_env = [\"{name}\"] passes the variable on"))
}

fn cannot_start(process: &Process, error: &std::io::Error) -> String {
    let program = &process.command;
    let missing = error.kind() == ErrorKind::NotFound;
    if let Some(cwd) = process.cwd.as_ref().filter(|dir| missing && !dir.is_dir()) {
        return format!("its working directory {} does not exist", cwd.display());
    }
    if missing && program.contains('/') {
        return format!("there is no program {program}: check `command`");
    }
    if missing {
        return format!(
            "`{program}` was not found in PATH: install it, or give its full path as `command` (`which {program}` in your own shell tells; programs under nvm or pyenv are often only there)"
        );
    }
    if error.kind() == ErrorKind::PermissionDenied {
        return format!("{program} may not be executed: check its permissions");
    }
    format!("{program} could not be started: {error}")
}

pub(super) async fn write_lines<W: AsyncWrite + Unpin>(mut stdin: W, mut messages: mpsc::Receiver<Bytes>, close: CancellationToken) {
    let mut batch = Vec::new();
    let mut out = BytesMut::new();
    loop {
        tokio::select! {
            () = close.cancelled() => return,
            count = messages.recv_many(&mut batch, 64) => if count == 0 { return },
        }
        for message in batch.drain(..) {
            push_line(&message, &mut out);
        }
        tokio::select! {
            () = close.cancelled() => return,
            written = stdin.write_all(&out) => if written.is_err() { return },
        }
        out.clear();
    }
}

/// Appends a message as a line. Line ends between its tokens become spaces, since a message over several lines would count as several.
fn push_line(message: &[u8], out: &mut BytesMut) {
    let start = out.len();
    out.extend_from_slice(message);
    if memchr::memchr2(b'\n', b'\r', message).is_some() {
        out[start..].iter_mut().filter(|b| matches!(**b, b'\n' | b'\r')).for_each(|b| *b = b' ');
    }
    out.extend_from_slice(b"\n");
}

pub(super) async fn read_lines<R: AsyncRead + Unpin>(mut stdout: R, limit: usize, incoming: mpsc::Sender<ServerInput>) {
    let mut lines = Lines::new(limit);
    loop {
        lines.buffer().reserve(16 << 10);
        let Ok(read) = stdout.read_buf(lines.buffer()).await else { return };
        if read == 0 {
            return;
        }
        while let Some(line) = lines.poll_line() {
            let message = match line {
                Line::Whole(line) => ServerInput::Message(line),
                Line::TooLong(size) => ServerInput::TooLong(size),
            };
            if incoming.send(message).await.is_err() {
                return;
            }
        }
        // An endless line is no answer any more, only work.
        if lines.skipped() > limit.saturating_mul(ENDLESS) {
            drop(incoming.send(ServerInput::Ended(format!("it wrote {} bytes without a line end and was stopped", lines.skipped()))).await);
            return;
        }
    }
}

async fn read_errors(errors: ChildStderr, stderr: Arc<Stderr>) {
    let mut reader = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        // An endless line must not grow without bound.
        let mut limited = (&mut reader).take(8 << 10);
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => stderr.push(String::from_utf8_lossy(&line).trim_end()),
        }
    }
}

struct Guard {
    child: Child,
    close: CancellationToken,
    ended: CancellationToken,
}

impl Guard {
    /// Waits until the process ends, or is to end; says how it ended.
    async fn watch(mut self, reading: impl Future<Output = ()>) -> String {
        let group = self.child.id();
        let close = self.close.clone();
        tokio::pin!(reading);
        let status = tokio::select! {
            status = self.child.wait() => {
                // Output from just before the end still counts.
                drop(tokio::time::timeout(Duration::from_millis(300), &mut reading).await);
                status.ok()
            }
            () = &mut reading => tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.ok().and_then(Result::ok),
            () = close.cancelled() => None,
        };
        let status = match status {
            Some(status) => Some(status),
            None => self.stop(group).await,
        };
        // Descendants of the process end with it.
        signal(group, true);
        self.ended.cancel();
        how(status)
    }

    async fn stop(&mut self, group: Option<u32>) -> Option<ExitStatus> {
        if let Ok(status) = tokio::time::timeout(GRACE, self.child.wait()).await {
            return status.ok();
        }
        signal(group, false);
        if let Ok(status) = tokio::time::timeout(TERM, self.child.wait()).await {
            return status.ok();
        }
        signal(group, true);
        drop(self.child.start_kill());
        self.child.wait().await.ok()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        signal(self.child.id(), true);
        self.ended.cancel();
    }
}

#[cfg(unix)]
fn signal(group: Option<u32>, kill: bool) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let pid = group.and_then(|g| i32::try_from(g).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // An empty group is the goal.
        let sent = kill_process_group(pid, if kill { Signal::KILL } else { Signal::TERM });
        tracing::trace!(?sent, "a process group was signalled");
    }
}

#[cfg(not(unix))]
fn signal(_group: Option<u32>, _kill: bool) {}

fn how(status: Option<ExitStatus>) -> String {
    #[cfg(unix)]
    if let Some(signal) = status.and_then(|s| std::os::unix::process::ExitStatusExt::signal(&s)) {
        return format!("the process was ended by signal {signal}");
    }
    match status.and_then(|s| s.code()) {
        Some(code) => format!("the process ended with exit code {code}"),
        None => "the process ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::secret::SystemSources;

    #[cfg(unix)]
    #[tokio::test]
    async fn a_server_gets_the_listed_and_the_configured_environment() {
        assert!(
            std::env::var_os("CARGO_MANIFEST_DIR").is_some() && std::env::var_os("CARGO_PKG_NAME").is_some(),
            "the gate itself has more"
        );
        let process = Process {
            command: "env".into(),
            args: Vec::new(),
            env: [("OWN".to_owned(), config::secret::SecretRef::plain("set"))].into(),
            pass_env: vec!["CARGO_PKG_N*".into()],
            cwd: None,
            shared: None,
        };
        let told = command(&process, &SystemSources).unwrap().output().await.unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        let names: Vec<&str> = told.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        let is_meant = |name: &&str| PASSED.iter().chain(&["OWN", "CARGO_PKG_NAME"]).any(|one| Glob::new(one).matches(name));
        assert!(names.iter().all(is_meant), "{names:?}");
        assert!(["OWN", "CARGO_PKG_NAME", "PATH"].iter().all(|name| names.contains(name)), "{names:?}");
    }

    #[test]
    fn a_withheld_variable_is_named_with_its_remedy() {
        let mut process = Process { command: "x".into(), args: vec![], env: [].into(), pass_env: vec![], cwd: None, shared: None };
        let words = ["KeyError: 'CARGO_MANIFEST_DIR', NO_SUCH_VARIABLE".to_owned()];
        assert!(withheld(&process, &words).unwrap().contains("pass_env = [\"CARGO_MANIFEST_DIR\"]"));
        process.pass_env.push("CARGO_*".into());
        assert_eq!(withheld(&process, &words), None);
    }

    #[test]
    fn remedies_name_no_secret_and_proxy_passwords_stay() {
        assert!(
            ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "GOOGLE_CREDENTIALS", "SSH_AUTH_SOCK"].iter().all(|n| is_secret(n))
        );
        assert!(!is_secret("CARGO_MANIFEST_DIR"));
        for (name, value, is_held) in [
            ("HTTPS_PROXY", "http://anna:word@proxy:3128", true),
            ("all_proxy", "anna:word@proxy:3128", true),
            ("HTTPS_PROXY", "http://proxy:3128", false),
            ("NO_PROXY", "a@b", false),
            ("PATH", "/opt/a@2/bin", false),
        ] {
            assert_eq!(holds_credentials(name, value), is_held, "{name}={value}");
        }
    }
}
