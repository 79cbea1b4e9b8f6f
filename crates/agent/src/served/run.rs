//! Run of a task's call to its end: meanwhile its task shows steps, questions of the tool, and the wait for people. Admits nobody.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use agent_proto::served::incoming::SkillCall;
use agent_proto::served::steps::UntoldSteps;
use agent_proto::served::written::TaskEnd;
use agent_proto::task::TaskState;
use bridge::EXTENSION_KEY;
use bytes::Bytes;
use call::judge::gate::Gate;
use call::tree::back::{Back, Sink};
use call::tree::caller::Caller;
use call::tree::port::UpstreamError;
use call::way::error::CallError;
use call::words::lane::Lane;
use call::words::witness::Witness;
use door::held::HeldEntry;
use json::Object;
use mcp_proto::envelope::{Answer, Message, Request};
use mcp_proto::hidden;
use mcp_proto::json::{Duplicates, quote};
use policy::approval::Standing;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::evidence::witness::{CallWitness, WitnessedEnd};
use crate::served::asked::AskedClient;
use crate::served::life::AgentWork;
use crate::served::tasks::{BegunTask, Tasks, millis};

/// Run of a task's call.
pub struct TaskRun {
    pub gate: Arc<Gate>,
    pub tasks: Arc<Tasks>,
    pub caller: Arc<Caller>,
    /// Admission of the client. Its end cancels the call.
    pub held: HeldEntry,
    pub work: AgentWork,
    pub witness: Option<Arc<CallWitness>>,
}

/// Words of a task during its call.
struct TaskWords<'a> {
    id: &'a str,
    tasks: &'a Tasks,
    steps: UntoldSteps,
    began: Instant,
}

impl TaskRun {
    /// Runs the call, whatever becomes of the client's connection.
    pub async fn run(self, begun: BegunTask) {
        let Self { gate, tasks, caller, held, work, witness } = self;
        let BegunTask { id, call, cancel, .. } = begun;
        let (attends, mut waits) = watch::channel(None);
        let lane = Lane::new();
        let mut said = lane.read(0);
        let hears = witness.clone().map(|witness| witness as Arc<dyn Witness>);
        let back = Back::attending(caller, Sink::Lane(lane), cancel.clone(), attends).witnessed(hears);
        let mut revoked = std::pin::pin!(held.revoked());
        let request = Request { id: Bytes::from(quote(&id)), method: "tools/call".into(), params: params(&call) };
        let mut outcome = std::pin::pin!(call::way::serve(&gate, &request, &back));
        let mut asked = AskedClient::default();
        let mut shown = TaskWords { id: &id, tasks: &tasks, steps: UntoldSteps::default(), began: Instant::now() };
        let (end, fault, never_left) = loop {
            tokio::select! {
                biased;
                () = &mut revoked, if !cancel.is_cancelled() => cancel.cancel(),
                outcome = &mut outcome => {
                    let error = outcome.as_ref().err();
                    let (fault, never_left) = (error.and_then(fault), error.is_some_and(CallError::never_left));
                    break (task_end(outcome, cancel.is_cancelled()), fault, never_left);
                }
                Ok(()) = waits.changed() => shown.attend(waits.borrow_and_update().as_deref()),
                fresh = poll_fn(|cx| back.poll_questions(false, cx)) => asked.queue(fresh, &back, &tasks, &id),
                (key, answer) = asked.answered() => asked.pass_on((&key, answer), &back, &tasks, &id),
                Some((_, message)) = poll_fn(|cx| said.poll_next(cx)) => shown.hear(&message),
                () = sleep_until(shown.due().unwrap_or(shown.began)), if shown.due().is_some() => shown.step(),
            }
        };
        let seal = witness.and_then(|witness| sealed(&tasks, &id, &end, &witness, (fault, never_left)));
        tasks.rest_sealed(&id, end, seal);
        drop(work);
    }
}

