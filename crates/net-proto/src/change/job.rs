//! A restore job on a machine with FRR and a shell: scripts that start the job before a change, apply the change, keep it, or bring the old
//! configuration back. The job runs on the machine of the device, in a session of its own, so that it outlives whoever started it. Sends nothing.

use crate::fault::{Code, Fault};

const JOB: &str = include_str!("job/job.sh");
const ABLE: &str = include_str!("job/able.sh");
const LOOK: &str = include_str!("job/look.sh");
const ARM: &str = include_str!("job/arm.sh");
const START: &str = include_str!("job/start.sh");
/// First line of the answer of a shell.
const SHELL: &str = "banyan-shell";
/// Begin of the last line of an answer.
const WORD: &str = "banyan ";

/// Programs of FRR on a machine behind SSH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrrPrograms {
    bindir: String,
    pathspace: Option<String>,
}

/// Restore job of one change.
#[derive(Clone, Copy, Debug)]
pub struct RestoreJob<'a> {
    programs: &'a FrrPrograms,
    /// Name of the change on the device.
    token: &'a str,
}

impl FrrPrograms {
    /// The programs below `bindir`, for the path space where there is one.
    pub fn new(bindir: &str, pathspace: Option<&str>) -> Self {
        Self { bindir: bindir.to_owned(), pathspace: pathspace.map(str::to_owned) }
    }

    /// Script that runs one command of the exec mode, and ends it after `seconds`.
    pub fn exec(&self, command: &str, seconds: u64) -> String {
        self.exec_all(&[command], seconds)
    }

    /// Script that runs commands of the exec mode, one behind the other, and ends them after `seconds`.
    pub fn exec_all<S: AsRef<str>>(&self, commands: &[S], seconds: u64) -> String {
        let commands: String = commands.iter().map(|command| format!(" -c {}", quoted(command.as_ref()))).collect();
        format!("{}HOME=/nonexistent timeout -k 1 {seconds} {}{commands} </dev/null\n", head(), self.vtysh())
    }

    /// Script that checks the syntax of a whole configuration, and changes nothing.
    pub fn validate(&self, text: &str, seconds: u64) -> String {
        let (vtysh, file) = (self.vtysh(), here("\"$F\"", text));
        format!(
            "{}umask 077\nF=$(mktemp) || exit 1\ntrap 'rm -f \"$F\"' EXIT\n{file}HOME=/nonexistent timeout -k 1 {seconds} {vtysh} -C -f \"$F\" </dev/null\n",
            head()
        )
    }

    /// Script that looks whether the machine could hold a restore job, and starts none.
    pub fn look(&self) -> String {
        format!("{}{}", head(), self.filled(&format!("{ABLE}{LOOK}")))
    }

    /// The job of the change with this name, of letters and digits.
    ///
    /// # Errors
    /// The name could mean something to a shell.
    pub fn job<'a>(&'a self, token: &'a str) -> Result<RestoreJob<'a>, Fault> {
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Fault::new(Code::RollbackFailed, "the record has no usable name for the change on the device"));
        }
        Ok(RestoreJob { programs: self, token })
    }

    /// Directory of the path space below a directory of FRR, with its slash.
    pub(super) fn below(&self) -> String {
        self.pathspace.as_ref().map(|name| format!("{name}/")).unwrap_or_default()
    }

    fn vtysh(&self) -> String {
        let program = quoted(&format!("{}/vtysh", self.bindir));
        self.pathspace.as_ref().map_or(program.clone(), |name| format!("{program} -N {}", quoted(name)))
    }

    fn filled(&self, script: &str) -> String {
        let reloader = "/usr/lib/frr/frr-reload.py";
        let space = self.pathspace.as_ref().map(|name| format!(" -N {}", quoted(name))).unwrap_or_default();
        let reload = format!("{reloader} --reload --stdout --bindir {}{space}", quoted(&self.bindir));
        script.replace("\"@RELOADER@\"", reloader).replace("@RELOADER@", &reload).replace("@VTYSH@", &self.vtysh())
    }
}

