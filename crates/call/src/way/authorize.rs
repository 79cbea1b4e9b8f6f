//! Decides if this caller may do this. Without rules every caller may do whatever its view shows. Does not read rules.
//!
//! A refused name and an unknown name are told alike: with the same code, the same words, and an id of a decision. Only the owner learns
//! the difference by the id (`banyan explain ID`).

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use banyan_model::{Method, PrincipalKind, Segment};
use config::resolved::{MountGroup, Policy};
use mcp_proto::envelope::Request;
use mcp_proto::json::Members;
use policy::Effect;
use policy::approval::Mode;
use policy::decide::{Action, Arguments, BadArguments, Cause, Subject, Target, Traits, Verdict};

use crate::judge::gate::Gate;
use crate::judge::policy as decided;
use crate::judge::policy::{DecisionId, Facts};
use crate::tree::annotation::ToolFacts;
use crate::tree::caller::Caller;
use crate::tree::catalog::{self, Offer};
use crate::tree::own;
use crate::tree::snapshot::{Branch, Tree};
use crate::tree::standing::{EarlyDecision, Standing, tool_target};
use crate::way::error::{CallError, DeniedCall};
use crate::way::resolve::{Aim, Resolved};
use crate::way::telling::{self, RefusedMember};

/// Members of a group that a decision names.
const MEMBERS: usize = 50;

/// Proof that the caller may make this call.
#[derive(Debug)]
pub struct Permit {
    pub resolved: Box<Resolved>,
    /// Decision of the rules; `None` without rules.
    pub decision: Option<Decision>,
}

/// Decision of the rules about a call that is not denied.
#[derive(Debug, Clone)]
pub struct Decision {
    pub id: DecisionId,
    /// Never [`Effect::Deny`].
    pub verdict: Arc<Verdict>,
}

impl Decision {
    /// Names of the deciding rules.
    pub fn rules(&self) -> String {
        self.verdict.rules.iter().map(|rule| &*rule.id).collect::<Vec<_>>().join(", ")
    }

    /// Checks if people have to see a preview before they agree.
    pub fn requires_preview(&self) -> bool {
        self.is_gated() && self.verdict.rules.iter().any(|rule| rule.wants_preview)
    }

    /// Checks if a person has to agree first.
    pub fn is_gated(&self) -> bool {
        self.verdict.effect == Effect::Gate
    }
}

/// Decides if the call may be made. `request` is the caller's text, `tree` the snapshot in which it was resolved.
pub fn authorize(gate: &Gate, tree: &Tree, request: &Request, mut resolved: Box<Resolved>) -> Result<Permit, CallError> {
    let decision = decided_of(gate, tree, request, &resolved)?;
    if resolved.branch.mount.config.is_told_callers {
        let refused = resolved.branch.mount.config.stands_for.as_ref().map(|group| refused_members(gate, tree, &resolved, group));
        resolved.facts = telling::facts(&tree.standing(&resolved.caller).subject, refused.as_ref());
    }
    Ok(Permit { resolved, decision })
}

fn decided_of(gate: &Gate, tree: &Tree, request: &Request, resolved: &Resolved) -> Result<Option<Decision>, CallError> {
    // Anybody may show a proof for a call held by a gate below, and that gate judges the proof.
    let Some(rules) = tree.config.policy.as_ref().filter(|_| resolved.aim.method() != Method::Confirm) else { return Ok(None) };
    let asking = RuleQuestion::new(gate, tree, rules, &resolved.caller, &resolved.params);
    let offer = resolved.place.and_then(|(b, i)| Some((tree.branches.get(b)?, tree.branches.get(b)?.catalog.tools.get(i)?)));
    let decision = match (offer, resolved.place) {
        (Some((branch, offer)), Some(place)) => {
            let known = asking.standing.tool(rules, tree, place, asking.profile());
            let known = known.map(|known| settled_before(known, rules, &resolved.aim));
            asking.decide(known, &tool_target(branch, offer), request)
        }
        (_, _) => {
            let (action, name) = named(resolved, request);
            asking.decide(None, &target(action, &resolved.branch, name), request)
        }
    };
    decision.map(Some).map_err(|error| error.owned(resolved.branch.mount.config.name.as_str(), &resolved.name))
}

