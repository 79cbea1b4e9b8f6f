//! Messages in frames of a CAN bus: ISO 15765-2 with normal addressing, one message each way at a time. Knows no adapter and no identifier.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::can::MOST_DATA;

/// Patience with the other side, for its next frame and for its leave to go on (N_Cr, N_Bs).
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Times that the other side may ask to wait with a message.
const MOST_WAITS: u8 = 8;
/// Data of a first frame, and of those behind.
const FIRST_DATA: usize = MOST_DATA - 2;
const NEXT_DATA: usize = MOST_DATA - 1;
/// Leave to send everything at once.
const GO_ON: [u8; 3] = [0x30, 0, 0];

/// A message that comes in.
#[derive(Debug)]
struct IncomingMessage {
    whole: usize,
    held: Vec<u8>,
    next: u8,
    due: Duration,
}

/// A message that goes out.
#[derive(Debug)]
struct OutgoingMessage {
    frames: VecDeque<Vec<u8>>,
    /// Frames until the next leave; `None` for no end of it.
    block: Option<u8>,
    /// Pause between two frames.
    pause: Duration,
    waits: u8,
    /// Leave was given, and the next frame goes at `due`; without leave, `due` ends the wait.
    may_go: bool,
    due: Duration,
}

/// Both directions of a part on a bus.
#[derive(Debug, Default)]
pub struct IsoTp {
    incoming: Option<IncomingMessage>,
    outgoing: Option<OutgoingMessage>,
    /// Data of frames to send.
    ready: VecDeque<Vec<u8>>,
    /// Frames without sense, and messages that did not come to their end.
    noise: u64,
}

impl IsoTp {
    /// Frames so far without sense, and messages cut off.
    pub fn noise(&self) -> u64 {
        self.noise
    }

