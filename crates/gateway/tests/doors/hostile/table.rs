//! More than a thousand tries to release an unapproved call: every false proof, against every state of a call, at every door and in both
//! eras, each with its own answer. No try changes the fate of the call.

use std::collections::BTreeMap;

use super::*;

/// False proofs, and the right proof at the wrong time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Attack {
    NameOfAnother,
    Bent,
    Claims,
    Cut,
    Friend,
    FriendsName,
    List,
    Null,
    OfAnotherCall,
    OtherChallenge,
    OtherNonce,
    OwnKey,
    Right,
    UnknownType,
    Words,
}

/// State of the attacked call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Denied,
    Done,
    Expired,
    /// A single approval of two.
    Half,
    Pending,
    Released,
    Unknown,
    Void,
    Withdrawn,
}

/// Door to which the proof is brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    /// At a gate above, for a call that came through there.
    Above(bool),
    Mcp(bool),
    /// At the endpoint of a single mount.
    Mount(bool),
    /// At the people's door, as nobody or with the token of a model.
    People(Option<&'static str>),
}

const ATTACKS: [Attack; 15] = [
    Attack::NameOfAnother,
    Attack::Bent,
    Attack::Claims,
    Attack::Cut,
    Attack::Friend,
    Attack::FriendsName,
    Attack::List,
    Attack::Null,
    Attack::OfAnotherCall,
    Attack::OtherChallenge,
    Attack::OtherNonce,
    Attack::OwnKey,
    Attack::Right,
    Attack::UnknownType,
    Attack::Words,
];
const STATES: [State; 9] = [
    State::Denied,
    State::Done,
    State::Expired,
    State::Half,
    State::Pending,
    State::Released,
    State::Unknown,
    State::Void,
    State::Withdrawn,
];
const NEAR: [Door; 4] = [Door::Mcp(false), Door::Mcp(true), Door::Mount(false), Door::Mount(true)];
const PEOPLE: [Door; 3] = [Door::People(None), Door::People(Some("ann")), Door::People(Some("bob"))];
const ABOVE: [Door; 2] = [Door::Above(false), Door::Above(true)];

fn era(is_stateless: bool) -> Era {
    if is_stateless { Era::Stateless } else { Era::Initialize }
}

/// Gives the expected answer; `None` for an impossible try.
fn wanted(attack: Attack, state: State, door: Door) -> Option<&'static str> {
    let by_state = match state {
        // Whoever takes a call back does so where it waits.
        State::Withdrawn if matches!(door, Door::Above(_)) => return None,
        State::Denied => Some("approval_denied"),
        State::Done | State::Released => Some("approval_used"),
        State::Expired => Some("approval_expired"),
        State::Half | State::Pending => None,
        State::Unknown => Some("unknown_approval"),
        State::Void => Some("approval_void"),
        State::Withdrawn => Some("approval_withdrawn"),
    };
    Some(match attack {
        // The door of people asks whether there is such a call before it reads a proof.
        _ if state == State::Unknown && matches!(door, Door::People(_)) => return by_state,
        // Nobody looks for what it is about.
        Attack::Claims | Attack::List | Attack::Null | Attack::UnknownType | Attack::Words => "proof_malformed",
        _ if by_state.is_some() => return by_state,
        Attack::NameOfAnother | Attack::Bent | Attack::Cut | Attack::FriendsName => "bad_signature",
        Attack::OfAnotherCall | Attack::OtherChallenge | Attack::OtherNonce => "bad_signature",
        Attack::Friend => "self_approval",
        Attack::OwnKey => "unknown_key",
        Attack::Right if state == State::Half => "second_person_needed",
        Attack::Right => return None,
    })
}

fn tries() -> Vec<(Attack, State, Door, &'static str)> {
    let doors = || NEAR.into_iter().chain(PEOPLE).chain(ABOVE);
    let all = STATES.into_iter().flat_map(|state| doors().flat_map(move |door| ATTACKS.map(|attack| (attack, state, door))));
    all.filter_map(|(attack, state, door)| Some((attack, state, door, wanted(attack, state, door)?))).collect()
}

