//! Administration of learnt rules, below `/-/rooms/NAME/rules`, for the operator. A rule is accepted and revoked in the name of the
//! requester, who is in the room by a page of the console. Does not know the coverage of rules.

use http::{Method, Response};
use hyper::body::Incoming;
use room_proto::automation::{Act, Automation, Bounds, Limits, Offer, OfferId, Person, Rule, RuleId};
use room_proto::name::{ParticipantId, Topic};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::admin::{NotDone, RoomRequest, decoded, json as answered, topic};
use crate::steward;
use crate::steward::{Steward, StewardQuestion};
use door::body;
use door::reply::Payload;
use door::sign_in::SessionId;

/// Longest body, in bytes.
const POSTED_BYTES: usize = 4 << 10;
/// Most acts shown, the newest.
const ACTS: usize = 100;

/// `POST /-/rooms/NAME/rules`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    /// Name of the gate's seat in the room.
    r#as: String,
}

/// `POST /-/rooms/NAME/rules/accept`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Accept {
    offer: u64,
    by: String,
    acts: Option<u32>,
    an_hour: Option<u32>,
    days: Option<u32>,
}

/// `POST /-/rooms/NAME/rules/revoke`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Revoke {
    rule: u64,
    by: String,
}

/// Splits a path about rules into the room and the rest.
pub fn place(path: &str) -> Option<(&str, &str)> {
    let (room, rest) = path.strip_prefix("/-/rooms/")?.split_once("/rules")?;
    (!room.is_empty() && !room.contains('/') && (rest.is_empty() || rest.starts_with('/'))).then_some((room, rest))
}

/// Answers a request about rules.
pub async fn answer(asking: &RoomRequest<'_>, (room, rest): (&str, &str), body: &mut Incoming) -> Result<Response<Payload>, NotDone> {
    if !asking.rooms.entrance.is_owner(asking.parts) {
        return Err(NotDone::NotAdmin);
    }
    let topic = topic(&decoded(room)?)?;
    match (&asking.parts.method, rest) {
        (&Method::GET, "") => show(asking, &topic).await,
        (&Method::POST, "") => begin(asking, &topic, read(body).await?).await,
        (&Method::DELETE, "") => end_learning(asking, &topic).await,
        (&Method::POST, "/accept") => accept(asking, &topic, read(body).await?).await,
        (&Method::POST, "/revoke") => revoke(asking, &topic, read(body).await?).await,
        (method, _) => Err(NotDone::Nothing(format!("{method} {}", asking.parts.uri.path()))),
    }
}

/// Shows offers, rules and their acts.
pub fn shown(automation: &Automation) -> Value {
    let acts: Vec<&Act> = automation.acts().collect();
    json!({
        "decisions": automation.decided().count(),
        "offers": automation.offers().map(offer).collect::<Vec<_>>(),
        "rules": automation.rules().map(rule).collect::<Vec<_>>(),
        "acts": acts.iter().rev().take(ACTS).collect::<Vec<_>>(),
    })
}

fn offer(offer: &Offer) -> Value {
    json!({ "id": offer.id, "says": offer.pattern.to_string(), "pattern": offer.pattern, "limits": offer.limits, "evidence": offer.evidence })
}

fn rule(rule: &Rule) -> Value {
    let Rule { id, pattern, limits, evidence, accepted_by, accepted_at, until, standing, acts, .. } = rule;
    json!({
        "id": id, "says": pattern.to_string(), "pattern": pattern, "limits": limits, "evidence": evidence, "accepted_by": accepted_by,
        "accepted_at": accepted_at, "until": until, "active": *standing == room_proto::automation::Standing::Active,
        "standing": standing.to_string(), "acts": acts,
    })
}

/// Shows the present state, or the last state without a learner.
async fn show(asking: &RoomRequest<'_>, topic: &Topic) -> Result<Response<Payload>, NotDone> {
    let steward = asking.rooms.steward(topic);
    let name = steward.as_ref().map(|steward| steward.id.as_str().to_owned());
    let now = match steward {
        Some(steward) => steward.ask(StewardQuestion::Show).await,
        None => None,
    };
    let mut told = match now {
        Some(now) => now,
        None => {
            let kept = steward::kept(asking.rooms, topic).await.ok().flatten();
            let kept = kept.and_then(|learnt| serde_json::from_str(&learnt.kept).ok()).unwrap_or_default();
            shown(&Automation::new(Bounds::default(), kept))
        }
    };
    if let Some(members) = told.as_object_mut() {
        members.insert("learning_as".to_owned(), name.into());
    }
    Ok(answered(&told))
}

