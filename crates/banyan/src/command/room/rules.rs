//! Rules learnt from people, as shown, and the file that keeps them. Acceptance is not decided here.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use banyan_model::Timestamp;
use room_proto::automation::{Act, Automation, AutomationState, Bounds, Event, Limits, Offer, Rule};
use room_proto::chain::Outcome;
use serde::{Deserialize, Serialize};

use crate::document::failed;
use crate::failure::Failure;
use crate::printable::printable;
use crate::private;

/// The store of rules; without a file, nothing is kept.
pub(super) struct Shelf {
    path: Option<PathBuf>,
    written: RulesFile,
}

/// Content of the file. Rules are good in their room only: elsewhere, the same names are others.
#[derive(Serialize, Deserialize)]
struct RulesFile {
    room: String,
    kept: AutomationState,
}

impl Shelf {
    /// Reads the kept rules, and remembers the place for later ones.
    pub(super) fn open(room: &str, path: Option<&Path>) -> Result<(Self, Automation), Failure> {
        let written = path.map(read).transpose()?.flatten();
        let written = written.unwrap_or_else(|| RulesFile { room: room.to_owned(), kept: AutomationState::default() });
        if written.room != room {
            let (path, of) = (path.unwrap_or(Path::new("")).display(), &written.room);
            return Err(Failure::Refused(format!("{path} holds the rules of the room {of:?}: name another file for this one")));
        }
        let automation = Automation::new(Bounds::default(), written.kept.clone());
        Ok((Self { path: path.map(Path::to_owned), written }, automation))
    }

    /// Writes changes down.
    pub(super) fn keep(&mut self, automation: &Automation) -> Result<(), Failure> {
        let Some(path) = self.path.as_ref().filter(|_| *automation.kept() != self.written.kept) else { return Ok(()) };
        self.written.kept = automation.kept().clone();
        let text = serde_json::to_string(&self.written).map_err(|error| Failure::Failed(format!("rules can't be written: {error}")))?;
        let written = if path.exists() { private::replace(path, &text) } else { private::write_new(path, &text) };
        written.map_err(|error| failed(path, "written", &error))
    }
}

fn read(path: &Path) -> Result<Option<RulesFile>, Failure> {
    match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| Failure::Failed(format!("{} holds no rules ({error}): name another file, or take it away", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, "read", &error)),
    }
}

/// Draws an event of a rule.
pub(super) fn line(event: &Event, automation: &Automation) -> Option<String> {
    match event {
        Event::Offered(id) => {
            let offer = automation.offers().find(|offer| offer.id == *id)?;
            Some(format!("{} a rule could do this: {}  /accept {}", offer.evidence.len(), printable(&offer.pattern.to_string()), id.0))
        }
        Event::Ended(id) => {
            let rule = automation.rules().find(|rule| rule.id == *id)?;
            Some(format!("{id} has ended: {}", printable(&rule.standing.to_string())))
        }
        Event::Withheld { rule, .. } => Some(format!("{rule} has made its calls for this hour: this one is yours")),
    }
}

pub(super) fn offer(offer: &Offer) -> Vec<String> {
    let Limits { acts, an_hour, seconds } = offer.limits;
    let proposals: Vec<String> =
        offer.evidence.iter().map(|one| format!("{} by {}", printable(&one.proposal), printable(&one.by))).collect();
    vec![
        format!("offer {}: {}", offer.id.0, printable(&offer.pattern.to_string())),
        format!("  within {acts} calls in all, {an_hour} an hour, for {} days", seconds / 86_400),
        format!("  {} decisions for it and none against: {}", proposals.len(), proposals.join(", ")),
    ]
}

pub(super) fn rule(rule: &Rule) -> Vec<String> {
    let Limits { acts, an_hour, .. } = rule.limits;
    vec![
        format!("{} ({}): {}", rule.id, printable(&rule.standing.to_string()), printable(&rule.pattern.to_string())),
        format!(
            "  accepted by {} at {}; {} of {acts} calls made, {an_hour} an hour, until {}",
            printable(&rule.accepted_by),
            written(rule.accepted_at),
            rule.acts,
            written(rule.until)
        ),
    ]
}

pub(super) fn act(act: &Act) -> String {
    let outcome = match act.outcome {
        None => "no answer yet",
        Some(Outcome::Done) => "done",
        Some(Outcome::Failed) => "failed",
    };
    format!("{}  {}  {}  {outcome}", written(act.at), act.rule, printable(&act.proposal))
}

fn written(seconds: u64) -> Timestamp {
    Timestamp(UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH))
}
