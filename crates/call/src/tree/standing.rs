//! Standing of a caller in a snapshot of the tree: decided once for each tool where neither arguments nor time matter, and each time where
//! they do. Refuses nobody; `way/authorize.rs` does.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use banyan_model::Segment;
use config::resolved::{Config, Policy};
use foldhash::fast::RandomState;
use mcp_proto::catalog::Kind;
use mcp_proto::glob::Glob;
use mesh_proto::annotation::Annotation;
use policy::decide::{Action, Arguments, Asked, Foresight, Moment, Subject, Target, Traits, Verdict};

use crate::tree::catalog::Offer;
use crate::tree::snapshot::{Branch, Tree};
use crate::tree::view::list::EntryList;
use crate::words::view_key::ViewKey;

/// Most callers whose standing is kept.
const KEPT: usize = 1024;

/// Places of servers in a tree.
pub type Places = BTreeSet<usize>;

/// Callers of a snapshot.
#[derive(Default)]
pub struct Standings(RwLock<HashMap<Arc<Subject>, Arc<Standing>, RandomState>>);

type Lists = HashMap<(ViewKey, Kind), Arc<EntryList>, RandomState>;

/// Standing of a caller in a snapshot.
pub struct Standing {
    /// Subject, with its groups in the configuration.
    pub subject: Subject,
    /// Decisions about calls of each tool, by branch and place in its catalog.
    tools: Vec<Box<[OnceLock<EarlyDecision>]>>,
    /// The calls of every tool have been judged.
    is_known: OnceLock<()>,
    /// Lists without what this caller may not use.
    lists: Mutex<Lists>,
    /// Servers of which this caller can use anything.
    servers: Mutex<HashMap<ViewKey, Arc<Places>, RandomState>>,
}

/// Decision before a call's arguments and time are known.
#[derive(Clone, Debug)]
pub enum EarlyDecision {
    /// The decision depends on arguments or time.
    Open {
        /// Every call is denied nonetheless.
        hopeless: bool,
    },
    /// The decision depends on neither.
    To(Arc<Verdict>),
}

impl EarlyDecision {
    /// Checks that every call is denied.
    pub fn is_hopeless(&self) -> bool {
        match self {
            Self::Open { hopeless } => *hopeless,
            Self::To(verdict) => verdict.effect == policy::Effect::Deny,
        }
    }
}

impl From<Foresight> for EarlyDecision {
    fn from(foresight: Foresight) -> Self {
        match foresight {
            Foresight::Open { hopeless } => Self::Open { hopeless },
            Foresight::Settled(verdict) => Self::To(Arc::new(verdict)),
        }
    }
}

impl Standings {
    /// Standing of `subject` in `tree`.
    pub fn of_subject(&self, tree: &Tree, subject: &Arc<Subject>) -> Arc<Standing> {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(subject) {
            return Arc::clone(known);
        }
        let made = Arc::new(Standing::new(&tree.config, subject, &tree.branches));
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT {
            all.clear();
        }
        Arc::clone(all.entry(Arc::clone(subject)).or_insert(made))
    }
}

impl Standing {
    fn new(config: &Config, subject: &Subject, branches: &[Branch]) -> Self {
        let mut subject = subject.clone();
        let is_member = |globs: &[String]| globs.iter().any(|glob| Glob::new(glob).matches(&subject.name));
        let groups: Vec<String> = config.groups.iter().filter(|g| is_member(&g.members)).map(|g| g.name.to_string()).collect();
        subject.groups.extend(groups);
        let tools = branches.iter().map(|branch| branch.catalog.tools.iter().map(|_| OnceLock::new()).collect()).collect();
        Self { subject, tools, is_known: OnceLock::new(), lists: Mutex::default(), servers: Mutex::default() }
    }

    /// Decision about calls of the tool at this place, as far as known.
    pub fn tool(&self, policy: &Policy, tree: &Tree, place: (usize, usize), profile: &str) -> Option<EarlyDecision> {
        let (branch, offer) = tree.branches.get(place.0).and_then(|b| Some((b, b.catalog.tools.get(place.1)?)))?;
        let settled = self.tools.get(place.0)?.get(place.1)?;
        Some(settled.get_or_init(|| self.foresee(policy, &tool_target(branch, offer), profile)).clone())
    }

    /// Checks that every tool has been judged, so that asking costs nothing.
    pub fn is_known(&self) -> bool {
        self.is_known.get().is_some()
    }

    /// Judges every tool, which takes time.
    pub fn know(&self, policy: &Policy, tree: &Tree, profile: &str) {
        for (branch, tools) in self.tools.iter().enumerate() {
            for place in 0..tools.len() {
                drop(self.tool(policy, tree, (branch, place), profile));
            }
        }
        self.is_known.get_or_init(|| ());
    }

    /// Judges any other target.
    pub fn foresee(&self, policy: &Policy, target: &Target<'_>, profile: &str) -> EarlyDecision {
        policy.policies.foresee(&self.asked(target, profile)).into()
    }

    /// Decides with arguments and time.
    pub fn decide(&self, policy: &Policy, target: &Target<'_>, profile: &str, arguments: &Arguments, at: Moment) -> Verdict {
        policy.policies.decide(&self.asked(target, profile), arguments, at)
    }

    fn asked<'a>(&'a self, target: &'a Target<'a>, profile: &'a str) -> Asked<'a> {
        Asked { subject: &self.subject, target, profile }
    }

    /// Finds a list made before.
    pub fn list(&self, key: &ViewKey, kind: Kind) -> Option<Arc<EntryList>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).get(&(key.clone(), kind)).cloned()
    }

    /// Keeps a list for the next time.
    pub fn keep_list(&self, key: &ViewKey, kind: Kind, list: &Arc<EntryList>) {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).insert((key.clone(), kind), Arc::clone(list));
    }

    /// Servers of which the caller can use anything, if found out before.
    pub fn servers(&self, key: &ViewKey) -> Option<Arc<Places>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Keeps the servers of which the caller can use anything.
    pub fn keep_servers(&self, key: &ViewKey, servers: &Arc<Places>) {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), Arc::clone(servers));
    }
}

/// Makes the target of rules for a tool.
pub fn tool_target<'a>(branch: &'a Branch, offer: &'a Offer) -> Target<'a> {
    let (name, between) = offer.local.0.split_last().map_or(("", &[][..]), |(last, between)| (last.as_str(), between));
    let mounts = std::iter::once(&branch.mount.config.name).chain(between).map(Segment::as_str).collect();
    let traits = offer.noted.as_ref().map(|noted| traits(noted.annotation())).unwrap_or_default();
    Target { action: Action::Call, mounts, name, traits }
}

fn traits(annotation: &Annotation) -> Traits<'_> {
    Traits {
        mutable: annotation.mutable,
        reversible: annotation.reversible,
        idempotent: annotation.idempotent,
        scope: annotation.auth_scope.as_str(),
        cost: annotation.cost_class.as_str(),
        latency: annotation.latency_class.as_str(),
    }
}
