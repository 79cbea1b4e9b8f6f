//! `banyan policy test`: calls listed in a file, and the rules' decision on each. Calls nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use banyan_model::PrincipalKind;
use clap::Args;
use policy::Effect;
use policy::decide::{Action, Asked, Moment, Policies, Subject, Target, Traits};
use serde::{Deserialize, Serialize};

use crate::arguments::Place;
use crate::document;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::table::counted;

/// Tries rules on calls that are written in a file (docs/policy.md).
#[derive(Args)]
pub(super) struct Test {
    /// The calls, with the expected decision of each
    #[arg(value_name = "FIXTURES")]
    fixtures: PathBuf,
    /// The rules [default: the file that banyan.toml names]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    test: Vec<Fixture>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    name: Option<String>,
    principal: String,
    kind: Option<String>,
    #[serde(default)]
    groups: BTreeSet<String>,
    #[serde(default)]
    roles: BTreeSet<String>,
    #[serde(default)]
    scopes: BTreeSet<String>,
    #[serde(default)]
    client: String,
    #[serde(default)]
    profile: String,
    action: Option<String>,
    /// The dotted name of a tool or prompt; beside `mount`, the name below the mount.
    resource: String,
    mount: Option<String>,
    read_only: Option<bool>,
    reversible: Option<bool>,
    idempotent: Option<bool>,
    scope: Option<String>,
    cost: Option<String>,
    latency: Option<String>,
    #[serde(default)]
    arguments: toml::Table,
    #[serde(default)]
    time: Time,
    expect: String,
    /// The expected deciding rules.
    rules: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Time {
    unix: i64,
    hour: i64,
    minute: i64,
    weekday: i64,
}

/// Monday, twelve o'clock.
impl Default for Time {
    fn default() -> Self {
        Self { unix: 0, hour: 12, minute: 0, weekday: 1 }
    }
}

/// `banyan policy test --json`.
#[derive(Serialize)]
struct Row {
    name: String,
    ok: bool,
    expected: String,
    effect: &'static str,
    cause: &'static str,
    rules: Vec<String>,
}

impl Test {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let fixtures = fixtures(&self.fixtures)?;
        let rows = match &self.rules {
            Some(file) => rows(&super::read(file, &super::text(file)?)?, &fixtures, &|_| BTreeSet::new())?,
            None => {
                let config = super::configured(place)?;
                let rules = config.policy.as_ref().ok_or_else(|| Failure::NotFound(super::NO_SECTION.into()))?;
                let member = |name: &str| {
                    config
                        .groups
                        .iter()
                        .filter(|g| g.members.iter().any(|m| config::matches(m, name)))
                        .map(|g| g.name.to_string())
                        .collect()
                };
                rows(&rules.policies, &fixtures, &member)?
            }
        };
        let failed = rows.iter().filter(|row| !row.ok).count();
        if output.wants_json() {
            output.json(&serde_json::json!({ "ok": failed == 0, "tests": rows }))?;
        } else {
            rows.iter().try_for_each(|row| output.line(&line(row, output)))?;
        }
        match failed {
            0 if output.wants_json() => Ok(()),
            0 => output.line(&format!("{} as expected", counted(rows.len(), "call"))),
            failed => Err(Failure::Failed(format!("{failed} of {} not as expected", counted(rows.len(), "call")))),
        }
    }
}

fn fixtures(path: &Path) -> Result<Vec<Fixture>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| document::unread(path, &error))?;
    // Without the line: whoever names another file by mistake may have secrets there.
    let file: File = toml::from_str(&text).map_err(|error| {
        let before = &text.as_bytes()[..error.span().map_or(0, |span| span.start.min(text.len()))];
        let quoted = error.message().split('"').enumerate().map(|(nth, part)| if nth % 2 == 1 { "***" } else { part });
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::Usage(format!(
            "line {line} of {} is no part of a test: {}\n  each test is a section [[test]] with `principal`, `resource` and `expect` (docs/policy.md)",
            path.display(),
            quoted.collect::<Vec<_>>().join("\"")
        ))
    })?;
    Ok(file.test)
}

