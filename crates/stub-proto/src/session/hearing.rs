//! Reactions of a conversation to what a part sends. What is due without a word of the part is not here.

use core::time::Duration;

use super::outcome::{CallEnd, Unknown};
use super::terms::PartStep;
use super::wire::{BeatWord, PartSignal};
use super::{Flight, MOST_STARTS, MOST_TRIES, PartSession, PartTurn};
use crate::message::{ASK_FIRST, TablePage, is_newer};
use crate::table::PartTable;

impl PartSession {
    /// Takes a signal of the part. What leads nowhere adds up, until the part and the gate agree.
    pub(super) fn hear(&mut self, heard: PartSignal, now: Duration) {
        match heard {
            PartSignal::Nonsense => {
                self.tally.nonsense = self.tally.nonsense.saturating_add(1);
                self.babble = self.babble.saturating_add(1);
            }
            PartSignal::Echo => {
                self.tally.echoes = self.tally.echoes.saturating_add(1);
                self.babble = self.babble.saturating_add(1);
            }
            PartSignal::Heartbeat { seq, told } => self.hear_beat(seq, told, now),
            PartSignal::Count { mark, last } => self.hear_count(mark, last, now),
            PartSignal::Page(page) => self.hear_page(page, now),
            PartSignal::Answer { seq, outcome } => self.hear_answer(seq, outcome, now),
        }
    }

    fn hear_beat(&mut self, heard: u8, told: BeatWord, now: Duration) {
        let is_asked = match &self.phase {
            // A part without a table of its own answers the question that counts.
            PartTurn::Asking { .. } => !self.wire.lists_tools() && self.is_numbered && heard == self.seq,
            PartTurn::Beating { seq, .. } => self.wire.lists_tools() && *seq == heard,
            PartTurn::Closed | PartTurn::Resting { .. } | PartTurn::Calling { .. } => false,
        };
        if !is_asked {
            return self.stray();
        }
        match told {
            BeatWord::Last(last) if last == self.seq => self.agreed(now),
            BeatWord::Boot(boot) if Some(boot) == self.boot => self.agreed(now),
            BeatWord::Last(last) => self.ask_from(last, now),
            BeatWord::Boot(boot) => {
                self.boot = Some(boot);
                self.ask(0, now);
            }
        }
    }

    /// Takes the number of a table part: the answer to a heartbeat, or the begin of the numbers of this conversation.
    fn hear_count(&mut self, mark: u8, last: Option<u8>, now: Duration) {
        if matches!(self.phase, PartTurn::Beating { seq, .. } if seq == mark) {
            // A part that has started anew, or counts otherwise, gets a question that counts.
            return if last == Some(self.seq) { self.agreed(now) } else { self.ask(0, now) };
        }
        if self.is_numbered || mark != self.seq || !matches!(self.phase, PartTurn::Asking { .. }) {
            return self.stray();
        }
        match last {
            Some(last) => self.ask_from(last, now),
            None => {
                self.is_numbered = true;
                self.ask_again(now);
            }
        }
    }

    /// Asks with numbers behind those of the part.
    fn ask_from(&mut self, last: u8, now: Duration) {
        self.jump_from(last);
        self.ask_again(now);
    }

    /// Asks at once, a few times until part and gate agree; then the next question has to wait for its time.
    fn ask_again(&mut self, now: Duration) {
        if self.starts >= MOST_STARTS {
            return self.stray();
        }
        self.starts = self.starts.saturating_add(1);
        let misses = if let PartTurn::Asking { misses, .. } = self.phase { misses } else { 0 };
        self.ask(misses, now);
    }

    fn hear_answer(&mut self, heard: u8, outcome: CallEnd, now: Duration) {
        if !matches!(self.phase, PartTurn::Calling { seq, .. } if seq == heard) {
            return self.stray();
        }
        let PartTurn::Calling { flight, .. } = core::mem::replace(&mut self.phase, PartTurn::Closed) else { return };
        if matches!(outcome, CallEnd::Failed { code: ASK_FIRST, .. }) {
            return self.started_anew(flight, true, now);
        }
        self.done(flight.order.id, outcome);
        self.agreed(now);
    }

