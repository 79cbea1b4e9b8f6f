#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

use std::time::{Duration, SystemTime};

use super::*;
use crate::capability::Pattern;
use crate::name::{ConnectionId, Topic};
use crate::room::{Also, Change, Newcomer, Preferences, Room, RoomOutput, Settings, Transmit};
use banyan_model::Now;

/// A room with participants of ours.
struct Meeting {
    room: Room,
    now: Now,
    seats: Vec<Participant>,
}

impl Meeting {
    fn new(who: &[(&str, &[&str])]) -> Self {
        let now = Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH };
        let room = Room::new(Topic::new("team").unwrap(), Settings::default(), 1);
        let mut meeting = Self { room, now, seats: Vec::new() };
        for (id, capabilities) in who {
            let newcomer = Newcomer {
                id: ParticipantId::new(id).unwrap(),
                capabilities: Capabilities::read(capabilities.iter().copied()).unwrap(),
                preferences: Preferences { also: Also::ALL, ..Preferences::default() },
                expires: None,
                is_own: false,
                is_steward: false,
            };
            let seat = meeting.seats.len();
            meeting.seats.push(Participant::new(Bounds::default(), 1 << 20, 100 + seat as u128));
            meeting.room.handle_join(now, ConnectionId(seat as u64), newcomer).unwrap();
            meeting.deliver();
        }
        meeting
    }

    fn deliver(&mut self) {
        while let Some(output) = self.room.poll_output() {
            let (connection, bytes) = match output {
                RoomOutput::Transmit(Transmit::Send { connection, bytes }) => (connection, bytes),
                RoomOutput::Transmit(Transmit::Close { .. }) => panic!("{output:?}"),
                RoomOutput::Event(_) => continue,
            };
            let seat = usize::try_from(connection.0).unwrap();
            if let Some(participant) = self.seats.get_mut(seat) {
                participant.handle_message(self.now, &bytes);
            }
        }
    }

    /// Delivers a message of a participant to all.
    fn says(&mut self, seat: usize, spoken: Utterance) -> String {
        self.room.handle_message(self.now, ConnectionId(seat as u64), &spoken.bytes);
        self.deliver();
        spoken.id
    }

    fn events(&mut self, seat: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.seats[seat].poll_output()).collect()
    }

    /// The only waiting proposal, as seen from a seat.
    fn open(&self, seat: usize) -> ChainId {
        let open: Vec<ChainId> = self.seats[seat].chains().open().map(|(id, _)| id).collect();
        assert_eq!(open.len(), 1);
        open[0]
    }
}

const RM: Call<'_> = Call { method: "tools/call", params: Some(br#"{"name":"rm","arguments":{"path":"/tmp/x"}}"#) };

fn at() -> Now {
    Now { instant: Instant::now(), wall: SystemTime::UNIX_EPOCH }
}

fn meeting() -> Meeting {
    Meeting::new(&[
        ("agent", &["mcp/proposal:*", "mcp/withdraw:*", "chat"]),
        ("human", &["mcp/*", "chat"]),
        ("target", &["mcp/response:*"]),
    ])
}

#[test]
fn mx_14_a_participant_learns_all_ids_and_capabilities() {
    let mut meeting = meeting();
    let human = &meeting.seats[1];
    assert_eq!(human.me().unwrap().as_str(), "human");
    let present: Vec<(&str, usize)> = human.present().map(|(id, capabilities)| (id, capabilities.len())).collect();
    assert_eq!(present, [("agent", 3), ("target", 1)]);
    assert_eq!(meeting.events(0), [Event::Welcomed, Event::Joined { id: "human".into() }, Event::Joined { id: "target".into() }]);
    meeting.room.handle_leave(meeting.now, ConnectionId(2));
    let chat = Pattern::new("chat").unwrap();
    let id = ParticipantId::new("agent").unwrap();
    meeting.room.handle_capabilities(meeting.now, &id, Change { add: &[], remove: &[chat], by: "boss" }).unwrap();
    meeting.deliver();
    assert_eq!(meeting.events(0), [Event::Left { id: "target".into() }, Event::Welcomed]);
    assert_eq!(meeting.seats[0].chat(at(), &[], "hello"), Err(SpeechError::Lacking { kind: "chat".into() }));
}

