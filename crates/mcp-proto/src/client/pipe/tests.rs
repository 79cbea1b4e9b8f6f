//! Transcripts of one pipe: messages of the server, our messages, events.

use super::*;

fn line(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn sent(pipe: &mut Pipe) -> Vec<String> {
    std::iter::from_fn(|| pipe.poll_transmit()).map(|b| String::from_utf8(b.to_vec()).unwrap()).collect()
}

fn events(pipe: &mut Pipe) -> Vec<Event> {
    std::iter::from_fn(|| pipe.poll_event()).collect()
}

fn new() -> Pipe {
    Pipe::new(None, Identity { info: line("{\"name\":\"b\"}"), capabilities: line("{}") })
}

fn ready() -> Pipe {
    let mut pipe = new();
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"?"}}"#));
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#));
    assert!(pipe.is_ready());
    sent(&mut pipe);
    events(&mut pipe);
    pipe
}

#[test]
fn a_silent_probe_is_followed_by_initialize_and_its_late_refusal_is_ignored() {
    let mut pipe = new();
    assert!(pipe.is_probing());
    pipe.handle_silence();
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}"#));
    assert!(!pipe.is_ready());
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#));
    let Some(Event::Ready(n)) = pipe.poll_event() else { panic!() };
    assert_eq!(n.era, Era::Initialize);
    let sent = sent(&mut pipe);
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert!(sent[2].contains("notifications/initialized"));
}

#[test]
fn a_second_probe_has_a_number_of_its_own() {
    let refusal =
        |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"no","data":{{"supported":["2026-07-28"]}}}}}}"#);
    let discovered = line(r#"{"jsonrpc":"2.0","id":0,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#);
    for silent in [false, true] {
        let mut pipe = new();
        assert_eq!(pipe.probe(), Some(1));
        if silent {
            pipe.handle_silence();
            assert_eq!(pipe.probe(), None);
        }
        pipe.handle_message(&line(&refusal(u8::from(silent))));
        assert_eq!(pipe.probe(), Some(2), "silent: {silent}");
        pipe.handle_message(&discovered);
        assert_eq!(pipe.probe(), None);
        let Some(Event::Ready(n)) = pipe.poll_event() else { panic!("silent: {silent}") };
        assert_eq!(n.era, Era::Stateless);
    }
}

#[test]
fn progress_tokens_of_two_callers_are_kept_apart() {
    let mut pipe = ready();
    let params: Object = line(r#"{"name":"t","_meta":{"progressToken":"mine","x":1}}"#).into();
    let (a, b) = (pipe.handle_call("tools/call", &params), pipe.handle_call("tools/call", &params));
    let out = sent(&mut pipe);
    assert!(out[0].contains(&format!("\"progressToken\":{},\"x\":1", a.0)), "{out:?}");
    pipe.handle_message(&line(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":1.0,"v":2}}}}"#,
        b.0
    )));
    let [Event::Notified(Some(call), n)] = &events(&mut pipe)[..] else { panic!() };
    assert_eq!(*call, b);
    assert_eq!(
        &n.whole[..],
        br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1.0,"v":2}}"#
    );
}

#[test]
fn a_cancelled_call_is_announced_once_and_its_late_answer_is_dropped() {
    let mut pipe = ready();
    let call = pipe.handle_call("tools/call", &line("{}").into());
    sent(&mut pipe);
    assert!(pipe.handle_cancel(call, "gone"));
    assert!(!pipe.handle_cancel(call, "gone"));
    assert_eq!(
        sent(&mut pipe),
        [format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"gone"}}}}"#, call.0)]
    );
    pipe.handle_message(&line(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, call.0)));
    assert_eq!(events(&mut pipe), []);
}

