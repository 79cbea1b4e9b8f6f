//! Rooms and their state, drawn for people. Counts nothing.

use gateway::admin::shapes::RoomStatus;

use crate::printable::printable;
use crate::table::{self, Align};

/// Draws a line for each room.
pub(crate) fn lines(rooms: &[RoomStatus]) -> Vec<String> {
    let rows: Vec<Vec<String>> = rooms.iter().map(row).collect();
    table::lines(&[Align::Left; 5], &rows)
}

fn row(room: &RoomStatus) -> Vec<String> {
    let some = |count: u64, what: &str| if count == 0 { String::new() } else { format!("{count} {what}") };
    vec![
        format!("room {}", printable(&room.name)),
        room.access.clone(),
        table::counted(room.participants, "participant"),
        format!("{} messages", room.messages),
        [some(room.refused, "refused"), some(room.cut, "cut off")]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(", "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_one_line() {
        let room = |name: &str, refused, cut| RoomStatus {
            name: name.into(),
            access: "private".into(),
            participants: 1,
            messages: 7,
            deliveries: 14,
            refused,
            cut,
        };
        let lines = lines(&[room("ops", 0, 0), room("li\u{1b}ve", 2, 1)]);
        assert!(lines[0].starts_with("room ops") && lines[0].contains("private") && lines[0].contains("1 participant"), "{lines:?}");
        assert!(lines[1].ends_with("2 refused, 1 cut off") && !lines[1].contains('\u{1b}'), "{lines:?}");
    }
}
