//! The world of a device: the running configuration, the record on the disk, the living processes. Judges nothing but the law.

use net_proto::change::{
    Author, ChangeOutcome as End, ChangeRecord, ConfigForm, DeviceChange, Edits, Now, Phase, Reason, StepResult, Terms, Transaction,
    TriedEdits, Want, adopt, discard, edit, take_over, text,
};
use net_proto::fault::{Code, Fault};

use super::DeviceHistory;
use super::timer::DeviceTimer;
use crate::random::Random;

/// Steps of a history.
const STEPS: usize = 60;
/// Longest window of a commit, in milliseconds.
const WINDOW: usize = 60_000;

pub(super) struct DeviceWorld {
    random: Random,
    now: Now,
    /// Configurations of the device: running, and saved.
    running: String,
    startup: String,
    /// Configurations that may run without a further word.
    legitimate: Vec<String>,
    disk: ChangeRecord,
    /// Configuration by hand upon what a change that waits had applied whole.
    by_hand: Option<String>,
    /// Does a guard of the deadline live?
    has_guard: bool,
    /// Timer of the device, which then holds data and no lines.
    timer: Option<DeviceTimer>,
    boots: u32,
    is_calm: bool,
    pub(super) outcome: DeviceHistory,
}

impl DeviceWorld {
    pub(super) fn new(seed: u64) -> Self {
        let timer = (seed % 2 == 1).then(DeviceTimer::default);
        let data = "<interface>\n  <name>lan0</name>\n  <description>old</description>\n  <mtu>1500</mtu>\n</interface>\n";
        let lines =
            "hostname r1\ninterface lan0\n description old\n ip address 10.0.0.1/24\nexit\nrouter ospf\n network 10.0.0.0/8 area 0\nexit\n";
        let running = if timer.is_some() { data } else { lines };
        Self {
            random: Random::new(seed),
            now: Now { wall: 1_800_000_000_000, boot: "boot-0".to_owned(), up: 1000 },
            running: running.to_owned(),
            startup: running.to_owned(),
            legitimate: vec![running.to_owned()],
            disk: ChangeRecord::default(),
            by_hand: None,
            has_guard: false,
            timer,
            boots: 0,
            is_calm: false,
            outcome: DeviceHistory::default(),
        }
    }

