//! A node: its machines while it lives, and the state that outlives them. Does not know the network.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use banyan_model::{Machine, Now, Segment};
use bytes::Bytes;
use mesh_proto::annotation::{Annotation, Availability, Transport};
use mesh_proto::authority::{Authority, Identity};
use mesh_proto::child::{Child, ChildSettings};
use mesh_proto::id::NodeId;
use mesh_proto::message::Register;
use mesh_proto::namespace::Offer;
use mesh_proto::parent::{Claim, Demand, Parent, Settings};
use mesh_proto::relay::{Relay, RelayLimits};

use super::plan::{INTERVAL, Plan};

/// The machines of a living node.
#[derive(Debug)]
pub(super) struct Machines {
    pub(super) parent: Option<Parent>,
    pub(super) child: Option<Child>,
    pub(super) relay: Relay,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) plan: Plan,
    pub(super) id: NodeId,
    pub(super) segment: Segment,
    pub(super) identity: Identity,
    /// Number of starts.
    pub(super) life: u64,
    pub(super) machines: Option<Machines>,
    /// Lead of the node's clock over the world's.
    pub(super) ahead: Duration,
    /// Time of the last change of `ahead`.
    pub(super) jumped: Duration,
    /// End of the node's inactivity.
    pub(super) stalled: Duration,
    /// Claims kept over restarts.
    pub(super) claims: BTreeMap<Segment, Claim>,
    pub(super) tools: BTreeSet<String>,
    /// Number of notifications sent.
    pub(super) sent: u64,
    /// Last time a parent put the node out because of a liar below it.
    pub(super) put_out: Option<Duration>,
    /// Time and reason of the last lost registration.
    pub(super) lost_at: Option<(Duration, mesh_proto::child::LostWhy)>,
}

impl Node {
    pub(super) fn new(number: usize, plan: Plan, bare: bool) -> Self {
        let name = format!("n{number}.example");
        let identity = Identity::bare(&name);
        let identity = match Authority::of_dns_name(&name).filter(|_| !bare) {
            Some(authority) => identity.with(authority),
            None => identity,
        };
        Self {
            id: NodeId::new(1000 + number as u128),
            segment: Segment::nearest(&format!("n{number}")),
            identity,
            life: 0,
            machines: None,
            ahead: Duration::ZERO,
            jumped: Duration::ZERO,
            stalled: Duration::ZERO,
            claims: BTreeMap::new(),
            tools: BTreeSet::from(["a".to_owned()]),
            sent: 0,
            put_out: None,
            lost_at: None,
            plan,
        }
    }

    pub(super) fn register(&self) -> Register {
        let mut register = Register::plain(self.id, self.segment.clone());
        register.authority = self.identity.proven.first().cloned();
        register.heartbeat_interval = INTERVAL;
        if self.plan.aggregates {
            register.aggregator_id = Some(self.id);
            register.subtree = Some(BTreeSet::from([self.id]));
        }
        register
    }

    pub(super) fn start(&mut self, now: Now, seed: [u8; 32]) {
        self.life += 1;
        let parent = self.plan.aggregates.then(|| {
            let mut settings = Settings::new(self.id);
            settings.policy.sticky = Demand::Always;
            settings.grace = INTERVAL * 60;
            let mut parent = Parent::new(settings, seed);
            parent.restore(self.claims.values().cloned());
            parent
        });
        let child = (!self.plan.parents.is_empty()).then(|| {
            let mut settings = ChildSettings::new(self.register());
            settings.parents = self.plan.parents.len();
            settings.return_after = INTERVAL * 3;
            let mut child = Child::new(settings, seed.map(|byte| byte ^ 0x55));
            child.start(now);
            child
        });
        self.machines = Some(Machines { parent, child, relay: Relay::new(RelayLimits::default()) });
    }

    pub(super) fn parent(&self) -> Option<&Parent> {
        self.machines.as_ref()?.parent.as_ref()
    }

    pub(super) fn child(&self) -> Option<&Child> {
        self.machines.as_ref()?.child.as_ref()
    }

    /// Lists the node's own tools, or the tools below.
    pub(super) fn offers(&self) -> Vec<Offer> {
        let Some(parent) = self.parent() else { return self.tools.iter().map(|name| offer(name)).collect() };
        let table = parent.namespace();
        let shown = table.listed().filter_map(|handle| {
            let (part, tool) = table.tool(handle)?;
            let mut annotation = tool.annotation().clone();
            if part.is_degraded() {
                annotation.availability = Availability::Degraded;
            }
            Some(Offer { name: table.name(handle)?.to_string(), definition: tool.definition().clone(), annotation })
        });
        shown.collect()
    }

    /// Gives the next timeout of the machines, by the node's clock.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let machines = self.machines.as_ref()?;
        let parent = machines.parent.as_ref().and_then(Parent::poll_timeout);
        let child = machines.child.as_ref().and_then(Child::poll_timeout);
        [parent, child, machines.relay.poll_timeout()].into_iter().flatten().map(|(at, _)| at).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Now) {
        let Some(machines) = &mut self.machines else { return };
        if let Some(parent) = &mut machines.parent {
            parent.handle_timeout(now);
        }
        if let Some(child) = &mut machines.child {
            child.handle_timeout(now);
        }
        machines.relay.handle_timeout(now);
    }
}

pub(super) fn offer(name: &str) -> Offer {
    let definition = Bytes::from_static(br#"{"annotations":{"readOnlyHint":true}}"#);
    Offer { name: name.to_owned(), annotation: Annotation::of_tool(&definition, &Transport::default()), definition }
}
