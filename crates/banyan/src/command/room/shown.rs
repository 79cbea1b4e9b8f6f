//! A room as it reads on a terminal: a line for each event. Reactions to events are not decided here.

use std::borrow::Cow;

use json::Members;
use room_proto::capability::Pattern;
use room_proto::chain::{Chain, Chains, MessageRole, Outcome, State, Step};
use room_proto::kind::Kind;
use room_proto::participant::{ChatMessage, Event, Participant};

use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table;

/// No longer payload is shown, in characters.
const MOST: usize = 300;

/// Draws an event; `None` for events without a line.
pub(super) fn line(event: &Event, room: &Participant, output: &Output) -> Option<String> {
    let dim = |text: String| output.paint(Look::Dim, &text);
    match event {
        Event::Asked(_) | Event::Linked { found: MessageRole::Unrelated, .. } => None,
        Event::Dropped { from, why } => Some(output.paint(Look::Warn, &printable(&format!("dropped a message of {from}: {why}")))),
        Event::Expired(id) => Some(dim(format!("#{} has expired", id.0))),
        Event::Joined { id } => Some(dim(format!("{} is here", printable(id)))),
        Event::Left { id } => Some(dim(format!("{} has left", printable(id)))),
        Event::Linked { found, from, payload } => linked(*found, from, payload, room.chains(), output),
        Event::Paused(pause) => {
            let me = room.me().map_or("?", |me| me.as_str());
            Some(
                output
                    .paint(Look::Warn, &printable(&format!("you are {pause}: rules do nothing here until it ends; /resume {me} ends it"))),
            )
        }
        Event::Resumed { by: Some(by) } => Some(dim(format!("you go on: {} has ended the pause", printable(by)))),
        Event::Resumed { by: None } => Some(dim("you go on: the pause is over".to_owned())),
        Event::Refused { message, .. } => Some(output.paint(Look::Bad, &printable(&format!("refused: {message}")))),
        Event::Said(said) => Some(chat(said, room, output)),
        Event::Unread(why) => Some(output.paint(Look::Warn, &printable(&format!("a message can't be read: {why}")))),
        Event::Welcomed => Some(dim(welcome(room))),
    }
}

fn welcome(room: &Participant) -> String {
    let me = room.me().map_or("?", |me| me.as_str());
    let others: Vec<String> = room.present().map(|(id, _)| printable(id)).collect();
    let others = if others.is_empty() { "nobody else is here".to_owned() } else { format!("here: {}", others.join(", ")) };
    format!("you are {}; {others}; /help says what you can do", printable(me))
}

/// Lists the participants, with capabilities and the number of dropped messages.
pub(super) fn who(room: &Participant) -> Vec<String> {
    let line = |name: &str, capabilities: String, id: &str| {
        let dropped = match room.watch().mismatches_of(id) {
            0 => String::new(),
            some => format!("  {}", table::counted(usize::try_from(some).unwrap_or(usize::MAX), "message") + " dropped"),
        };
        format!("{}  {}{dropped}", printable(name), printable(&capabilities))
    };
    let own = room.capabilities().map(|own| own.patterns().iter().map(Pattern::as_str).collect::<Vec<_>>().join(", "));
    let me = room.me().map(|me| line(&format!("{} (you)", me.as_str()), own.unwrap_or_default(), me.as_str()));
    me.into_iter().chain(room.present().map(|(id, capabilities)| line(id, capabilities.join(", "), id))).collect()
}

/// Lists the waiting proposals.
pub(super) fn open(room: &Participant, output: &Output) -> Vec<String> {
    let told = |(id, chain): (_, &Chain)| proposal(id, chain, room.proposed(id).map_or(b"{}", |payload| payload), output);
    room.chains().open().filter_map(|(id, chain)| told((id, chain))).collect()
}

fn chat(said: &ChatMessage, room: &Participant, output: &Output) -> String {
    let to = if said.to.is_empty() { String::new() } else { format!(" (to {})", printable(&said.to.join(", "))) };
    let is_own = room.me().is_some_and(|me| me.as_str() == said.from);
    let name = output.paint(if is_own { Look::Dim } else { Look::Strong }, &printable(&said.from));
    format!("{name}{to}: {}", printable(&said.text))
}

