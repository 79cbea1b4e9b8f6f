//! The sections `[rooms]`, `[room.NAME]` and `[participant.NAME]`: which rooms there are and who may come into them. What the texts say is
//! not checked here.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};

use crate::file::At;
use crate::section::mount::tool::Tool;

/// The keys of rooms.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct RoomForm {
    /// What holds for all rooms.
    pub rooms: Rooms,
    /// The rooms in which people and agents meet (MCPx), by name.
    pub room: BTreeMap<At<String>, Room>,
    /// Who comes into rooms by a token of its own, by the id that others see.
    pub participant: BTreeMap<At<String>, Participant>,
}

/// What holds for all rooms.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Rooms {
    /// `true`: a room that this file does not name comes into being when the first joins, and ends with the last. Default: `false`.
    pub open: bool,
    /// What those may send whose token and room do not say. Default: `mcp/proposal:*`, `mcp/withdraw:*`, `mcp/response:*` and `chat`.
    #[schemars(example = ["mcp/proposal:*", "mcp/withdraw:*", "mcp/response:*", "chat"])]
    pub capabilities: Option<Vec<At<String>>>,
    /// `[issuer.NAME]`s whose tokens say who a participant is: `participantId`, `topic`, `capabilities`. Default: none does.
    #[schemars(example = ["login"])]
    pub issuers: Vec<At<String>>,
    /// A secret shared with whoever makes tokens with those claims, signed by HS256: at least 32 bytes. Default: none are taken.
    #[schemars(example = "${env:ROOM_SECRET}")]
    pub secret: Option<At<String>>,
    /// `true`: a token may stand in the address (`&token=`), for browsers. Logs on the way may keep it. Default: `false`.
    pub query_token: bool,
    /// `true`: clients of MEW v0.4, which grew out of MCPx, come into the same rooms at `/ws?space=NAME`. Default: `false`.
    pub mew: bool,
    /// The bounds of every room, where it has none of its own.
    pub limits: RoomLimits,
}

/// One room.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Room {
    /// Who may come in. Default: `public`.
    pub access: RoomAccess,
    /// Participants who may come in though no token names the room in full.
    #[schemars(example = ["alice"])]
    pub members: Vec<At<String>>,
    /// Participants who may change what others may send, and put them out.
    #[schemars(example = ["alice"])]
    pub admins: Vec<At<String>>,
    /// What those may send whose token does not say. Default: as in `[rooms]`.
    #[schemars(example = ["mcp/*", "chat"])]
    pub capabilities: Option<Vec<At<String>>>,
    /// Mounts that sit in it as participants of their names: others call their tools there. Default: none does.
    #[schemars(example = ["github", "clock"])]
    pub seats: Vec<At<String>>,
    /// The id under which the whole tree sits in it, if it is to. Default: it does not.
    #[schemars(example = &"tools")]
    pub tree: Option<At<String>>,
    /// `true`: what its participants offer stands in the tree, as `room.NAME.PARTICIPANT.TOOL`. A table says more of them. Default: `false`.
    pub mount: RoomMounting,
    /// Its bounds. Default: as in `[rooms]`.
    pub limits: RoomLimits,
}

/// Whether what participants of a room offer stands in the tree, and how: `true`, or a table.
#[derive(Debug, Default)]
pub(crate) struct RoomMounting(pub Option<Box<RoomMount>>);

/// How what participants of a room offer stands in the tree. Tools are named `PARTICIPANT.TOOL`; `*` stands for any text.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RoomMount {
    /// How long a call may stay without an answer or progress. Default: `5m`.
    #[schemars(example = "5m")]
    pub timeout: Option<At<String>>,
    /// Only these tools are taken. Default: all.
    #[schemars(example = ["bot.*"])]
    pub include: Vec<At<String>>,
    /// These tools are left out.
    #[schemars(example = ["*.delete_*"])]
    pub exclude: Vec<At<String>>,
    /// What is known of tools beyond what they say themselves.
    #[schemars(with = "BTreeMap<String, Tool>")]
    pub tools: BTreeMap<At<String>, Tool>,
}

/// Who may come into a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoomAccess {
    /// Whoever has a token that is good for it.
    #[default]
    Public,
    /// Its members, and those whose token names it in full. To others it does not exist.
    Private,
    /// The same, and others are told that it is not for them.
    Restricted,
}

/// The bounds of a room.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RoomLimits {
    /// Participants at once. Default: 1000.
    #[schemars(range(min = 1))]
    pub participants: Option<usize>,
    /// Longest message. Default: `1MiB`.
    #[schemars(example = "1MiB")]
    pub message_size: Option<At<String>>,
    /// Messages that may wait for one reader; one for whom more would is cut off. Default: 4096.
    #[schemars(range(min = 16))]
    pub queue_messages: Option<usize>,
    /// Bytes that may wait for one reader before another message does. Default: `8MiB`.
    #[schemars(example = "8MiB")]
    pub queue_size: Option<At<String>>,
    /// Messages that one participant may send in a second. Default: 100.
    #[schemars(range(min = 1))]
    pub messages_per_second: Option<u32>,
    /// Messages that it may send at once, when it sent few for a while. Default: 500.
    #[schemars(range(min = 1))]
    pub messages_at_once: Option<u32>,
    /// Bytes that it may send in a second. Default: `4MiB`.
    #[schemars(example = "4MiB")]
    pub bytes_per_second: Option<At<String>>,
    /// Bytes that it may send at once. Default: `16MiB`.
    #[schemars(example = "16MiB")]
    pub bytes_at_once: Option<At<String>>,
    /// The last messages, kept for those who ask for them when they join, in rooms that the file names. Together they are no longer than
    /// `message_size`. Default: 0.
    #[schemars(range(max = 10_000))]
    pub history: Option<usize>,
    /// Refused messages in a row after which it is cut off; one a second is forgiven. Default: 100.
    #[schemars(range(min = 1))]
    pub refusals: Option<u32>,
}

/// Somebody who comes into rooms by a token of its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Participant {
    /// Its token: a reference to a secret. Either this or `sha256`.
    #[schemars(example = "${env:ALICE_TOKEN}")]
    pub token: Option<At<String>>,
    /// SHA-256 of its token, as 64 hexadecimal digits.
    pub sha256: Option<At<String>>,
    /// The rooms that its token is good for: names, and beginnings of names with a `*` behind.
    #[schemars(example = ["ops", "dev-*"])]
    pub rooms: Vec<At<String>>,
    /// What it may send. Default: as its room says.
    #[schemars(example = ["mcp/*", "chat"])]
    pub capabilities: Option<Vec<At<String>>>,
}

impl<'de> Deserialize<'de> for RoomMounting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Mounting;

        impl<'de> Visitor<'de> for Mounting {
            type Value = RoomMounting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false` or a table")
            }

            fn visit_bool<E>(self, on: bool) -> Result<RoomMounting, E> {
                Ok(RoomMounting(on.then(Box::default)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RoomMounting, A::Error> {
                RoomMount::deserialize(MapAccessDeserializer::new(map)).map(|settings| RoomMounting(Some(Box::new(settings))))
            }
        }

        deserializer.deserialize_any(Mounting)
    }
}

impl JsonSchema for RoomMounting {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RoomMounting".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "anyOf": [{ "type": "boolean" }, generator.subschema_for::<RoomMount>()] })
    }
}
