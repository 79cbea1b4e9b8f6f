//! Admission to rooms: participants, topics, and the capabilities they come in with (MCPx v0.1, 5.1). Does not verify tokens: the content
//! of a [`Pass`] has been verified.
//!
//! A token is good only for the topics named in its text. A *public* topic takes everybody with such a token; a *restricted* topic only
//! members, and tokens that name the topic in full; a *private* topic the same, and for everybody else does not exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::capability::Capabilities;
use crate::name::{ParticipantId, Topic};
use crate::room::Hearing;

/// Capabilities where neither token nor topic names any: propose, take proposals back, and leave decisions to others (7.1).
pub const PROPOSES: [&str; 4] = ["mcp/proposal:*", "mcp/withdraw:*", "mcp/response:*", "chat"];

/// Openness of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Takes everybody with a token for the topic.
    #[default]
    Public,
    /// Takes members, and is hidden from others.
    Private,
    /// Takes members only.
    Restricted,
}

/// Configuration of a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    pub access: Access,
    /// Participants who may come in though no token names the topic in full.
    pub members: BTreeSet<ParticipantId>,
    /// Capabilities of participants whose token gives none.
    pub capabilities: Option<Capabilities>,
    /// Hearing of participants with no word about hearing in the token.
    pub hearing: Hearing,
}

/// Claims of a verified token.
#[derive(Debug, Clone)]
pub struct Pass {
    pub id: ParticipantId,
    /// Names of topics, and beginnings of names with a `*` behind.
    pub topics: Vec<String>,
    /// `None`: the topic decides.
    pub capabilities: Option<Capabilities>,
    pub hearing: Hearing,
}

/// Reasons for keeping a participant out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    #[error("this token is not good for this topic: ask for one that names it")]
    Elsewhere,
    #[error("this room is for its members: ask its admin to add you, or for a token that names it in full")]
    NotMember,
    /// No such room, or a private room hidden from this participant.
    #[error("there is no such room here: look at the name, or ask for the room to be configured")]
    Unknown,
}

/// Configured rooms of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doors {
    pub rules: BTreeMap<Topic, Rule>,
    /// Creates a public topic when a participant joins a topic without a rule.
    pub open: bool,
    /// Capabilities where neither token nor topic gives any.
    pub capabilities: Capabilities,
}

impl Doors {
    /// Admits a participant, and gives the capabilities.
    pub fn admit<'a>(&'a self, pass: &'a Pass, topic: &Topic) -> Result<&'a Capabilities, NotAdmitted> {
        let name = topic.as_str();
        if !pass.topics.iter().any(|named| covers(named, name)) {
            return Err(NotAdmitted::Elsewhere);
        }
        let rule = self.rules.get(topic);
        let is_member = pass.topics.iter().any(|named| named == name) || rule.is_some_and(|rule| rule.members.contains(&pass.id));
        match rule.map(|rule| rule.access) {
            None if !self.open => return Err(NotAdmitted::Unknown),
            Some(Access::Private) if !is_member => return Err(NotAdmitted::Unknown),
            Some(Access::Restricted) if !is_member => return Err(NotAdmitted::NotMember),
            None | Some(Access::Private | Access::Public | Access::Restricted) => {}
        }
        let configured = rule.and_then(|rule| rule.capabilities.as_ref());
        Ok(pass.capabilities.as_ref().or(configured).unwrap_or(&self.capabilities))
    }

    /// Gives the hearing of a participant without a choice in the address.
    pub fn hearing(&self, pass: &Pass, topic: &Topic) -> Hearing {
        pass.hearing.or(self.rules.get(topic).map(|rule| rule.hearing).unwrap_or_default())
    }

    /// Checks that a participant may know of the topic.
    pub fn is_shown(&self, pass: &Pass, topic: &Topic) -> bool {
        matches!(self.admit(pass, topic), Ok(_) | Err(NotAdmitted::NotMember))
    }
}

/// Matches an entry of a token against a topic, in full or by its beginning.
pub fn covers(named: &str, topic: &str) -> bool {
    named.strip_suffix('*').map_or(named == topic, |beginning| topic.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str) -> Topic {
        Topic::new(name).unwrap()
    }

    fn pass(id: &str, topics: &[&str]) -> Pass {
        let topics = topics.iter().map(|name| (*name).to_owned()).collect();
        Pass { id: ParticipantId::new(id).unwrap(), topics, capabilities: None, hearing: Hearing::default() }
    }

    fn doors(open: bool) -> Doors {
        let members = BTreeSet::from([ParticipantId::new("member").unwrap()]);
        let rule = |access| Rule { access, members: members.clone(), ..Rule::default() };
        let rules = BTreeMap::from([
            (topic("square"), rule(Access::Public)),
            (topic("club"), rule(Access::Restricted)),
            (topic("vault"), rule(Access::Private)),
        ]);
        Doors { rules, open, capabilities: Capabilities::read(PROPOSES).unwrap() }
    }

    #[test]
    fn mx_16_access_and_the_topics_of_a_token_decide_admission() {
        use NotAdmitted::{Elsewhere, NotMember, Unknown};
        let (everywhere, named) = (&["*"][..], &["square", "club", "vault", "new"][..]);
        let cases = [
            ("guest", everywhere, [None, Some(NotMember), Some(Unknown), Some(Unknown)]),
            ("member", everywhere, [None, None, None, Some(Unknown)]),
            ("guest", named, [None, None, None, Some(Unknown)]),
            ("member", &["square"][..], [None, Some(Elsewhere), Some(Elsewhere), Some(Elsewhere)]),
            ("guest", &["squ*", "vault*"][..], [None, Some(Elsewhere), Some(Unknown), Some(Elsewhere)]),
            ("guest", &[][..], [Some(Elsewhere); 4]),
            ("guest", &["Square", "square ", "squ"][..], [Some(Elsewhere); 4]),
        ];
        for (who, topics, expected) in cases {
            let outcome = ["square", "club", "vault", "new"].map(|name| doors(false).admit(&pass(who, topics), &topic(name)).err());
            assert_eq!(outcome, expected, "{who} with {topics:?}");
        }
        assert!(doors(true).admit(&pass("guest", everywhere), &topic("new")).is_ok());
        assert_eq!(doors(true).admit(&pass("guest", &["square"]), &topic("new")), Err(Elsewhere));
    }

    #[test]
    fn mx_16_a_private_topic_is_not_there_for_others() {
        let guest = pass("guest", &["*"]);
        let shown = ["square", "club", "vault", "new"].map(|name| doors(false).is_shown(&guest, &topic(name)));
        assert_eq!(shown, [true, true, false, false]);
        assert_eq!(doors(false).admit(&guest, &topic("vault")).err(), doors(false).admit(&guest, &topic("new")).err());
    }

    #[test]
    fn capabilities_come_from_token_topic_or_default() {
        let (mut doors, mut pass) = (doors(false), pass("guest", &["square"]));
        let given = |doors: &Doors, pass: &Pass| format!("{:?}", doors.admit(pass, &topic("square")).unwrap());
        assert_eq!(given(&doors, &pass), format!("{PROPOSES:?}"));
        let chat = Capabilities::read(["chat"]).unwrap();
        doors.rules.get_mut(&topic("square")).unwrap().capabilities = Some(chat);
        assert_eq!(given(&doors, &pass), "[\"chat\"]");
        pass.capabilities = Some(Capabilities::default());
        assert_eq!(given(&doors, &pass), "[]");
    }
}