/// Members of a group at which the caller may not make this call by itself, or not without a person who agrees. A group reaches nothing that
/// its members refuse.
fn refused_members(gate: &Gate, tree: &Tree, resolved: &Resolved, group: &MountGroup) -> BTreeMap<String, RefusedMember> {
    let offer = resolved.place.and_then(|(b, i)| Some((tree.branches.get(b)?, tree.branches.get(b)?.catalog.tools.get(i)?)));
    let Some((branch, offer)) = offer else { return BTreeMap::new() };
    let (named, params) = telling::members_named(&resolved.params, group.argument);
    let profile = tree.profile(&resolved.caller.scope.profile);
    let asking = tree.config.policy.as_ref().map(|rules| RuleQuestion::new(gate, tree, rules, &resolved.caller, &params));
    let asked = group.members.iter().filter(|member| named.as_ref().is_none_or(|named| named.contains(member.as_str())));
    let (mut refused, mut judged) = (BTreeMap::new(), Vec::new());
    for member in asked {
        let own = own_tool(tree, member, &offer.entry.key);
        let dotted = format!("{member}.{}", own.map_or(&offer.local, |(_, own)| &own.local));
        if profile.is_some_and(|profile| !catalog::allowed(&dotted, &profile.include, &profile.exclude)) {
            refused.insert(member.to_string(), RefusedMember { reason: "hidden", decision: None });
            continue;
        }
        let (of, tool) = own.unwrap_or((branch, offer));
        let mut target = tool_target(of, tool);
        target.mounts[0] = member.as_str();
        let verdict = asking.as_ref().map(|asking| asking.judge(None, &target));
        let noted = own.and_then(|(_, own)| own.noted.as_deref());
        let reason = refusal_reason(verdict.as_ref().map(|verdict| verdict.effect), mode_asks(tree, member, noted));
        refused.extend(reason.map(|reason| (member.to_string(), RefusedMember { reason, decision: None })));
        judged.extend(verdict.map(|verdict| (target, verdict)));
    }
    let id = asking.and_then(|asking| asking.keep_as_one(&judged)).map(|id| id.to_string());
    for (target, _) in judged.iter().filter(|(_, verdict)| verdict.effect != Effect::Allow) {
        refused.entry(target.mounts[0].to_owned()).and_modify(|member| member.decision.clone_from(&id));
    }
    refused
}

/// Finds the member's own tool of this name, as its server lists it.
fn own_tool<'a>(tree: &'a Tree, member: &Segment, key: &str) -> Option<(&'a Branch, &'a Offer)> {
    let branch = tree.branch(member)?;
    Some((branch, branch.catalog.tools.iter().find(|offer| offer.entry.key == key)?))
}

/// Checks if a call of this tool waits for a person, whatever the rules say.
fn mode_asks(tree: &Tree, mount: &Segment, noted: Option<&ToolFacts>) -> bool {
    let mode = tree.config.gate.as_deref().map_or(Mode::Off, |gate| gate.mode_of(mount));
    !ToolFacts::causes(noted, mode, false).is_empty()
}

/// Reason to leave a member out, after the decision of the rules, if there are any.
fn refusal_reason(effect: Option<Effect>, is_gated: bool) -> Option<&'static str> {
    match effect {
        Some(Effect::Deny) => Some("denied"),
        Some(Effect::Gate) => Some("gated"),
        Some(Effect::Allow) | None => is_gated.then_some("gated"),
    }
}

/// Decides if the caller may call the gate's own tool.
///
/// # Errors
/// If the rules deny, or want a person to agree: nobody is asked about a number.
pub fn own(gate: &Gate, tree: &Tree, request: &Request, caller: &Caller) -> Result<(), CallError> {
    let Some(rules) = &tree.config.policy else { return Ok(()) };
    let decision = RuleQuestion::new(gate, tree, rules, caller, &request.params).decide(None, &own::target(), request)?;
    if decision.is_gated() { Err(CallError::Unapproved(decision.id)) } else { Ok(()) }
}

