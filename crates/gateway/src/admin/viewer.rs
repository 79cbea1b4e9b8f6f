//! Readers below `/-/`, and their sight of the gate: everything for the owner, everything callable for a caller. Does not decide about
//! calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::request::Parts;
use mcp_proto::json::quote;

use crate::Gateway;
use crate::admin::routes::{is_owner, status};
use crate::admin::shapes::{Below, MountStatus, Status, ToolDefinition, ToolRow};
use crate::gateway::rows;
use call::tree::caller::Caller;
use call::tree::snapshot::Tree;
use call::way::sees;
use call::words::entered::{AboutClient, AdmittedCaller};
use call::words::party::Party;
use call::words::refusal::Refusal;
use door::entry;
use door::known::stateless;
use door::port::fields;

/// Reader below `/-/`.
pub(super) enum Viewer {
    Owner,
    Guest(Guest),
}

/// A caller, seen as a client of some name.
pub(super) struct Guest {
    caller: Arc<Caller>,
    /// Number of the tree, and its servers with their visible tools.
    seen: Option<(u64, Arc<BTreeMap<String, usize>>)>,
}

impl Viewer {
    /// Lets a reader in, or refuses. `client` is the name of the reader's client.
    pub(super) fn enter(gateway: &Gateway, parts: &Parts, party: Option<&Arc<Party>>, client: Option<&str>) -> Result<Self, Refusal> {
        if is_owner(gateway, parts) {
            return Ok(Self::Owner);
        }
        let entered = entry::enter(&gateway.0.gate.config.load(), &gateway.0.trust, party, &fields(parts));
        Ok(Self::guest(gateway, &entered.map_err(|refused| Refusal::refused(refused.why))?, client))
    }

    /// Makes a guest of somebody who was let in already.
    pub(super) fn guest(gateway: &Gateway, entered: &AdmittedCaller, client: Option<&str>) -> Self {
        let info = format!("{{\"name\":{}}}", quote(client.unwrap_or_default()));
        let about = AboutClient { info: info.as_bytes(), capabilities: b"{}" };
        let caller = stateless(&gateway.0.gate.config.load(), entered, (None, None), about);
        Self::Guest(Guest { caller: Arc::new(caller), seen: None })
    }

    /// Lists the tools visible to a client of that name.
    pub(super) async fn tools(self, gateway: &Gateway, client: Option<&str>) -> Vec<ToolRow> {
        match self {
            Self::Owner => gateway.tools(client),
            Self::Guest(guest) => guest.look(gateway, Guest::tools).await,
        }
    }

    /// Finds a tool as `ToolRow::find` does. An invisible tool is answered like an absent one.
    pub(super) async fn tool(self, gateway: &Gateway, name: &str) -> Result<ToolDefinition, Refusal> {
        let tools = self.tools(gateway, None).await;
        gateway.definition(&tools, name)
    }

    /// Lists the tree below servers that are gates.
    pub(super) async fn below(self, gateway: &Gateway) -> Below {
        match self {
            Self::Owner => gateway.below(&|_| true, true),
            Self::Guest(guest) => {
                let places = guest.look(gateway, Guest::places).await;
                gateway.below(&|place| places.contains(&place), false)
            }
        }
    }

    /// Tells the status of the gate; `all` adds the rooms, for the owner only.
    pub(super) async fn status(&mut self, gateway: &Gateway, all: bool) -> Status {
        match self {
            Self::Owner if all => status(gateway, true),
            Self::Owner => Status { rooms: Vec::new(), ..status(gateway, true) },
            Self::Guest(guest) => guest.status(gateway).await,
        }
    }
}

impl Guest {
    /// Looks at the present tree on a thread of its own: rules asked about a hundred thousand tools take seconds, and calls go on
    /// meanwhile.
    async fn look<T: Default + Send + 'static>(&self, gateway: &Gateway, look: fn(&Caller, &Tree) -> T) -> T {
        let (tree, caller) = (gateway.0.gate.mounts.tree.load_full(), Arc::clone(&self.caller));
        tokio::task::spawn_blocking(move || look(&caller, &tree)).await.unwrap_or_default()
    }

    fn tools(caller: &Caller, tree: &Tree) -> Vec<ToolRow> {
        if tree.lacks_profile(&caller.scope) {
            return Vec::new();
        }
        let standing = tree.standing(caller);
        rows(tree, &tree.shown(caller), &|place| sees(tree, caller, &standing, place))
    }

    fn places(caller: &Caller, tree: &Tree) -> BTreeSet<(usize, usize)> {
        if tree.lacks_profile(&caller.scope) {
            return BTreeSet::new();
        }
        let (standing, view) = (tree.standing(caller), tree.shown(caller));
        view.tools.iter().map(|(_, place)| place).filter(|place| sees(tree, caller, &standing, *place)).collect()
    }

    /// Counts the visible tools of each server. Where nothing is hidden, servers without tools count too.
    fn servers(caller: &Caller, tree: &Tree) -> BTreeMap<String, usize> {
        let name = |branch: usize| tree.branches.get(branch).map(|branch| branch.mount.config.name.to_string());
        let mut servers = BTreeMap::new();
        if tree.config.policy.is_none() && caller.scope.profile.is_empty() {
            servers.extend((0..tree.branches.len()).filter_map(name).map(|name| (name, 0)));
        }
        for (branch, _) in Self::places(caller, tree) {
            *servers.entry(name(branch).unwrap_or_default()).or_default() += 1;
        }
        servers
    }

    /// Tells the guest's name and budgets, and the health of usable servers. Errors are left out, since they may tell of others' calls.
    async fn status(&mut self, gateway: &Gateway) -> Status {
        let number = gateway.0.gate.mounts.tree.load().number();
        let seen = match self.seen.take().filter(|(of, _)| *of == number) {
            Some((_, seen)) => seen,
            None => Arc::new(self.look(gateway, Self::servers).await),
        };
        self.seen = Some((number, Arc::clone(&seen)));
        let whole = status(gateway, false);
        let own = &*self.caller.principal.name;
        Status {
            you: Some(own.to_owned()),
            pid: 0,
            serves: String::new(),
            sessions: 0,
            joined: None,
            not_in_force: None,
            audit: None,
            budgets: whole.budgets.into_iter().filter(|budget| budget.principal == own).collect(),
            mounts: whole.mounts.into_iter().filter_map(|mount| Some(health(*seen.get(&mount.name)?, mount))).collect(),
            ..whole
        }
    }
}

/// Reduces a server's status to what every user of the server may know.
fn health(tools: usize, mount: MountStatus) -> MountStatus {
    MountStatus {
        origin: String::new(),
        next_try: None,
        error: None,
        tools,
        prompts: 0,
        resources: 0,
        restarts: 0,
        in_flight: 0,
        notes: Vec::new(),
        failed_below: Vec::new(),
        p50_ms: None,
        console: None,
        registered: None,
        ..mount
    }
}
