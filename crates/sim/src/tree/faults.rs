//! Faults, drawn one at a time until they cease. Their consequences are not known here.

use std::time::Duration;

use super::world::{FutureEvent, World};

impl World {
    /// Something goes wrong, and the next thing is planned.
    pub(super) fn fault(&mut self) -> Result<(), String> {
        if self.now >= self.calm {
            return Ok(());
        }
        let pause = Duration::from_millis(20 + self.random.below(700) as u64);
        self.schedule(self.now + pause, FutureEvent::Fault);
        let node = self.random.below(self.nodes.len());
        if !self.is_alive(node) {
            return Ok(());
        }
        match self.random.below(100) {
            0..16 => self.crash(node),
            16..36 => self.cut(),
            36..50 => self.part(node),
            50..60 => self.stall(node),
            60..68 => self.jump(node),
            68..74 => self.leave(node),
            74..84 => self.change(node),
            _ => self.flood(node),
        }
        self.drained(node)
    }

    /// Ends all faults, except that some nodes stay away.
    pub(super) fn heal(&mut self) {
        self.faulted = self.now;
        for node in 0..self.nodes.len() {
            if !self.is_alive(node) && (node == 0 || self.random.percent(85)) {
                self.schedule(self.now, FutureEvent::Start { node });
            }
        }
    }

    /// Draws a time that passes before the faults cease.
    pub(super) fn span(&mut self, most_ms: usize) -> Duration {
        let span = Duration::from_millis(100 + self.random.below(most_ms) as u64);
        (self.now + span).min(self.calm).max(self.now)
    }

    fn crash(&mut self, node: usize) {
        self.faulted = self.now;
        self.outcome.count("crashes");
        self.trace(|| format!("n{node} crashes"));
        self.nodes[node].machines = None;
        self.reference.crashed(node);
        self.asked.retain(|(at, ..), _| *at != node);
        for link in self.network.of(node) {
            self.break_link(link, node);
        }
        // A few never come back before the faults cease.
        if self.random.percent(85) {
            let most = if self.random.percent(50) { 300 } else { 5000 };
            let at = self.span(most);
            self.schedule(at, FutureEvent::Start { node });
        }
    }

    fn cut(&mut self) {
        let whole: Vec<u64> = self.network.links.iter().filter(|(_, link)| link.whole).map(|(id, _)| *id).collect();
        let Some(link) = self.random.pick(&whole) else { return };
        self.faulted = self.now;
        self.outcome.count("cuts");
        self.trace(|| format!("{link} is cut"));
        self.break_link(link, usize::MAX);
    }

    /// Breaks a link. Each end may notice soon, or not before it sends something.
    fn break_link(&mut self, link: u64, crashed: usize) {
        let Some(broken) = self.network.cut(link) else { return };
        for at in [broken.child, broken.parent] {
            if at != crashed && self.random.percent(60) {
                let delay = self.delay();
                self.schedule(self.now + delay, FutureEvent::Broken { link, at });
            }
        }
    }

    fn part(&mut self, node: usize) {
        let others = self.nodes[node].plan.parents.clone();
        let Some(other) = self.random.pick(&others) else { return };
        let until = self.span(6000);
        self.faulted = self.now;
        self.outcome.count("partitions");
        self.trace(|| format!("n{node} and n{other} are parted until {until:?}"));
        self.network.part(node, other, until);
    }

    fn stall(&mut self, node: usize) {
        let until = self.span(4000);
        self.faulted = self.now;
        self.outcome.count("stalls");
        self.trace(|| format!("n{node} does nothing until {until:?}"));
        self.nodes[node].stalled = until;
    }

    fn jump(&mut self, node: usize) {
        let by = Duration::from_millis(10usize.pow(1 + self.random.below(6) as u32) as u64);
        self.faulted = self.now;
        self.outcome.count("jumps");
        self.trace(|| format!("the clock of n{node} jumps by {by:?}"));
        self.nodes[node].ahead += by;
        self.nodes[node].jumped = self.now;
    }

    fn leave(&mut self, node: usize) {
        let local = self.local(node);
        let Some(child) = self.nodes[node].machines.as_mut().and_then(|machines| machines.child.as_mut()) else { return };
        child.stop(local);
        self.faulted = self.now;
        self.outcome.count("leaves");
        self.trace(|| format!("n{node} is told to leave"));
    }

    /// Adds or removes a tool of a server.
    fn change(&mut self, node: usize) {
        let name = self.random.pick(&["a", "b", "c", "d"]).unwrap_or("a");
        if self.nodes[node].plan.aggregates {
            return;
        }
        if !self.nodes[node].tools.remove(name) {
            self.nodes[node].tools.insert(name.to_owned());
        }
        if let Some(link) = self.nodes[node].child().and_then(mesh_proto::child::Child::link) {
            self.send(link.0, node, super::network::Body::ListChanged);
        }
    }

    /// A server notifies something, once or very often.
    fn flood(&mut self, node: usize) {
        let count = if self.random.percent(4) { 1200 } else { 1 + self.random.below(30) };
        for _ in 0..count {
            self.nodes[node].sent += 1;
            let number = self.nodes[node].sent;
            self.notify(node, String::new(), node, number);
        }
    }
}
