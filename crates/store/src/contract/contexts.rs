//! Promises of [`crate::Contexts`]. Content of contexts is not tried here.

use super::stores::StorePlace;
use crate::{ContextAddition, KeptContext, KeptProgress};

pub(super) fn are_there_after_a_restart_and_each_gates_own(place: &StorePlace) {
    let contexts = place().contexts().unwrap();
    let addition = |numbers: &[u64], known: u64| ContextAddition {
        versions: numbers.iter().map(|number| (*number, vec![u8::try_from(*number).unwrap()])).collect(),
        known: vec![("dns:edge".to_owned(), KeptProgress { version: known, epoch: u64::MAX - known })],
        epoch: None,
    };
    contexts.add("a", "chat", &addition(&[1, 2], 7)).unwrap();
    contexts.add("a", "chat", &addition(&[3], 9)).unwrap();
    contexts.add("a", "other", &addition(&[1], 1)).unwrap();
    drop(contexts);
    let again = place().contexts().unwrap();
    again.add("a", "chat", &ContextAddition { epoch: Some(u64::MAX), ..ContextAddition::default() }).unwrap();
    let known = [("dns:edge".to_owned(), KeptProgress { version: 9, epoch: u64::MAX - 9 })].into();
    let kept = KeptContext { versions: vec![(1, vec![1]), (2, vec![2]), (3, vec![3])], known, epoch: u64::MAX, ..KeptContext::default() };
    assert_eq!(again.read("a", "chat").unwrap(), kept);
    assert_eq!(again.read("b", "chat").unwrap(), KeptContext::default());
    assert_eq!(again.read("a", "other").unwrap().versions.len(), 1);
}

pub(super) fn go_on_from_a_snapshot(place: &StorePlace) {
    let contexts = place().contexts().unwrap();
    let versions = (1..=4).map(|number| (number, vec![0])).collect();
    contexts.add("a", "chat", &ContextAddition { versions, ..ContextAddition::default() }).unwrap();
    contexts.rebase("a", "chat", 2, b"two").unwrap();
    contexts.rebase("a", "chat", 3, b"three").unwrap();
    contexts.add("a", "chat", &ContextAddition { versions: vec![(5, vec![5])], ..ContextAddition::default() }).unwrap();
    let kept = place().contexts().unwrap().read("a", "chat").unwrap();
    assert_eq!((kept.base, kept.snapshot.as_slice()), (3, b"three".as_slice()));
    assert_eq!(kept.versions, [(4, vec![0]), (5, vec![5])]);
}
