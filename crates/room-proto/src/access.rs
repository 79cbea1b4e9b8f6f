//! Who may come into which room, and with what (MCPx v0.1, 5.1). Whether a token is genuine is not decided here: what stands in a
//! [`Pass`] has been verified.
//!
//! A token is good for the topics that it names, and for no other. A *public* topic takes whoever has such a token; a *restricted* one only
//! its members, and those whose token names it in full; a *private* one the same, and to everybody else it does not exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::capability::Capabilities;
use crate::name::{ParticipantId, Topic};

/// What one who is let in may send where neither its token nor the topic says: it proposes, takes back what it proposed,
/// and others decide (7.1).
pub const PROPOSES: [&str; 4] = ["mcp/proposal:*", "mcp/withdraw:*", "mcp/response:*", "chat"];

/// Who a topic takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Whoever has a token for it.
    #[default]
    Public,
    /// Some, and for others it is not there.
    Private,
    /// Some.
    Restricted,
}

/// What is configured for one topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Who it takes.
    pub access: Access,
    /// Who may come in though no token names the topic in full.
    pub members: BTreeSet<ParticipantId>,
    /// What those get whose token does not say.
    pub capabilities: Option<Capabilities>,
}

/// What a token says.
#[derive(Debug, Clone)]
pub struct Pass {
    /// Who it is.
    pub id: ParticipantId,
    /// For which topics it is good: names, and beginnings of names with a `*` behind.
    pub topics: Vec<String>,
    /// What it may send; `None`: the topic decides.
    pub capabilities: Option<Capabilities>,
}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// It has a token for other topics.
    #[error("this token is not good for this topic: ask for one that names it")]
    Elsewhere,
    /// It is not among those who may come in.
    #[error("this room is for its members: ask its admin to add you, or for a token that names it in full")]
    NotMember,
    /// There is no such room, or none that it may know of.
    #[error("there is no such room here: look at the name, or ask for the room to be configured")]
    Unknown,
}

/// All rooms of a gate, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doors {
    /// Topics with a rule.
    pub rules: BTreeMap<Topic, Rule>,
    /// Whether a topic without one comes into being when the first joins: a public one.
    pub open: bool,
    /// What those get whose token and topic do not say.
    pub capabilities: Capabilities,
}

impl Doors {
    /// Lets somebody in, with what it may send, or not.
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

    /// Whether somebody may know that a topic is there.
    pub fn is_shown(&self, pass: &Pass, topic: &Topic) -> bool {
        matches!(self.admit(pass, topic), Ok(_) | Err(NotAdmitted::NotMember))
    }
}

/// Whether an entry of a token names a topic, in full or by its beginning.
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
        Pass { id: ParticipantId::new(id).unwrap(), topics, capabilities: None }
    }

    fn doors(open: bool) -> Doors {
        let members = BTreeSet::from([ParticipantId::new("member").unwrap()]);
        let rule = |access| Rule { access, members: members.clone(), capabilities: None };
        let rules = BTreeMap::from([
            (topic("square"), rule(Access::Public)),
            (topic("club"), rule(Access::Restricted)),
            (topic("vault"), rule(Access::Private)),
        ]);
        Doors { rules, open, capabilities: Capabilities::read(PROPOSES).unwrap() }
    }

    #[test]
    fn mx_16_a_topic_takes_whom_it_is_for_and_a_token_is_good_for_what_it_names() {
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
    fn the_token_says_what_its_owner_may_send_then_the_topic_then_it_may_propose() {
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