impl TaskWords<'_> {
    /// Shows a wait for people, or its end.
    fn attend(&mut self, words: Option<&str>) {
        self.steps.forget();
        self.tasks.attend(self.id, words);
    }

    fn hear(&mut self, message: &Bytes) {
        if let Ok(Message::Notification(step)) = Message::parse(message, Duplicates::RefuseTop)
            && step.method == "notifications/progress"
        {
            self.steps.hear(step.params.text());
        }
    }

    fn due(&self) -> Option<Instant> {
        self.began.checked_add(Duration::from_millis(self.steps.due()?))
    }

    fn step(&mut self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(words) = self.steps.tell(now) {
            self.tasks.step(self.id, hidden::without(&words));
        }
    }
}

/// Closes the witnessed call over the task as its client will read it, at the time of the end. A task that waits on is not closed.
fn sealed(
    tasks: &Tasks,
    id: &str,
    end: &TaskEnd,
    witness: &CallWitness,
    (fault, never_left): (Option<&'static str>, bool),
) -> Option<(i64, Arc<str>)> {
    if !end.state.is_final() {
        return None;
    }
    let changed = millis();
    let task = tasks.ended(id, end, changed)?;
    Some((changed, witness.close(task.write().as_bytes(), WitnessedEnd { state: end.state.name(), fault, never_left })?))
}

/// Names the code of AEPB for a call without an answer.
fn fault(error: &CallError) -> Option<&'static str> {
    if matches!(error, CallError::Cancelled | CallError::ConfirmationRequired(_)) {
        return None;
    }
    if matches!(error, CallError::NotApproved { standing: Standing::OutcomeUnknown, .. }) {
        return Some("internal_error");
    }
    if matches!(
        error.in_plain_terms(),
        CallError::Denied(_) | CallError::Approval(_) | CallError::NotApproved { .. } | CallError::UnknownTool(_)
    ) {
        return Some("policy_violation");
    }
    let is_late = matches!(error, CallError::Upstream { error: UpstreamError::Silent(_) | UpstreamError::Endless(_), .. });
    Some(if is_late { "timeout" } else { "internal_error" })
}

/// Params of the call, with a token for progress.
fn params(call: &SkillCall) -> Object {
    let (name, arguments) = (quote(&call.skill), &call.arguments);
    let extension = call.extension.as_ref().map(|raw| format!(",\"{EXTENSION_KEY}\":{raw}")).unwrap_or_default();
    Object::from(format!("{{\"name\":{name},\"arguments\":{arguments},\"_meta\":{{\"progressToken\":1{extension}}}}}").into_bytes())
}

/// End of a run, by the outcome of its call. A question taken back with its call is an error of the server.
fn task_end(outcome: Result<Answer, CallError>, is_cancelled: bool) -> TaskEnd {
    let said = |state, words: String| TaskEnd { state, words: Some(words), artifacts: None };
    match outcome {
        Ok(Answer::Result(result)) => TaskEnd::of_result(result.text()),
        Ok(Answer::Error(_)) if is_cancelled => said(TaskState::Canceled, "The call was cancelled.".into()),
        Ok(Answer::Error(error)) => {
            let message = json::Members::again(&error).str("message").unwrap_or_default().into_owned();
            said(TaskState::Failed, message)
        }
        Err(CallError::Cancelled) => said(TaskState::Canceled, "The call was cancelled.".into()),
        Err(CallError::ConfirmationRequired(pending)) => said(TaskState::AuthRequired, pending.text.clone()),
        // Nobody may take a call of unknown outcome for one that never went out.
        Err(error @ CallError::NotApproved { standing: Standing::OutcomeUnknown, .. }) => {
            said(TaskState::Failed, error.tell(banyan_model::Era::Stateless).message)
        }
        Err(
            error @ (CallError::Denied(_)
            | CallError::Approval(_)
            | CallError::NotApproved { .. }
            | CallError::UnknownRoute(_)
            | CallError::UnknownTool(_)),
        ) => said(TaskState::Rejected, error.tell(banyan_model::Era::Stateless).message),
        Err(error) => said(TaskState::Failed, error.tell(banyan_model::Era::Stateless).message),
    }
}