impl RestoreJob<'_> {
    /// Script that starts the job: after `seconds` it brings `old` back, which has to be what runs.
    pub fn arm(&self, seconds: u64, old: &str) -> String {
        let start = self.programs.filled(START).replace("@SECONDS@", &seconds.to_string());
        let able = self.programs.filled(&format!("{ABLE}{ARM}"));
        format!("{}{able}{}{start}", self.head(), self.files(old))
    }

    /// Script that brings `new` to the device, where the job still waits.
    pub fn apply(&self, new: &str) -> String {
        format!(
            "{}p=$(cat \"$D/pid\" 2>/dev/null)\ngrep -q \"$D/job\" \"/proc/$p/cmdline\" 2>/dev/null || {{ echo \"{WORD}gone\"; exit 0; }}\n\
             {}setsid sh \"$D/job\" apply </dev/null >/dev/null 2>&1 &\nwait $!\n\
             n=0\nwhile [ ! -f \"$D/applied\" ] && [ \"$n\" -lt 90 ]; do n=$((n + 1)); sleep 1; done\n\
             tail -c 2000 \"$D/reload.log\" 2>/dev/null\necho\necho \"{WORD}applied $(cat \"$D/applied\")\"\n",
            self.head(),
            here("\"$D/new.conf\"", new)
        )
    }

    /// Script that keeps the change, where the job has not begun to restore.
    pub fn confirm(&self) -> String {
        format!(
            "{}[ -d \"$D\" ] || {{ echo \"{WORD}unknown\"; exit 0; }}\nln -s confirmed \"$D/end\" 2>/dev/null\necho \"{WORD}$(readlink \"$D/end\")\"\n",
            self.head()
        )
    }

    /// Script that brings `old` back now, also where nothing of the job is left.
    pub fn restore(&self, old: &str) -> String {
        format!(
            "{}mkdir -p \"$D\" || exit 1\nrm -f \"$D/answered\" \"$D/restored\"\nif [ ! -f \"$D/old.conf\" ]; then\n{}fi\n: >\"$D/begun\"\n\
             setsid sh \"$D/job\" now </dev/null >/dev/null 2>&1 &\nwait $!\n\
             if [ -f \"$D/answered\" ]; then echo \"{WORD}restored\"; else tail -c 2000 \"$D/reload.log\" 2>/dev/null\necho\necho \"{WORD}$(readlink \"$D/end\")\"; fi\n",
            self.head(),
            self.files(old)
        )
    }

    fn head(&self) -> String {
        // Routers that share a machine share the home as well.
        let space: String = self.programs.pathspace.iter().flat_map(|name| name.chars()).filter(char::is_ascii_alphanumeric).collect();
        format!("{}umask 077\nH=\"$HOME/.banyan/frr-{space}\"\nD=\"$H/restore-{}\"\n", head(), self.token)
    }

    /// The old configuration, and the program of the job.
    fn files(&self, old: &str) -> String {
        format!("{}{}", here("\"$D/old.conf\"", old), here("\"$D/job\"", &self.programs.filled(JOB)))
    }
}

/// Output of a script behind the first line of a shell.
///
/// # Errors
/// -32087: no shell answered, so nothing was sent that changes anything.
pub fn shell_output(output: &str) -> Result<&str, Fault> {
    let begin = output.find(SHELL).filter(|at| *at == 0 || output[..*at].ends_with('\n'));
    let rest = begin.and_then(|at| output[at + SHELL.len()..].strip_prefix('\n'));
    rest.ok_or_else(|| {
        let said: String = output.trim().chars().take(120).collect();
        let detail = format!(
            "the login has no shell (it answers `{said}`), so no job there would bring the old configuration back: nothing was sent"
        );
        Fault::new(Code::RollbackNotSupported, detail)
    })
}

/// Checks the answer to a script of a job for the word that says that all went well.
///
/// # Errors
/// The other word of the job, with its last lines.
pub fn job_answer(output: &str, wanted: &str) -> Result<(), Fault> {
    let told = output.lines().rev().find_map(|line| line.strip_prefix(WORD)).unwrap_or_default();
    if told == wanted {
        return Ok(());
    }
    let log: Vec<&str> = output.lines().filter(|line| !line.starts_with(WORD) && !line.trim().is_empty()).collect();
    let log = log[log.len().saturating_sub(8)..].join("; ");
    let unsupported = |detail: String| Fault::new(Code::RollbackNotSupported, detail);
    Err(match told.split_once(' ').unwrap_or((told, "")) {
        ("lacks", what) => unsupported(format!("no restore job can be started on the device, which lacks {what}: nothing was sent")),
        ("full", _) => {
            let detail = "the device has no space left to write to, so nothing was applied: free some there";
            Fault::new(Code::HardwareFailure, detail)
        }
        ("gone", _) => unsupported("the restore job did not outlive the session that started it, so nothing was applied".to_owned()),
        ("pending", _) => {
            let detail = "locked: a restore job of somebody else waits or works on the device";
            Fault::new(Code::AccessDenied, detail).retryable()
        }
        ("left", place) => {
            let detail = format!(
                "a restore job died on the device before its change was confirmed or taken back, so nothing was applied. {place} there holds the \
                 old configuration: bring that back by `sh {place}/job now`, or remove the directory where nothing of it is wanted"
            );
            Fault::new(Code::AccessDenied, detail)
        }
        ("drift", _) => {
            let detail = "the running configuration has changed since the diff was shown: nothing was applied; make the change again";
            Fault::new(Code::ConfigIncompatible, detail).at("running")
        }
        ("applied", "over") | ("restore" | "restored", _) => {
            Fault::new(Code::ConfirmedCommitTimeout, "the window is over: the device brings the old configuration back")
        }
        ("applied", status) => Fault::new(Code::ConfigIncompatible, format!("frr-reload.py ended with {status}: {log}")),
        ("confirmed", _) => Fault::new(Code::InvalidParams, "the change was confirmed before"),
        ("unknown", _) => Fault::new(Code::InvalidParams, "the device knows no such change"),
        _ => Fault::new(Code::Unreachable, format!("the restore job gave no answer: {log}")).retryable(),
    })
}

