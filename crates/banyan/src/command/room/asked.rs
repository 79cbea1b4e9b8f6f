//! Commands typed in a room. Their effect is not known here.

use crate::failure::Failure;

/// A typed command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedCommand {
    Accept {
        offer: u64,
        acts: Option<u32>,
        an_hour: Option<u32>,
    },
    Acts,
    /// Make the call that is proposed, by whom where the proposal does not say.
    Approve {
        number: u64,
        to: Option<String>,
    },
    Call(ToolRequest),
    Export,
    Help,
    Offers,
    Open,
    /// Ask somebody to do nothing by itself for a while.
    Pause {
        who: String,
        seconds: Option<u64>,
        reason: Option<String>,
    },
    Propose(ToolRequest),
    Quit,
    Reject {
        number: u64,
        reason: Option<String>,
    },
    /// Let somebody go on.
    Resume {
        who: String,
    },
    Revoke {
        rule: u64,
    },
    Rules,
    Say(String),
    Who,
    Withdraw {
        number: u64,
    },
}

/// A call of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolRequest {
    /// The addressed participant.
    pub(super) to: String,
    pub(super) tool: String,
    /// Raw, an object.
    pub(super) arguments: String,
}

pub(super) const HELP: &str = "\
typed lines are said to all; lines with a slash are commands:
  /who                             participants and their capabilities
  /open                            proposals that wait
  /approve NUMBER [WHO]            make the proposed call; WHO carries it out where the proposal names no one
  /reject NUMBER [REASON]          speak against it
  /withdraw NUMBER                 take back your own
  /propose WHO TOOL [ARGUMENTS]    propose a call: ARGUMENTS are a JSON object
  /call WHO TOOL [ARGUMENTS]       call a tool
  /offers                          rules that could be made of people's decisions
  /accept OFFER [CALLS [AN_HOUR]]  make one of them a rule, with limits
  /rules, /acts                    the rules, and their acts
  /revoke RULE                     end a rule
  /pause WHO [SECONDS] [REASON]    ask a participant to do nothing by itself, and to take no calls, for a while
  /resume WHO                      let it go on
  /export                          outcomes of proposals and calls, a line of JSON each
  /quit                            leave";

/// Reads a line; `None` for an empty line.
pub(super) fn read(line: &str) -> Result<Option<TypedCommand>, Failure> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return Ok((!line.is_empty()).then(|| TypedCommand::Say(line.to_owned())));
    };
    let (word, rest) = command.split_once(char::is_whitespace).map_or((command, ""), |(word, rest)| (word, rest.trim()));
    let (first, more) = rest.split_once(char::is_whitespace).map_or((rest, ""), |(first, more)| (first, more.trim()));
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(Some(match word {
        "accept" => {
            let limits: Vec<&str> = more.split_whitespace().collect();
            let limit = |at: usize| limits.get(at).map(|text| whole(text, "a limit")).transpose();
            TypedCommand::Accept { offer: numbered(first, "OFFER")?, acts: limit(0)?, an_hour: limit(1)? }
        }
        "acts" => TypedCommand::Acts,
        "approve" => TypedCommand::Approve { number: numbered(first, "NUMBER")?, to: some(more) },
        "call" => TypedCommand::Call(wanted(first, more)?),
        "export" => TypedCommand::Export,
        "help" | "?" => TypedCommand::Help,
        "offers" => TypedCommand::Offers,
        "open" => TypedCommand::Open,
        "pause" => {
            let (seconds, reason) = more.split_once(char::is_whitespace).map_or((more, ""), |(seconds, reason)| (seconds, reason.trim()));
            match seconds.parse() {
                Ok(seconds) => TypedCommand::Pause { who: named(first)?, seconds: Some(seconds), reason: some(reason) },
                Err(_) => TypedCommand::Pause { who: named(first)?, seconds: None, reason: some(more) },
            }
        }
        "propose" => TypedCommand::Propose(wanted(first, more)?),
        "quit" | "leave" => TypedCommand::Quit,
        "reject" => TypedCommand::Reject { number: numbered(first, "NUMBER")?, reason: some(more) },
        "resume" => TypedCommand::Resume { who: named(first)? },
        "revoke" => TypedCommand::Revoke { rule: numbered(first.strip_prefix("rule-").unwrap_or(first), "RULE")? },
        "rules" => TypedCommand::Rules,
        "who" => TypedCommand::Who,
        "withdraw" => TypedCommand::Withdraw { number: numbered(first, "NUMBER")? },
        other => return Err(Failure::Usage(format!("there is no command `/{other}`: `/help` lists them"))),
    }))
}