#[test]
fn mx_22_the_answer_to_an_approved_proposal_reaches_the_proposer() {
    let mut meeting = meeting();
    let proposal = meeting.seats[0].propose(at(), &[], RM).unwrap();
    let proposal = meeting.says(0, proposal);
    let waits = meeting.open(1);
    assert_eq!(meeting.seats[1].fulfil(at(), waits, &[]), Err(SpeechError::Broadcast));
    let request = meeting.seats[1].fulfil(at(), waits, &["target"]).unwrap();
    meeting.says(1, request);
    assert_eq!(meeting.seats[1].fulfil(at(), waits, &["target"]), Err(SpeechError::NotOpen(State::Requested)));
    let asked = meeting.events(2).into_iter().find_map(|event| if let Event::Asked(bytes) = event { Some(bytes) } else { None }).unwrap();
    let response = meeting.seats[2].respond(at(), &asked, Answer::Result(br#"{"content":[]}"#)).unwrap();
    let answered = Envelope::decode(&response.bytes, 1 << 20).unwrap();
    assert_eq!(answered.to, ["human", "agent"]);
    meeting.says(2, response.clone());
    for seat in 0..3 {
        let (_, chain) = meeting.seats[seat].chains().iter().next().unwrap();
        assert_eq!((chain.state, chain.proposal.as_ref().unwrap().id.as_str()), (State::Answered, proposal.as_str()));
        assert!(meeting.seats[seat].proposed.is_empty() && meeting.seats[seat].held == 0);
    }
    let is_answer = |event: &Event| matches!(event, Event::Linked { found: MessageRole::Answered(_), from, .. } if from == "target");
    assert_eq!(meeting.events(0).iter().filter(|event| is_answer(event)).count(), 1);
}

#[test]
fn mx_22_proposals_end_rejected_withdrawn_or_expired() {
    let mut meeting = meeting();
    for ending in [Ending::Reject, Ending::Withdraw] {
        let proposal = meeting.seats[0].propose(at(), &["target"], RM).unwrap();
        meeting.says(0, proposal);
        let (seat, waits) = (usize::from(ending == Ending::Reject), meeting.open(1));
        let end = meeting.seats[seat].end_proposal(at(), waits, ending, Some("not today")).unwrap();
        meeting.says(seat, end);
        let (_, chain) = meeting.seats[2].chains().iter().last().unwrap();
        assert_eq!((chain.reason.as_deref(), chain.end.as_ref().unwrap().from.as_str()), (Some("not today"), ["agent", "human"][seat]));
        assert_eq!(chain.state, [State::Withdrawn, State::Rejected][seat]);
    }
    let proposal = meeting.seats[0].propose(at(), &["target"], RM).unwrap();
    meeting.says(0, proposal);
    let waits = meeting.open(1);
    meeting.events(1);
    let (due, _) = meeting.seats[1].poll_timeout().unwrap();
    meeting.seats[1].handle_timeout(Now { instant: due, ..at() });
    assert_eq!(meeting.events(1), [Event::Expired(waits)]);
    assert_eq!(meeting.seats[1].fulfil(at(), waits, &[]), Err(SpeechError::NotOpen(State::Expired)));
    assert_eq!((meeting.seats[1].held, meeting.seats[1].poll_timeout()), (0, None));
}

#[test]
fn mx_20_mismatches_are_dropped_and_change_nothing() {
    let mut meeting = meeting();
    meeting.events(1);
    let sent = |kind: &str, from: &str| {
        let payload = r#"{"method":"tools/call","params":{"name":"rm"}}"#;
        Bytes::from(format!(r#"{{"protocol":"mcpx/v0.1","id":"{kind}","from":"{from}","kind":"{kind}","payload":{payload}}}"#))
    };
    let human = &mut meeting.seats[1];
    for (kind, from) in
        [("mcp/proposal:tools/call:ls", "agent"), ("mcp/proposal:tools/list", "agent"), ("system/welcome", "agent"), ("chat", "x")]
    {
        human.handle_message(meeting.now, &sent(kind, from));
        assert!(matches!(human.poll_output(), Some(Event::Dropped { from: of, .. }) if of == from), "{kind}");
    }
    human.handle_message(meeting.now, &Bytes::from_static(b"hello"));
    assert!(matches!(human.poll_output(), Some(Event::Unread(_))));
    assert_eq!((human.watch().mismatches_of("agent"), human.watch().mismatches()), (3, 4));
    assert_eq!(human.poll_output(), None);
    assert_eq!((human.me().unwrap().as_str(), human.chains().iter().count()), ("human", 0));
}

#[test]
fn forbidden_messages_are_not_said_and_refusals_are_reported() {
    let mut meeting = meeting();
    let lacking = SpeechError::Lacking { kind: "mcp/request:tools/call:rm".into() };
    assert_eq!(meeting.seats[0].request(at(), &["target"], RM, None), Err(lacking));
    assert_eq!(Participant::new(Bounds::default(), 1_000, 1).chat(at(), &[], "x"), Err(SpeechError::NotWelcomed));
    meeting.events(0);
    let refused = Utterance {
        id: "m".into(),
        bytes: Bytes::from_static(br#"{"protocol":"mcpx/v0.1","id":"m","from":"agent","kind":"x","payload":{}}"#),
    };
    meeting.says(0, refused);
    let events = meeting.events(0);
    let [Event::Refused { code, message, of }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((code.as_str(), of.as_deref()), ("capability_violation", Some("m")));
    assert!(message.contains("'x'"));
    let said = meeting.seats[1].chat(at(), &["agent"], "hold on").unwrap();
    let id = meeting.says(1, said);
    let text = ChatMessage { id, from: "human".into(), to: vec!["agent".into()], text: "hold on".into(), about: None };
    assert_eq!(meeting.events(0), [Event::Said(text)]);
}

#[test]
fn waiting_proposals_are_bounded_in_bytes() {
    let mut meeting = meeting();
    let params = format!(r#"{{"name":"rm","text":"{}"}}"#, "x".repeat(900_000));
    for _ in 0..7 {
        let spoken = meeting.seats[0].propose(at(), &[], Call { method: "tools/call", params: Some(params.as_bytes()) }).unwrap();
        meeting.seats[1].handle_message(meeting.now, &spoken.bytes);
    }
    let human = &mut meeting.seats[1];
    assert!(human.held <= HELD && human.proposed.len() == HELD / 900_100);
    let (oldest, _) = human.chains().open().next().unwrap();
    assert_eq!(human.fulfil(at(), oldest, &["target"]), Err(SpeechError::Forgotten));
    human.handle_timeout(Now { instant: meeting.now.instant + Duration::from_secs(9_999), ..meeting.now });
    assert_eq!((human.held, human.proposed.len()), (0, 0));
}

#[test]
fn a4_a_second_approval_waits_for_the_rooms_echo() {
    let mut meeting = meeting();
    let plain = br#"{"protocol":"mcpx/v0.1","id":"p","from":"agent","kind":"mcp/proposal:tools/call","payload":{"method":"tools/call","params":{"name":"rm"}}}"#;
    meeting.room.handle_message(meeting.now, ConnectionId(0), &plain[..].into());
    meeting.deliver();
    let waits = meeting.open(1);
    let request = meeting.seats[1].fulfil(at(), waits, &["target"]).unwrap();
    assert_eq!(meeting.seats[1].fulfil(at(), waits, &["target"]), Err(SpeechError::Underway));
    // Refused by the room, it may be tried again.
    let refusal = format!(
        r#"{{"protocol":"mcpx/v0.1","id":"e","from":"system:gateway","kind":"system/error","correlation_id":"{}","payload":{{"error":"rate_limited"}}}}"#,
        request.id
    );
    meeting.seats[1].handle_message(meeting.now, &refusal.into());
    let request = meeting.seats[1].fulfil(at(), waits, &["target"]).unwrap();
    meeting.says(1, request);
    assert_eq!(meeting.seats[1].fulfil(at(), waits, &["target"]), Err(SpeechError::NotOpen(State::Requested)));
    assert!(meeting.seats[1].fulfilling.is_empty());
}
