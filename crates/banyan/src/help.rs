//! Help of the whole program: commands in groups, the first steps first. Has no text of a single command.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::arguments::Arguments;
use crate::similar::did_you_mean;

/// Groups of commands, in the order of a first day.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Start here", &["up", "add", "import", "connect", "service", "status", "console"]),
    ("Servers", &["rm", "auth", "restart", "logs", "doctor", "agent", "device", "stub", "disconnect", "stdio"]),
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
}
