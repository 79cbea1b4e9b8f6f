//! A part in software: the far side of a wire, as firmware of profile B keeps to it. Has no port, and no tools of its own.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::cbor::Value;
use crate::frame::{FrameOrNoise, FrameReader, frame};
use crate::message::{ASK_FIRST, PartMessage, TablePage, is_newer};
use crate::table::PartTable;

/// Runs a tool with its arguments, and gives the result or a negative code.
pub type RunTool = Box<dyn FnMut(u8, &[Value]) -> Result<Value, i64> + Send>;

/// Rows of a page, so that tables of people's first parts have several.
const PAGE: usize = 3;
/// Code for a tool that the part does not have, and for arguments of another kind.
const NO_SUCH_TOOL: i64 = -32601;
const BAD_ARGUMENT: i64 = -32602;

/// A part in software.
pub struct SoftwarePart {
    table: PartTable,
    run: RunTool,
    reader: FrameReader,
    /// Mark of this start, never 0.
    boot: u8,
    /// Number of the last call, once the gate has asked for the table with the mark.
    last: Option<u8>,
    /// Answer of the last call, until something else is sent.
    kept: Option<Vec<u8>>,
}

impl SoftwarePart {
    /// Makes a part that has just started, with the frame that it sends then. `boot` is another one at each start.
    pub fn start(table: PartTable, boot: u8, run: RunTool) -> (Self, Vec<u8>) {
        let mut part = Self { table, run, reader: FrameReader::default(), boot: boot.max(1), last: None, kept: None };
        let hello = part.listed(0);
        (part, hello)
    }

    /// Takes bytes of the wire in and gives the bytes to send.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut sent = Vec::new();
        for framed in self.reader.push(bytes) {
            if let FrameOrNoise::Message(message) = framed {
                sent.extend(self.answer(&message));
            }
        }
        sent
    }

    fn answer(&mut self, message: &[u8]) -> Vec<u8> {
        match PartMessage::from_gate(message) {
            Ok(PartMessage::Call { tool, seq, arguments }) => self.call(tool, seq, &arguments),
            Ok(PartMessage::Ask { seq, first, boot }) => {
                let seq = seq.filter(|seq| boot == Some(self.boot) && self.last.is_none_or(|last| is_newer(*seq, last)));
                self.last = seq.or(self.last);
                self.listed(first)
            }
            Ok(PartMessage::Heartbeat { seq, .. }) => {
                self.kept = None;
                frame(&PartMessage::Heartbeat { seq, boot: Some(self.boot) }.write())
            }
            Ok(PartMessage::Answer { .. } | PartMessage::Failure { .. } | PartMessage::Table(_)) | Err(_) => Vec::new(),
        }
    }

    fn listed(&mut self, first: u8) -> Vec<u8> {
        self.kept = None;
        let rest = self.table.rows.get(usize::from(first)..).unwrap_or_default();
        let rows = rest.get(..PAGE).unwrap_or(rest).to_vec();
        let next = u8::try_from(usize::from(first) + PAGE).ok().filter(|_| rest.len() > PAGE);
        let table = PartTable { rows, ..self.table.clone() };
        frame(&PartMessage::Table(TablePage { last: self.last, boot: self.boot, first, table, next }).write())
    }

    fn call(&mut self, tool: u8, seq: u8, arguments: &[Value]) -> Vec<u8> {
        let Some(last) = self.last else { return frame(&PartMessage::Failure { seq, code: ASK_FIRST, text: None }.write()) };
        if seq == last
            && let Some(kept) = &self.kept
        {
            return kept.clone();
        }
        if !is_newer(seq, last) {
            return Vec::new();
        }
        self.last = Some(seq);
        let message = match self.run_tool(tool, arguments) {
            Ok(result) => PartMessage::Answer { seq, result },
            Err(code) => PartMessage::Failure { seq, code, text: None },
        };
        let answer = frame(&message.write());
        self.kept = Some(answer.clone());
        answer
    }

    fn run_tool(&mut self, tool: u8, arguments: &[Value]) -> Result<Value, i64> {
        let row = self.table.row(tool).ok_or(NO_SUCH_TOOL)?;
        let fits = row.arguments.len() == arguments.len() && row.arguments.iter().zip(arguments).all(|(kind, value)| kind.fits(value));
        if fits { (self.run)(tool, arguments) } else { Err(BAD_ARGUMENT) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn ax_74_a_part_that_hears_itself_is_quiet() {
        let table = PartTable { most_bytes: 64, rows: vec![], device: vec![] };
        let (mut part, hello) = SoftwarePart::start(table, 9, Box::new(|_, _| Ok(Value::Null)));
        let page = part.push(&frame(&PartMessage::Ask { seq: Some(5), first: 0, boot: Some(9) }.write()));
        let beat = part.push(&frame(&PartMessage::Heartbeat { seq: 1, boot: None }.write()));
        for own in [hello, page, beat] {
            assert!(!own.is_empty());
            assert_eq!(part.push(&own), [], "{own:x?}");
        }
    }
}
