//! Clocks of calls while a server asks, and times of probes. No real server.

use std::path::Path;
use std::sync::Weak;

use bytes::Bytes;
use call::tree::back::Sink;
use call::words::cancel::Cancel;
use call::words::entered::{AboutClient, AdmittedCaller};
use config::secret::SystemSources;
use door::known::stateless;
use mcp_proto::client::Identity;
use mcp_proto::envelope::{self, Message};
use mcp_proto::json::Duplicates;

use super::*;

const REFUSAL: &[u8] = br#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#;
const DISCOVERED: &[u8] = br#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;

/// Opens a pipe to a server of the stateless era that ignores the first probe, and answers a later one after some time.
async fn opened(after: Duration) -> Result<Negotiated, OpenError> {
    let identity = Identity { info: Bytes::from_static(b"{\"name\":\"b\"}"), capabilities: Bytes::from_static(b"{}") };
    let (to_pipe, incoming) = mpsc::channel(8);
    let (outgoing, mut from_pipe) = mpsc::channel(8);
    let (close, ended) = (CancellationToken::new(), CancellationToken::new());
    let carrier = Carrier { incoming, outgoing, close, ended, probe: Duration::from_millis(300) };
    tokio::spawn(async move {
        let _first = from_pipe.recv().await;
        while let Some(text) = from_pipe.recv().await {
            let Ok(Message::Request(request)) = Message::parse(&text, Duplicates::RefuseDeep) else { continue };
            let (wait, answer) = match &*request.method {
                "initialize" => (Duration::ZERO, Answer::Error(Bytes::from_static(REFUSAL))),
                _ => (after, Answer::Result(Bytes::from_static(DISCOVERED).into())),
            };
            let to_pipe = to_pipe.clone();
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                to_pipe.send(ServerInput::Message(envelope::response(&request.id, &answer))).await.ok();
            });
        }
    });
    let inbox = Inbox { mount: Weak::new(), owner: Owner::Shared };
    open(Pipe::new(None, identity), carrier, inbox).await.map(|(_, negotiated)| negotiated)
}

/// Makes a driver for `owner`, without a server.
fn driver(owner: Owner) -> Driver {
    let ((commands, queue), (outgoing, _)) = (mpsc::channel(8), mpsc::channel(8));
    let identity = Identity { info: Bytes::from_static(b"{}"), capabilities: Bytes::from_static(b"{}") };
    Driver {
        pipe: Pipe::new(None, identity),
        queue,
        commands: commands.downgrade(),
        inbox: Inbox { mount: Weak::new(), owner },
        outgoing,
        ready: None,
        calls: HashMap::new(),
        tickets: HashMap::new(),
        asks: HashMap::new(),
    }
}

/// Begins a call in the driver.
fn calling(driver: &mut Driver, ticket: u64) -> Arc<Back> {
    let config = config::parse("", Path::new("banyan.toml"), &SystemSources).unwrap();
    let about = AboutClient { info: b"{}", capabilities: b"{}" };
    let caller = Arc::new(stateless(&config, &AdmittedCaller::local(), (None, None), about));
    let back = Back::new(caller, Sink::None, None, Cancel::default());
    let (reply, params, method) = (oneshot::channel().0, Object::empty(), "tools/call".to_owned());
    driver.handle_command(Command::Call { ticket, method, params, back: Some(Arc::clone(&back)), reply });
    back
}

#[tokio::test]
async fn a_question_stops_the_clocks_of_its_clients_calls() {
    let (mut driver, key) = (driver(Owner::Session(Weak::new())), |id| AskKey(Bytes::from_static(id)));
    let ask = |driver: &mut Driver, id| driver.asked(key(id), "elicitation/create", &Bytes::from_static(b"{}"));
    let answer = || Answer::Result(Object::empty());
    let before = calling(&mut driver, 1);
    assert!(!before.is_asking());
    ask(&mut driver, b"1");
    let during = calling(&mut driver, 2);
    ask(&mut driver, b"2");
    assert!(before.is_asking() && during.is_asking());
    driver.handle_command(Command::Reply(key(b"1"), answer()));
    assert!(before.is_asking() && during.is_asking(), "another question is open");
    driver.handle_event(Event::AskWithdrawn(key(b"2")));
    assert!(!before.is_asking() && !during.is_asking());
    ask(&mut driver, b"3");
    driver.handle_command(Command::Cancel { ticket: 1 });
    assert!(!before.is_asking() && during.is_asking(), "a call that is over waits for nothing");
    driver.handle_command(Command::Reply(key(b"3"), answer()));
    assert!(!during.is_asking());
}

#[tokio::test]
async fn a_shared_servers_question_stops_no_clock() {
    let mut driver = driver(Owner::Shared);
    let calls = [calling(&mut driver, 1), calling(&mut driver, 2)];
    driver.asked(AskKey(Bytes::from_static(b"1")), "elicitation/create", &Bytes::from_static(b"{}"));
    assert!(!calls.iter().any(|call| call.is_asking()));
}

#[tokio::test]
async fn a_second_probe_has_a_time_of_its_own() {
    assert_eq!(opened(Duration::from_millis(50)).await.unwrap().version, "2026-07-28");
    assert!(matches!(opened(Duration::from_secs(60)).await, Err(OpenError::Handshake(HandshakeError::Refused(_)))));
}
