//! Messages in frames, with a second end that plays the part. Has no bus.

use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::frame::MOST_MESSAGE;

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn frames(end: &mut IsoTp) -> Vec<Vec<u8>> {
    core::iter::from_fn(|| end.frame()).collect()
}

#[test]
fn ax_70_frames_are_those_of_the_standard() {
    let mut end = IsoTp::default();
    end.send(&[1, 2, 3], ms(0));
    assert_eq!(frames(&mut end), [vec![3, 1, 2, 3]]);
    end.send(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], ms(0));
    assert_eq!(frames(&mut end), [vec![0x10, 14, 1, 2, 3, 4, 5, 6]]);
    assert_eq!(end.received(&[0x30, 0, 0], ms(1)), None);
    assert_eq!(frames(&mut end), [vec![0x21, 7, 8, 9, 10, 11, 12, 13], vec![0x22, 14]]);
    assert_eq!(end.received(&[0x10, 9, 1, 2, 3, 4, 5, 6], ms(2)), None);
    assert_eq!(frames(&mut end), [GO_ON.to_vec()]);
    assert_eq!(end.received(&[0x21, 7, 8, 9, 0xcc, 0xcc, 0xcc, 0xcc], ms(3)), Some(vec![1, 2, 3, 4, 5, 6, 7, 8, 9]), "without the padding");
    assert_eq!((end.due(), end.noise()), (None, 0));
}

#[test]
fn the_other_side_says_how_fast() {
    let mut end = IsoTp::default();
    end.send(&[0; 40], ms(0));
    assert_eq!(frames(&mut end).len(), 1);
    // It waits, then takes two frames, ten milliseconds apart, and then all.
    end.received(&[0x31, 0, 0], ms(900));
    end.pass(ms(1100));
    end.received(&[0x30, 2, 10], ms(1200));
    assert_eq!(frames(&mut end).len(), 1);
    assert_eq!(end.due(), Some(ms(1210)));
    end.pass(ms(1210));
    assert_eq!(frames(&mut end).len(), 1);
    end.pass(ms(1300));
    assert_eq!(frames(&mut end).len(), 0, "not without leave");
    end.received(&[0x30, 0, 0], ms(1400));
    assert_eq!((frames(&mut end).len(), end.due(), end.noise()), (3, None, 0));
}

#[test]
fn a_message_without_an_end_is_given_up() {
    let mut end = IsoTp::default();
    end.received(&[0x10, 20, 1, 2, 3, 4, 5, 6], ms(0));
    end.pass(ms(1000));
    assert_eq!(end.received(&[0x21, 7, 8, 9, 10, 11, 12, 13], ms(1001)), None);
    assert_eq!(end.noise(), 2);
    end.send(&[0; 40], ms(2000));
    end.pass(ms(3000));
    end.received(&[0x30, 0, 0], ms(3001));
    assert_eq!((frames(&mut end).len(), end.due(), end.noise()), (2, None, 4), "the leave for the other side, and a first frame");
    end.send(&[0; 40], ms(4000));
    for _ in 0..=MOST_WAITS {
        end.received(&[0x31], ms(4001));
    }
    assert_eq!((end.due(), end.noise()), (None, 5));
}

#[test]
fn a_lost_frame_makes_no_message() {
    let mut end = IsoTp::default();
    end.received(&[0x10, 20, 1, 2, 3, 4, 5, 6], ms(0));
    assert_eq!(end.received(&[0x22, 14, 15, 16, 17, 18, 19, 20], ms(1)), None);
    assert_eq!(end.received(&[0x21, 7, 8, 9, 10, 11, 12, 13], ms(2)), None);
    for senseless in [&[][..], &[0], &[8, 1], &[5, 1], &[0x10, 3, 1, 2, 3, 4, 5, 6], &[0x11, 0, 1, 2, 3, 4, 5, 6], &[0x10, 20], &[0x40]] {
        assert_eq!(end.received(senseless, ms(3)), None, "{senseless:x?}");
    }
    assert_eq!(end.noise(), 10);
}

proptest! {
    #[test]
    fn every_message_crosses_a_bus(message in proptest::collection::vec(any::<u8>(), 1..=MOST_MESSAGE), block in any::<u8>(), pause in 0_u8..4) {
        let (mut ours, mut theirs, mut now, mut since) = (IsoTp::default(), IsoTp::default(), ms(0), 0);
        ours.send(&message, now);
        let mut taken = None;
        for _ in 0..400 {
            let mut is_quiet = true;
            while let Some(frame) = ours.frame() {
                is_quiet = false;
                prop_assert!(frame.len() <= MOST_DATA);
                since += u8::from(frame[0] & 0xf0 == 0x20);
                taken = theirs.received(&frame, now).or(taken);
                if taken.is_none() && since == block && block != 0 {
                    since = 0;
                    ours.received(&[0x30, block, pause], now);
                }
            }
            while let Some(frame) = theirs.frame() {
                is_quiet = false;
                ours.received(&[frame[0], block, pause], now);
            }
            if is_quiet {
                now = ours.due().unwrap_or(now).max(now);
                ours.pass(now);
            }
        }
        prop_assert_eq!(taken, Some(message));
        prop_assert_eq!((ours.due(), ours.noise(), theirs.noise()), (None, 0, 0));
    }
}
