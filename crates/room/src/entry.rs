//! Refusals of entry into a room, over HTTP before the upgrade. Decides nothing.

use http::header::{SEC_WEBSOCKET_VERSION, UPGRADE, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use room_proto::access::NotAdmitted;
use room_proto::name::{NameError, ParticipantId};
use room_proto::room::RoomError;

use crate::NotSeated;
use crate::handshake::BadHandshake;
use call::words::refusal::{ErrorBody, Refusal, RefusalKind};
use door::entry;
use door::reply;
use door::reply::Payload;

/// Reasons for refusing entry.
#[derive(Debug, thiserror::Error)]
pub enum NotEntered {
    /// The gate itself refuses.
    #[error("{}", .0.why)]
    Door(entry::EntryRefusal),
    /// The request is no proper handshake.
    #[error(transparent)]
    Handshake(#[from] BadHandshake),
    /// The token gives an illegal name.
    #[error("this token's participant can't be let in: {0}")]
    Id(NameError),
    /// The address is faulty.
    #[error("{0}")]
    Query(String),
    /// Too many clients have not joined yet.
    #[error("too many clients of MEW are connected and have not joined: connect again in a moment")]
    Crowded,
    /// The message names another participant than the token.
    #[error("this token is {own:?}'s and `participantId` is {given:?}: put {own:?} there, or leave it out")]
    Name {
        /// The name of the message.
        given: String,
        /// The name of the token.
        own: ParticipantId,
    },
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    #[error("this gate has no rooms: add a section [room.NAME] to banyan.toml, or `open = true` to [rooms]")]
    NoRooms,
    #[error("clients of MEW are not let in here: set `mew = true` in [rooms], or speak MCPx v0.1 at /ws?topic=NAME")]
    NoMew,
    #[error(transparent)]
    NotSeated(#[from] NotSeated),
    /// The signed token gives the name of another kind of caller.
    #[error(
        "{0:?} can't be the participant of a signed token: names with `@` or hidden characters, `local`, `gate`, `*`, and what begins with \
         `dns:`, `spiffe://`, `room:` or `parent ` are those of other callers; ask for a token with another `participantId`"
    )]
    Reserved(String),
    /// The name belongs to a seat of this room by configuration.
    #[error("{0:?} sits in this room as part of the gate: come as somebody else, or rename one of the two")]
    Seated(String),
    /// The token claims a participant configured with another token.
    #[error("the participant {0:?} is configured here with a token of its own: come with that, or as somebody else")]
    Taken(String),
    /// The ticket is void, or comes from a foreign page.
    #[error("{0}")]
    Ticket(String),
    /// The credentials are unknown.
    #[error("{0}")]
    Unknown(&'static str),
}

impl NotEntered {
    /// Tells whether the same attempt may succeed in a moment.
    pub fn is_passing(&self) -> bool {
        self.status() == StatusCode::SERVICE_UNAVAILABLE
    }

    /// Gives the word for programs, beyond HTTP.
    pub fn word(&self) -> &'static str {
        match self.status() {
            StatusCode::BAD_REQUEST => "invalid_envelope",
            StatusCode::SERVICE_UNAVAILABLE => "unavailable",
            _ => "auth_violation",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Door(refused) => refused.status,
            Self::Handshake(BadHandshake::NotAsked | BadHandshake::Version) => StatusCode::UPGRADE_REQUIRED,
            Self::Handshake(BadHandshake::Key) | Self::Query(_) => StatusCode::BAD_REQUEST,
            Self::Id(_)
            | Self::Name { .. }
            | Self::Reserved(_)
            | Self::Seated(_)
            | Self::Taken(_)
            | Self::Ticket(_)
            | Self::NotAdmitted(NotAdmitted::Elsewhere | NotAdmitted::NotMember)
            | Self::NotSeated(NotSeated::Room(RoomError::PutOut { .. })) => StatusCode::FORBIDDEN,
            Self::NoMew | Self::NoRooms | Self::NotAdmitted(NotAdmitted::Unknown) => StatusCode::NOT_FOUND,
            Self::Crowded | Self::NotSeated(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unknown(_) => StatusCode::UNAUTHORIZED,
        }
    }

    /// Makes the response to a refused entry.
    pub fn into_http(self) -> Response<Payload> {
        let mut response = refusal_response(self.status(), &self.to_string());
        let headers = response.headers_mut();
        match &self {
            Self::Door(refused) => {
                let challenge = refused.challenge.as_deref().and_then(|challenge| HeaderValue::from_str(challenge).ok());
                headers.extend(challenge.map(|challenge| (WWW_AUTHENTICATE, challenge)));
            }
            Self::Handshake(_) => {
                headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
                headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            }
            Self::Unknown(_) => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"banyan\""));
            }
            Self::Crowded
            | Self::Id(_)
            | Self::Name { .. }
            | Self::NoMew
            | Self::NoRooms
            | Self::NotAdmitted(_)
            | Self::NotSeated(_)
            | Self::Query(_)
            | Self::Reserved(_)
            | Self::Seated(_)
            | Self::Taken(_)
            | Self::Ticket(_) => {}
        }
        response
    }
}

/// Makes a refusal in the form of the admin API.
pub fn refusal_response(status: StatusCode, message: &str) -> Response<Payload> {
    let kind = match status {
        StatusCode::NOT_FOUND => RefusalKind::NotFound,
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => RefusalKind::Refused,
        _ => RefusalKind::Failed,
    };
    let body = ErrorBody { error: Refusal { kind, message: message.to_owned() } };
    reply::typed(status, "application/json", serde_json::to_vec(&body).unwrap_or_default().into())
}
