//! Waiting for approval: the caller hears what it waits for, is asked to open the address if able, and is let go at the end of its time.
//! Does not decide if the call may go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_proto::envelope::{self, Answer};
use mcp_proto::json::quote;
use policy::approval::{Approval, Refusal, Standing};
use runtime::random;

use crate::judge::approvals::{WaitingCall, link};
use crate::judge::gate::{Gate, Rules};
use crate::tree::back::Back;
use crate::way::error::CallError;
use crate::way::gate::hold::{not_kept, over};
use crate::way::gate::told::{Pending, REASON, Way};

/// Interval between notices to a waiting caller.
const PROGRESS: Duration = Duration::from_secs(5);

/// Outcome of waiting.
pub enum WaitOutcome {
    /// Enough people have agreed.
    Free,
    /// Nobody has decided, and the caller waits no longer.
    Waits,
}

/// Waits for somebody to agree, for at most `patience`. `token`: where progress is told.
pub async fn wait(
    gate: &Arc<Gate>,
    back: &Arc<Back>,
    waiting: &WaitingCall,
    way: Way,
    patience: Duration,
    token: Option<Bytes>,
) -> Result<WaitOutcome, CallError> {
    if patience.is_zero() {
        return Ok(WaitOutcome::Waits);
    }
    if back.seated.is_some() {
        back.send(waits(gate, &waiting.approval));
    }
    let Some(attends) = &back.attends else { return stand(gate, back, waiting, way, patience, token).await };
    attends.send_replace(Some(words(gate, &waiting.approval).into()));
    let waited = stand(gate, back, waiting, way, patience, token).await;
    if matches!(waited, Ok(WaitOutcome::Free)) {
        attends.send_replace(None);
    }
    waited
}

async fn stand(
    gate: &Gate,
    back: &Back,
    waiting: &WaitingCall,
    way: Way,
    patience: Duration,
    token: Option<Bytes>,
) -> Result<WaitOutcome, CallError> {
    let id = waiting.approval.id();
    let began = Instant::now();
    let end = tokio::time::sleep(patience);
    let mut ticks = tokio::time::interval(PROGRESS);
    let asked = ask(gate, back, &waiting.approval, way);
    tokio::pin!(end, asked);
    let mut is_asking = way == Way::Elicits;
    loop {
        tokio::select! {
            biased;
            () = back.cancel.cancelled() => {
                gate.rules.approvals.take_back(id, back.seated.as_ref().and_then(|seated| seated.why())).await;
                return Err(CallError::Cancelled);
            }
            () = waiting.rings.notified() => match decided(&gate.rules, id).await? {
                Some(waited) => return Ok(waited),
                None => continue,
            },
            _ = ticks.tick() => tell(back, &waiting.approval, token.as_ref(), began.elapsed()),
            answer = &mut asked, if is_asking => {
                is_asking = false;
                match answer {
                    ElicitationAnswer::Accepted => {}
                    ElicitationAnswer::Declined => {
                        gate.rules.approvals.leave(id, false).await;
                        return Err(CallError::Approval(Refusal::Over(Standing::Withdrawn)));
                    }
                    ElicitationAnswer::Unable if token.is_some() => {}
                    ElicitationAnswer::Unable => break,
                }
            }
            () = &mut end => break,
        }
    }
    gate.rules.approvals.leave(id, true).await;
    Ok(decided(&gate.rules, id).await?.unwrap_or(WaitOutcome::Waits))
}

/// Outcome decided by people, if any.
async fn decided(rules: &Rules, id: &str) -> Result<Option<WaitOutcome>, CallError> {
    let approval = rules.approvals.look(id).await.map_err(not_kept)?;
    let approval = approval.ok_or(CallError::Approval(Refusal::Unknown))?;
    if approval.standing.is_over() {
        rules.approvals.hear(id).await;
        return Err(over(&approval));
    }
    Ok((approval.standing == Standing::Released).then_some(WaitOutcome::Free))
}

/// Sends progress with the reason for waiting.
fn tell(back: &Back, approval: &Approval, token: Option<&Bytes>, since: Duration) {
    let Some(token) = token else { return };
    let challenge = &approval.challenge;
    let text = format!(
        "waiting for {} to approve {} ({}): `banyan approve {}`",
        who(challenge.required),
        challenge.call.tool,
        challenge.id,
        challenge.id
    );
    let total = challenge.expires.saturating_sub(approval.requested);
    let mut params = b"{\"progressToken\":".to_vec();
    params.extend_from_slice(token);
    params
        .extend_from_slice(format!(",\"progress\":{:.3},\"total\":{total},\"message\":{}}}", since.as_secs_f64(), quote(&text)).as_bytes());
    back.notify("notifications/progress", &envelope::notification("notifications/progress", &params), None);
}

/// Notice, sent once, for a caller in a room who may hear no progress: the reason for waiting, and the place to agree, as a whole message.
fn waits(gate: &Gate, approval: &Approval) -> Bytes {
    let challenge = &approval.challenge;
    let (url, text) = (link(gate, &challenge.id), words(gate, approval));
    let [reason, id, tool, url, text] = [REASON, &challenge.id, &challenge.call.tool, &url, &text].map(quote);
    let (required, expires) = (challenge.required, challenge.expires);
    let data = format!(
        "{{\"reason\":{reason},\"id\":{id},\"tool\":{tool},\"required\":{required},\"expires\":{expires},\"url\":{url},\"text\":{text}}}"
    );
    let params = format!("{{\"level\":\"notice\",\"logger\":\"banyan\",\"data\":{data}}}");
    envelope::notification("notifications/message", params.as_bytes())
}

/// Says for whom a call waits, and where they agree.
fn words(gate: &Gate, approval: &Approval) -> String {
    let challenge = &approval.challenge;
    let (who, url) = (who(challenge.required), link(gate, &challenge.id));
    let place = if url.is_empty() { String::new() } else { format!("open {url}, or ") };
    format!(
        "`{}` waits for {who} to approve it: {place}run `banyan approve {}`. The answer comes when that is decided.",
        challenge.call.tool, challenge.id
    )
}

fn who(required: u8) -> String {
    if required == 1 { "somebody".to_owned() } else { format!("{required} people") }
}

/// Answer of a client asked to open an address.
enum ElicitationAnswer {
    Accepted,
    Declined,
    /// The client can't.
    Unable,
}

/// Asks a client of the initialize era to open the address (2025-11-25, "URL mode elicitation").
async fn ask(gate: &Gate, back: &Back, approval: &Approval, way: Way) -> ElicitationAnswer {
    if way != Way::Elicits {
        return std::future::pending().await;
    }
    let pending = Pending::of_approval(gate, approval);
    let (url, text, id) = (quote(&pending.url), quote(&pending.text), quote(&random::token()));
    let params = format!("{{\"mode\":\"url\",\"url\":{url},\"message\":{text},\"elicitationId\":{id}}}");
    match back.ask("elicitation/create", &Bytes::from(params)).await {
        Answer::Result(result) if result.str("action").as_deref() == Some("accept") => ElicitationAnswer::Accepted,
        Answer::Result(_) => ElicitationAnswer::Declined,
        Answer::Error(_) => ElicitationAnswer::Unable,
    }
}
