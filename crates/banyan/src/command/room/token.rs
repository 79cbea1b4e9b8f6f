//! `banyan room token`: a token for a participant, signed with the secret of the gate's rooms. Keeps no token, and takes none back: a token ends
//! by itself.

use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use config::resolved::Config;
use config::secret::SystemSources;
use gateway::rooms::pass::is_of_another_principal;
use gateway::trust::RoomClaims;
use room_proto::access::covers;
use room_proto::capability::Pattern;
use room_proto::name::{ParticipantId, Topic};
use serde_json::{Value, json};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::places;

/// Shortest secret for signatures, in bytes.
const LEAST: usize = 32;

/// Makes a token for a participant.
#[derive(Args)]
pub(crate) struct RoomToken {
    /// The participant's name in rooms
    name: String,
    /// A room, or the beginning of names with a `*` behind; several times for several
    #[arg(long = "room", required = true, value_name = "ROOM")]
    rooms: Vec<String>,
    /// A kind of messages that the participant may send, like `mcp/proposal:*`; several times for several [default: as the room says]
    #[arg(long = "may", value_name = "CAPABILITY")]
    may: Vec<String>,
    /// Lifetime of the token, like `12h` or `30d`
    #[arg(long = "for", default_value = "30d", value_name = "TIME", value_parser = life)]
    life: Duration,
    /// Messages that reach the participant [default: as the room says]
    #[arg(long, value_enum)]
    routing: Option<Routing>,
    /// Return of the participant's own messages [default: as the room says]
    #[arg(long, value_name = "true|false")]
    echo: Option<bool>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Routing {
    /// All messages of the room
    All,
    /// Messages with the participant among the addressees, and messages to everybody
    Directed,
}

impl RoomToken {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let id = self.check()?;
        let (config, secret) = signing(place)?;
        self.check_owners(&config, &id)?;
        let may: Vec<Value> = self.may.iter().map(|pattern| json!(pattern)).collect();
        let claims = RoomClaims {
            participant: &self.name,
            topics: &self.rooms,
            capabilities: (!may.is_empty()).then_some(&may),
            routing: self.routing.map(|routing| match routing {
                Routing::All => "all",
                Routing::Directed => "directed",
            }),
            echo: self.echo,
        };
        runtime::tls::install_crypto();
        let until = SystemTime::now()
            .checked_add(self.life)
            .ok_or_else(|| Failure::Refused("no token is good for so long: choose a shorter time".to_owned()))?;
        let token = claims.sign(secret.as_bytes(), until).ok_or_else(|| Failure::Failed("the token could not be signed".to_owned()))?;
        if output.wants_json() {
            let expires = until.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
            return output.json(&json!({ "name": self.name, "rooms": self.rooms, "token": token, "expires": expires }));
        }
        output.line(&token)?;
        output.remark(
            &output.paint_remark(Look::Dim, "it is good for whoever has it until it ends; another `rooms.secret` ends all of them"),
        );
        Ok(())
    }

    /// Refuses names and kinds that no gate would take.
    fn check(&self) -> Result<ParticipantId, Failure> {
        let refused = |why: String| Failure::Refused(why);
        let id =
            ParticipantId::new(&self.name).map_err(|why| refused(format!("`{}` can't be the name of a participant: {why}", self.name)))?;
        if is_of_another_principal(&self.name) {
            let others = "names with `@`, blanks around them or hidden characters, `local`, `gate`, `*`, and beginnings such as `dns:` are those of others";
            return Err(refused(format!("no gate takes a token for `{}`: {others}\n  choose another name", self.name)));
        }
        for room in &self.rooms {
            let name = room.strip_suffix('*').filter(|beginning| !beginning.is_empty()).unwrap_or(room);
            if room != "*" {
                Topic::new(name).map_err(|why| refused(format!("`{room}` names no room: {why}")))?;
            }
        }
        self.may.iter().try_for_each(|pattern| Pattern::new(pattern).map(drop).map_err(|why| refused(format!("`{pattern}`: {why}"))))?;
        Ok(id)
    }

    /// Refuses names of others at the gate of the configuration.
    fn check_owners(&self, config: &Config, id: &ParticipantId) -> Result<(), Failure> {
        let name = &self.name;
        let refused = |why: String| Err(Failure::Refused(format!("no gate of this configuration takes a token for `{name}`: {why}")));
        if config.rooms.participants.contains_key(id) {
            return refused(format!("[participant.{name}] has a token of its own\n  use that token, or choose another name"));
        }
        if config.tokens.iter().any(|token| *token.name == *name) {
            return refused("a [[token]] has the name\n  use that token, or choose another name".to_owned());
        }
        for room in &self.rooms {
            let mut meant = config.rooms.rooms.iter().filter(|(topic, _)| covers(room, topic.as_str())).peekable();
            if meant.peek().is_some() && meant.all(|(_, room)| room.seats.has(id)) {
                return refused(format!("part of the gate sits in `{room}` under the name\n  choose another name"));
            }
        }
        Ok(())
    }
}

/// Reads the configuration, and the secret for signatures.
fn signing(place: &Place) -> Result<(Config, String), Failure> {
    let none = || Failure::NotFound(format!("there is no banyan.toml with the secret of its rooms\n  {}", places::MAKE_ONE));
    let file = places::config_file(place.config.as_deref())?.ok_or_else(none)?;
    let config = gateway::parts::sections().load(&file, &SystemSources)?;
    let unsigned = || {
        let advice = "add secret = \"${env:ROOM_SECRET}\" to [rooms], or give the participant a token of its own: [participant.NAME]";
        Failure::Refused(format!("{} has no `rooms.secret` to sign with\n  {advice}", file.display()))
    };
    let secret = config.rooms.secret.as_ref().ok_or_else(unsigned)?;
    let secret = secret.resolve(&SystemSources).map_err(|error| Failure::Failed(format!("`rooms.secret` can't be read: {error}")))?;
    let secret = secret.expose().to_owned();
    if secret.len() < LEAST {
        let why = format!("`rooms.secret` has {} bytes, and no token signed with fewer than {LEAST} is taken", secret.len());
        return Err(Failure::Refused(format!("{why}\n  `openssl rand -hex 32` makes a longer one")));
    }
    Ok((config, secret))
}

fn life(text: &str) -> Result<Duration, String> {
    config::age(text).filter(|life| !life.is_zero()).ok_or_else(|| "a time is a number with `m`, `h` or `d`, such as 12h or 30d".to_owned())
}