#[test]
fn what_the_server_asks_comes_out_and_the_reply_goes_back_under_its_id() {
    let mut pipe = ready();
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":"s1","method":"roots/list"}"#));
    let [Event::Asked(key, request)] = &events(&mut pipe)[..] else { panic!() };
    assert_eq!(request.method, "roots/list");
    pipe.handle_reply(key, &Answer::Result(line(r#"{"roots":[]}"#).into()));
    assert_eq!(sent(&mut pipe), [r#"{"jsonrpc":"2.0","id":"s1","result":{"roots":[]}}"#]);
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#));
    assert_eq!(sent(&mut pipe), [r#"{"jsonrpc":"2.0","id":9,"result":{}}"#]);
}

#[test]
fn noise_between_messages_disturbs_no_call() {
    let mut pipe = ready();
    let call = pipe.handle_call("tools/list", &line("{}").into());
    pipe.handle_message(&line("Server listening on stdio"));
    pipe.handle_message(&line(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[]}}}}"#, call.0)));
    let [Event::Noise(_), Event::Answered(k, _)] = &events(&mut pipe)[..] else { panic!() };
    assert_eq!(*k, call);
}

#[test]
fn a_subscription_message_finds_its_listen_call() {
    let mut pipe = ready();
    let call = pipe.handle_call("subscriptions/listen", &line("{}").into());
    pipe.handle_message(&line(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}}}"#,
        call.0
    )));
    let [Event::Notified(Some(k), _)] = &events(&mut pipe)[..] else { panic!() };
    assert_eq!(*k, call);
}

#[test]
fn a_broken_late_answer_to_a_cancelled_call_ends_no_other_call() {
    let mut pipe = ready();
    let (gone, other) = (pipe.handle_call("tools/call", &line("{}").into()), pipe.handle_call("tools/call", &line("{}").into()));
    assert!(pipe.handle_cancel(gone, "gone"));
    pipe.handle_message(&line(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"#, gone.0)));
    assert!(matches!(events(&mut pipe)[..], [Event::Noise(_)]));
    assert!(pipe.in_flight().eq([other]));
}

#[test]
fn a_broken_question_and_an_id_inside_a_broken_result_end_no_other_call() {
    let mut pipe = ready();
    let (a, b) = (pipe.handle_call("tools/call", &line("{}").into()), pipe.handle_call("tools/call", &line("{}").into()));
    pipe.handle_message(&line(&format!(r#"{{"jsonrpc":"2.0","id":{},"method":"roots/list","params":{{"x":1,"x":2}}}}"#, a.0)));
    assert!(matches!(events(&mut pipe)[..], [Event::Noise(_)]));
    pipe.handle_message(&line(&format!(r#"{{"jsonrpc":"2.0","result":{{"id":{},"x":1,"x":2}},"id":{}}}"#, a.0, b.0)));
    let [Event::Garbled(ended, _)] = &events(&mut pipe)[..] else { panic!() };
    assert_eq!(*ended, b);
    assert!(pipe.in_flight().eq([a]));
}

#[test]
fn a_question_is_answered_once_and_never_when_it_was_withdrawn() {
    let mut pipe = ready();
    let reply = Answer::Result(line("{}").into());
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#));
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create"}"#));
    let [Event::Asked(key, _), Event::Noise(_)] = &events(&mut pipe)[..] else { panic!() };
    pipe.handle_reply(key, &reply);
    pipe.handle_reply(key, &reply);
    assert_eq!(sent(&mut pipe), [r#"{"jsonrpc":"2.0","id":5,"result":{}}"#]);
    let withdrawal = line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
    pipe.handle_message(&withdrawal);
    assert_eq!(events(&mut pipe), []);
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#));
    pipe.handle_message(&withdrawal);
    let [Event::Asked(key, _), Event::AskWithdrawn(_)] = &events(&mut pipe)[..] else { panic!() };
    pipe.handle_reply(key, &reply);
    assert_eq!(sent(&mut pipe), [""; 0]);
}

#[test]
fn a_broken_answer_to_the_handshake_is_not_waited_for() {
    let mut pipe = new();
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":0,"result":{"#));
    assert!(sent(&mut pipe)[1].contains("\"initialize\""));
    pipe.handle_message(&line(r#"{"jsonrpc":"2.0","id":1,"result":{"#));
    let [Event::Noise(_), Event::Noise(_), Event::Failed(HandshakeError::Unreadable(_))] = &events(&mut pipe)[..] else { panic!() };
}

#[test]
fn a_message_that_was_thrown_away_ends_what_it_may_have_answered() {
    let mut pipe = ready();
    let call = pipe.handle_call("tools/call", &line("{}").into());
    assert_eq!(pipe.handle_too_long(), [call]);
    pipe.handle_message(&line(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, call.0)));
    assert_eq!(events(&mut pipe), []);
    assert_eq!(pipe.in_flight().count(), 0);
}

#[test]
fn a_server_that_asks_and_takes_nothing_is_not_listened_to_without_end() {
    let mut pipe = ready();
    let mut asked = 0;
    while !pipe.is_behind() {
        pipe.handle_message(&line(&format!(r#"{{"jsonrpc":"2.0","id":{asked},"method":"ping"}}"#)));
        asked += 1;
        assert!(asked <= 10_000, "without end");
    }
    assert_eq!(sent(&mut pipe).len(), asked);
    assert!(!pipe.is_behind());
    pipe.handle_notification(Bytes::from(vec![b' '; MOST_WAITING_BYTES]));
    assert!(pipe.is_behind());
}
