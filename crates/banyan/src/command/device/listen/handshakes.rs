//! Handshakes under way, with room for those who come: of too many from one address, or from all, the oldest gives way. Shakes no hands.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Most handshakes of one address.
const OF_ONE: usize = 8;
/// Most handshakes of all.
const OF_ALL: usize = 64;

/// Handshakes under way, the oldest first.
#[derive(Clone, Default)]
pub(super) struct Handshakes(Arc<Mutex<HandshakeQueue>>);

#[derive(Default)]
struct HandshakeQueue {
    count: u64,
    waiting: VecDeque<(u64, IpAddr, oneshot::Sender<()>)>,
}

/// A handshake, which counts until dropped.
pub(super) struct CountedHandshake {
    all: Handshakes,
    number: u64,
    ended: oneshot::Receiver<()>,
}

impl Handshakes {
    /// Counts a handshake, and ends the oldest where there are too many.
    pub(super) fn begin(&self, address: IpAddr) -> CountedHandshake {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = queue.waiting.iter().filter(|(_, other, _)| *other == address).count();
        let oldest = if of_one >= OF_ONE {
            queue.waiting.iter().position(|(_, other, _)| *other == address)
        } else {
            (queue.waiting.len() >= OF_ALL).then_some(0)
        };
        drop(oldest.and_then(|at| queue.waiting.remove(at)));
        queue.count += 1;
        let (end, ended) = oneshot::channel();
        let number = queue.count;
        queue.waiting.push_back((number, address, end));
        CountedHandshake { all: self.clone(), number, ended }
    }
}

impl CountedHandshake {
    /// Answers the outcome of a handshake; `None` where another took the place.
    pub(super) async fn shake<T>(mut self, handshake: impl Future<Output = Option<T>>) -> Option<T> {
        tokio::select! {
            shaken = handshake => shaken,
            _ended = &mut self.ended => None,
        }
    }
}

impl Drop for CountedHandshake {
    fn drop(&mut self) {
        let mut queue = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.retain(|(number, ..)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_over(handshake: &mut CountedHandshake) -> bool {
        handshake.ended.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn the_oldest_handshake_of_an_address_gives_way() {
        let (all, address) = (Handshakes::default(), IpAddr::from([10, 0, 0, 1]));
        let mut other = all.begin(IpAddr::from([10, 0, 0, 2]));
        let mut begun: Vec<_> = (0..OF_ONE).map(|_| all.begin(address)).collect();
        assert!(!begun.iter_mut().any(is_over));
        let mut next = all.begin(address);
        assert!(is_over(&mut begun[0]) && !begun[1..].iter_mut().any(is_over) && !is_over(&mut next) && !is_over(&mut other));
        drop((begun, next));
        assert_eq!(all.0.lock().unwrap().waiting.len(), 1);
    }

    #[test]
    fn the_oldest_of_all_handshakes_gives_way() {
        let all = Handshakes::default();
        let address = |number: usize| IpAddr::from(u32::try_from(number).unwrap().to_be_bytes());
        let mut begun: Vec<_> = (0..OF_ALL + 3).map(|number| all.begin(address(number))).collect();
        assert!(begun[..3].iter_mut().all(is_over) && !begun[3..].iter_mut().any(is_over));
    }
}