/// Decides about one of several things named by a request: a resource to read, or a task to follow. `None` without rules.
///
/// # Errors
/// If the rules deny, or want a person to agree.
pub fn one_of(gate: &Gate, tree: &Tree, request: &Request, resolved: &Resolved) -> Result<Option<Decision>, CallError> {
    let decision = decided_of(gate, tree, request, resolved)?;
    match decision {
        Some(decision) if decision.is_gated() && !matches!(resolved.aim, Aim::Task(_)) => Err(CallError::Unapproved(decision.id)),
        decision => Ok(decision),
    }
}

/// Makes the permit for a request about several names, each allowed by itself.
pub fn allowed(resolved: Box<Resolved>, decision: Option<Decision>) -> Permit {
    Permit { resolved, decision }
}

/// Decides about a task by the verdict from its beginning, where the rules depend on arguments, which they saw then.
fn settled_before(known: EarlyDecision, rules: &Policy, aim: &Aim) -> EarlyDecision {
    match (&known, aim) {
        (EarlyDecision::Open { hopeless: false }, Aim::Task(task)) => {
            let verdict = task.begun.as_ref().and_then(|begun| begun.verdict.as_ref());
            verdict.filter(|(digest, _)| *digest == rules.digest).map_or(known, |(_, verdict)| EarlyDecision::To(Arc::clone(verdict)))
        }
        _ => known,
    }
}

/// Turns the error of a name not found, under rules, into the error of a name not allowed. A failing server shows only to those who may use
/// it.
pub fn unfound(gate: &Gate, tree: &Tree, request: &Request, caller: &Caller, error: CallError) -> CallError {
    let Some(rules) = &tree.config.policy else { return error };
    let shown = shown(request).unwrap_or_default();
    let asking = RuleQuestion::new(gate, tree, rules, caller, &request.params);
    let like = unknown(request, &shown);
    let action = match &like {
        Some(CallError::UnknownPrompt(_)) => Action::Prompt,
        Some(CallError::UnknownResource(_)) => Action::Read,
        _ => Action::Call,
    };
    if let CallError::Unavailable { mount, .. } | CallError::Held { mount, .. } = &error {
        // A gate above may say any name beside its cursor: what waits has the name of its definition.
        let whole = if let CallError::Held { name, .. } = &error { name } else { &shown };
        let name = whole.strip_prefix(mount.as_str()).map_or(&**whole, |rest| rest.trim_start_matches(['_', '.']));
        let target = Target { action, mounts: vec![mount], name, traits: Traits::default() };
        if !asking.standing.foresee(rules, &target, asking.profile()).is_hopeless() {
            return error;
        }
    } else if !error.is_unknown() {
        return error;
    }
    let like = like.unwrap_or(error);
    let facts = Facts { subject: &asking.standing.subject, action, resource: &|| shown.clone(), inputs: &BTreeMap::new };
    let id = gate.rules.decisions.keep_unknown(facts);
    CallError::Denied(Box::new(DeniedCall { id, like, cause: "unknown", rules: Vec::new(), owner: None, scope: None }))
}

/// Checks if a caller is shown the tool at this place: not if every call of it would be denied.
pub fn sees(tree: &Tree, caller: &Caller, standing: &Standing, place: (usize, usize)) -> bool {
    let Some(rules) = &tree.config.policy else { return true };
    standing.tool(rules, tree, place, &caller.scope.profile).is_none_or(|known| !known.is_hopeless())
}

/// Checks if a caller may hear of changes of a resource, as far as known before any request.
pub fn hears(tree: &Tree, caller: &Caller, branch: &Branch, uri: &str) -> bool {
    let Some(rules) = &tree.config.policy else { return true };
    match tree.standing(caller).foresee(rules, &target(Action::Read, branch, uri), &caller.scope.profile) {
        EarlyDecision::Open { hopeless } => !hopeless,
        EarlyDecision::To(verdict) => !matches!(verdict.effect, Effect::Deny | Effect::Gate),
    }
}

