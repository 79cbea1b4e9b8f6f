//! States of tasks on a listener's stream (tasks extension, "Task Status Notifications"): a stream of each server that runs some of them,
//! opened in the caller's own name. Does not decide which tasks are the caller's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_model::{Era, Segment};
use bytes::Bytes;
use mcp_proto::envelope::{Answer, Message, Notification};
use mcp_proto::era;
use mcp_proto::json::{self, Duplicates, Members, Object};
use mcp_proto::splice::{self, Change};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::tree::back::{Back, Sink};
use crate::tree::caller::Caller;
use crate::tree::hub::Listener;
use crate::tree::port::{Instance, OutgoingRequest, UpstreamError};
use crate::tree::remembered::LONGEST_ID;
use crate::tree::snapshot::Branch;
use crate::way::authorize;
use crate::way::authorize::Decision;
use crate::way::error::CallError;
use crate::way::gate::Cleared;
use crate::way::resolve;
use crate::way::resolve::{Aim, Resolved, task_of};
use crate::way::subscribe::MOST_SUBSCRIPTIONS;
use crate::way::{Errand, hop};
use crate::words::cancel::Cancel;
use crate::words::lane::{Lane, Weight};

/// Longest wait for a server's agreement before the listener is acknowledged without it.
const AGREES_WITHIN: Duration = Duration::from_secs(3);
/// Waits between tries to resume a broken stream, doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Life of a stream from which it counts as good.
const HELD: Duration = Duration::from_secs(10);

/// Tasks of one server that a listener follows.
pub struct FollowedTasks {
    branch: Branch,
    ids: Vec<String>,
    /// Decision of the rules about one of them; the rules allow all.
    decision: Option<Decision>,
    aim: Aim,
}

impl FollowedTasks {
    /// Number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }
}

/// Groups the tasks of a `subscriptions/listen` by server, without those of others, and those of tools denied by now.
pub fn wanted(errand: &Errand<'_>) -> Result<Vec<FollowedTasks>, CallError> {
    let Errand { gate, sight, request, back } = *errand;
    let (tree, caller) = (&sight.tree, &back.caller);
    let members = Members::again(&request.params);
    let filter = members.get("notifications").map(Members::again).unwrap_or_default();
    let ids = filter.get("taskIds").and_then(json::elements).unwrap_or_default();
    if ids.len() > MOST_SUBSCRIPTIONS {
        return Err(CallError::BadParams(format!("one request follows {MOST_SUBSCRIPTIONS} tasks at most: make several")));
    }
    if !ids.is_empty() && !era::extends(&caller.capabilities, era::TASKS) {
        return Err(CallError::CapabilityMissing { name: era::TASKS, extension: true });
    }
    let mut all: BTreeMap<Segment, FollowedTasks> = BTreeMap::new();
    // A task named twice is followed once.
    let ids: BTreeSet<_> = ids.into_iter().filter_map(json::as_str).filter(|id| id.len() <= LONGEST_ID).collect();
    for id in ids {
        let Some((branch, aim, place)) = task_of(&gate.load, tree, caller, (&id, false)) else { continue };
        // The initialize era has no such stream, and its tasks are not the extension's.
        if branch.negotiated.as_ref().is_none_or(|n| n.era != Era::Stateless) {
            continue;
        }
        let mut resolved = resolve::at(branch, caller, request, (aim, id.clone().into_owned()));
        resolved.place = place;
        let Ok(decision) = authorize::one_of(gate, tree, request, &resolved) else { continue };
        let (branch, aim) = (resolved.branch, resolved.aim);
        let mount = branch.mount.config.name.clone();
        all.entry(mount).or_insert_with(|| FollowedTasks { branch, ids: Vec::new(), decision, aim }).ids.push(id.into_owned());
    }
    Ok(all.into_values().collect())
}

/// Has servers tell `listener` of its tasks until `gone` fires; returns the ids agreed to.
pub async fn follow(tasks: Vec<FollowedTasks>, listener: &Arc<Listener>, errand: &Errand<'_>, gone: &CancellationToken) -> Vec<String> {
    let streams = tasks.into_iter().map(async |FollowedTasks { branch, ids, decision, aim }| {
        let resolved = resolve::at(branch, &errand.back.caller, errand.request, (aim, ids.join(" ")));
        let permit = authorize::allowed(resolved, decision);
        let mut heard = Vec::new();
        let (hears, params) = (&mut heard, errand.request.params.text().clone());
        let begins = |cleared: Cleared, _| async move {
            let (agreed, agrees) = oneshot::channel();
            let Resolved { branch, caller, .. } = *cleared.resolved;
            let following =
                TaskStream { branch, ids, listener: Arc::clone(listener), caller, params, over: gone.child_token(), agreed: Some(agreed) };
            tokio::spawn(following.run());
            if let Ok(Ok(ids)) = tokio::time::timeout(AGREES_WITHIN, agrees).await {
                *hears = ids;
            }
            Ok(Answer::Result(Object::empty()))
        };
        // A refusing server tells nothing.
        drop(errand.with(permit, begins).await);
        heard
    });
    futures_util::future::join_all(streams).await.into_iter().flatten().collect()
}

