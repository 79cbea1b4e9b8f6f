//! Answers of `birdc`, and the name that a configuration of BIRD has for the change that made it. Runs nothing.

use crate::fault::{Code, Fault};

/// Constant with the name of the running change.
const MARKER: &str = "BANYAN_CHANGE";

/// Checks a command of a caller, whose words become arguments of `birdc`.
///
/// # Errors
/// -32083 for a word that could be an option.
pub fn check_command(command: &str) -> Result<(), Fault> {
    match command.split_whitespace().find(|word| word.starts_with('-')) {
        None => Ok(()),
        Some(option) => {
            let detail = format!("`{option}` could be an option of birdc: leave out words that begin with `-`");
            Err(Fault::new(Code::AccessDenied, detail).at(command))
        }
    }
}

/// Command for the name of the running change.
pub fn asking_for_change() -> String {
    format!("eval {MARKER}")
}

/// Configuration with the name of the change in the last line.
pub fn with_change(text: &str, change: &str) -> String {
    format!("{text}{}", last_line(change))
}

/// Configuration without the line for `change`; `None` for another change or none.
pub fn without_change<'text>(text: &'text str, change: &str) -> Option<&'text str> {
    text.strip_suffix(&last_line(change))
}

/// Text of an answer, below the greeting; nothing where BIRD did not greet.
pub fn answer(printed: &str) -> &str {
    let below = printed.split_once('\n').map_or("", |(greeting, rest)| if greeting.starts_with("BIRD ") { rest } else { "" });
    below.strip_prefix("Access restricted\n").unwrap_or(below)
}

/// Running change; `None` for a configuration without a name of a change.
///
/// # Errors
/// The words of BIRD instead of an answer.
pub fn running_change(printed: &str, is_success: bool) -> Result<Option<&str>, &str> {
    let said = answer(printed).lines().last().unwrap_or_default().trim();
    match is_success {
        true => Ok(Some(said).filter(|said| !said.is_empty())),
        // A constant that is not defined is a word out of place.
        false if said.contains("syntax error") => Ok(None),
        false => Err(said),
    }
}

/// Outcome of a command that changes the running configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconfiguration {
    Done,
    /// Begun, or put in the queue behind another one, whose end nobody knows.
    Underway,
    /// There was nothing to do.
    Nothing,
    Refused,
}

/// Reads the outcome of such a command from the words of BIRD.
pub fn reconfiguration(printed: &str, is_success: bool) -> Reconfiguration {
    let has = |begin: &str| answer(printed).lines().any(|line| line.starts_with(begin));
    if !is_success {
        Reconfiguration::Refused
    } else if has("Reconfigured") {
        Reconfiguration::Done
    } else if has("Reconfiguration in progress") || has("Reconfiguration already in progress") {
        Reconfiguration::Underway
    } else if has("Nothing to do") {
        Reconfiguration::Nothing
    } else {
        Reconfiguration::Refused
    }
}

/// Is BIRD done with all configurations that were given, none in the queue?
pub fn is_idle(status: &str) -> bool {
    answer(status).lines().any(|line| line == "Daemon is up and running")
}

/// Does BIRD still run what it has read at its start?
pub fn is_fresh(status: &str) -> bool {
    let moment = |begin: &str| answer(status).lines().find_map(|line| line.strip_prefix(begin));
    moment("Last reboot on ").is_some_and(|started| moment("Last reconfiguration on ") == Some(started))
}

/// Time since BIRD has read the running configuration, in milliseconds, by the clock of BIRD; `None` where BIRD tells times in another form.
pub fn age(status: &str) -> Option<u64> {
    let moment = |begin: &str| {
        let told = answer(status).lines().find_map(|line| line.strip_prefix(begin))?;
        chrono::NaiveDateTime::parse_from_str(told, "%Y-%m-%d %H:%M:%S%.f").ok()
    };
    let since = moment("Current server time is ")?.signed_duration_since(moment("Last reconfiguration on ")?);
    u64::try_from(since.num_milliseconds()).ok()
}

/// Is a name of a change fit for the name of a file?
pub fn is_plain(change: &str) -> bool {
    !change.is_empty() && change.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Does BIRD wait for a confirmation?
pub fn is_unconfirmed(status: &str) -> bool {
    answer(status).lines().any(|line| line.starts_with("Configuration unconfirmed"))
}

/// Did BIRD take a confirmation?
pub fn is_confirmed(printed: &str) -> bool {
    answer(printed).lines().any(|line| line.starts_with("Reconfiguration confirmed"))
}

/// Words of BIRD about a refused configuration in `file`: the line and the reason, if told.
pub fn refusal<'text>(printed: &'text str, file: &str) -> &'text str {
    let said = answer(printed);
    let placed = said.lines().find_map(|line| line.strip_prefix(file)?.strip_prefix(':'));
    placed.or_else(|| said.lines().last()).unwrap_or_default().trim()
}

