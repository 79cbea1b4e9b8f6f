//! News of waiting calls: lines for followers of the admin API, signed posts to webhooks, and started programs. Tells each transition once.
//! Decides nothing.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use config::resolved::Webhook;
use config::secret::Sources;
use policy::approval::{Approval, Event, News, Standing, hex};
use runtime::tls::Connector;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use call::judge::approvals::{Audience, link, name_of, now};
use call::judge::gate::Gate;

/// Longest queue of a receiver; further news is dropped.
const DEPTH: usize = 256;
/// Longest time of one delivery.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pauses before each retry.
const AGAIN: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];

/// All receivers, with a queue each, so that a silent receiver keeps no other waiting.
pub(crate) struct Receivers {
    gate: Arc<Gate>,
    sources: Arc<dyn Sources>,
    connector: Arc<Connector>,
    all: Vec<(Receiver, mpsc::Sender<Arc<Message>>)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Receiver {
    Command(String, Vec<String>),
    Webhook(Webhook),
}

/// Message about a transition.
struct Message {
    id: String,
    /// JSON.
    body: String,
    /// Environment variables for programs, with the same content.
    variables: Vec<(&'static str, String)>,
}

impl Receivers {
    /// Makes an empty list.
    pub(crate) fn new(gate: Arc<Gate>, sources: Arc<dyn Sources>, connector: Arc<Connector>) -> Self {
        Self { gate, sources, connector, all: Vec::new() }
    }
}

impl Audience for Receivers {
    /// Tells of a transition, unless an agreed call merely goes out: no news for people.
    fn tell(&mut self, news: &News, approval: &Approval) {
        self.follow();
        let is_quiet = matches!(news.event, Event::Moved(Standing::Dispatched | Standing::Done | Standing::Below));
        if is_quiet || self.all.is_empty() {
            return;
        }
        let told = Arc::new(self.message(news, approval));
        for (receiver, queue) in &self.all {
            if queue.try_send(Arc::clone(&told)).is_err() {
                tracing::error!(id = told.id, who = receiver.name(), "too much waits to be told: this transition is not");
            }
        }
    }
}

impl Receivers {
    /// Follows the configuration. A removed receiver gets the news already queued, and no more.
    fn follow(&mut self) {
        let gate = self.gate.config.load().gate.clone();
        let commands = gate.iter().flat_map(|gate| &gate.commands).map(|(program, args)| Receiver::Command(program.clone(), args.clone()));
        let webhooks = gate.iter().flat_map(|gate| &gate.webhooks).cloned().map(Receiver::Webhook);
        let wanted: Vec<Receiver> = commands.chain(webhooks).collect();
        self.all.retain(|(receiver, _)| wanted.contains(receiver));
        for receiver in wanted {
            if !self.all.iter().any(|(known, _)| *known == receiver) {
                let (queue, waiting) = mpsc::channel(DEPTH);
                tokio::spawn(receiver.clone().serve(Arc::clone(&self.sources), Arc::clone(&self.connector), waiting));
                self.all.push((receiver, queue));
            }
        }
    }

