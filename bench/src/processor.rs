//! The processor time that processes have used. Linux only.

use std::fs;

use anyhow::Context;

/// Processor time of some processes so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// Exact, for the threads that live.
    nanoseconds: u64,
    /// In hundredths of a second, rounded down; good for the share only.
    user: u64,
    system: u64,
}

impl Used {
    /// What `processes` have used.
    pub(crate) fn by(processes: &[u32]) -> anyhow::Result<Self> {
        let mut used = Self::default();
        for process in processes {
            used.add(*process).with_context(|| format!("reading what process {process} used"))?;
        }
        Ok(used)
    }

    fn add(&mut self, process: u32) -> anyhow::Result<()> {
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            // Nanoseconds on a processor come first.
            let text = fs::read_to_string(thread?.path().join("schedstat"))?;
            self.nanoseconds += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
        }
        let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).copied().unwrap_or_default().parse::<u64>();
        self.user += ticks(11)?;
        self.system += ticks(12)?;
        Ok(())
    }

    /// Microseconds of user and of system time since `before`, for each of `calls`.
    pub(crate) fn each(self, before: Self, calls: usize) -> (f64, f64) {
        let micros = (self.nanoseconds - before.nanoseconds) as f64 / 1000.0 / calls.max(1) as f64;
        let (user, system) = ((self.user - before.user) as f64, (self.system - before.system) as f64);
        let share = if user + system > 0.0 { user / (user + system) } else { 0.5 };
        (micros * share, micros * (1.0 - share))
    }
}