#[test]
fn ax_46_there_are_a_thousand_different_tries() {
    let all = tries();
    let different: BTreeSet<_> = all.iter().map(|(attack, state, door, _)| (attack, state, door)).collect();
    assert!(all.len() > 1000 && different.len() == all.len(), "{} of {}", different.len(), all.len());
    let answers: BTreeSet<_> = all.iter().map(|(.., wanted)| wanted).collect();
    assert_eq!(answers.len(), 11, "{answers:?}");
}

/// Calls that a principal may withdraw.
const TAKEN_BACK: usize = 20;

/// A gate whose calls can be brought to every state, and another above.
struct Table {
    stage: Stage,
    above: World,
    rules: tempfile::TempDir,
    clients: BTreeMap<Door, Client>,
    taken_back: Cell<usize>,
}

impl Table {
    async fn set(state: State) -> Self {
        let rules = tempfile::tempdir().unwrap();
        let file = rules.path().join("rules.cedar");
        std::fs::write(&file, "@id(\"all\") permit (principal, action, resource);").unwrap();
        let expires = if state == State::Expired { "1s" } else { "5m" };
        let required = if state == State::Half { "approvals = 2\n" } else { "" };
        let more = format!(
            "{required}[policy]\nfile = {file:?}\n{}{}",
            token("up"),
            (0..6).map(|n| token(&format!("caller-{n}"))).collect::<String>()
        );
        let stage = Stage::set(expires, &more).await;
        if state == State::Half {
            stage.anna.enroll_key(&Key::of(7), "carl", &[]).await;
        }
        let headers = "headers = { Authorization = \"Bearer secret-of-up\" }";
        let above = World::start(&format!("[mount.low]\nurl = \"http://{}/mcp\"\n{headers}\n", stage.world.addr)).await;
        let knowing = json!({"extensions": {"io.banyan/mcpax": {}}, "experimental": {"io.banyan/mcpax": {}}});
        let mut clients = BTreeMap::new();
        for door in NEAR.into_iter().chain(ABOVE) {
            let mut client = match door {
                Door::Above(stateless) => Client::new(&above, era(stateless)),
                Door::Mcp(stateless) => Client::new(&stage.world, era(stateless)).with("authorization", "Bearer secret-of-bob"),
                Door::Mount(stateless) => {
                    Client::new(&stage.world, era(stateless)).at("/mcp/r").with("authorization", "Bearer secret-of-ann")
                }
                Door::People(_) => continue,
            };
            client.capabilities = knowing.clone();
            clients.insert(door, client.open().await);
        }
        Self { stage, above, rules, clients, taken_back: Cell::new(0) }
    }

    /// Gives the caller, and the name of the tool at that door.
    fn caller(&self, door: Door) -> (&Client, &'static str) {
        match door {
            Door::Above(_) => (&self.clients[&door], "low__r__record"),
            Door::Mcp(_) | Door::Mount(_) | Door::People(_) => (&self.stage.ann, TOOL),
        }
    }

    async fn held(&self, door: Door, arguments: &Value) -> WaitingCall {
        let (client, tool) = self.caller(door);
        let told = client.tool(tool, arguments.clone()).await;
        assert_eq!(word(&told), "confirmation_required", "{told}");
        let text = |name: &str| told["error"]["data"][name].as_str().unwrap().to_owned();
        WaitingCall { id: text("id"), challenge: text("challenge") }
    }

    /// Brings a waiting call to a state.
    async fn bring(&self, state: State, door: Door, held: &WaitingCall, arguments: &Value) {
        let stage = &self.stage;
        match state {
            // Those that are over by themselves are waited for.
            State::Expired | State::Pending | State::Unknown | State::Void | State::Withdrawn => {}
            State::Denied => stage.deny(&held.id).await,
            State::Done => {
                stage.agree(held).await;
                let (client, tool) = self.caller(door);
                stage.agreed.set(stage.agreed.get() + 1);
                assert_eq!(word(&client.tool(tool, arguments.clone()).await), "went out");
            }
            State::Half => {
                let told = stage.ann.call("mcpax/confirm", json!({"id": held.id, "proof": stage.anna.proof(&held.challenge)})).await;
                assert_eq!(told["result"]["standing"], "pending", "{told}");
            }
            State::Released => stage.agree(held).await,
        }
    }

