//! Resolves `[rooms]`, `[room.NAME]` and `[participant.NAME]`. Fetches no secret, and lets nobody in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use banyan_model::Segment;
use room_proto::access::{Access, Rule, covers};
use room_proto::capability::{Capabilities, Pattern};
use room_proto::name::{ParticipantId, Topic};
use room_proto::room::{Hearing, Rate, Routing, Settings};

use super::file::{self, RoomAccess, RoomForm};
use super::resolved::{MountedRooms, Participant, ROOM_SEGMENT, Room, Rooms, Seats, TokenKey, gate_seat};
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::secret::SecretRef;
use crate::section::mount::family::FamilyTransport;
use crate::section::mount::resolved::{Mount, Sharing, Transport};
use crate::units::hex_digest;

impl FileReading<'_> {
    pub(super) fn rooms(&mut self, form: &RoomForm) -> Rooms {
        let (section, defaults) = (&form.rooms, Rooms::default());
        let settings = self.room_settings(&section.limits, &defaults.settings);
        let rooms: BTreeMap<Topic, Room> = form.room.iter().filter_map(|(name, room)| self.room(name, room, &settings)).collect();
        let participants = form.participant.iter().filter_map(|(name, who)| self.participant(name, who, section.open, &rooms)).collect();
        for name in &section.issuers {
            self.known("issuer", name, &format!("add a section [issuer.{}]", name.get()));
        }
        Rooms {
            open: section.open,
            capabilities: section.capabilities.as_deref().map_or(defaults.capabilities, |list| self.capabilities(list)),
            issuers: section.issuers.iter().map(|name| name.get().as_str().into()).collect(),
            secret: section.secret.as_ref().map(|secret| self.referred(secret, "rooms: secret")),
            dev_tokens: section.dev_tokens.as_ref().is_some_and(|on| *on.get()),
            query_token: section.query_token,
            mew: section.mew,
            // A room that the file does not name ends with the last who leaves, and so does what was said there.
            settings: Settings { history: 0, ..settings },
            rooms,
            participants,
        }
    }

    /// Refuses to hand out tokens beyond this machine, or without a secret to sign them.
    pub(super) fn dev_tokens(&mut self, form: &RoomForm, config: &Config) {
        let Some(on) = form.rooms.dev_tokens.as_ref().filter(|on| *on.get()) else { return };
        if config.rooms.secret.is_none() {
            let flaw = Flaw::new(on.span(), "`dev_tokens` hands out tokens, and there is no secret to sign them");
            self.flaws.push(flaw.help("add secret = \"${env:ROOM_SECRET}\" to [rooms], of at least 32 bytes"));
        }
        if !config.listen.ip().is_loopback() || config.behind_proxy {
            let flaw =
                Flaw::new(on.span(), "`dev_tokens` lets everybody into every room, and this gate can be reached from other machines");
            self.flaws.push(flaw.help("listen on 127.0.0.1 without a proxy, or make tokens with `banyan room token`"));
        }
    }

    fn room(&mut self, name: &At<String>, room: &file::Room, settings: &Settings) -> Option<(Topic, Room)> {
        let rule = Rule {
            access: match room.access {
                RoomAccess::Private => Access::Private,
                RoomAccess::Public => Access::Public,
                RoomAccess::Restricted => Access::Restricted,
            },
            members: self.participant_ids(&room.members),
            capabilities: room.capabilities.as_deref().map(|list| self.capabilities(list)),
            hearing: hearing(room.routing, room.echo),
        };
        let lowered = Room {
            rule,
            admins: self.participant_ids(&room.admins),
            settings: self.room_settings(&room.limits, settings),
            seats: self.seats(room),
        };
        match Topic::new(name.get()) {
            Ok(topic) => Some((topic, lowered)),
            Err(bad) => {
                self.flaws.push(Flaw::new(name.span(), format!("`{}` can't be the name of a room: {bad}", name.get())));
                None
            }
        }
    }

    /// Seats mounts under their names, and the whole tree under a name of its own.
    fn seats(&mut self, room: &file::Room) -> Seats {
        let mut seats = Seats { is_mounted: room.mount.0.is_some(), ..Seats::default() };
        for name in &room.seats {
            let is_known = self.known("mount", name, &format!("add a section [mount.{}]", name.get()));
            if let Some(mount) = Segment::new(name.get()).ok().filter(|_| is_known) {
                self.seat(&mut seats, name, Some(mount));
            }
        }
        if let Some(name) = &room.tree {
            self.seat(&mut seats, name, None);
        }
        seats
    }

    /// Makes the mount of all mounted rooms.
    pub(super) fn mounted(&mut self, form: &RoomForm, rooms: &Rooms) -> Option<(Segment, Arc<Mount>)> {
        let segment = Segment::new(ROOM_SEGMENT).ok().filter(|_| rooms.mounted().next().is_some())?;
        let mounted: Vec<_> = form.room.iter().filter_map(|(name, room)| Some((name, room.mount.0.as_deref()?))).collect();
        for (name, _) in mounted.iter().filter(|(name, _)| Segment::new(name.get()).is_err()) {
            let flaw = Flaw::new(name.span(), format!("the room `{}` can't be mounted: its name stands in those of tools", name.get()));
            self.flaws.push(flaw.help("give it a name of 1 to 63 of a-z, 0-9, `_` and `-`, or leave out `mount`"));
        }
        if let Some(taken) = self.place("mount", ROOM_SEGMENT) {
            let flaw =
                Flaw::new(taken, format!("there can be no mount `{ROOM_SEGMENT}`: the rooms that are mounted stand under that name"));
            self.flaws.push(flaw.help("give the server another name"));
        }
        let transport = Transport::Family(FamilyTransport::new(MountedRooms));
        let mut mount = Mount { sharing: Sharing::Always, ..Mount::new(segment.clone(), transport, "[room.NAME] mount") };
        for (name, settings) in &mounted {
            self.room_mount(&mut mount, name.get(), settings);
        }
        if mounted.iter().all(|(_, settings)| settings.include.is_empty()) {
            mount.include.clear();
        }
        Some((segment, Arc::new(mount)))
    }

    /// Adds a room's settings to the mount of all rooms, where tool names begin with the room's.
    fn room_mount(&mut self, mount: &mut Mount, room: &str, settings: &file::RoomMount) {
        let of_room = |glob: String| format!("{room}.{glob}");
        let (include, exclude) = (self.globs(&settings.include), self.globs(&settings.exclude));
        // Where one room names some of its tools, all tools of the others have to be named.
        let include = if include.is_empty() { vec!["*".to_owned()] } else { include };
        mount.include.extend(include.into_iter().map(of_room));
        mount.exclude.extend(exclude.into_iter().map(of_room));
        mount.tools.extend(self.wishes(&settings.tools).into_iter().map(|(glob, wishes)| (of_room(glob), wishes)));
        mount.timeouts.extend(self.duration(settings.timeout.as_ref()).map(|timeout| (room.to_owned(), timeout)));
    }

    fn seat(&mut self, seats: &mut Seats, name: &At<String>, mount: Option<Segment>) {
        let Some(id) = self.participant_id(name) else { return };
        let what = name.get();
        if id == gate_seat() {
            let flaw = Flaw::new(name.span(), format!("`{what}` can't sit in a room: the gate itself does under that name"));
            self.flaws.push(flaw.help("give the mount another name, or let the whole tree sit there under one"));
        } else if seats.servers.insert(id, mount).is_some() {
            self.flaws.push(Flaw::new(name.span(), format!("`{what}` sits twice in this room")).help("name each once"));
        }
    }

    /// Refuses a participant with the id of a part of the gate.
    fn seated(&mut self, name: &At<String>, id: &ParticipantId, who: &file::Participant, rooms: &BTreeMap<Topic, Room>) {
        let comes_to = |topic: &Topic| who.rooms.iter().any(|named| covers(named.get(), topic.as_str()));
        if let Some((topic, _)) = rooms.iter().find(|(topic, room)| room.seats.has(id) && comes_to(topic)) {
            let (id, room) = (id.as_str(), topic.as_str());
            let flaw = Flaw::new(name.span(), format!("`{id}` already sits in the room `{room}`, as part of the gate"));
            self.flaws.push(flaw.help("give the participant another name, or leave that room out of its `rooms`"));
        }
    }

    fn participant(
        &mut self,
        name: &At<String>,
        who: &file::Participant,
        open: bool,
        rooms: &BTreeMap<Topic, Room>,
    ) -> Option<(ParticipantId, Participant)> {
        let token = self.token_key(name, who);
        if who.rooms.is_empty() {
            let flaw = Flaw::new(name.span(), format!("the participant `{}` may come into no room", name.get()));
            self.flaws.push(flaw.help("add rooms = [\"NAME\"], or [\"*\"] for all that there are"));
        }
        for room in &who.rooms {
            let named = room.get();
            if !open && !named.ends_with('*') {
                self.known("room", room, &format!("add a section [room.{named}], or `open = true` to [rooms]"));
            }
        }
        let id = self.participant_id(name)?;
        self.seated(name, &id, who, rooms);
        let capabilities = who.capabilities.as_deref().map(|list| self.capabilities(list));
        let rooms = who.rooms.iter().map(|room| room.get().clone()).collect();
        Some((id, Participant { token: token?, rooms, capabilities, hearing: hearing(who.routing, who.echo) }))
    }

    fn token_key(&mut self, name: &At<String>, who: &file::Participant) -> Option<TokenKey> {
        match (&who.token, &who.sha256) {
            (Some(token), None) => Some(TokenKey::Secret(self.referred(token, &format!("participant.{}: token", name.get())))),
            (None, Some(sha256)) => {
                let digest = hex_digest(sha256.get()).map(TokenKey::Sha256);
                if digest.is_none() {
                    let flaw = Flaw::new(sha256.span(), "`sha256` is not a SHA-256 hash of 64 hexadecimal digits").secret();
                    self.flaws.push(flaw.help("`printf %s \"$TOKEN\" | sha256sum` writes it"));
                }
                digest
            }
            (Some(_), Some(_)) | (None, None) => {
                let flaw = Flaw::new(name.span(), format!("the participant `{}` needs either `token` or `sha256`", name.get()));
                self.flaws.push(flaw.help("for example token = \"${env:ALICE_TOKEN}\""));
                None
            }
        }
    }

    /// Reads a reference to a secret, and refuses a secret in the file itself.
    fn referred(&mut self, text: &At<String>, place: &str) -> SecretRef {
        let secret = self.secret(text, place);
        if secret.as_plain().is_some_and(|plain| !plain.is_empty()) {
            let flaw = Flaw::new(text.span(), "a secret stands in this file itself, for everybody who reads it").secret();
            self.flaws.push(flaw.help("write where it is: ${env:NAME}, ${file:/path} or ${keyring:NAME}"));
        }
        secret
    }

    fn participant_ids(&mut self, names: &[At<String>]) -> BTreeSet<ParticipantId> {
        names.iter().filter_map(|name| self.participant_id(name)).collect()
    }

    fn participant_id(&mut self, name: &At<String>) -> Option<ParticipantId> {
        ParticipantId::new(name.get())
            .map_err(|bad| self.flaws.push(Flaw::new(name.span(), format!("`{}` can't be the id of a participant: {bad}", name.get()))))
            .ok()
    }

    fn capabilities(&mut self, list: &[At<String>]) -> Capabilities {
        let mut patterns = Vec::new();
        for text in list {
            match Pattern::new(text.get()) {
                Ok(pattern) => patterns.push(pattern),
                Err(bad) => self.flaws.push(Flaw::new(text.span(), bad.to_string())),
            }
        }
        Capabilities::new(patterns).unwrap_or_else(|bad| {
            let span = list.first().map_or(0..0, At::span);
            self.flaws.push(Flaw::new(span, bad.to_string()));
            Capabilities::default()
        })
    }

    fn room_settings(&mut self, limits: &file::RoomLimits, defaults: &Settings) -> Settings {
        let rate = |per_second: Option<u32>, burst: Option<u32>, default: Rate| Rate {
            per_second: per_second.unwrap_or(default.per_second),
            burst: burst.unwrap_or(default.burst),
        };
        let mut bytes = |text| self.size(text).map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        let bytes = rate(bytes(limits.bytes_per_second.as_ref()), bytes(limits.bytes_at_once.as_ref()), defaults.bytes);
        Settings {
            participants: limits.participants.unwrap_or(defaults.participants),
            message_bytes: self.size(limits.message_size.as_ref()).unwrap_or(defaults.message_bytes),
            queue_messages: limits.queue_messages.unwrap_or(defaults.queue_messages),
            queue_bytes: self.size(limits.queue_size.as_ref()).unwrap_or(defaults.queue_bytes),
            messages: rate(limits.messages_per_second, limits.messages_at_once, defaults.messages),
            bytes,
            refusals: rate(None, limits.refusals, defaults.refusals),
            history: limits.history.unwrap_or(defaults.history),
            rulings: defaults.rulings,
            exclusion: defaults.exclusion,
            reconnection: defaults.reconnection,
        }
    }
}