/// A raw array of strings.
pub fn array(strings: &[String]) -> String {
    let quoted: Vec<String> = strings.iter().map(|s| json::quote(s)).collect();
    format!("[{}]", quoted.join(","))
}

/// Tasks of one server, followed for one listener.
struct TaskStream {
    branch: Branch,
    ids: Vec<String>,
    listener: Arc<Listener>,
    caller: Arc<Caller>,
    /// Raw params of the listener's own request.
    params: Bytes,
    over: CancellationToken,
    /// Waiter for the ids agreed to; `None` once told.
    agreed: Option<oneshot::Sender<Vec<String>>>,
}

impl TaskStream {
    async fn run(mut self) {
        let mut wait = FIRST_WAIT;
        loop {
            let began = Instant::now();
            let outcome = self.stream().await;
            let gone = self.over.is_cancelled() || self.branch.mount.gone.is_cancelled();
            // A server that refuses, or does not agree the first time, promised nothing.
            if gone || self.agreed.is_some() || matches!(outcome, Ok(Answer::Error(_))) {
                return;
            }
            wait = if began.elapsed() > HELD { FIRST_WAIT } else { (wait * 2).min(LONGEST_WAIT) };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.over.cancelled() => return,
            }
        }
    }

    /// Runs one stream of the server to its end.
    async fn stream(&mut self) -> Result<Answer, UpstreamError> {
        let lease = self.branch.mount.lease(&self.caller).await?;
        let filter = format!("{{\"taskIds\":{}}}", array(&self.ids));
        let params = splice::edit(&self.params, &[("notifications", Change::Set(filter.as_bytes()))]);
        let lane = Lane::new();
        let (over, cancel) = (self.over.clone(), Cancel::default());
        let back = Back::new(Arc::clone(&self.caller), Sink::Standing(Arc::clone(&lane)), None, cancel.clone());
        let out = OutgoingRequest::plain(
            "subscriptions/listen",
            hop::params(&params.into(), &self.caller, &self.branch, Era::Stateless, None).into_owned(),
        );
        let request = lease.instance.stand(&out, Some(&back));
        tokio::pin!(request);
        let mut said = lane.read(0);
        loop {
            tokio::select! {
                answer = &mut request => return answer,
                () = over.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                message = std::future::poll_fn(|cx| said.poll_next(cx)) => if let Some((_, message)) = message {
                    self.heard(&message, &lease.instance).await;
                },
            }
        }
    }

    async fn heard(&mut self, message: &Bytes, instance: &Instance) {
        let Ok(Message::Notification(notification)) = Message::parse(message, Duplicates::RefuseTop) else { return };
        let members = notification.params.members();
        match notification.method.as_str() {
            "notifications/subscriptions/acknowledged" => {
                let filter = members.get("notifications").map(Members::again).unwrap_or_default();
                let ids = filter.get("taskIds").and_then(json::elements).unwrap_or_default();
                let ids: Vec<String> = ids.into_iter().filter_map(|id| json::as_str(id).map(|id| id.into_owned())).collect();
                self.acknowledged(ids, instance).await;
            }
            "notifications/tasks" if members.str("taskId").is_some_and(|id| self.ids.iter().any(|i| *i == id)) => {
                self.listener.send(&notification, Weight::Kept);
            }
            _ => {}
        }
    }

    async fn acknowledged(&mut self, ids: Vec<String>, instance: &Instance) {
        let Some(agreed) = self.agreed.take() else {
            // Changes during a gap are found by asking.
            for id in &self.ids {
                self.look(id, instance).await;
            }
            return;
        };
        self.ids.retain(|id| ids.contains(id));
        if self.ids.is_empty() || agreed.send(self.ids.clone()).is_err() {
            self.over.cancel();
        }
    }

    /// Asks for the state of a task and tells the listener, as a notification would have.
    async fn look(&self, id: &str, instance: &Instance) {
        let id_raw = json::quote(id);
        let params = splice::edit(&self.params, &[("notifications", Change::Remove), ("taskId", Change::Set(id_raw.as_bytes()))]);
        let request = OutgoingRequest {
            name: Some(id),
            ..OutgoingRequest::plain(
                "tasks/get",
                hop::params(&params.into(), &self.caller, &self.branch, Era::Stateless, None).into_owned(),
            )
        };
        if let Ok(Answer::Result(result)) = instance.request(&request, None).await {
            let params = Bytes::from(splice::edit(&result, &[("resultType", Change::Remove)]));
            self.listener.send(
                &Notification { method: "notifications/tasks".into(), params: params.into(), whole: result.text().clone() },
                Weight::Kept,
            );
        }
    }
}
