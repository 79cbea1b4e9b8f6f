//! The state after the faults have ceased: within three intervals every node is registered, every table equals the lists below, and every
//! name leads to its tool. The machines' way there is not looked at.

use std::collections::{BTreeMap, BTreeSet};

use banyan_model::{Machine, Segment};
use mesh_proto::annotation::Availability;
use mesh_proto::child::{Child, LostWhy};
use mesh_proto::parent::{Parent, Session, Standing, Target};
use mesh_proto::route_cursor::{Hop, write_route};

use super::node::Node;
use super::plan::INTERVAL;
use super::world::World;

impl World {
    /// Checks that no node stands above itself for longer than detection takes.
    pub(super) fn check_cycles(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.moved) {
            self.check_parents()?;
            let there = self.cycle().is_some();
            self.reference.cycle_since = if there { self.reference.cycle_since.or(Some(self.now)) } else { None };
            if there {
                self.outcome.count("cycles");
            }
        }
        let Some(since) = self.reference.cycle_since.map(|since| since.max(self.faulted)) else { return Ok(()) };
        if self.now > since + INTERVAL * 3 {
            return Err(format!("a cycle has been there since {since:?}: {:?}", self.cycle()));
        }
        Ok(())
    }

    /// Checks that no node is held by two parents over links open at both ends: a moving node lets go first.
    fn check_parents(&self) -> Result<(), String> {
        let mut held: BTreeMap<usize, usize> = BTreeMap::new();
        for at in 0..self.nodes.len() {
            let sessions = self.nodes[at].parent().into_iter().flat_map(Parent::sessions).filter(|session| session.is_live());
            for session in sessions {
                let link = self.network.links.get(&session.link.0).filter(|link| link.whole && link.child < self.nodes.len());
                if let Some(other) = link.and_then(|link| held.insert(link.child, at)) {
                    return Err(format!("`{}` is registered with n{other} and n{at}", session.segment));
                }
            }
        }
        Ok(())
    }

    /// Checks that every node that can be registered is, and both sides agree.
    pub(super) fn check_registered(&self) -> Result<(), String> {
        let edges = self.edges();
        for child in 0..self.nodes.len() {
            let node = &self.nodes[child];
            if node.machines.is_none() || node.plan.parents.is_empty() || edges.contains_key(&child) {
                continue;
            }
            // A move may bring to light what somebody far below lied about; whoever is put out for it hears of it with its next heartbeat.
            let moving = node.lost_at.is_some_and(|(at, why)| why == LostWhy::Leaving && at + INTERVAL > self.now)
                || node.put_out.is_some_and(|at| at + INTERVAL * 2 > self.now);
            let open = node.plan.parents.iter().find(|parent| self.could_take(**parent, child, &edges));
            if let Some(parent) = open.filter(|_| !moving) {
                let state = node.child().map(|child| (child.registered_at(), child.poll_timeout()));
                return Err(format!("n{child} is not registered after three intervals and could be with n{parent}: {state:?}"));
            }
        }
        Ok(())
    }

    /// Checks the tables at the end of the three intervals, unless a node is on its way to another parent just then.
    pub(super) fn check_at_once(&mut self) -> Result<(), String> {
        if self.nodes.iter().any(|node| self.is_going_home(node)) {
            return Ok(());
        }
        self.outcome.count("tables in time");
        self.check_tables().map_err(|why| format!("three intervals after the faults: {why}"))
    }

    /// Lets messages pass, and then everything must stay as it is for a while.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        let mut moving = String::new();
        for _ in 0..20 {
            self.run(self.now + INTERVAL * 2)?;
            let edges = self.edges();
            self.run(self.now + INTERVAL)?;
            let why =
                self.check_registered().err().or_else(|| (edges != self.edges()).then(|| format!("{edges:?}, then {:?}", self.edges())));
            let going_home = self.nodes.iter().any(|node| self.is_going_home(node));
            match why {
                None if !going_home => return self.check_tables(),
                Some(why) if !self.circular && !going_home => return Err(format!("after the faults have ceased nodes move still: {why}")),
                why => moving = why.unwrap_or_default(),
            }
        }
        Err(format!("the tree does not come to rest: {moving}"))
    }

    /// Tells if a node leaves a backup for a preferred parent, or was put out for a fault found by such a move.
    fn is_going_home(&self, node: &Node) -> bool {
        let left = node.lost_at.is_some_and(|(at, why)| why == LostWhy::Leaving && at + INTERVAL * 3 > self.now);
        left || node.put_out.is_some_and(|at| at + INTERVAL * 3 > self.now)
    }

    /// Lists registrations known to both sides.
    fn edges(&self) -> BTreeMap<usize, usize> {
        let edge = |child: usize| {
            let (index, link) = self.nodes[child].child().and_then(Child::registered_at)?;
            let parent = self.nodes[child].plan.parents[index];
            self.holds(parent, link, child).then_some((child, parent))
        };
        (0..self.nodes.len()).filter_map(edge).collect()
    }

    fn cycle(&self) -> Option<Vec<usize>> {
        let edges = self.edges();
        edges.keys().find_map(|start| {
            let path: Vec<usize> =
                std::iter::successors(edges.get(start).copied(), |at| edges.get(at).copied()).take(edges.len()).collect();
            path.contains(start).then(|| std::iter::once(*start).chain(path.into_iter().take_while(|at| at != start)).collect())
        })
    }

    /// Tells if a parent is alive, stands not below the child, and has not given the child's segment to another node.
    fn could_take(&self, parent: usize, child: usize, edges: &BTreeMap<usize, usize>) -> bool {
        let Some(machine) = self.nodes[parent].parent() else { return false };
        let above: BTreeSet<usize> = std::iter::successors(Some(parent), |at| edges.get(at).copied()).take(self.nodes.len() + 1).collect();
        let segment = &self.nodes[child].segment;
        let id = self.nodes[child].id;
        let liars = |session: &Session| session.subserver_id == id && &*session.principal == "liar";
        let taken = machine.sessions().any(|session| (session.segment == *segment && session.subserver_id != id) || liars(session));
        !above.contains(&child) && !taken
    }

    /// Checks that every table holds the lists below it, marks all other tools as degraded, and lists nothing absent as present.
    fn check_tables(&self) -> Result<(), String> {
        let edges = self.edges();
        for at in 0..self.nodes.len() {
            let Some(parent) = self.nodes[at].parent() else { continue };
            for session in parent.sessions().filter(|session| session.standing == Standing::Live) {
                let liar = self.liars.iter().any(|liar| liar.link == Some(session.link.0));
                let child = self.nodes.iter().position(|node| node.id == session.subserver_id);
                if !liar && child.is_none_or(|child| edges.get(&child) != Some(&at)) {
                    return Err(format!("n{at} takes `{}` for registered, which is not: {session:?}", session.segment));
                }
            }
            let (listed, expected) = (self.listed(at), self.expected(at, &edges, 0));
            if listed != expected {
                return Err(format!("n{at} lists {listed:?}, and below is {expected:?}"));
            }
            for name in &listed {
                self.walk(at, name).map_err(|why| format!("`{name}` of n{at} leads nowhere: {why}"))?;
            }
        }
        Ok(())
    }

    /// Follows the route of a listed name, hop by hop, to the server that has the tool.
    fn walk(&self, from: usize, name: &str) -> Result<(), String> {
        let table = self.nodes[from].parent().map(Parent::namespace).ok_or("no aggregator")?;
        let route = table.resolve(name).and_then(|handle| table.route(handle)).ok_or("not resolved")?;
        let (raw, mut cursor, mut at) = (write_route(&route.0), "0".to_owned(), from);
        loop {
            let hop = Hop::read(raw.as_bytes(), cursor.as_bytes()).map_err(|refusal| refusal.to_string())?;
            let Some(parent) = self.nodes[at].parent() else {
                let here = hop.is_last() && self.nodes[at].tools.contains(hop.tool());
                return if here { Ok(()) } else { Err(format!("n{at} has no such tool")) };
            };
            parent.namespace().resolve_hop(&hop).ok_or_else(|| format!("n{at} does not know what follows `{}`", hop.segment()))?;
            let Some(Target::Live(session)) = parent.target(hop.segment()) else { return Err(format!("n{at} has nobody there")) };
            at = self.nodes.iter().position(|node| node.id == session.subserver_id).ok_or("a stranger")?;
            cursor = hop.next_cursor().ok_or("the route ends too early")?;
        }
    }

    /// Lists the names that a node calls available, without those of liars.
    fn listed(&self, at: usize) -> BTreeSet<String> {
        let Some(parent) = self.nodes[at].parent() else { return self.nodes[at].tools.clone() };
        let table = parent.namespace();
        let there = table.listed().filter_map(|handle| {
            let (part, tool) = table.tool(handle)?;
            let degraded = tool.annotation().availability == Availability::Degraded;
            let target = matches!(parent.target(part.segment().as_str()), Some(Target::Live(_)));
            (target && !degraded).then(|| table.name(handle)).flatten()
        });
        there.map(|name| name.to_string()).filter(|name| !name.contains("liar") && !self.is_squatted(at, name)).collect()
    }

    /// Tells if the first segment of a name was registered by a liar.
    fn is_squatted(&self, at: usize, name: &str) -> bool {
        let Some(parent) = self.nodes[at].parent() else { return false };
        let by_liar = |segment: &str| parent.sessions().any(|s| s.segment.as_str() == segment && &*s.principal == "liar");
        name.split('.').any(|segment| by_liar(segment) || (Segment::new(segment).is_ok() && self.anywhere_squatted(segment)))
    }

    fn anywhere_squatted(&self, segment: &str) -> bool {
        let parents = self.nodes.iter().filter_map(|node| node.parent());
        parents.flat_map(|parent| parent.sessions()).any(|s| s.segment.as_str() == segment && &*s.principal == "liar")
    }

    /// Lists the names below a node.
    fn expected(&self, at: usize, edges: &BTreeMap<usize, usize>, depth: usize) -> BTreeSet<String> {
        if !self.nodes[at].plan.aggregates {
            return self.nodes[at].tools.clone();
        }
        if depth > self.nodes.len() {
            return BTreeSet::new();
        }
        let children = edges.iter().filter(|(_, parent)| **parent == at).map(|(child, _)| *child);
        let names = children.flat_map(|child| {
            let segment = self.nodes[child].segment.to_string();
            self.expected(child, edges, depth + 1).into_iter().map(move |name| format!("{segment}.{name}"))
        });
        names.filter(|name| !name.split('.').any(|segment| self.anywhere_squatted(segment))).collect()
    }
}