async fn begin(asking: &RoomRequest<'_>, topic: &Topic, begin: Begin) -> Result<Response<Payload>, NotDone> {
    let id = participant(&begin.r#as)?;
    let present = match asking.rooms.find(topic) {
        Some(room) => room.ask(crate::driver::Input::Present).await.unwrap_or_default(),
        None => Vec::new(),
    };
    if present.iter().any(|one| one.id == begin.r#as) || asking.rooms.gate.config.load().rooms.participants.contains_key(&id) {
        return Err(NotDone::Wrong(format!("{:?} is somebody else's name: choose another for the gate", begin.r#as)));
    }
    if !asking.rooms.gate.config.load().rooms.rooms.contains_key(topic) {
        return Err(NotDone::Wrong("rules are learnt in rooms that are configured: add [room.NAME] to banyan.toml".to_owned()));
    }
    steward::begin(asking.rooms, topic, id).await.map_err(crate::entry::NotEntered::from)?;
    asking.record(topic, &format!("rules are learnt by {} (by owner)", begin.r#as));
    show(asking, topic).await
}

async fn end_learning(asking: &RoomRequest<'_>, topic: &Topic) -> Result<Response<Payload>, NotDone> {
    steward_of(asking, topic)?.ask(StewardQuestion::Leave).await;
    asking.record(topic, "rules are learnt no more (by owner)");
    show(asking, topic).await
}

async fn accept(asking: &RoomRequest<'_>, topic: &Topic, accept: Accept) -> Result<Response<Payload>, NotDone> {
    let (steward, by) = (steward_of(asking, topic)?, person(asking, topic, &accept.by)?);
    let usual = Limits::default();
    let seconds = accept.days.map_or(usual.seconds, |days| u64::from(days) * 86_400);
    let limits = Limits { acts: accept.acts.unwrap_or(usual.acts), an_hour: accept.an_hour.unwrap_or(usual.an_hour), seconds };
    let accepted = steward.ask(|answer| StewardQuestion::Accept { offer: OfferId(accept.offer), by, limits, answer }).await;
    let rule = accepted.ok_or(NotDone::NotLearning)?.map_err(|why| NotDone::Wrong(why.to_string()))?;
    asking.record(topic, &format!("{rule} accepted (by {})", accept.by));
    show(asking, topic).await
}

async fn revoke(asking: &RoomRequest<'_>, topic: &Topic, revoke: Revoke) -> Result<Response<Payload>, NotDone> {
    let (steward, by) = (steward_of(asking, topic)?, person(asking, topic, &revoke.by)?);
    let revoked = steward.ask(|answer| StewardQuestion::Revoke { rule: RuleId(revoke.rule), by, answer }).await;
    revoked.ok_or(NotDone::NotLearning)?.map_err(|why| NotDone::Wrong(why.to_string()))?;
    asking.record(topic, &format!("{} revoked (by {})", RuleId(revoke.rule), revoke.by));
    show(asking, topic).await
}

fn steward_of(asking: &RoomRequest<'_>, topic: &Topic) -> Result<Steward, NotDone> {
    asking.rooms.steward(topic).ok_or(NotDone::NotLearning)
}

/// Identifies the requester in the room, by a page of the console. Nobody acts in another's name: each sign-in has names of its own there.
fn person(asking: &RoomRequest<'_>, topic: &Topic, name: &str) -> Result<Person, NotDone> {
    let id = participant(name)?;
    let asks = asking.rooms.entrance.signed_in(asking.parts).map(|kept| kept.id);
    let there = asking.rooms.find(topic).and_then(|room| room.signed_in(&id));
    in_own_name(asks, there, name).map(|()| Person(id))
}

/// Compares the requester's sign-in with the named participant's.
fn in_own_name(asks: Option<SessionId>, there: Option<SessionId>, name: &str) -> Result<(), NotDone> {
    match (asks.ok_or(NotDone::NoPerson)?, there) {
        (asks, Some(there)) if asks == there => Ok(()),
        (_, Some(_)) => Err(NotDone::Wrong(format!("{name:?} is in this room by another sign-in: ask in your own name"))),
        (_, None) => Err(NotDone::Wrong(format!("{name:?} is not in this room by a page of the console: come in first"))),
    }
}

fn participant(name: &str) -> Result<ParticipantId, NotDone> {
    ParticipantId::new(name).map_err(|why| NotDone::Wrong(format!("nobody can be called {name:?} here: {why}")))
}

async fn read<T: DeserializeOwned>(body: &mut Incoming) -> Result<T, NotDone> {
    let body = body::posted(body, POSTED_BYTES).await.map_err(|why| NotDone::Wrong(why.to_string()))?;
    serde_json::from_slice(&body).map_err(|e| NotDone::Wrong(format!("the request is not as docs/console.md says: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mx_23_nobody_acts_in_the_name_of_another_sign_in() {
        let [ann, bea] = [1, 2].map(SessionId::for_test);
        let told = |asks, there| in_own_name(asks, there, "ann").err().map(|why| why.to_string());
        assert_eq!(told(Some(ann), Some(ann)), None);
        for (asks, there, said) in [
            (Some(bea), Some(ann), "another sign-in"),
            (Some(ann), None, "come in first"),
            (None, Some(ann), "sign in to the console"),
            (None, None, "sign in to the console"),
        ] {
            assert!(told(asks, there).unwrap().contains(said), "{asks:?} {there:?}");
        }
    }

    #[test]
    fn a_path_is_about_the_rules_of_one_room() {
        assert_eq!(place("/-/rooms/ops/rules"), Some(("ops", "")));
        assert_eq!(place("/-/rooms/a%2Frules/rules/accept"), Some(("a%2Frules", "/accept")));
        for other in
            ["/-/rooms/rules", "/-/rooms//rules", "/-/rooms/ops/rulesx", "/-/rooms/ops/participants/rules/capabilities", "/-/rooms"]
        {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