    fn message(&self, news: &News, approval: &Approval) -> Message {
        let challenge = &approval.challenge;
        let body = json!({
            "event": name_of(news.event),
            "id": challenge.id,
            "tool": challenge.call.tool,
            "caller": challenge.call.caller,
            "standing": approval.standing,
            "approvals": approval.votes.len(),
            "required": challenge.required,
            "expires": challenge.expires,
            "url": link(&self.gate, &challenge.id),
        });
        let variables = vec![
            ("BANYAN_EVENT", name_of(news.event).to_owned()),
            ("BANYAN_ID", challenge.id.clone()),
            ("BANYAN_TOOL", challenge.call.tool.clone()),
            ("BANYAN_CALLER", challenge.call.caller.clone()),
            ("BANYAN_EXPIRES", challenge.expires.to_string()),
            ("BANYAN_URL", link(&self.gate, &challenge.id)),
        ];
        Message { id: challenge.id.clone(), body: body.to_string(), variables }
    }
}

impl Receiver {
    /// Delivers message after message until the last sender is dropped.
    async fn serve(self, sources: Arc<dyn Sources>, connector: Arc<Connector>, mut waiting: mpsc::Receiver<Arc<Message>>) {
        while let Some(told) = waiting.recv().await {
            match &self {
                Self::Command(program, args) => start(program, args, &told).await,
                Self::Webhook(webhook) => deliver(&*sources, &connector, webhook, &told.body).await,
            }
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Command(program, _) => program,
            Self::Webhook(webhook) => webhook.url.as_str(),
        }
    }
}

/// Starts a program, writes the body to standard input, and waits for [`PATIENCE`]. Output is dropped.
async fn start(program: &str, args: &[String], told: &Message) {
    let run = async {
        let mut command = tokio::process::Command::new(program);
        command.args(args).envs(told.variables.iter().map(|(name, value)| (*name, without_controls(value)))).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // A program need not read its input.
            _ = input.write_all(told.body.as_bytes()).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(PATIENCE, run).await {
        Ok(Ok(status)) if status.success() => {}
        Ok(Ok(status)) => tracing::warn!(program, %status, "a program that tells of calls that wait failed"),
        Ok(Err(error)) => tracing::error!(program, %error, "a program that tells of calls that wait can't be started"),
        Err(_) => tracing::error!(program, "a program that tells of calls that wait took too long, and was ended"),
    }
}

/// Removes control characters: names come from servers and callers, and a line printed by somebody's program must stay one line.
fn without_controls(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

async fn deliver(sources: &dyn Sources, connector: &Connector, webhook: &Webhook, body: &str) {
    let secret = match webhook.secret.resolve(sources) {
        Ok(secret) => secret,
        Err(error) => return tracing::error!(%error, url = %webhook.url, "a webhook can't be signed, so it is not posted"),
    };
    for (tries, wait) in AGAIN.into_iter().map(Some).chain([None]).enumerate() {
        match post(connector, webhook, secret.expose(), body).await {
            Ok(()) => return,
            Err(why) => tracing::warn!(why, tries = tries + 1, url = %webhook.url, "a webhook was not taken"),
        }
        if let Some(wait) = wait {
            tokio::time::sleep(wait).await;
        }
    }
    tracing::error!(url = %webhook.url, "a webhook was not taken: whoever it tells does not know that something waits");
}

async fn post(connector: &Connector, webhook: &Webhook, secret: &str, body: &str) -> Result<(), String> {
    let told = |error: reqwest::Error| error.without_url().to_string();
    let builder = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).no_proxy();
    let builder = match connector.tls() {
        Ok(tls) => builder.tls_backend_preconfigured(rustls::ClientConfig::clone(&tls)),
        Err(_) => builder,
    };
    let at = now();
    let request = builder.build().map_err(told)?.post(webhook.url.clone());
    let request = request.header("content-type", "application/json").header("banyan-timestamp", at.to_string());
    let request = request.header("banyan-signature", signature(secret, at, body)).body(body.to_owned());
    request.send().await.and_then(reqwest::Response::error_for_status).map(drop).map_err(told)
}

/// `v1=` and the HMAC-SHA256 of the time, a dot and the body.
fn signature(secret: &str, at: u64, body: &str) -> String {
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret.as_bytes());
    format!("v1={}", hex(aws_lc_rs::hmac::sign(&key, format!("{at}.{body}").as_bytes()).as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_signed_with_its_time() {
        // Computed with Python's `hmac`.
        let known = "v1=8ef518b9ea1abe8702d737281433e5891188a3fc8be98284e6e784e2c3a4468a";
        assert_eq!(signature("s3cret", 1_763_738_067, r#"{"event":"requested"}"#), known);
        assert_ne!(signature("s3cret", 1_763_738_068, r#"{"event":"requested"}"#), known);
        assert_ne!(signature("s3cret", 1_763_738_067, r#"{"event":"released"}"#), known);
        assert_ne!(signature("secret", 1_763_738_067, r#"{"event":"requested"}"#), known);
    }

    #[test]
    fn a_name_adds_no_lines_to_a_programs_output() {
        assert_eq!(without_controls("files.wipe\nSubject: all is well\u{1b}[2J\0"), "files.wipeSubject: all is well[2J");
    }
}
