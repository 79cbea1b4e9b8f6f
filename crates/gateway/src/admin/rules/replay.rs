//! Replay of recorded calls against rules, as far as the record describes the calls. Calls nothing, and changes nothing.

use std::collections::BTreeMap;

use audit::entry::Entry;
use audit::record::{Intent, Record};
use audit::shape::LEFT_OUT;
use banyan_model::{PrincipalKind, Segment};
use config::resolved::Config;
use disk::journal::archive::{Archive, ArchiveError};
use disk::journal::index::route;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use mcp_proto::glob::Glob;
use mcp_proto::json::Members;
use policy::decide::{Action, Arguments, Asked, Foresight, Policies, Subject, Target, Traits, Verdict};
use serde::{Deserialize, Serialize};

use call::judge::policy::moment::at;
use call::tree::snapshot::Tree;
use call::tree::standing::tool_target;

/// Facts missing in the record: the word by which rules read them, and a name for people.
const UNKNOWN: [(&str, &str); 5] = [
    ("principal.scopes", "the scopes of tokens"),
    ("principal.client", "what programs call themselves"),
    ("Role::", "the roles of tokens"),
    ("context.profile", "profiles"),
    ("principal.kind", "how callers were known (taken from the configuration of today)"),
];

/// `POST /-/policy/replay`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// Recorded calls since `since`.
    pub calls: u64,
    /// Calls whose outcome would change.
    pub other: u64,
    /// Calls whose outcome can't be told.
    pub untold: u64,
    /// Changed and untold calls, by caller and resource; the most frequent first.
    pub rows: Vec<ReplayedRow>,
    /// Arguments read by the rules. Calls without recorded arguments are untold where these matter.
    pub arguments: Vec<String>,
    /// Rules that read facts missing in the record, and were asked without them.
    pub guessed: Vec<GuessingRule>,
}

/// A rule asked without some of the facts it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuessingRule {
    /// Id of the rule.
    pub rule: String,
    /// The missing fact.
    pub without: String,
}

/// Calls that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedRow {
    pub principal: String,
    /// `call`, `prompt`, `read` or `send`.
    pub action: String,
    /// Dotted name.
    pub resource: String,
    /// Recorded outcome: `allow`, `gate` or `deny`.
    pub was: String,
    /// Present outcome: the same words, or `untold`.
    pub now: String,
    /// Rules that decide the present outcome.
    pub rules: Vec<String>,
    /// Remedy of the first such rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Set if nothing has that name at present. The target then counts as a tool with irreversible effects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
    pub calls: u64,
    /// Time of the latest call, in microseconds since 1970.
    pub last: u64,
}

/// Asks `rules` about every call of `archive` since `since` (microseconds since 1970).
pub(crate) fn replay(tree: &Tree, rules: &Policies, zone: &TimeZone, archive: &Archive, since: u64) -> Result<ReplayReport, ArchiveError> {
    let mut replay = Replay { tree, rules, zone, subjects: BTreeMap::new(), rows: BTreeMap::new(), told: ReplayReport::default() };
    archive.each(since, |entry| replay.entry(entry))?;
    let Replay { rows, mut told, .. } = replay;
    told.rows = rows.into_values().collect();
    told.rows.sort_by(|a, b| (b.calls, &a.principal, &a.resource).cmp(&(a.calls, &b.principal, &b.resource)));
    told.arguments = rules.wanted();
    for rule in rules.rules() {
        let unknown = UNKNOWN.iter().filter(|(word, _)| rule.text.contains(word));
        told.guessed.extend(unknown.map(|(_, what)| GuessingRule { rule: rule.id.to_string(), without: (*what).to_owned() }));
    }
    Ok(told)
}

struct Replay<'a> {
    tree: &'a Tree,
    rules: &'a Policies,
    zone: &'a TimeZone,
    subjects: BTreeMap<String, Subject>,
    rows: BTreeMap<(String, String, String, String), ReplayedRow>,
    told: ReplayReport,
}