pub(super) fn head() -> String {
    format!("echo {SHELL}\nfull() {{ echo \"{WORD}full\"; exit 1; }}\n")
}

/// Lines of a script that write `text` to `file`, whose last line is ended where it is not.
fn here(file: &str, text: &str) -> String {
    // A delimiter that no line of the text is.
    let mut end = "BANYAN_END".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    let last = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    // What is cut off for want of space is no configuration.
    format!("cat >{file} <<'{end}' || full\n{text}{last}{end}\n")
}

/// A text as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_09_texts_reach_the_shell_as_they_are() {
        assert_eq!(quoted("a'b $(x)"), "'a'\\''b $(x)'");
        let programs = FrrPrograms::new("/usr/bin", Some("r'1"));
        assert!(programs.exec("show version", 3).ends_with("timeout -k 1 3 '/usr/bin/vtysh' -N 'r'\\''1' -c 'show version' </dev/null\n"));
        assert_eq!(here("f", "a\nBANYAN_END\n"), "cat >f <<'BANYAN_END_' || full\na\nBANYAN_END\nBANYAN_END_\n");
        assert_eq!(here("f", "a"), "cat >f <<'BANYAN_END' || full\na\nBANYAN_END\n");
        assert!(programs.job("a$b").is_err() && programs.job("").is_err());
        // A session that breaks off amid the text leaves no file with secrets behind.
        let script = programs.validate("x\n", 3);
        assert!(script.find("trap 'rm -f \"$F\"' EXIT\n") < script.find("cat >\"$F\""), "{script}");
        let armed = programs.job("ab12").unwrap();
        assert!(!armed.arm(3, "x\n").contains('@') && !armed.restore("x\n").contains('@') && !programs.look().contains('@'));
    }

    #[test]
    fn nm_09_only_the_wanted_word_of_a_job_counts() {
        let code = |output: &str, wanted: &str| job_answer(output, wanted).map_err(|fault| fault.code);
        assert_eq!(code("log\nbanyan armed\n", "armed"), Ok(()));
        for (output, expected) in [
            ("banyan able", Code::Unreachable),
            ("banyan lacks flock", Code::RollbackNotSupported),
            ("banyan full", Code::HardwareFailure),
            ("banyan gone", Code::RollbackNotSupported),
            ("banyan pending", Code::AccessDenied),
            ("banyan left .banyan/frr-/restore-a", Code::AccessDenied),
            ("banyan drift", Code::ConfigIncompatible),
            ("x\nbanyan applied 1", Code::ConfigIncompatible),
            ("banyan applied over", Code::ConfirmedCommitTimeout),
            ("banyan restore", Code::ConfirmedCommitTimeout),
            ("banyan unknown", Code::InvalidParams),
            ("", Code::Unreachable),
        ] {
            assert_eq!(code(output, "armed"), Err(expected), "{output}");
        }
    }

    #[test]
    fn nm_13_a_login_without_a_shell_is_told_from_one() {
        assert_eq!(shell_output("welcome\nbanyan-shell\nx\n"), Ok("x\n"));
        let fault = shell_output("% Unknown command: /bin/sh\n").unwrap_err();
        assert!(fault.code == Code::RollbackNotSupported && fault.detail.contains("Unknown command"));
        assert!(shell_output("echo banyan-shell\n").is_err());
    }
}