    fn hear_page(&mut self, page: TablePage, now: Duration) {
        let is_known = Some(page.boot) == self.boot;
        match (&self.phase, page.last) {
            (PartTurn::Asking { .. }, Some(last)) if is_known => self.hear_rows(last, page, now),
            // The question with the mark of this start is on its way, or has just been lost.
            (PartTurn::Asking { .. }, None) if is_known => self.stray(),
            (PartTurn::Asking { .. }, _) => self.hear_start(&page, now),
            // A page that nobody asked for says something only where a part has started anew.
            (PartTurn::Resting { .. } | PartTurn::Beating { .. } | PartTurn::Calling { .. }, None) if !is_known => {
                self.boot = Some(page.boot);
                match core::mem::replace(&mut self.phase, PartTurn::Closed) {
                    PartTurn::Calling { flight, .. } => self.started_anew(flight, false, now),
                    PartTurn::Closed | PartTurn::Asking { .. } | PartTurn::Resting { .. } | PartTurn::Beating { .. } => self.ask(0, now),
                }
            }
            (PartTurn::Closed | PartTurn::Resting { .. } | PartTurn::Beating { .. } | PartTurn::Calling { .. }, _) => self.stray(),
        }
    }

    /// Takes the mark of a start for the next question: a page counts only with the mark that was asked with.
    fn hear_start(&mut self, page: &TablePage, now: Duration) {
        self.boot = Some(page.boot);
        match page.last {
            Some(last) if !self.is_numbered => self.ask_from(last, now),
            Some(_) | None => self.ask_again(now),
        }
    }

    /// Takes a page of the table that was asked for.
    fn hear_rows(&mut self, last: u8, page: TablePage, now: Duration) {
        // Sent before the part took the number of the question, so before the question.
        if is_newer(self.seq, last) {
            return self.stray();
        }
        if last != self.seq {
            return self.ask_from(last, now);
        }
        match core::mem::replace(&mut self.phase, PartTurn::Closed) {
            // Twice, or late: another page goes on where the last one ended.
            PartTurn::Asking { misses, table, due } if usize::from(page.first) != table.rows.len() => {
                self.phase = PartTurn::Asking { misses, table, due };
                self.stray();
            }
            PartTurn::Asking { misses, table, due } => self.add_rows((misses, table, due), page, now),
            other @ (PartTurn::Closed | PartTurn::Resting { .. } | PartTurn::Beating { .. } | PartTurn::Calling { .. }) => {
                self.phase = other
            }
        }
    }

    fn add_rows(&mut self, (misses, mut table, due): (u8, PartTable, Duration), page: TablePage, now: Duration) {
        (table.most_bytes, table.device) = (page.table.most_bytes, page.table.device);
        let has_rows = !page.table.rows.is_empty();
        let is_new = page.table.rows.into_iter().all(|row| table.add(row));
        let listed = u8::try_from(table.rows.len()).unwrap_or(u8::MAX);
        match page.next {
            None if is_new => {
                if self.table.as_ref() != Some(&table) {
                    self.table = Some(table.clone());
                    self.steps.push_back(PartStep::Table(table));
                }
                self.is_numbered = true;
                self.agreed(now);
            }
            Some(next) if is_new && has_rows && next == listed => self.ask_page(0, table, now),
            _ => {
                // A part whose pages never fit together is no better than a silent one.
                self.phase = PartTurn::Asking { misses, table: PartTable::default(), due };
                self.stray();
            }
        }
    }

    /// Ends or keeps a call whose part has started anew. `refused` is the part's word that this try did not run.
    fn started_anew(&mut self, flight: Flight, refused: bool, now: Duration) {
        if flight.order.is_repeatable && flight.tries < MOST_TRIES && !flight.was_refused {
            let tries = if refused && flight.tries == 1 { 0 } else { flight.tries };
            self.waiting.push_front(Flight { tries, was_refused: true, ..flight });
        } else {
            // A tool that has run may end by the same word: what may run once is not sent again on it.
            self.done(flight.order.id, CallEnd::Unknown(Unknown::StartedAnew));
        }
        self.ask(0, now);
    }
}
