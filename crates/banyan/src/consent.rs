//! Asks once before anything is started that somebody configured for another program. Starts nothing.

use config::secret::{Secret, SecretStore, StoreError};
use import::{Found, Question};

use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::counted;
use crate::{listing, places, terminal};

/// Shows the findings and asks, unless `yes`. Refuses when nobody is there to be asked.
pub(crate) fn obtain(found: &mut Found, yes: bool, output: &Output) -> Result<(), Failure> {
    show(found, output);
    if !yes {
        if !terminal::somebody_is_there() {
            let count = found.mounts().len();
            return Err(Failure::Refused(format!(
                "nobody is there to agree to starting {}\n  \
                 `--yes` starts them; `banyan import --write` makes a configuration of them to look at first",
                counted(count, "server")
            )));
        }
        if !terminal::agrees("\nStart them?")? {
            return Err(Failure::Refused("nothing is started\n  `banyan import --write` makes a configuration to choose from".to_owned()));
        }
    }
    answer_questions(found, AnswerLifetime::WhileItRuns, output)
}

/// The servers and what is to be known about their files, on standard error.
pub(crate) fn show(found: &Found, output: &Output) {
    listing::servers(found, output).iter().for_each(|line| output.remark(line));
    for note in listing::notes(found, false) {
        output.remark(&format!("{} {note}", output.paint_remark(Look::Warn, "note:")));
    }
}

/// The lifetime of a secret answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerLifetime {
    /// In the keyring, or not at all.
    ForGood,
    /// In the keyring; without one, in memory.
    WhileItRuns,
}

/// Asks the questions that clients ask when they start these servers. Without a person, tells how to answer.
pub(crate) fn answer_questions(found: &mut Found, kept: AnswerLifetime, output: &Output) -> Result<(), Failure> {
    for question in found.questions.clone() {
        if !terminal::somebody_is_there() {
            let prompt = printable(&question.prompt);
            output.remark(&format!(
                "{} {prompt}: answer with `banyan secret set {}`",
                output.paint_remark(Look::Warn, "note:"),
                question.name
            ));
            continue;
        }
        ask(found, &question, kept, output)?;
    }
    Ok(())
}

fn ask(found: &mut Found, question: &Question, kept: AnswerLifetime, output: &Output) -> Result<(), Failure> {
    let choices = if question.choices.is_empty() { String::new() } else { format!(" ({})", question.choices.join(", ")) };
    let default = question.default.as_deref().map(|d| format!(" [{d}]")).unwrap_or_default();
    let prompt = printable(&format!("{}{choices}{default}: ", question.prompt));
    if question.hidden {
        let value = terminal::hidden_line(&prompt)?;
        let stored = SecretStore::in_dir(&places::state_dir()?).set(&question.name, &Secret::new(value.as_str()));
        return match stored {
            Err(StoreError::Keyring(why)) if kept == AnswerLifetime::WhileItRuns => {
                output.remark(&format!("{} {why}; the answer is kept in memory only", output.paint_remark(Look::Warn, "note:")));
                found.answer(&question.name, &value);
                Ok(())
            }
            stored => Ok(stored.map(drop)?),
        };
    }
    let typed = terminal::line(&prompt)?;
    let answer = if typed.is_empty() { question.default.clone().unwrap_or_default() } else { typed };
    found.answer(&question.name, &answer);
    Ok(())
}
