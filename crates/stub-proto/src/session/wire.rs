//! The two profiles on a wire: bytes to messages and back. Decides nothing about a conversation.

use alloc::vec::Vec;
use core::time::Duration;

use crate::can::isotp::IsoTp;
use crate::can::{CanForm, LineReader};
use crate::cbor::Value;
use crate::check::Width;
use crate::fixed::{FixedForm, FixedFrame, FixedKind, FixedReader};
use crate::frame::{AROUND, FrameOrNoise, FrameReader, MOST_MESSAGE, frame};
use crate::message::{PartMessage, TablePage};
use crate::session::CallEnd;
use crate::session::terms::Order;

/// Profile of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A: numbered commands with fixed layouts.
    Fixed(FixedForm),
    /// B: describes itself in CBOR.
    Described,
    /// B on a CAN bus.
    Can(CanForm),
    /// B behind a broker of MQTT, which carries whole messages.
    Mqtt,
}

impl Profile {
    /// Checks for a part that lists its tools, and answers a number that it has seen without running again.
    pub fn lists_tools(self) -> bool {
        !matches!(self, Self::Fixed(_))
    }
}

/// Arguments of a call, as the profile sends them.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Values(Vec<Value>),
    Raw(Vec<u8>),
}

/// Signal from a part.
#[derive(Debug)]
pub(crate) enum PartSignal {
    Nonsense,
    /// A message of the gate, which the wire brings back.
    Echo,
    Heartbeat {
        seq: u8,
        told: BeatWord,
    },
    /// Answer of a table part to a question that does not count.
    Count {
        /// Byte of the question.
        mark: u8,
        /// Number of the last call or counting question; `None` where the part has started anew.
        last: Option<u8>,
    },
    Page(TablePage),
    Answer {
        seq: u8,
        outcome: CallEnd,
    },
}

/// Word of a part with its heartbeat.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BeatWord {
    /// Number of the last call or question that a table part took.
    Last(u8),
    /// Mark of the start of a part that describes itself.
    Boot(u8),
}

/// A wire with its half-read frame.
#[derive(Debug)]
pub(crate) enum PartWire {
    Fixed { form: FixedForm, reader: FixedReader },
    Described { reader: FrameReader, noise: u64 },
    Can { form: CanForm, reader: LineReader, link: IsoTp },
    Mqtt,
}

impl PartWire {
    pub(crate) fn new(profile: Profile) -> Self {
        match profile {
            Profile::Fixed(form) => Self::Fixed { form, reader: FixedReader::new(form) },
            Profile::Described => Self::Described { reader: FrameReader::default(), noise: 0 },
            Profile::Can(form) => Self::Can { form, reader: LineReader::default(), link: IsoTp::default() },
            Profile::Mqtt => Self::Mqtt,
        }
    }

    /// Checks for a part that lists its tools, and answers a number that it has seen without running again.
    pub(crate) fn lists_tools(&self) -> bool {
        !matches!(self, Self::Fixed { .. })
    }

    /// Bytes that open the wire.
    pub(crate) fn opening(&self) -> Vec<u8> {
        match self {
            Self::Can { form, .. } => form.opening(),
            Self::Fixed { .. } | Self::Described { .. } | Self::Mqtt => Vec::new(),
        }
    }

    /// Bytes that the wire itself has to send by now.
    pub(crate) fn owed(&mut self) -> Vec<u8> {
        match self {
            Self::Can { form, link, .. } => core::iter::from_fn(|| link.frame()).flat_map(|data| form.line(&data)).collect(),
            Self::Fixed { .. } | Self::Described { .. } | Self::Mqtt => Vec::new(),
        }
    }

    /// Lets time pass for messages in several frames.
    pub(crate) fn pass(&mut self, now: Duration) {
        if let Self::Can { link, .. } = self {
            link.pass(now);
        }
    }

    /// Checks for a message whose last frame has not gone yet.
    pub(crate) fn is_sending(&self) -> bool {
        match self {
            Self::Can { link, .. } => link.is_sending(),
            Self::Fixed { .. } | Self::Described { .. } | Self::Mqtt => false,
        }
    }

    /// Next moment at which [`Self::pass`] does something.
    pub(crate) fn due(&self) -> Option<Duration> {
        match self {
            Self::Can { link, .. } => link.due(),
            Self::Fixed { .. } | Self::Described { .. } | Self::Mqtt => None,
        }
    }