/// Parameters of decisions about a caller.
struct RuleQuestion<'a> {
    gate: &'a Gate,
    rules: &'a Policy,
    standing: Arc<Standing>,
    caller: &'a Caller,
    params: &'a [u8],
    /// Arguments as the rules see them, read once for all decisions.
    arguments: OnceCell<Result<Arguments, BadArguments>>,
}

impl<'a> RuleQuestion<'a> {
    fn new(gate: &'a Gate, tree: &Tree, rules: &'a Policy, caller: &'a Caller, params: &'a [u8]) -> Self {
        Self { gate, rules, standing: tree.standing(caller), caller, params, arguments: OnceCell::new() }
    }

    fn profile(&self) -> &str {
        &self.caller.scope.profile
    }

    fn decide(&self, known: Option<EarlyDecision>, target: &Target<'_>, request: &Request) -> Result<Decision, CallError> {
        let verdict = self.judge(known, target);
        let inputs = || self.inputs(target);
        let facts = Facts { subject: &self.standing.subject, action: target.action, resource: &|| target.dotted(), inputs: &inputs };
        let id = self.gate.rules.decisions.keep(facts, &verdict);
        if verdict.effect != Effect::Deny {
            return Ok(Decision { id, verdict });
        }
        Err(refusal(id, &verdict, request, (target.action, &self.standing.subject)))
    }

    fn judge(&self, known: Option<EarlyDecision>, target: &Target<'_>) -> Arc<Verdict> {
        match known.unwrap_or_else(|| self.standing.foresee(self.rules, target, self.profile())) {
            EarlyDecision::To(verdict) => verdict,
            EarlyDecision::Open { .. } => Arc::new(self.evaluate(target)),
        }
    }

