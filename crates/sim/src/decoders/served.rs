//! Check for what reaches the gate as an agent: messages of clients, and what tools say for them. Whatever is answered is JSON again.
//! Knows no task of a gate.

use std::sync::Arc;

use agent_proto::served::incoming::{SentMessage, SentPurpose};
use agent_proto::served::input::{GivenInput, TaskQuestion};
use agent_proto::served::listing::{TaskFilter, TaskPage};
use agent_proto::served::push::{PushName, PushWish};
use agent_proto::served::rejection::ClientRefusal;
use agent_proto::served::steps::UntoldSteps;
use agent_proto::served::written::{ServedTask, TaskEnd, skill};
use agent_proto::task::{AgentReply, Task, TaskState};
use mcp_proto::json::{self, Duplicates};

/// Most bytes of an answer for a byte of the message, and besides: control characters take six, and a schema stands twice.
const GROWTH: usize = 16;
const FRAME: usize = 4 << 10;
/// Most answers that are tried with each question.
const MOST_GIVEN: usize = 8;

/// A line is a message of a client, a filter of a list, a question, a step, a result or a definition of a tool. The messages answer the
/// questions.
pub(super) fn message(data: &[u8]) {
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let mut given = vec![GivenInput::Declined, GivenInput::Accepted, GivenInput::Text("1".into()), GivenInput::Unclear];
    for line in &lines {
        given.extend(sent(line));
        wished(line);
        let filter = TaskFilter::read(line).inspect_err(refused).unwrap_or_default();
        let mut steps = UntoldSteps::default();
        steps.hear(line);
        shown(line, &filter, &task(TaskState::Working, steps.tell(0), None, None));
        if json(line) {
            let TaskEnd { state, words, artifacts } = TaskEnd::of_result(line);
            shown(line, &filter, &task(state, words, None, artifacts));
        }
        assert!(skill(line).is_none_or(|written| json(written.as_bytes())));
    }
    given.truncate(MOST_GIVEN);
    for line in lines {
        let Ok(question) = TaskQuestion::read("elicitation/create", line) else { continue };
        for given in &given {
            match question.answer(given) {
                Ok(answer) => assert!(json(answer.as_bytes()), "{answer}"),
                Err(refusal) => refused(&refusal),
            }
        }
        shown(line, &TaskFilter::default(), &task(TaskState::InputRequired, None, Some(question), None));
    }
}

/// A wish for notifications is JSON without its secrets, and no field of a request has a line end.
fn wished(line: &[u8]) {
    let name = PushName::read(line).inspect_err(refused).unwrap_or_default();
    let Ok(wish) = PushWish::read(line).inspect_err(refused) else { return };
    let written = wish.write(&name);
    assert!(json(written.as_bytes()) && PushWish::read(written.as_bytes()).is_ok_and(|read| read.url == wish.url && read.token.is_none()));
    let fields = [wish.token.clone(), wish.authorization()];
    assert!(fields.iter().flatten().all(|text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte))));
}

/// Reads a message, and gives what it says to a question.
fn sent(line: &[u8]) -> Option<GivenInput> {
    match SentMessage::read(line).inspect_err(refused).ok()?.purpose {
        SentPurpose::Begins(call) => {
            assert!(call.arguments.starts_with('{') && json(call.arguments.as_bytes()), "{}", call.arguments);
            None
        }
        SentPurpose::GoesOn(onward) => {
            let arguments = onward.call.inspect_err(refused).ok().flatten().map(|call| call.arguments);
            assert!(arguments.is_none_or(|arguments| json(arguments.as_bytes())) && !onward.task.is_empty());
            Some(onward.input)
        }
    }
}

fn task(state: TaskState, words: Option<String>, question: Option<TaskQuestion>, artifacts: Option<String>) -> ServedTask {
    let (id, context) = ("t".into(), "c".into());
    ServedTask { id, context, state, changed: 0, words, question: question.map(Arc::new), artifacts }
}

/// A task is read again as the mounting half reads agents, whole and by its events, and is no longer than its texts allow.
fn shown(line: &[u8], filter: &TaskFilter, task: &ServedTask) {
    let whole = task.write();
    assert!(whole.len() <= GROWTH * line.len() + FRAME, "{} bytes of {}", whole.len(), line.len());
    let read = Task::read(whole.as_bytes()).unwrap_or_else(|error| panic!("{error}: {whole}"));
    assert_eq!(read.status.state, task.state);
    for update in task.updates(None) {
        assert!(AgentReply::read(update.as_bytes()).is_ok(), "{update}");
    }
    let mut page = TaskPage::new(filter);
    page.push(1, task);
    assert!(json(page.write().as_bytes()));
}

fn refused(refusal: &ClientRefusal) {
    assert!(json(refusal.rpc().as_bytes()) && json(refusal.rest().as_bytes()));
}

fn json(text: &[u8]) -> bool {
    json::check(text, Duplicates::RefuseTop).is_ok()
}
