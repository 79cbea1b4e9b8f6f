//! Differences of rooms and participants. Lets nobody in.

use crate::diff::{self, Change, differing};
use crate::resolved::{Config, Participant, Room, Rooms};

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let (old, new) = (&old.rooms, &new.rooms);
    let mut changes: Vec<Change> = diff::keys("rooms", rooms_fields(old, new)).into_iter().collect();
    changes.extend(diff::named("room", rooms(old), rooms(new), room_fields));
    changes.extend(diff::named("participant", participants(old), participants(new), participant_fields));
    changes
}

fn rooms(all: &Rooms) -> impl Iterator<Item = (&str, &Room)> {
    all.rooms.iter().map(|(topic, room)| (topic.as_str(), room))
}

fn participants(all: &Rooms) -> impl Iterator<Item = (&str, &Participant)> {
    all.participants.iter().map(|(id, participant)| (id.as_str(), participant))
}

fn rooms_fields(old: &Rooms, new: &Rooms) -> Vec<&'static str> {
    let Rooms { open, capabilities, issuers, secret, dev_tokens, query_token, mew, settings, rooms: _, participants: _ } = old;
    differing([
        ("open", *open != new.open),
        ("capabilities", *capabilities != new.capabilities),
        ("issuers", *issuers != new.issuers),
        ("secret", *secret != new.secret),
        ("dev_tokens", *dev_tokens != new.dev_tokens),
        ("query_token", *query_token != new.query_token),
        ("mew", *mew != new.mew),
        ("limits", *settings != new.settings),
    ])
}

fn room_fields(old: &Room, new: &Room) -> Vec<&'static str> {
    let Room { rule, admins, settings, seats } = old;
    differing([
        ("access", rule.access != new.rule.access),
        ("members", rule.members != new.rule.members),
        ("capabilities", rule.capabilities != new.rule.capabilities),
        ("routing", rule.hearing.routing != new.rule.hearing.routing),
        ("echo", rule.hearing.echo != new.rule.hearing.echo),
        ("admins", *admins != new.admins),
        ("seats", seats.servers != new.seats.servers),
        ("mount", seats.is_mounted != new.seats.is_mounted),
        ("limits", *settings != new.settings),
    ])
}

fn participant_fields(old: &Participant, new: &Participant) -> Vec<&'static str> {
    let Participant { token, rooms, capabilities, hearing } = old;
    differing([
        ("token", *token != new.token),
        ("rooms", *rooms != new.rooms),
        ("capabilities", *capabilities != new.capabilities),
        ("routing", hearing.routing != new.hearing.routing),
        ("echo", hearing.echo != new.hearing.echo),
    ])
}