    /// Keeps the decisions about members of a group as one, the gravest, which names the others: a call pushes out no more than any other call.
    fn keep_as_one(&self, judged: &[(Target<'_>, Arc<Verdict>)]) -> Option<DecisionId> {
        let all: Vec<_> = judged.iter().filter(|(_, verdict)| verdict.effect != Effect::Allow || verdict.shadow.is_some()).collect();
        let first = |effect| all.iter().find(|(_, verdict)| verdict.effect == effect);
        let (target, verdict) = first(Effect::Deny).or_else(|| first(Effect::Gate)).or_else(|| all.first())?;
        let inputs = || {
            let line = |(target, verdict): &&(Target<'_>, Arc<Verdict>)| format!("{}: {}", target.dotted(), verdict.effect.as_str());
            let mut members: Vec<String> = all.iter().take(MEMBERS).map(line).collect();
            members.extend(all.len().checked_sub(MEMBERS + 1).map(|more| format!("and {} more", more + 1)));
            let mut inputs = self.inputs(target);
            inputs.extend((all.len() > 1).then(|| ("members".to_owned(), members.join(", "))));
            inputs
        };
        let facts = Facts { subject: &self.standing.subject, action: target.action, resource: &|| target.dotted(), inputs: &inputs };
        Some(self.gate.rules.decisions.keep(facts, verdict))
    }

    /// Inputs of the rules, for people, without possible secrets.
    fn inputs(&self, target: &Target<'_>) -> BTreeMap<String, String> {
        let arguments = Members::again(self.params).get("arguments").and_then(|raw| audit::shape::shape(raw).ok());
        let scopes = self.standing.subject.scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let mut all = vec![("arguments", arguments.unwrap_or_default()), ("profile", self.profile().to_owned()), ("scopes", scopes)];
        if target.action == Action::Call {
            let traits = &target.traits;
            let flags =
                [("read_only", !traits.mutable), ("irreversible", traits.mutable && !traits.reversible), ("idempotent", traits.idempotent)];
            all.extend(flags.map(|(name, is_so)| (name, is_so.to_string())));
            all.extend(
                [("scope", traits.scope), ("cost", traits.cost), ("latency", traits.latency)].map(|(name, word)| (name, word.to_owned())),
            );
        }
        all.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name.to_owned(), text)).collect()
    }

    fn evaluate(&self, target: &Target<'_>) -> Verdict {
        let read = || self.rules.policies.arguments(Members::again(self.params).get("arguments").unwrap_or(b"{}"));
        match self.arguments.get_or_init(read) {
            Ok(arguments) => {
                let now = decided::now(&self.rules.time_zone);
                self.standing.decide(self.rules, target, self.profile(), arguments, now)
            }
            Err(bad) => {
                let cause = Cause::Error(bad.to_string().into());
                Verdict { effect: Effect::Deny, cause, rules: Vec::new(), shadow: None }
            }
        }
    }
}

fn refusal(id: DecisionId, verdict: &Verdict, request: &Request, what: (Action, &Subject)) -> CallError {
    let (action, subject) = what;
    let rules: Vec<Arc<str>> = verdict.rules.iter().map(|rule| Arc::clone(&rule.id)).collect();
    let cause = verdict.cause.as_str();
    let shown = shown(request).unwrap_or_default();
    let like = unknown(request, &shown).unwrap_or_else(|| match action {
        Action::Read => CallError::UnknownResource(shown.clone()),
        Action::Call | Action::Prompt | Action::Send => CallError::MethodNotFound(request.method.to_string()),
    });
    let denied = Box::new(DeniedCall { id, like, cause, rules, owner: None, scope: scope(verdict, subject) });
    if matches!(verdict.cause, Cause::Error(_)) { CallError::PolicyFailed(denied) } else { CallError::Denied(denied) }
}

/// Scope that the caller's token lacks and a rule asks for, if the token is one with scopes.
fn scope(verdict: &Verdict, subject: &Subject) -> Option<Arc<str>> {
    let wanted = verdict.rules.iter().find_map(|rule| rule.scope.clone())?;
    (subject.kind == PrincipalKind::Issuer && !subject.scopes.contains(&*wanted)).then_some(wanted)
}

/// Name in the request, in the caller's words.
fn shown(request: &Request) -> Option<String> {
    let members = request.params.members();
    let reference = members.object("ref");
    let name = members.str("name").or_else(|| members.str("uri")).or_else(|| members.str("taskId"));
    let named = name.or_else(|| reference.as_ref().and_then(|of| of.str("name").or_else(|| of.str("uri"))));
    named.map(std::borrow::Cow::into_owned)
}

/// Error for a request whose name is unknown; `None` for a request without a name.
fn unknown(request: &Request, shown: &str) -> Option<CallError> {
    let shown = shown.to_owned();
    Some(match &*request.method {
        "tools/call" | crate::way::TRACE => CallError::UnknownTool(shown),
        "prompts/get" => CallError::UnknownPrompt(shown),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => CallError::UnknownResource(shown),
        "completion/complete" if names_a_prompt(request) => CallError::UnknownPrompt(shown),
        "completion/complete" => CallError::UnknownResource(shown),
        "tasks/cancel" | "tasks/get" | "tasks/result" | "tasks/update" => CallError::UnknownTask(shown),
        _ => return None,
    })
}

fn names_a_prompt(request: &Request) -> bool {
    request.params.members().object("ref").is_some_and(|of| of.str("name").is_some())
}

/// Names, for rules, a request about no listed tool.
fn named<'a>(resolved: &'a Resolved, request: &'a Request) -> (Action, &'a str) {
    let name = &*resolved.name;
    match &resolved.aim {
        Aim::Complete if names_a_prompt(request) => (Action::Prompt, name),
        Aim::Complete | Aim::Resource | Aim::Subscription => (Action::Read, name),
        Aim::LogLevel | Aim::Tasks => (Action::Read, &request.method),
        Aim::Prompt => (Action::Prompt, name),
        aim @ Aim::Task(_) => aim.began().map_or((Action::Send, &request.method), |tool| (Action::Call, tool)),
        Aim::Tool(_) | Aim::Trace(_) => (Action::Call, name),
        Aim::Confirmation | Aim::Unknown => (Action::Send, &request.method),
    }
}

/// Makes the target of an action for the rules.
pub fn target<'a>(action: Action, branch: &'a Branch, name: &'a str) -> Target<'a> {
    // The configuration names the mount; the rest of the path is a single name to rules.
    Target { action, mounts: vec![branch.mount.config.name.as_str()], name, traits: Traits::default() }
}