    /// Makes a call whose caller withdraws.
    async fn withdrawn(&self, arguments: &Value) -> WaitingCall {
        let number = self.taken_back.replace(self.taken_back.get() + 1) / TAKEN_BACK;
        let caller = opening(&self.stage, &format!("caller-{number}"));
        let asked = caller.tool(TOOL, arguments.clone()).await;
        let sealed = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}"));
        let id = sealed.rsplit_once('.').unwrap().0.rsplit_once('-').unwrap().1.to_owned();
        let (state, no) = (&asked["result"]["requestState"], json!({"approval": {"action": "decline"}}));
        let back = json!({"name": TOOL, "arguments": arguments, "requestState": state, "inputResponses": no});
        assert_eq!(word(&caller.call("tools/call", back).await), "approval_withdrawn");
        let challenge = self.stage.world.gateway.approval(&id).await.unwrap().challenge;
        WaitingCall { id, challenge }
    }

    /// Puts other rules in force.
    fn rule(&self) {
        std::fs::write(self.rules.path().join("rules.cedar"), "@id(\"other\") permit (principal, action, resource);").unwrap();
        self.stage.world.apply(&self.stage.toml);
    }

    fn proof(&self, attack: Attack, held: &WaitingCall, other: &WaitingCall) -> Value {
        let stage = &self.stage;
        let (right, own, friends) =
            (stage.anna.proof(&held.challenge), stage.model.proof(&held.challenge), stage.friend.proof(&held.challenge));
        let signature = right["signature"].as_str().unwrap();
        let by = |key: &Value, signature: &str| json!({"type": "ed25519", "key": key, "signature": signature});
        match attack {
            Attack::NameOfAnother => by(&right["key"], own["signature"].as_str().unwrap()),
            Attack::Bent => by(&right["key"], &format!("{}{}", if signature.starts_with('A') { "B" } else { "A" }, &signature[1..])),
            Attack::Claims => json!({"approved": true, "by": "anna"}),
            Attack::Cut => by(&right["key"], &signature[4..]),
            Attack::Friend => friends,
            Attack::FriendsName => by(&friends["key"], signature),
            Attack::List => json!([right]),
            Attack::Null => Value::Null,
            Attack::OfAnotherCall => stage.anna.proof(&other.challenge),
            Attack::OtherChallenge => stage.anna.proof(&held.challenge.replace("\"required\":", "\"why\":\"\",\"required\":")),
            Attack::OtherNonce => stage.anna.proof(&held.challenge.replace("\"nonce\":\"", "\"nonce\":\"0")),
            Attack::OwnKey => own,
            Attack::Right => right,
            Attack::UnknownType => json!({"type": "trust", "signature": signature}),
            Attack::Words => json!("anna agrees"),
        }
    }

    /// Brings a proof to a door, and gives the answer.
    async fn told(&self, door: Door, id: &str, proof: Value) -> String {
        match door {
            Door::Above(_) | Door::Mcp(_) | Door::Mount(_) => {
                word(&self.clients[&door].call("mcpax/confirm", json!({"id": id, "proof": proof})).await)
            }
            Door::People(whoever) => {
                let told = at_door(&self.stage, whoever, &format!("/-/approvals/{id}/confirm"), Some(json!({"proof": proof}))).await;
                told.split_once(' ').unwrap().1.to_owned()
            }
        }
    }
}

/// A try, and the attacked call.
struct Try {
    attack: Attack,
    door: Door,
    wanted: &'static str,
    held: WaitingCall,
}

