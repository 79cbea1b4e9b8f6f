//! Promises of [`crate::Lessons`]. Content of lessons is not tried here.

use super::stores::StorePlace;
use crate::Lesson;

pub(super) fn are_kept_for_their_gate_and_room(place: &StorePlace) {
    let lessons = place().lessons().unwrap();
    let mut ops = Lesson { room: "ops".into(), name: "rules".into(), is_on: true, kept: "{}".into() };
    lessons.put("a", &ops).unwrap();
    (ops.is_on, ops.kept) = (false, "{\"x\":1}".into());
    lessons.put("a", &ops).unwrap();
    let again = place().lessons().unwrap();
    assert_eq!(again.all("a").unwrap(), [ops.clone()]);
    assert_eq!((again.of_room("a", "ops").unwrap(), again.of_room("b", "ops").unwrap()), (Some(ops), None));
}