    /// Next frame to send.
    pub fn frame(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    /// Sends a message of 255 bytes at most. An older one that has not gone out yet is given up.
    pub fn send(&mut self, message: &[u8], now: Duration) {
        self.outgoing = None;
        let length = u8::try_from(message.len()).unwrap_or(u8::MAX);
        if message.len() < MOST_DATA {
            let mut single = alloc::vec![length];
            single.extend_from_slice(message);
            return self.ready.push_back(single);
        }
        let (head, rest) = message.split_at(FIRST_DATA.min(message.len()));
        let mut first = alloc::vec![0x10, length];
        first.extend_from_slice(head);
        self.ready.push_back(first);
        let numbered = (1_u8..).zip(rest.chunks(NEXT_DATA));
        let frames = numbered.map(|(number, data)| [&[0x20 | number & 15][..], data].concat()).collect();
        let due = now.saturating_add(PATIENCE);
        self.outgoing = Some(OutgoingMessage { frames, block: None, pause: Duration::ZERO, waits: 0, may_go: false, due });
    }

    /// Takes a frame in. Gives the message that is complete with the frame.
    pub fn received(&mut self, data: &[u8], now: Duration) -> Option<Vec<u8>> {
        match data {
            [head @ 0x01..=0x07, rest @ ..] => {
                self.cut();
                let message = rest.get(..usize::from(*head));
                message.map_or_else(|| self.senseless(), |message| Some(message.to_vec()))
            }
            [0x10, length, rest @ ..] if rest.len() == FIRST_DATA && usize::from(*length) >= MOST_DATA => {
                self.cut();
                let due = now.saturating_add(PATIENCE);
                self.incoming = Some(IncomingMessage { whole: usize::from(*length), held: rest.to_vec(), next: 1, due });
                self.ready.push_back(GO_ON.to_vec());
                None
            }
            [head @ 0x20..=0x2f, rest @ ..] => self.consecutive(head & 15, rest, now),
            [0x30..=0x32, ..] => {
                self.leave(data, now);
                None
            }
            _ => self.senseless(),
        }
    }

    /// Lets time pass: what is due goes out, and what does not go on is given up.
    pub fn pass(&mut self, now: Duration) {
        if self.incoming.as_ref().is_some_and(|incoming| incoming.due <= now) {
            self.cut();
        }
        if self.outgoing.as_ref().is_some_and(|outgoing| outgoing.due <= now) {
            self.go_on(now);
        }
    }

    /// Checks for a message whose last frame has not gone yet.
    pub fn is_sending(&self) -> bool {
        self.outgoing.is_some()
    }

    /// Next moment at which [`Self::pass`] does something.
    pub fn due(&self) -> Option<Duration> {
        let (incoming, outgoing) = (self.incoming.as_ref().map(|known| known.due), self.outgoing.as_ref().map(|known| known.due));
        incoming.into_iter().chain(outgoing).min()
    }

    fn consecutive(&mut self, number: u8, data: &[u8], now: Duration) -> Option<Vec<u8>> {
        let Some(mut incoming) = self.incoming.take() else { return self.senseless() };
        let missing = incoming.whole.saturating_sub(incoming.held.len());
        let data = data.get(..missing).unwrap_or(data);
        // All but the last frame are full.
        if number != incoming.next || data.len() < missing.min(NEXT_DATA) {
            return self.senseless();
        }
        incoming.held.extend_from_slice(data);
        if incoming.held.len() >= incoming.whole {
            return Some(incoming.held);
        }
        (incoming.next, incoming.due) = ((number + 1) & 15, now.saturating_add(PATIENCE));
        self.incoming = Some(incoming);
        None
    }

    /// Takes the other side's word about a message that goes out.
    fn leave(&mut self, data: &[u8], now: Duration) {
        let ([state, rest @ ..], Some(mut outgoing)) = (data, self.outgoing.take()) else { return self.lost() };
        match (state & 15, rest, outgoing.may_go) {
            (0, [block, pause, ..], false) => {
                outgoing.block = (*block != 0).then_some(*block);
                outgoing.pause = separation(*pause);
                (outgoing.may_go, outgoing.due) = (true, now);
                self.outgoing = Some(outgoing);
                self.go_on(now);
            }
            (1, _, false) if outgoing.waits < MOST_WAITS => {
                outgoing.waits = outgoing.waits.saturating_add(1);
                outgoing.due = now.saturating_add(PATIENCE);
                self.outgoing = Some(outgoing);
            }
            // Too long for the other side, or asked to wait for ever.
            (_, _, false) => self.lost(),
            // Twice.
            (_, _, true) => self.outgoing = Some(outgoing),
        }
    }

    /// Sends the frames that may go now.
    fn go_on(&mut self, now: Duration) {
        let Some(mut outgoing) = self.outgoing.take() else { return };
        if !outgoing.may_go {
            return self.lost();
        }
        while let Some(frame) = outgoing.frames.pop_front() {
            self.ready.push_back(frame);
            outgoing.block = outgoing.block.map(|left| left.saturating_sub(1));
            if outgoing.block == Some(0) {
                (outgoing.may_go, outgoing.due) = (false, now.saturating_add(PATIENCE));
                break;
            }
            if !outgoing.pause.is_zero() {
                outgoing.due = now.saturating_add(outgoing.pause);
                break;
            }
        }
        if !outgoing.frames.is_empty() {
            self.outgoing = Some(outgoing);
        }
    }

    /// Gives up a message that came in part.
    fn cut(&mut self) {
        if self.incoming.take().is_some() {
            self.lost();
        }
    }

    fn senseless(&mut self) -> Option<Vec<u8>> {
        self.lost();
        None
    }

    fn lost(&mut self) {
        self.noise = self.noise.saturating_add(1);
    }
}

/// Pause between two frames: milliseconds, or hundreds of microseconds; the longest for what the standard leaves open.
fn separation(code: u8) -> Duration {
    match code {
        0..=0x7f => Duration::from_millis(code.into()),
        0xf1..=0xf9 => Duration::from_micros(100 * u64::from(code & 15)),
        _ => Duration::from_millis(0x7f),
    }
}

#[cfg(test)]
mod tests;
