//! Decisions no longer remembered, read from the record. The record holds ids of rules, so texts come from the rules in force, where such a
//! rule still exists. Decides nothing.

use std::collections::BTreeMap;

use audit::entry::Entry;
use audit::record::Record;
use disk::journal::archive::{Archive, ArchiveError};
use disk::journal::index::{Search, route};
use policy::decide::Policies;

use call::judge::policy::{DecidedRule, DecisionRow as Decision};

/// Finds a decision by id.
pub(crate) fn recalled(archive: &Archive, id: &str, rules: Option<&Policies>) -> Result<Option<Decision>, ArchiveError> {
    let search = Search { id: Some(id.to_owned()), limit: 10, ..Search::default() };
    let found = archive.search(&search)?;
    Ok(found.iter().find_map(|found| decision_in(&Entry::decode(found.line.as_bytes()).ok()?, id, rules)))
}

fn decision_in(entry: &Entry<'_>, id: &str, rules: Option<&Policies>) -> Option<Decision> {
    let intent = entry.record.intent().filter(|intent| intent.decision.as_deref() == Some(id))?;
    let refused = if let Record::Refused(refused) = &entry.record { Some(refused) } else { None };
    let (effect, cause) = match refused {
        Some(refused) => ("deny", refused.reason.as_ref()),
        None if intent.gated => ("gate", "gated"),
        None => ("allow", "permitted"),
    };
    let named = refused.iter().flat_map(|refused| &refused.rules);
    let known = |name: &str| rules.into_iter().flat_map(Policies::rules).find(|rule| &*rule.id == name);
    let rules = named.map(|name| {
        let rule = known(name);
        DecidedRule {
            id: name.to_string(),
            line: rule.map_or(0, |rule| rule.line),
            remedy: rule.and_then(|rule| rule.remedy.as_deref().map(str::to_owned)),
            text: rule.map(|rule| rule.text.to_string()).unwrap_or_default(),
        }
    });
    let action = match &*intent.method {
        "mcpax/trace" | "tools/call" => "call",
        "prompts/get" | "completion/complete" => "prompt",
        "logging/setLevel" | "subscriptions/listen" | "tasks/list" => "read",
        method if method.starts_with("tasks/") => "call",
        method if method.starts_with("resources/") => "read",
        _ => "send",
    };
    Some(Decision {
        id: id.to_owned(),
        at: entry.time / 1_000_000,
        principal: intent.principal.to_string(),
        kind: String::new(),
        groups: Vec::new(),
        client: String::new(),
        action: action.to_owned(),
        resource: route(intent),
        inputs: BTreeMap::new(),
        effect: effect.to_owned(),
        cause: cause.to_owned(),
        error: None,
        rules: rules.collect(),
        shadow: None,
        recorded: true,
    })
}