    pub(crate) fn noise(&self) -> u64 {
        match self {
            Self::Fixed { reader, .. } => reader.noise(),
            Self::Described { noise, .. } => *noise,
            Self::Can { reader, link, .. } => reader.noise().saturating_add(link.noise()),
            Self::Mqtt => 0,
        }
    }

    /// Messages that as much noise could have been.
    pub(crate) fn pieces(&self, noise: u64) -> u32 {
        let pieces = match self {
            Self::Fixed { form, .. } => noise.div_ceil(form.around() as u64),
            Self::Described { .. } | Self::Can { .. } | Self::Mqtt => noise,
        };
        u32::try_from(pieces).unwrap_or(u32::MAX)
    }

    /// Bytes of the longest frame from a part.
    pub(crate) fn longest_answer(&self) -> usize {
        match self {
            Self::Fixed { form, .. } => form.around() + usize::from(form.most_payload),
            Self::Described { .. } | Self::Can { .. } | Self::Mqtt => MOST_MESSAGE + AROUND,
        }
    }

    /// Bytes of a heartbeat and of the answer. Behind a broker the allowance is for the network, as with the longest messages.
    pub(crate) fn beat_bytes(&self, heartbeat: usize) -> usize {
        match self {
            Self::Fixed { .. } | Self::Described { .. } | Self::Can { .. } => heartbeat.saturating_mul(2),
            Self::Mqtt => self.longest_answer().saturating_mul(2),
        }
    }

    /// Takes bytes in. `is_cut`: the wire was silent before.
    pub(crate) fn push(&mut self, bytes: &[u8], is_cut: bool, now: Duration) -> Vec<PartSignal> {
        match self {
            Self::Fixed { reader, .. } => {
                if is_cut {
                    reader.rest();
                }
                reader.push(bytes).into_iter().map(heard_fixed).collect()
            }
            Self::Described { reader, noise } => {
                let framed = reader.push(bytes);
                framed.into_iter().filter_map(|framed| heard_framed(framed, noise)).collect()
            }
            Self::Can { form, reader, link } => {
                let frames = reader.push(bytes, *form);
                frames.iter().filter_map(|data| link.received(data, now)).map(|message| heard_message(&message)).collect()
            }
            Self::Mqtt => alloc::vec![heard_message(bytes)],
        }
    }

    /// Checks that a part can take the call.
    pub(crate) fn fits(&self, order: &Order, seq: u8, most: u8) -> bool {
        match (self, &order.content) {
            (Self::Fixed { form, .. }, Content::Raw(payload)) => payload.len() <= usize::from(form.most_payload),
            (Self::Described { .. } | Self::Can { .. } | Self::Mqtt, Content::Values(_)) => {
                message(order, seq).write().len() + Width::Sixteen.bytes() <= usize::from(most)
            }
            (Self::Fixed { .. }, Content::Values(_)) | (Self::Described { .. } | Self::Can { .. } | Self::Mqtt, Content::Raw(_)) => false,
        }
    }

    /// Bytes of a call. Again, they begin with what ends a frame that was cut off.
    pub(crate) fn call(&mut self, order: &Order, seq: u8, is_again: bool, now: Duration) -> Vec<u8> {
        let mut bytes = if is_again { self.flush() } else { Vec::new() };
        match (&*self, &order.content) {
            (Self::Fixed { form, .. }, Content::Raw(payload)) => {
                bytes.extend(form.frame(&FixedFrame { kind: FixedKind::Call, tool: order.tool, seq, payload: payload.clone() }));
            }
            (Self::Described { .. } | Self::Can { .. } | Self::Mqtt, Content::Values(_)) => {
                bytes.extend(self.described(&message(order, seq), now))
            }
            (Self::Fixed { .. }, Content::Values(_)) | (Self::Described { .. } | Self::Can { .. } | Self::Mqtt, Content::Raw(_)) => {}
        }
        bytes
    }

    /// Bytes of the question to a table part for its number. The part counts no 0, so the question moves nothing.
    pub(crate) fn ask_count(&self, mark: u8) -> Vec<u8> {
        let mut bytes = self.flush();
        if let Self::Fixed { form, .. } = self {
            bytes.extend(count_question(*form, mark));
        }
        bytes
    }

    /// Bytes of the question for the table; for a table part a question with a number, like a call.
    pub(crate) fn ask(&mut self, seq: u8, first: u8, boot: Option<u8>, now: Duration) -> Vec<u8> {
        let mut bytes = self.flush();
        match self {
            Self::Fixed { form, .. } => {
                bytes.extend(form.frame(&FixedFrame { kind: FixedKind::Heartbeat, tool: 0, seq, payload: Vec::new() }));
            }
            Self::Described { .. } | Self::Can { .. } | Self::Mqtt => {
                bytes.extend(self.described(&PartMessage::Ask { seq: Some(seq), first, boot }, now));
            }
        }
        bytes
    }