/// Tries all attacks against calls in a state, at some doors.
async fn tried(state: State, doors: &[Door]) {
    let table = Table::set(state).await;
    let other = table.held(Door::Mcp(true), &json!({"n": "other"})).await;
    let all = prepared(&table, state, doors).await;
    for one in &all {
        let what = format!("{:?} at {:?}, {state:?}", one.attack, one.door);
        let before = table.stage.world.gateway.approval(&one.held.id).await.unwrap();
        let id = if state == State::Unknown { "0123456789abcdef" } else { &one.held.id };
        assert_eq!(table.told(one.door, id, table.proof(one.attack, &one.held, &other)).await, one.wanted, "{what}");
        let after = table.stage.world.gateway.approval(&one.held.id).await.unwrap();
        assert_eq!((after.standing, after.votes), (before.standing, before.votes), "{what}");
    }
    let Table { stage, above, .. } = table;
    above.end().await;
    assert_eq!(stage.reached(), stage.agreed.get());
    // What nobody was asked about can be made up by the thousand.
    if state != State::Unknown {
        are_recorded(&all, &read(stage.world).await);
    }
}

/// Makes a call for each try, in the state.
async fn prepared(table: &Table, state: State, doors: &[Door]) -> Vec<Try> {
    let mut all = Vec::new();
    let tries = tries().into_iter().filter(|(_, of, door, _)| *of == state && doors.contains(door));
    for (number, (attack, _, door, wanted)) in tries.enumerate() {
        let arguments = json!({"n": number});
        let held = if state == State::Withdrawn { table.withdrawn(&arguments).await } else { table.held(door, &arguments).await };
        table.bring(state, door, &held, &arguments).await;
        all.push(Try { attack, door, wanted, held });
    }
    if state == State::Void {
        table.rule();
    }
    for one in all.iter().filter(|_| matches!(state, State::Expired | State::Void)) {
        eventually(async || table.stage.world.gateway.approval(&one.held.id).await.unwrap().standing.is_over().then_some(())).await;
    }
    all
}

fn are_recorded(all: &[Try], entries: &[AuditEntry]) {
    for Try { attack, door, wanted, .. } in all {
        let tries = all.iter().filter(|one| one.wanted == *wanted).count();
        assert!(refusals(entries, wanted) >= tries, "{attack:?} at {door:?}: {wanted} is not in the record for each of {tries}");
    }
}

/// Makes a test for each state and kind of door.
macro_rules! against {
    ($($name:ident: $state:ident at $doors:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            bounded(tried(State::$state, &$doors)).await;
        }
    )*};
}

against! {
    nothing_frees_what_was_denied: Denied at NEAR;
    no_model_frees_what_was_denied: Denied at PEOPLE;
    nobody_above_frees_what_was_denied: Denied at ABOVE;
    nothing_repeats_what_went_out: Done at NEAR;
    no_model_repeats_what_went_out: Done at PEOPLE;
    nobody_above_repeats_what_went_out: Done at ABOVE;
    nothing_frees_what_expired: Expired at NEAR;
    no_model_frees_what_expired: Expired at PEOPLE;
    nobody_above_frees_what_expired: Expired at ABOVE;
    nothing_is_a_second_person: Half at NEAR;
    no_model_is_a_second_person: Half at PEOPLE;
    nobody_above_is_a_second_person: Half at ABOVE;
    nothing_frees_what_waits: Pending at NEAR;
    no_model_frees_what_waits: Pending at PEOPLE;
    nobody_above_frees_what_waits: Pending at ABOVE;
    nothing_frees_twice: Released at NEAR;
    no_model_frees_twice: Released at PEOPLE;
    nobody_above_frees_twice: Released at ABOVE;
    nothing_frees_what_is_not_there: Unknown at NEAR;
    no_model_frees_what_is_not_there: Unknown at PEOPLE;
    nobody_above_frees_what_is_not_there: Unknown at ABOVE;
    nothing_frees_what_is_void: Void at NEAR;
    no_model_frees_what_is_void: Void at PEOPLE;
    nobody_above_frees_what_is_void: Void at ABOVE;
    nothing_frees_what_was_taken_back: Withdrawn at NEAR;
    no_model_frees_what_was_taken_back: Withdrawn at PEOPLE;
}