fn rows(policies: &Policies, fixtures: &[Fixture], groups: &dyn Fn(&str) -> BTreeSet<String>) -> Result<Vec<Row>, Failure> {
    fixtures.iter().map(|fixture| row(policies, fixture, groups)).collect()
}

fn row(policies: &Policies, fixture: &Fixture, groups: &dyn Fn(&str) -> BTreeSet<String>) -> Result<Row, Failure> {
    let name = fixture.name.clone().unwrap_or_else(|| format!("{} {}", fixture.principal, fixture.resource));
    let wrong = |what: &str, word: &str| Failure::Usage(format!("test `{name}`: `{word}` is no {what}"));
    let expected = Effect::parse(&fixture.expect).ok_or_else(|| wrong("effect: write allow, gate or deny", &fixture.expect))?;
    let kind = fixture.kind.as_deref().unwrap_or("token");
    let action = fixture.action.as_deref().unwrap_or("call");
    let subject = Subject {
        name: fixture.principal.clone(),
        kind: PrincipalKind::parse(kind).ok_or_else(|| wrong("kind: write certificate, issuer, local, parent or token", kind))?,
        groups: fixture.groups.iter().cloned().chain(groups(&fixture.principal)).collect(),
        roles: fixture.roles.clone(),
        scopes: fixture.scopes.clone(),
        client: fixture.client.clone(),
    };
    let action = Action::parse(action).ok_or_else(|| wrong("action: write call, prompt, read or send", action))?;
    let (mounts, below): (Vec<&str>, &str) = match (&fixture.mount, fixture.resource.rsplit_once('.')) {
        (Some(mount), _) => (mount.split('.').collect(), &fixture.resource),
        (None, Some((mounts, below))) => (mounts.split('.').collect(), below),
        (None, None) => (Vec::new(), &fixture.resource),
    };
    let target = Target { action, mounts, name: below, traits: traits(fixture) };
    let arguments = serde_json::to_vec(&fixture.arguments).unwrap_or_default();
    let arguments = policies.arguments(&arguments).map_err(|error| Failure::Usage(format!("test `{name}`: {error}")))?;
    let Time { unix, hour, minute, weekday } = fixture.time;
    let asked = Asked { subject: &subject, target: &target, profile: &fixture.profile };
    let verdict = policies.decide(&asked, &arguments, Moment { unix, hour, minute, weekday });
    let rules: Vec<String> = verdict.rules.iter().map(|rule| rule.id.to_string()).collect();
    let ok = verdict.effect == expected && fixture.rules.as_ref().is_none_or(|wanted| *wanted == rules);
    Ok(Row { name, ok, expected: fixture.expect.clone(), effect: verdict.effect.as_str(), cause: verdict.cause.as_str(), rules })
}

fn traits(fixture: &Fixture) -> Traits<'_> {
    let careful = Traits::default();
    let mutable = !fixture.read_only.unwrap_or(!careful.mutable);
    Traits {
        mutable,
        reversible: fixture.reversible.unwrap_or(!mutable),
        idempotent: fixture.idempotent.unwrap_or(!mutable),
        scope: fixture.scope.as_deref().unwrap_or(if mutable { "write" } else { "read" }),
        cost: fixture.cost.as_deref().unwrap_or(careful.cost),
        latency: fixture.latency.as_deref().unwrap_or(careful.latency),
    }
}

fn line(row: &Row, output: &Output) -> String {
    let by = if row.rules.is_empty() { row.cause.to_owned() } else { row.rules.join(", ") };
    if row.ok {
        return format!("{}  {}: {} ({by})", output.paint(Look::Good, "ok"), row.name, row.effect);
    }
    let found = if row.effect == row.expected { "by other rules".to_owned() } else { format!("{} expected", row.expected) };
    format!("{}  {}: {} ({by}), {found}", output.paint(Look::Bad, "fail"), row.name, row.effect)
}
