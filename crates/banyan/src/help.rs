//! Help of the whole program: commands in groups, the first steps first. Has no text of a single command.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::arguments::Arguments;
use crate::similar::did_you_mean;

/// Groups of commands, in the order of a first day.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Start here", &["up", "add", "import", "connect", "service", "status", "console"]),
    ("Servers", &["rm", "auth", "restart", "top", "logs", "doctor", "agent", "device", "stub", "disconnect", "stdio"]),
    ("Tools", &["tools", "call", "names", "tree", "trace", "context"]),
    ("Who may do what", &["token", "policy", "approvals", "approve", "deny", "grants", "operator", "pins", "explain", "audit"]),
    ("Gates and people", &["ca", "join", "leave", "release", "room", "axcp"]),
    ("Configuration", &["check", "schema", "secret", "reload", "stop", "backup", "restore"]),
    ("More", &["ect", "completions", "man"]),
];

const EXAMPLES: &str = "\
Examples:
  banyan up                                  serve your servers, or a demonstration
  banyan add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  banyan connect cursor                      point a client at the gate
  banyan call clock.now zone=Europe/Vienna   call a tool

`banyan COMMAND --help` says more of a command.";

/// The command line with its grouped help.
pub(crate) fn command() -> Command {
    let command = Arguments::command();
    let template = format!("{{about}}\n\nUsage: {{usage}}\n{}\nOptions:\n{{options}}\n\n{EXAMPLES}\n", groups(&command));
    command.help_template(template)
}

fn groups(command: &Command) -> String {
    let about = |name: &str| command.find_subcommand(name).and_then(Command::get_about).map(StyledStr::to_string).unwrap_or_default();
    let group = |(title, names): &(&str, &[&str])| {
        let lines: String = names.iter().map(|name| format!("  {name:<12} {}\n", about(name))).collect();
        format!("\n{title}:\n{lines}")
    };
    GROUPS.iter().map(group).collect()
}

/// Words a mistake on the command line. An unknown command gets names that are near.
pub(crate) fn mistake(error: &clap::Error) -> String {
    let said = || error.render().to_string().trim_end().trim_start_matches("error: ").to_owned();
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return said() };
    let is_of_program = error.get(ContextKind::Usage).is_some_and(|usage| usage.to_string().contains("banyan [OPTIONS]"));
    if error.kind() != ErrorKind::InvalidSubcommand || !is_of_program {
        return said();
    }
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
    format!("there is no command `{given}`{}\n  `banyan --help` lists the commands", did_you_mean(given, names))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_command_stands_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let all: BTreeSet<String> =
            Arguments::command().get_subcommands().filter(|one| !one.is_hide_set()).map(|one| one.get_name().to_owned()).collect();
        assert_eq!(grouped.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), all);
        assert_eq!((grouped.len(), grouped[0]), (all.len(), "up"));
    }

    /// Lists the commands of a page: behind a prompt, or between backticks.
    fn commands(page: &str) -> Vec<String> {
        let (mut found, mut prose, mut is_code) = (Vec::new(), String::new(), false);
        for line in page.lines() {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            if is_code && !is_fence {
                found.extend(
                    line.split_once("$ ").map(|(_, command)| command).filter(|text| text.starts_with("banyan ")).map(str::to_owned),
                );
            } else if !is_fence {
                // A span of code may go on in the next line, but not in the next paragraph or row.
                let between = if line.is_empty() || line.starts_with('|') { "\n" } else { " " };
                prose.extend([between, line]);
            }
        }
        let spans = prose.lines().flat_map(|text| text.split('`').skip(1).step_by(2));
        found.extend(spans.filter(|span| span.starts_with("banyan ") && !span.contains("COMMAND")).map(str::to_owned));
        found
    }

    /// Words of a command as a shell would give them. Signs of a synopsis are left out.
    fn words(command: &str) -> Vec<String> {
        let command = ["#", " | ", " >", " && ", "..."].iter().fold(command, |text, end| text.split(end).next().unwrap_or_default());
        let words = command.split_whitespace().map(|word| word.trim_matches(['[', ']', '\'', '"']));
        words.filter(|word| !word.is_empty()).map(|word| word.split('|').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn commands_on_pages_are_those_of_the_program() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = std::fs::read_dir(root.join("docs")).expect("docs").flatten().map(|entry| entry.path());
        let pages: Vec<_> = docs.chain(["README.md", "CHANGELOG.md"].map(|name| root.join(name))).collect();
        let (mut tried, mut unknown) = (0, Vec::new());
        for page in pages.iter().filter(|page| page.extension().is_some_and(|end| end == "md")) {
            for written in commands(&std::fs::read_to_string(page).expect("a page")) {
                tried += 1;
                let Err(error) = command().try_get_matches_from(words(&written)) else { continue };
                if matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
                    unknown.push(format!("{}: {written}", page.display()));
                }
            }
        }
        assert!(tried > 100 && unknown.is_empty(), "of {tried} commands these are none:\n{}", unknown.join("\n"));
    }

    /// Words of the longest sentence, words of a sentence on average, and words like *what* in a thousand: as for pages.
    const LONGEST: usize = 25;
    const AVERAGE: usize = 18;
    const RELATIVES_PER_MILLE: usize = 8;
    const RELATIVES: [&str; 11] =
        ["nobody", "somebody", "such", "what", "whatever", "which", "whichever", "who", "whoever", "whom", "whose"];

    /// Lists the help texts of a command and of all commands below.
    fn texts(command: &Command) -> Vec<String> {
        let about = command.get_about().into_iter().chain(command.get_long_about()).chain(command.get_after_help());
        let arguments = command.get_arguments().flat_map(|argument| argument.get_help().into_iter().chain(argument.get_long_help()));
        let own = about.chain(arguments).map(StyledStr::to_string);
        own.chain(command.get_subcommands().filter(|one| one.get_name() != "help").flat_map(texts)).collect()
    }

    /// Splits a help text at the ends of sentences. Text between backticks is one word.
    fn sentences(text: &str) -> Vec<String> {
        let parts = text.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "CODE" });
        let ends = [". ", ": ", "; ", "? "].iter().fold(parts.collect::<String>(), |text, end| text.replace(end, "\n"));
        ends.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    fn words_of(text: &str) -> impl Iterator<Item = String> {
        text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).map(str::to_lowercase)
    }

    #[test]
    fn help_texts_have_short_sentences_that_name_their_subject() {
        let sentences: Vec<String> = texts(&Arguments::command()).iter().flat_map(|text| sentences(text)).collect();
        let all: Vec<String> = sentences.iter().flat_map(|sentence| words_of(sentence)).collect();
        let is_relative = |word: &str| RELATIVES.contains(&word.trim_matches(|c: char| !c.is_alphanumeric()));
        let pointing: Vec<&String> = sentences.iter().filter(|sentence| words_of(sentence).any(|word| is_relative(&word))).collect();
        let relatives = all.iter().filter(|word| is_relative(word)).count();
        let long: Vec<&String> = sentences.iter().filter(|sentence| words_of(sentence).count() > LONGEST).collect();
        assert!(sentences.len() > 300 && all.len() / sentences.len() <= AVERAGE, "{} words in {} sentences", all.len(), sentences.len());
        assert!(long.is_empty(), "more than {LONGEST} words: {long:#?}");
        assert!(relatives * 1000 / all.len() <= RELATIVES_PER_MILLE, "{relatives} of {} words are like `what`: {pointing:#?}", all.len());
    }
}