impl Replay<'_> {
    fn entry(&mut self, entry: &Entry<'_>) {
        let Some(intent) = entry.record.intent() else { return };
        let was = if let Record::Refused(refused) = &entry.record {
            // Absent tools and other failures are no matter of rules.
            if refused.rules.is_empty() && refused.reason != "not_permitted" {
                return;
            }
            "deny"
        } else if intent.gated {
            "gate"
        } else {
            "allow"
        };
        let Some(action) = action(intent) else { return };
        self.told.calls += 1;
        let (verdict, absent) = self.ask(intent, action);
        let now = verdict.as_ref().map_or("untold", |verdict| verdict.effect.as_str());
        if now == was {
            return;
        }
        if verdict.is_some() {
            self.told.other += 1
        } else {
            self.told.untold += 1
        }
        let (principal, resource) = (intent.principal.to_string(), route(intent));
        let key = (principal.clone(), resource.clone(), was.to_owned(), now.to_owned());
        let row = self.rows.entry(key).or_insert_with(|| ReplayedRow {
            principal,
            action: action.as_str().to_owned(),
            resource,
            was: was.to_owned(),
            now: now.to_owned(),
            rules: verdict.iter().flat_map(|verdict| &verdict.rules).map(|rule| rule.id.to_string()).collect(),
            remedy: verdict.iter().flat_map(|verdict| &verdict.rules).find_map(|rule| rule.remedy.as_deref().map(str::to_owned)),
            absent,
            calls: 0,
            last: 0,
        });
        row.calls += 1;
        row.last = row.last.max(intent.began);
    }

    /// Asks the rules about a recorded call. `None` depends on unrecorded arguments. The flag marks an absent tool.
    fn ask(&mut self, intent: &Intent<'_>, action: Action) -> (Option<Verdict>, bool) {
        let config = &self.tree.config;
        let subject = self.subjects.entry(intent.principal.to_string()).or_insert_with(|| subject(config, &intent.principal));
        let mount = intent.mount.as_deref().unwrap_or_default();
        let branch = Segment::new(mount).ok().and_then(|mount| self.tree.branch(&mount));
        let known = branch.and_then(|branch| Some((branch, branch.catalog.tools.iter().find(|offer| offer.entry.key == intent.name)?)));
        let absent = action == Action::Call && known.is_none();
        let target = match known.filter(|_| action == Action::Call) {
            Some((branch, offer)) => tool_target(branch, offer),
            None if intent.name.is_empty() => unknown(action, mount, &intent.method),
            None => unknown(action, mount, &intent.name),
        };
        let asked = Asked { subject, target: &target, profile: "" };
        let hopeless = match self.rules.foresee(&asked) {
            Foresight::Settled(verdict) => return (Some(verdict), absent),
            Foresight::Open { hopeless } => hopeless,
        };
        let wanted = self.rules.wanted();
        let arguments = match &intent.arguments {
            _ if wanted.is_empty() => Some(Arguments::none()),
            None => Some(Arguments::none()),
            Some(recorded) => match (recorded.value, recorded.shape) {
                (Some(value), _) => self.rules.arguments(value.0.as_bytes()).ok(),
                (None, Some(shape)) => has_none(shape.0, &wanted).then(Arguments::none),
                (None, None) => None,
            },
        };
        let moment = at(Timestamp::from_microsecond(i64::try_from(intent.began).unwrap_or(i64::MAX)).unwrap_or_default(), self.zone);
        match arguments {
            Some(arguments) => (Some(self.rules.decide(&asked, &arguments, moment)), absent),
            // Denied with any arguments; asking with none names the rule.
            None if hopeless => (Some(self.rules.decide(&asked, &Arguments::none(), moment)), absent),
            None => (None, absent),
        }
    }
}

/// Checks that arguments of this shape hold nothing read by rules. A shape with omissions proves nothing.
fn has_none(shape: &str, wanted: &[String]) -> bool {
    let members = Members::again(shape.as_bytes());
    let is_whole = shape.starts_with('{') && !members.has(LEFT_OUT);
    let first = |path: &str| path.split('.').next().is_some_and(|first| members.has(first));
    // A dot may stand in a name.
    is_whole && !wanted.iter().any(|path| first(path) || members.has(path))
}

fn action(intent: &Intent<'_>) -> Option<Action> {
    Some(match &*intent.method {
        "tools/call" => Action::Call,
        "prompts/get" => Action::Prompt,
        "logging/setLevel" | "resources/read" | "resources/subscribe" | "resources/unsubscribe" | "tasks/list" => Action::Read,
        // The record lacks the prompt of a completion and the single names of a listener; proofs are not asked about.
        "completion/complete" | "mcpax/confirm" | "mcpax/trace" | "subscriptions/listen" => return None,
        method if method.starts_with("tasks/") => return None,
        _ => Action::Send,
    })
}

/// Makes the target of an absent tool, from the name alone.
fn unknown<'a>(action: Action, mount: &'a str, name: &'a str) -> Target<'a> {
    let (between, name) =
        if action == Action::Call { name.rsplit_once('.').map_or((None, name), |(b, n)| (Some(b), n)) } else { (None, name) };
    let mounts = std::iter::once(mount).chain(between.into_iter().flat_map(|between| between.split('.'))).collect();
    Target { action, mounts, name, traits: Traits::default() }
}

/// Describes a caller by name, as today's configuration does.
fn subject(config: &Config, name: &str) -> Subject {
    let kind = if config.tokens.iter().any(|token| &*token.name == name) {
        PrincipalKind::Token
    } else if config.rooms.participants.keys().any(|id| id.as_str() == name) {
        PrincipalKind::Participant
    } else if name == "local" {
        PrincipalKind::Local
    } else if name.contains('@') {
        PrincipalKind::Issuer
    } else {
        PrincipalKind::Certificate
    };
    let groups = config.groups.iter().filter(|group| group.members.iter().any(|member| Glob::new(member).matches(name)));
    Subject { name: name.to_owned(), kind, groups: groups.map(|group| group.name.to_string()).collect(), ..Subject::default() }
}