    /// Bytes of the question for a sign of life: no number of a part moves.
    pub(crate) fn heartbeat(&mut self, seq: u8, now: Duration) -> Vec<u8> {
        match self {
            Self::Fixed { form, .. } => count_question(*form, seq),
            Self::Described { .. } | Self::Can { .. } | Self::Mqtt => self.described(&PartMessage::Heartbeat { seq, boot: None }, now),
        }
    }

    /// Bytes of a message of profile B; on a bus the first of them, where the part has to give leave for the others.
    fn described(&mut self, message: &PartMessage, now: Duration) -> Vec<u8> {
        if let Self::Can { link, .. } = self {
            link.send(&message.write(), now);
            return self.owed();
        }
        if matches!(self, Self::Mqtt) {
            return message.write();
        }
        frame(&message.write())
    }

    /// Bytes that end whatever a part holds of a frame.
    fn flush(&self) -> Vec<u8> {
        match self {
            Self::Fixed { .. } => alloc::vec![0; self.longest_answer()],
            Self::Described { .. } => alloc::vec![0],
            Self::Can { .. } | Self::Mqtt => Vec::new(),
        }
    }
}

fn count_question(form: FixedForm, mark: u8) -> Vec<u8> {
    form.frame(&FixedFrame { kind: FixedKind::Heartbeat, tool: 0, seq: 0, payload: alloc::vec![mark] })
}

fn message(order: &Order, seq: u8) -> PartMessage {
    let arguments = match &order.content {
        Content::Values(arguments) => arguments.clone(),
        Content::Raw(_) => Vec::new(),
    };
    PartMessage::Call { tool: order.tool, seq, arguments }
}

fn heard_framed(framed: FrameOrNoise, noise: &mut u64) -> Option<PartSignal> {
    let bytes = match framed {
        FrameOrNoise::Message(bytes) => bytes,
        FrameOrNoise::Noise(_) => {
            *noise = noise.saturating_add(1);
            return None;
        }
    };
    Some(heard_message(&bytes))
}

fn heard_message(bytes: &[u8]) -> PartSignal {
    match PartMessage::from_part(bytes) {
        Ok(PartMessage::Answer { seq, result }) => PartSignal::Answer { seq, outcome: CallEnd::Values(result) },
        Ok(PartMessage::Failure { seq, code, text }) => PartSignal::Answer { seq, outcome: CallEnd::Failed { code, text } },
        Ok(PartMessage::Table(page)) => PartSignal::Page(page),
        Ok(PartMessage::Heartbeat { seq, boot: Some(boot) }) => PartSignal::Heartbeat { seq, told: BeatWord::Boot(boot) },
        Ok(PartMessage::Call { .. } | PartMessage::Ask { .. } | PartMessage::Heartbeat { .. }) | Err(_) => foreign(bytes),
    }
}

/// Tells an echo from all else that no part sends.
fn foreign(bytes: &[u8]) -> PartSignal {
    if PartMessage::from_gate(bytes).is_ok() { PartSignal::Echo } else { PartSignal::Nonsense }
}

/// Reads a frame of a part. The gate's own heartbeats name no number but their own.
fn heard_fixed(frame: FixedFrame) -> PartSignal {
    match frame.kind {
        FixedKind::Call => PartSignal::Echo,
        FixedKind::Heartbeat if frame.tool == 0 => PartSignal::Echo,
        FixedKind::Heartbeat => PartSignal::Heartbeat { seq: frame.seq, told: BeatWord::Last(frame.tool) },
        FixedKind::Response if frame.seq == 0 => match frame.payload.as_slice() {
            [mark] => PartSignal::Count { mark: *mark, last: Some(frame.tool).filter(|last| *last != 0) },
            _ => PartSignal::Nonsense,
        },
        FixedKind::Response => {
            let mut payload = frame.payload;
            let Some(status) = payload.pop() else { return PartSignal::Nonsense };
            let outcome = if status == 0 { CallEnd::Raw(payload) } else { CallEnd::Failed { code: code(status), text: None } };
            PartSignal::Answer { seq: frame.seq, outcome }
        }
    }
}

/// JSON-RPC code of a status: unknown tool, wrong arguments; all else is the part's own affair.
fn code(status: u8) -> i64 {
    match status {
        1 => -32601,
        2 | 3 => -32602,
        other => -i64::from(other),
    }
}
