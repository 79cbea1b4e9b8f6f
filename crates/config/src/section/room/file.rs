//! The form of `[rooms]`, `[room.NAME]` and `[participant.NAME]`. Checks no text.

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
    /// Settings of all rooms.
    pub rooms: Rooms,
    /// Rooms for people and agents (MCPx), by name.
    pub room: BTreeMap<At<String>, Room>,
    /// Participants with a token of their own, by the id in rooms.
    pub participant: BTreeMap<At<String>, Participant>,
}

/// Settings of all rooms.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Rooms {
    /// `true`: other rooms than the file's come into being with the first participant, and end with the last. Default: `false`.
    pub open: bool,
    /// Capabilities of participants, where token and room name none. Default: `mcp/proposal:*`, `mcp/withdraw:*`, `mcp/response:*` and
    /// `chat`.
    #[schemars(example = ["mcp/proposal:*", "mcp/withdraw:*", "mcp/response:*", "chat"])]
    pub capabilities: Option<Vec<At<String>>>,
    /// Names of `[issuer.NAME]`s with tokens for participants: `participantId`, `topic`, `capabilities`. Default: none.
    #[schemars(example = ["login"])]
    pub issuers: Vec<At<String>>,
    /// A secret shared with a maker of tokens for participants, signed by HS256: at least 32 bytes. Default: no such tokens.
    #[schemars(example = "${env:ROOM_SECRET}")]
    pub secret: Option<At<String>>,
    /// `true`: programs of the same machine get tokens signed with `secret`, for any room and name, at `/v0.1/auth/token`, as the reference's
    /// examples ask for. Only at a loopback address. Default: `false`.
    pub dev_tokens: Option<At<bool>>,
    /// `true`: a token may stand in the address (`&token=`), for browsers. Logs on the way may keep addresses. Default: `false`.
    pub query_token: bool,
    /// `true`: clients of MEW v0.4, a relative of MCPx, come into the same rooms at `/ws?space=NAME`. Default: `false`.
    pub mew: bool,
    /// Bounds of rooms without bounds of their own.
    pub limits: RoomLimits,
}

/// A room.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Room {
    /// Access to the room. Default: `public`.
    pub access: RoomAccess,
    /// Participants with access, even without the room's full name in their token.
    #[schemars(example = ["alice"])]
    pub members: Vec<At<String>>,
    /// Participants with the right to change capabilities of others, and to put others out.
    #[schemars(example = ["alice"])]
    pub admins: Vec<At<String>>,
    /// Capabilities of participants, where the token names none. Default: as in `[rooms]`.
    #[schemars(example = ["mcp/*", "chat"])]
    pub capabilities: Option<Vec<At<String>>>,
    /// Routing to participants without a choice of their own: `all` messages of the room, or `directed` ones alone. Default: `all`.
    pub routing: Option<Routing>,
    /// `false`: participants without a choice of their own do not hear their own messages. Default: `true`.
    pub echo: Option<bool>,
    /// Mounts to sit in the room as participants of their names, with their tools. Default: none.
    #[schemars(example = ["github", "clock"])]
    pub seats: Vec<At<String>>,
    /// Id of the whole tree as a participant. Default: the tree is no participant.
    #[schemars(example = &"tools")]
    pub tree: Option<At<String>>,
    /// `true`: tools of participants stand in the tree, as `room.NAME.PARTICIPANT.TOOL`. A table has settings for them. Default: `false`.
    pub mount: RoomMounting,
    /// Bounds of the room. Default: as in `[rooms]`.
    pub limits: RoomLimits,
}

/// Mounting of participants' tools in the tree: `true`, or a table.
#[derive(Debug, Default)]
pub(crate) struct RoomMounting(pub Option<Box<RoomMount>>);

/// Settings of participants' tools in the tree. Tools are named `PARTICIPANT.TOOL`; `*` stands for any text.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RoomMount {
    /// Longest silence of a call, without an answer or progress. Default: `5m`.
    #[schemars(example = "5m")]
    pub timeout: Option<At<String>>,
    /// Only these tools are taken. Default: all.
    #[schemars(example = ["bot.*"])]
    pub include: Vec<At<String>>,
    /// These tools are left out.
    #[schemars(example = ["*.delete_*"])]
    pub exclude: Vec<At<String>>,
    /// Additions to the annotations of tools.
    #[schemars(with = "BTreeMap<String, Tool>")]
    pub tools: BTreeMap<At<String>, Tool>,
}

/// Routing of messages to a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Routing {
    /// All of the room.
    All,
    /// Messages with the participant among their addressees.
    Directed,
}

/// Access to a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoomAccess {
    /// Everybody with a token for the room.
    #[default]
    Public,
    /// Members, and holders of a token with the room's full name. For others the room does not exist.
    Private,
    /// The same, and others hear of the refusal.
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
    /// Messages in wait for a reader; a slower reader is cut off. Default: 4096.
    #[schemars(range(min = 16))]
    pub queue_messages: Option<usize>,
    /// Bytes in wait for a reader, before another message. Default: `8MiB`.
    #[schemars(example = "8MiB")]
    pub queue_size: Option<At<String>>,
    /// Messages of a participant in a second. Default: 100.
    #[schemars(range(min = 1))]
    pub messages_per_second: Option<u32>,
    /// Messages of a participant at once, after a quiet while. Default: 500.
    #[schemars(range(min = 1))]
    pub messages_at_once: Option<u32>,
    /// Bytes of a participant in a second. Default: `4MiB`.
    #[schemars(example = "4MiB")]
    pub bytes_per_second: Option<At<String>>,
    /// Bytes of a participant at once. Default: `16MiB`.
    #[schemars(example = "16MiB")]
    pub bytes_at_once: Option<At<String>>,
    /// Number of last messages, kept in rooms of the file for participants who join and ask. All kept messages together are no longer than
    /// `message_size`. Default: 0.
    #[schemars(range(max = 10_000))]
    pub history: Option<usize>,
    /// Refused messages in a row before a participant is cut off; each second forgives a message. Default: 100.
    #[schemars(range(min = 1))]
    pub refusals: Option<u32>,
}

/// A participant with a token of its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Participant {
    /// Token of the participant: a reference to a secret. Either `token` or `sha256`.
    #[schemars(example = "${env:ALICE_TOKEN}")]
    pub token: Option<At<String>>,
    /// SHA-256 of the participant's token, as 64 hexadecimal digits.
    pub sha256: Option<At<String>>,
    /// Rooms of the token: names, and beginnings of names with a `*` behind.
    #[schemars(example = ["ops", "dev-*"])]
    pub rooms: Vec<At<String>>,
    /// Capabilities of the participant. Default: as the room says.
    #[schemars(example = ["mcp/*", "chat"])]
    pub capabilities: Option<Vec<At<String>>>,
    /// Routing to the participant, without another choice in the address: `all` messages of the room, or `directed` ones alone. Default: as the
    /// room says.
    pub routing: Option<Routing>,
    /// `false`: the participant does not hear own messages, without another choice in the address. Default: as the room says.
    pub echo: Option<bool>,
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