    pub(super) fn live(&mut self) {
        for _ in 0..STEPS {
            self.step();
            self.hold_law();
        }
        self.is_calm = true;
        self.happen("calm", "nothing goes wrong any more");
        for _ in 0..8 {
            self.pass(WINDOW as u64 * 2);
            self.watch();
        }
        assert!(
            self.disk.pending().is_none(),
            "still pending after all windows: {:?}",
            self.disk.change.as_ref().map(|change| change.phase)
        );
        assert!(self.may_run(&self.running), "what nobody confirmed runs for good:\n{}", self.running);
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0..=2 => self.edit(),
            3..=5 => self.commit(),
            6 => self.confirm(),
            7 => self.roll_back(),
            8 => self.interfere(),
            9 => self.jump(),
            10 => self.restart(),
            _ => {
                let some = self.random.below(WINDOW) as u64;
                self.pass(some);
            }
        }
        self.watch();
    }

    /// Law: at every moment the old configuration runs, or a deadline on the disk will restore the old, or somebody confirmed.
    fn hold_law(&self) {
        let will_restore = self
            .disk
            .pending()
            .is_some_and(|change| change.deadline.is_some() && change.snapshot.as_ref().is_some_and(|snapshot| self.may_run(snapshot)));
        let timer = self.timer.as_ref().map(|timer| timer.old().is_some_and(|old| self.may_run(old)));
        let is_timed = self.timer.as_ref().is_some_and(|timer| timer.old().is_some());
        assert!(!is_timed || self.disk.pending().is_some(), "the record is over, and the device runs the change:\n{}", self.running);
        assert!(
            self.may_run(&self.running) || timer.unwrap_or(will_restore),
            "nothing brings the old configuration back from:\n{}",
            self.running
        );
    }

    /// May this run without a further word?
    fn may_run(&self, config: &str) -> bool {
        self.legitimate.iter().any(|one| self.is_same(one, config))
    }

    /// A device with lines may leave an `exit` away.
    fn is_same(&self, one: &str, other: &str) -> bool {
        let normal = |config: &str| text::Tree::read(config).write(&text::FRR);
        one == other || self.timer.is_none() && normal(one) == normal(other)
    }

    fn edit(&mut self) {
        let who = if self.random.percent(80) { "ann" } else { "ben" };
        let command = format!("description d{}", self.random.below(1000));
        let commands = vec!["interface lan0".to_owned(), command, format!("ip address 10.{}.0.1/24", self.random.below(200))];
        let author = Author { device: "r1", who };
        let edited = if self.timer.is_some() {
            let described = format!("<description>d{}</description>", self.random.below(1000));
            let candidate = replaced(&self.running, "description", &described);
            let tried = TriedEdits { form: ConfigForm::Data, edits: vec![described], running: self.running.clone(), candidate };
            adopt(&self.disk, author, tried, &self.now)
        } else {
            edit(&self.disk, author, Edits::Commands(commands), &self.running, &text::FRR, &self.now)
        };
        match edited {
            Ok(record) => {
                self.disk = record;
                self.happen("edited", who);
            }
            Err(fault) => {
                self.happen("locked", &fault.detail);
                if self.random.percent(30)
                    && let Ok(record) = take_over(&self.disk, who, &self.now)
                {
                    self.disk = record;
                    self.happen("taken over", who);
                }
            }
        }
    }

    fn commit(&mut self) {
        let Some(change) = self.disk.live() else { return };
        let (who, hash) = (change.owner.clone(), change.hash.clone());
        let window = 1000 + self.random.below(WINDOW) as u64;
        let terms = Terms {
            who: &who,
            window,
            hash: Some(&hash),
            can_undo: self.random.percent(95),
            persist: self.timer.is_some().then_some(hash.as_str()),
        };
        match Transaction::commit(self.disk.clone(), terms, &self.now) {
            Ok(transaction) => self.drive(transaction, "committed"),
            Err(fault) if fault.code == Code::RollbackNotSupported => self.happen("no way back", &fault.detail),
            Err(fault) => self.happen("refused", &fault.detail),
        }
    }

    fn confirm(&mut self) {
        match Transaction::confirm(&self.disk, None, &self.now) {
            Ok(transaction) => {
                self.drive(transaction, "confirmed");
            }
            Err(fault) if fault.code == Code::ConfirmedCommitTimeout => self.happen("too late", &fault.detail),
            Err(_) => {}
        }
    }

    fn roll_back(&mut self) {
        if let Ok(transaction) = Transaction::roll_back(self.disk.clone(), Reason::Asked("ann".to_owned())) {
            self.drive(transaction, "rolled back");
        } else if let Ok(record) = discard(&self.disk, "ann", &self.now) {
            self.disk = record;
            self.happen("discarded", "ann");
        }
    }

    /// Somebody configures the device by hand.
    fn interfere(&mut self) {
        if let Some(timer) = &self.timer {
            // A device with a commit that waits lets nobody else commit.
            if timer.old().is_none() {
                let mtu = format!("<mtu>{}</mtu>", 1000 + self.random.below(500));
                self.running = replaced(&self.running, "mtu", &mtu);
                self.startup.clone_from(&self.running);
                self.legitimate = vec![self.running.clone()];
                self.happen("drifted", &mtu);
            }
            return;
        }
        let is_whole = |change: &DeviceChange| {
            let applied = [Some(&change.candidate), self.by_hand.as_ref()];
            change.phase == Phase::Applied && applied.into_iter().flatten().any(|one| self.is_same(one, &self.running))
        };
        let is_upon_old = self.may_run(&self.running);
        let is_upon_change = self.disk.change.as_ref().is_some_and(is_whole);
        let mut tree = text::Tree::read(&self.running);
        let command = format!("ip route 10.{}.0.0/16 Null0", self.random.below(250));
        tree.merge([command.as_str()], &text::FRR);
        self.running = tree.write(&text::FRR);
        // What was done by hand upon a change that waits is taken back, or confirmed, with the change.
        self.by_hand = is_upon_change.then(|| self.running.clone());
        if self.disk.pending().is_none() {
            self.legitimate = vec![self.running.clone(), self.startup.clone()];
        } else if is_upon_old {
            self.legitimate.push(self.running.clone());
        }
        self.happen("drifted", &command);
    }

    fn jump(&mut self) {
        let by = self.random.below(4_000_000_000) as u64;
        self.now.wall = if self.random.percent(50) { self.now.wall + by } else { self.now.wall.saturating_sub(by) };
        self.happen("clock jumped", "");
    }

    /// Restarts the machine of Banyan, and now and then the device.
    fn restart(&mut self) {
        self.boots += 1;
        (self.now.boot, self.now.up, self.has_guard) = (format!("boot-{}", self.boots), 0, false);
        if self.random.percent(30) {
            self.running.clone_from(&self.startup);
            if let Some(timer) = &mut self.timer {
                timer.forget();
            }
            if self.disk.pending().is_none() {
                self.legitimate = vec![self.startup.clone()];
            } else {
                self.legitimate.push(self.startup.clone());
            }
            self.happen("device restarted", "");
        }
        self.happen("machine restarted", "");
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now.up += milliseconds;
        self.now.wall += milliseconds;
        if let Some(timer) = &mut self.timer
            && timer.pass(&mut self.running, milliseconds)
        {
            self.happen("taken back by the device", "");
        }
    }

    /// Lets the guard, or a new process of the server, look for an overdue change.
    fn watch(&mut self) {
        let is_anybody_there = self.is_calm || self.has_guard || self.random.percent(20);
        if !is_anybody_there {
            return;
        }
        let Some(reason) = self.disk.due(&self.now) else { return self.save_if_left() };
        if self.disk.change.as_ref().is_some_and(|change| change.phase == Phase::Confirming) {
            self.drive(Transaction::settle(self.disk.clone()), "settled");
        } else if let Ok(transaction) = Transaction::roll_back(self.disk.clone(), reason) {
            self.drive(transaction, "restored by itself");
        }
    }

    /// Lets a server save what was confirmed and is not saved.
    fn save_if_left(&mut self) {
        if let Ok(transaction) = Transaction::save(self.disk.clone(), false) {
            self.drive(transaction, "saved late");
        }
    }

    /// Carries out a transaction, as long as the process lives.
    fn drive(&mut self, mut transaction: Transaction, what: &'static str) {
        for _ in 0..60 {
            if !self.is_calm && self.random.percent(6) {
                self.has_guard &= self.random.percent(80);
                self.happen("killed", what);
                return;
            }
            let done = match transaction.want() {
                Want::End => {
                    return match transaction.finish() {
                        Ok(End::Confirmed { .. }) => {
                            self.legitimate = vec![self.running.clone(), self.startup.clone()];
                            self.happen(what, "");
                        }
                        Ok(_) => self.happen(what, ""),
                        Err(fault) => {
                            self.happen(if fault.code == Code::RollbackFailed { "stuck" } else { "came to nothing" }, &fault.detail)
                        }
                    };
                }
                Want::Keep(record) => {
                    let record = record.clone();
                    self.keep(record)
                }
                Want::Arm(_) => self.arm(),
                Want::Confirm(change) => {
                    let name = change.persist.clone().unwrap_or_default();
                    self.tell_timer(|timer, _| timer.confirm(&name), "confirmation lost")
                }
                Want::Apply(change) => {
                    let (candidate, left) = (change.candidate.clone(), change.deadline.as_ref().map_or(0, |end| end.left(&self.now)));
                    match change.persist.clone() {
                        Some(name) if self.goes_wrong(10) => self.delay(&candidate, &name, left),
                        Some(name) => self.tell_timer(|timer, running| timer.commit(running, &candidate, &name, left), "commit lost"),
                        None => self.configure(&candidate),
                    }
                }
                Want::Restore(snapshot) => {
                    let snapshot = snapshot.to_owned();
                    let name = self.disk.change.as_ref().and_then(|change| change.persist.clone());
                    match name {
                        Some(name) => self.tell_timer(|timer, running| timer.cancel(running, &name), "cancel lost"),
                        None => self.configure(&snapshot),
                    }
                }
                Want::Read if self.goes_wrong(5) => self.fail("unreachable"),
                Want::Read => StepResult::Running(self.running.clone()),
                Want::Check(_) | Want::CheckAgain(_) if self.goes_wrong(8) => self.fail("unwell"),
                Want::Check(_) | Want::CheckAgain(_) => StepResult::Done,
                Want::Save if self.goes_wrong(8) => self.fail("not saved"),
                Want::Save => {
                    self.startup.clone_from(&self.running);
                    StepResult::Done
                }
            };
            self.hold_law();
            let slow = self.random.percent(5) && !self.is_calm;
            let took = self.random.below(if slow { WINDOW } else { 300 });
            self.pass(took as u64);
            transaction.hear(done, &self.now);
        }
        panic!("a transaction does not end");
    }

    fn keep(&mut self, record: ChangeRecord) -> StepResult {
        let fails = self.goes_wrong(4);
        if !fails || self.random.percent(50) {
            // From here on somebody has confirmed: what the record says was confirmed, and not what happens to run.
            if let Some(change) = record.change.as_ref().filter(|change| matches!(change.phase, Phase::Confirming | Phase::Confirmed)) {
                self.legitimate.push(change.candidate.clone());
                self.legitimate.extend(self.by_hand.take());
            }
            self.disk = record;
        }
        if fails { self.fail("disk full") } else { StepResult::Done }
    }

    fn arm(&mut self) -> StepResult {
        if self.goes_wrong(5) {
            return self.fail("no guard");
        }
        self.has_guard = true;
        StepResult::Done
    }

    /// Tells the device to run `wanted`: the device does all, half or nothing, with or without an acknowledgement.
    fn configure(&mut self, wanted: &str) -> StepResult {
        let (does, says) = if self.is_calm { (0, true) } else { (self.random.below(10), self.random.percent(85)) };
        match does {
            0..=6 => self.running = wanted.to_owned(),
            7 => {
                let lines: Vec<&str> = wanted.lines().collect();
                let half = self.random.below(lines.len() + 1);
                self.running = format!("{}\n", lines[..half].join("\n"));
                self.happen("half done", "");
            }
            _ => self.happen("not done", ""),
        }
        if says {
            StepResult::Done
        } else {
            self.happen("acknowledgement lost", "");
            self.fail("timeout")
        }
    }

    /// Tells a device with a timer to commit, which it does once nobody waits for an answer any more, within the window.
    fn delay(&mut self, candidate: &str, name: &str, left: u64) -> StepResult {
        let after = self.random.below(usize::try_from(left).unwrap_or(1).max(1)) as u64;
        if let Some(timer) = &mut self.timer {
            timer.queue(after, candidate, name, left);
        }
        self.happen("commit delayed", "");
        self.fail("timeout")
    }

    /// Tells a device with a timer something: the request or its answer may get lost.
    fn tell_timer(&mut self, work: impl FnOnce(&mut DeviceTimer, &mut String) -> Result<(), Fault>, lost: &'static str) -> StepResult {
        let Some(timer) = &mut self.timer else { return StepResult::Done };
        if !self.is_calm && self.random.percent(10) {
            return self.fail(lost);
        }
        let done = work(timer, &mut self.running);
        if self.goes_wrong(10) {
            return self.fail("acknowledgement lost");
        }
        done.map_or_else(StepResult::Failed, |()| StepResult::Done)
    }

    fn goes_wrong(&mut self, chance: usize) -> bool {
        !self.is_calm && self.random.percent(chance)
    }

    fn fail(&mut self, why: &'static str) -> StepResult {
        self.happen(why, "");
        StepResult::Failed(Fault::new(Code::Timeout, why))
    }

    fn happen(&mut self, what: &'static str, more: &str) {
        *self.outcome.counts.entry(what).or_default() += 1;
        self.outcome.trace.push(format!("{:>10} {what} {more}", self.now.up));
    }
}

/// The data with another leaf of this name.
fn replaced(data: &str, name: &str, leaf: &str) -> String {
    let is_it = |line: &&str| line.trim_start().starts_with(&format!("<{name}>"));
    let lines = data.lines().map(|line| if is_it(&line) { format!("  {leaf}\n") } else { format!("{line}\n") });
    lines.collect()
}
