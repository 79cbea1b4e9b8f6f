//! The doors of the gate on real sockets: a client written here by hand, the gate in this process, and real servers behind it.
//!
//! Does not try the messages of single state machines; the machines have their own tests.

#[cfg(test)]
mod allowed;
#[cfg(test)]
mod asked;
#[cfg(test)]
mod attached;
#[cfg(test)]
mod believed;
#[cfg(test)]
mod beside;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod circles;
#[cfg(test)]
mod claimed;
#[cfg(test)]
mod connected;
#[cfg(test)]
mod crossing;
#[cfg(test)]
mod degraded;
#[cfg(test)]
mod doubted;
#[cfg(test)]
mod exact;
#[cfg(test)]
mod filled;
#[cfg(test)]
mod flooded;
#[cfg(test)]
mod greedy;
#[cfg(test)]
mod grouped;
#[cfg(test)]
mod guests;
#[cfg(test)]
mod hearing;
#[cfg(test)]
mod held;
#[cfg(test)]
mod hidden;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod lengthy_texts;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod linked;
#[cfg(test)]
mod lookalike;
#[cfg(test)]
mod meanwhile;
#[cfg(test)]
mod misfits;
#[cfg(test)]
mod missed;
#[cfg(test)]
mod mounted;
#[cfg(test)]
mod nested;
mod notified;
#[cfg(test)]
mod outward;
#[cfg(test)]
mod overlong;
#[cfg(test)]
mod overseen;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod pinned;
#[cfg(test)]
mod pinned_texts;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod poured;
#[cfg(test)]
mod previewed;
#[cfg(test)]
mod readers;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod registered;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod replayed;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod rooms;
#[cfg(test)]
mod ruled;
#[cfg(test)]
mod safe;
#[cfg(test)]
mod scoped;
#[cfg(test)]
mod seated;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod shut;
#[cfg(test)]
mod spelt;
#[cfg(test)]
mod strangers;
#[cfg(test)]
mod subscribed;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod terms;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod told;
#[cfg(test)]
mod trusted;
#[cfg(test)]
mod untold;
#[cfg(test)]
mod unwritten;
#[cfg(test)]
mod walked;
#[cfg(test)]
mod world;