fn linked(found: MessageRole, from: &str, payload: &[u8], chains: &Chains, output: &Output) -> Option<String> {
    let from = printable(from);
    match found {
        // What somebody offers is asked by programs, a room that is mounted of everybody who comes.
        MessageRole::Answered(id) | MessageRole::Requested(id) if chains.get(id).is_some_and(lists) => None,
        MessageRole::Answered(id) => Some(answered(id.0, chains.get(id)?, &from, payload, output)),
        MessageRole::Deviates { proposal, request } => Some(output.paint(
            Look::Warn,
            &format!("#{} {from} does something else for #{}: {}", request.0, proposal.0, called(chains.get(request)?, payload)),
        )),
        MessageRole::Ended(id) => {
            let chain = chains.get(id)?;
            let reason = chain.reason.as_deref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
            Some(format!("#{} {} by {from}{reason}", id.0, chain.state.word()))
        }
        MessageRole::Fulfilled(id) => {
            let chain = chains.get(id)?;
            let rule = chain.rule.as_deref().map(|rule| format!(" by {}", printable(rule))).unwrap_or_default();
            Some(format!("#{} approved by {from}{rule}: {}", id.0, called(chain, payload)))
        }
        MessageRole::Late { proposal, request, state } => Some(format!(
            "#{} {from} does #{} too, which was {}: {}",
            request.0,
            proposal.0,
            state.word(),
            called(chains.get(request)?, payload)
        )),
        MessageRole::Proposed(id) => proposal(id, chains.get(id)?, payload, output),
        MessageRole::Requested(id) => Some(format!("#{} {from} calls {}", id.0, called(chains.get(id)?, payload))),
        MessageRole::Repeated | MessageRole::Stray => Some(output.paint(Look::Dim, &format!("{from} sent what belongs to nothing here"))),
        MessageRole::Unrelated => None,
    }
}

fn lists(chain: &Chain) -> bool {
    let request = chain.request.as_ref().filter(|_| chain.proposal.is_none());
    request.is_some_and(|request| Kind::new(&request.kind).method().is_some_and(|method| method.ends_with("/list")))
}

fn proposal(id: room_proto::chain::ChainId, chain: &Chain, payload: &[u8], output: &Output) -> Option<String> {
    let step = chain.proposal.as_ref()?;
    let hint = if chain.state == State::Open { format!("  /approve {0} or /reject {0}", id.0) } else { String::new() };
    let told = format!("#{} {} proposes {}", id.0, printable(&step.from), about(step, payload));
    Some(format!("{}{}", output.paint(Look::Strong, &told), output.paint(Look::Dim, &hint)))
}

fn called(chain: &Chain, payload: &[u8]) -> String {
    chain.request.as_ref().map(|step| about(step, payload)).unwrap_or_default()
}

/// Describes a call: method, target and arguments.
fn about(step: &Step, payload: &[u8]) -> String {
    let kind = Kind::new(&step.kind);
    let params = Members::again(payload).object("params").unwrap_or_default();
    let name = kind.context().map(Cow::Borrowed).or_else(|| params.str("name")).or_else(|| params.str("uri"));
    let method = kind.method().unwrap_or_default();
    let what = match (&name, method) {
        (Some(name), "tools/call") => name.to_string(),
        (Some(name), _) => format!("{method} {name}"),
        (None, _) => method.to_owned(),
    };
    let to = if step.to.is_empty() { String::new() } else { format!(" at {}", step.to.join(", ")) };
    let arguments = params.get("arguments").map(|raw| format!(" {}", String::from_utf8_lossy(raw))).unwrap_or_default();
    printable(&cut(&format!("{what}{to}{arguments}")))
}

fn answered(number: u64, chain: &Chain, from: &str, payload: &[u8], output: &Output) -> String {
    let payload = Members::again(payload);
    let text = match payload.object("error") {
        Some(error) => error.str("message").unwrap_or_default().into_owned(),
        None => payload.object("result").map(|result| result_text(&result)).unwrap_or_default(),
    };
    let (look, word) = if chain.outcome == Some(Outcome::Failed) { (Look::Bad, "failed") } else { (Look::Good, "done") };
    format!("#{number} {} by {from}: {}", output.paint(look, word), printable(&cut(&text)))
}

/// Gives the texts of a result, or its kind.
fn result_text(result: &Members<'_>) -> String {
    let content = result.get("content").and_then(json::elements).unwrap_or_default();
    let texts: Vec<String> = content.into_iter().filter_map(|raw| Some(Members::again(raw).str("text")?.into_owned())).collect();
    if !texts.is_empty() {
        return texts.join(" ");
    }
    let members: Vec<String> = result.iter().map(|(key, raw)| format!("{key} {}", String::from_utf8_lossy(raw))).collect();
    members.join(", ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}... ({} characters more)", &text[..at], text[at..].chars().count()),
        None => text.to_owned(),
    }
}