fn hearing(routing: Option<file::Routing>, echo: Option<bool>) -> Hearing {
    let routing = routing.map(|routing| match routing {
        file::Routing::All => Routing::All,
        file::Routing::Directed => Routing::Directed,
    });
    Hearing { routing, echo }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::parse;
    use crate::secret::SystemSources;

    fn read(text: &str) -> Result<Rooms, String> {
        let config = parse(text, Path::new("banyan.toml"), &SystemSources).map_err(|error| error.to_string())?;
        Ok(Rooms::clone(&config.rooms))
    }

    #[test]
    fn a_room_has_the_bounds_of_all_rooms_where_it_has_none_of_its_own() {
        let text = "[rooms.limits]\nparticipants = 5\nqueue_messages = 16\nhistory = 7\n[room.ops]\naccess = \"private\"\nmembers = [\"ann\"]\n\
                    [room.ops.limits]\nparticipants = 9\nmessage_size = \"2KiB\"\n[participant.ann]\ntoken = \"${env:A}\"\nrooms = [\"ops\"]\n";
        let rooms = read(text).unwrap();
        let ops = &rooms.rooms[&Topic::new("ops").unwrap()];
        assert_eq!((ops.settings.participants, ops.settings.queue_messages, ops.settings.message_bytes), (9, 16, 2048));
        assert_eq!((rooms.settings.participants, rooms.settings.message_bytes), (5, 1 << 20));
        assert_eq!((ops.settings.history, rooms.settings.history), (7, 0));
        assert_eq!(ops.rule.access, Access::Private);
        assert!(rooms.are_served() && !read("").unwrap().are_served());
    }

    #[test]
    fn what_a_room_says_of_its_tools_holds_for_those_of_no_other() {
        let mount = |text: &str| {
            let config = parse(text, Path::new("banyan.toml"), &SystemSources).unwrap();
            Mount::clone(&config.mounts[&Segment::new(ROOM_SEGMENT).unwrap()])
        };
        let plain = mount("[room.ops]\nmount = true\n[room.lab]\nmount = {}\n[room.den]\nmount = false\n");
        assert_eq!((plain.include.len(), plain.exclude.len(), plain.timeouts.len(), plain.tools.len()), (0, 0, 0, 0));
        let ops = "[room.ops.mount]\ntimeout = \"20s\"\ninclude = [\"bot.*\"]\nexclude = [\"*.rm\"]\ntools.\"bot.wipe\" = { reversible = false }\n";
        let said = mount(&format!("{ops}[room.lab]\nmount = true\n[room.den]\n"));
        assert_eq!((said.include, said.exclude), (vec!["lab.*".to_owned(), "ops.bot.*".to_owned()], vec!["ops.*.rm".to_owned()]));
        assert_eq!(said.timeouts, BTreeMap::from([("ops".to_owned(), Duration::from_secs(20))]));
        assert_eq!(
            said.tools.iter().map(|(glob, wishes)| (glob.as_str(), wishes.reversible)).collect::<Vec<_>>(),
            [("ops.bot.wipe", Some(false))]
        );
    }

    #[test]
    fn what_is_wrong_with_rooms_says_what_to_write() {
        let ann = "[room.ops]\n[participant.ann]\n";
        for (text, wanted) in [
            ("[room.ops]\naccess = \"secret\"", "`private`"),
            ("[room.ops.limits]\nqueue_messages = 4", "at least 16"),
            ("[room.ops.limits]\nhistory = 20000", "10000"),
            ("[room.ops]\ncapabilities = [\"system/*\"]", "gateway's own"),
            ("[room.ops]\nmembers = [\"system:x\"]", "choose another"),
            ("[rooms]\nissuers = [\"login\"]", "[issuer.login]"),
            (&format!("{ann}rooms = [\"ops\"]"), "either `token` or `sha256`"),
            (&format!("{ann}token = \"hunter2\"\nrooms = [\"ops\"]"), "${env:NAME}"),
            (&format!("{ann}token = \"${{env:A}}\"\nrooms = [\"opps\"]"), "did you mean `ops`?"),
            (&format!("{ann}token = \"${{env:A}}\"\nrooms = []"), "no room"),
            ("[mount.clock]\ncommand = \"x\"\n[room.ops]\nseats = [\"clok\"]", "did you mean `clock`?"),
            ("[room.ops]\nseats = [\"clock\"]", "[mount.clock]"),
            ("[mount.gate]\ncommand = \"x\"\n[room.ops]\nseats = [\"gate\"]", "the gate itself"),
            ("[mount.x]\ncommand = \"x\"\n[room.ops]\nseats = [\"x\"]\ntree = \"x\"", "sits twice"),
            (
                &format!("{ann}token = \"${{env:A}}\"\nrooms = [\"o*\"]\n").replace("[room.ops]", "[room.ops]\ntree = \"ann\""),
                "already sits in the room `ops`",
            ),
            ("[room.\"Ops Team\"]\nmount = true", "can't be mounted"),
            ("[room.ops.mount]\ncommand = \"x\"", "known here: timeout, include, exclude, tools"),
            ("[room.ops]\nmount = \"yes\"", "`room.ops.mount` is a string, and must be true or false or a table"),
            ("[room.ops]\nmount = { timeout = \"soon\" }", "not a duration"),
            ("[room.ops.mount]\ninclude = [\"\"]", "matches nothing"),
            ("[mount.room]\ncommand = \"x\"\n[room.ops]\nmount = true", "another name"),
            (
                "[mount.gate]\ncommand = \"x\"\n[room.ops]\nmount = true\n[participant.gate]\ntoken = \"${env:A}\"\nrooms = [\"ops\"]",
                "part of the gate",
            ),
            (&format!("{ann}sha256 = \"ab\"\nrooms = [\"ops\"]"), "64 hexadecimal digits"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(wanted) && !refused.contains("hunter2"), "{refused}");
        }
    }
}