fn last_line(change: &str) -> String {
    format!("\ndefine {MARKER} = \"{change}\";\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_12_no_word_of_a_command_is_an_option() {
        for command in ["show protocols all -s /other.ctl", "-v", "show route --", "show \u{a0}-l"] {
            let fault = check_command(command).unwrap_err();
            assert_eq!((fault.code, fault.path.as_deref()), (Code::AccessDenied, Some(command)));
            assert!(fault.detail.contains("option of birdc"), "{}", fault.detail);
        }
        assert_eq!(check_command("show route for 10.1.2.3 table my-table"), Ok(()));
    }

    #[test]
    fn nm_02_an_answer_of_bird_stands_below_its_greeting() {
        assert_eq!(answer("BIRD 2.0.12 ready.\nDaemon is up and running\n"), "Daemon is up and running\n");
        assert_eq!(answer("BIRD 2.0.12 ready.\nAccess restricted\nBIRD 2.0.12\n"), "BIRD 2.0.12\n");
        assert_eq!(answer("Unable to connect\nBIRD 2.0.12 ready.\n"), "");
    }

    #[test]
    fn nm_09_bird_names_the_change_that_it_runs() {
        assert_eq!(running_change("BIRD 2.0.12 ready.\nabc\n", true), Ok(Some("abc")));
        assert_eq!(running_change("BIRD 2.0.12 ready.\nsyntax error, unexpected CF_SYM_UNDEFINED\n", false), Ok(None));
        assert_eq!(running_change("BIRD 2.0.12 ready.\nAccess denied\n", false), Err("Access denied"));
        let marked = with_change("router id 1.1.1.1;\n", "abc");
        assert_eq!(without_change(&marked, "abc"), Some("router id 1.1.1.1;\n"));
        assert_eq!(without_change(&marked, "abd"), None);
    }

    #[test]
    fn nm_09_bird_says_whether_it_waits_for_a_confirmation() {
        assert!(is_unconfirmed("BIRD 2.0.12 ready.\nDaemon is up and running\nConfiguration unconfirmed, undo in 4.991 s\n"));
        assert!(!is_unconfirmed("BIRD 2.0.12 ready.\nDaemon is up and running\n"));
        assert!(is_confirmed("BIRD 2.0.12 ready.\nReconfiguration confirmed\n"));
        assert!(!is_confirmed("BIRD 2.0.12 ready.\nNothing to do\n"));
    }

    #[test]
    fn nm_09_a_queue_of_bird_is_no_success() {
        let read = |said: &str| reconfiguration(&format!("BIRD 2.0.12 ready.\nReading configuration from /b\n{said}\n"), true);
        assert_eq!(read("Reconfigured"), Reconfiguration::Done);
        assert_eq!(read("Reconfiguration in progress"), Reconfiguration::Underway);
        assert_eq!(read("Undo scheduled in 20 s\nReconfiguration already in progress, queueing new config"), Reconfiguration::Underway);
        assert_eq!(read("Undo requested\nReconfiguration already in progress, removing queued config"), Reconfiguration::Underway);
        assert_eq!(read("Nothing to do"), Reconfiguration::Nothing);
        assert_eq!(read("Reconfiguration ignored, shutting down"), Reconfiguration::Refused);
        assert_eq!(reconfiguration("BIRD 2.0.12 ready.\nReconfigured\n", false), Reconfiguration::Refused);
        let status = |said: &str| format!("BIRD 2.0.12 ready.\n{said}\n");
        assert!(is_idle(&status("Daemon is up and running")) && !is_idle(&status("Reconfiguration in progress, next one enqueued")));
        let (same, other) = ("2026-11-25 22:35:53.526", "2026-11-25 22:36:53.526");
        assert!(is_fresh(&status(&format!("Last reboot on {same}\nLast reconfiguration on {same}"))));
        assert!(!is_fresh(&status(&format!("Last reboot on {same}\nLast reconfiguration on {other}"))) && !is_fresh(&status("x")));
        let times = |now: &str| status(&format!("Current server time is {now}\nLast reboot on {same}\nLast reconfiguration on {same}"));
        assert_eq!((age(&times("2026-11-25 22:35:55.026")), age(&times("22:35:55")), age(&status("x"))), (Some(1_500), None, None));
        assert!(is_plain("ab12-old") && !is_plain("../x") && !is_plain(""));
    }

    #[test]
    fn nm_08_a_refused_line_of_bird_is_told() {
        let printed = "BIRD 2.0.12 ready.\nReading configuration from /etc/b.conf.check\n/etc/b.conf.check:15:1 syntax error, unexpected CF_SYM_UNDEFINED\n";
        assert_eq!(refusal(printed, "/etc/b.conf.check"), "15:1 syntax error, unexpected CF_SYM_UNDEFINED");
        assert_eq!(refusal("BIRD 2.0.12 ready.\nAccess denied\n", "/etc/b.conf.check"), "Access denied");
    }
}