fn named(who: &str) -> Result<String, Failure> {
    if who.is_empty() { Err(Failure::Usage("say who: `/who` lists them".to_owned())) } else { Ok(who.to_owned()) }
}

fn numbered(text: &str, what: &str) -> Result<u64, Failure> {
    let number = text.trim_start_matches('#').parse();
    number.map_err(|_| Failure::Usage(format!("{what} is a number as it is shown here, and not {text:?}: `/help` says how to write it")))
}

fn whole(text: &str, what: &str) -> Result<u32, Failure> {
    text.parse().map_err(|_| Failure::Usage(format!("{what} is a whole number, and not {text:?}")))
}

fn wanted(to: &str, rest: &str) -> Result<ToolRequest, Failure> {
    let (tool, arguments) = rest.split_once(char::is_whitespace).map_or((rest, ""), |(tool, rest)| (tool, rest.trim()));
    if to.is_empty() || tool.is_empty() {
        return Err(Failure::Usage("say who is to carry it out, and which tool: `/help` says how".to_owned()));
    }
    let arguments = if arguments.is_empty() { "{}" } else { arguments };
    let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).is_ok();
    if !is_object {
        return Err(Failure::Usage(format!("the arguments are no JSON object: {arguments:?}")));
    }
    Ok(ToolRequest { to: to.to_owned(), tool: tool.to_owned(), arguments: arguments.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> TypedCommand {
        read(line).unwrap().unwrap()
    }

    #[test]
    fn a_line_is_said_unless_it_begins_with_a_slash() {
        assert_eq!(asked("  hello /there "), TypedCommand::Say("hello /there".into()));
        assert!(read("   ").unwrap().is_none());
        assert_eq!(asked("/approve 3"), TypedCommand::Approve { number: 3, to: None });
        assert_eq!(asked("/approve #3 files"), TypedCommand::Approve { number: 3, to: Some("files".into()) });
        assert_eq!(asked("/reject 3 not  today"), TypedCommand::Reject { number: 3, reason: Some("not  today".into()) });
        assert_eq!(asked("/accept 1 20 5"), TypedCommand::Accept { offer: 1, acts: Some(20), an_hour: Some(5) });
        let pause = |seconds, reason: Option<&str>| TypedCommand::Pause { who: "bot".into(), seconds, reason: reason.map(str::to_owned) };
        assert_eq!(asked("/pause bot"), pause(None, None));
        assert_eq!(asked("/pause bot 60 too  much"), pause(Some(60), Some("too  much")));
        assert_eq!(asked("/pause bot too much"), pause(None, Some("too much")));
        assert_eq!(asked("/resume bot"), TypedCommand::Resume { who: "bot".into() });
        assert_eq!(asked("/revoke rule-2"), TypedCommand::Revoke { rule: 2 });
        let wanted = ToolRequest { to: "files".into(), tool: "rm".into(), arguments: "{\"path\": \"a b\"}".into() };
        assert_eq!(asked("/propose files rm {\"path\": \"a b\"}"), TypedCommand::Propose(wanted));
    }

    #[test]
    fn a_wrong_line_says_what_is_wrong() {
        for (line, said) in [
            ("/agree 3", "/help"),
            ("/pause", "say who"),
            ("/approve", "NUMBER"),
            ("/approve three", "\"three\""),
            ("/accept 1 many", "whole number"),
            ("/call files", "which tool"),
            ("/call files rm [1]", "no JSON object"),
        ] {
            let told = read(line).unwrap_err().to_string();
            assert!(told.contains(said), "{line}: {told}");
        }
    }
}
