//! `banyan room`: a gate's rooms, their participants, and joining at the terminal. The gate admits participants, not this module.

mod again;
mod asked;
mod join;
mod rules;
mod shown;
mod token;

use clap::{Args, Subcommand};
use gateway::admin::shapes::{ParticipantStatus, RoomStatus};
use serde::{Deserialize, Serialize};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::table::{self, Align};
use crate::{gate, meeting, threads};

/// Rooms in which people and agents meet.
#[derive(Args)]
pub(crate) struct Room {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Come into a room: talk, and approve or reject proposals
    Join(join::Join),
    /// Show the rooms of the running gate, or the participants of one
    #[command(visible_alias = "ls")]
    List(List),
    /// Make a token for a participant, signed with `rooms.secret`
    Token(token::RoomToken),
}

#[derive(Args)]
struct List {
    /// Show the participants of this room [default: show all rooms]
    name: Option<String>,
}

/// `GET /-/rooms`.
#[derive(Serialize, Deserialize)]
struct Rooms {
    rooms: Vec<RoomStatus>,
}

/// `GET /-/rooms/NAME`.
#[derive(Serialize, Deserialize)]
struct Present {
    name: String,
    participants: Vec<ParticipantStatus>,
}

impl Room {
    pub(crate) fn run(self, place: &Place, output: &Output) -> Result<(), Failure> {
        match self.what {
            What::Join(join) => join.run(place, output),
            What::List(list) => threads::wait(list.print(place, output))?,
            What::Token(token) => token.run(place, output),
        }
    }
}

impl List {
    async fn print(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        let Some(name) = &self.name else {
            let all: Rooms = gate.get("/-/rooms", &[]).await?;
            if output.wants_json() {
                return output.json(&all);
            }
            if all.rooms.is_empty() {
                output.remark("this gate has no rooms: add a section [room.NAME] to banyan.toml");
            }
            return meeting::lines(&all.rooms).iter().try_for_each(|line| output.line(line));
        };
        let present: Present = gate.get(&format!("/-/rooms/{}", encoded(name)), &[]).await?;
        if output.wants_json() {
            return output.json(&present);
        }
        if present.participants.is_empty() {
            output.remark("nobody is there");
        }
        let row =
            |one: &ParticipantStatus| vec![printable(&one.id), one.routing.clone(), printable(&one.capabilities.join(", ")), faults(one)];
        let rows: Vec<Vec<String>> = present.participants.iter().map(row).collect();
        table::lines(&[Align::Left; 4], &rows).iter().try_for_each(|line| output.line(line))
    }
}

/// Describes a participant's faulty messages; empty without any.
fn faults(one: &ParticipantStatus) -> String {
    let told = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    [told(one.refused, "refused"), told(one.mismatched, "false")].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// As a part of a path.
fn encoded(name: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes().map(|byte| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(encoded("ops-1.a"), "ops-1.a");
        assert_eq!(encoded("a b/c?é+"), "a%20b%2Fc%3F%C3%A9%2B");
    }
}
