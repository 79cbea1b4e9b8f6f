use std::time::SystemTime;

use banyan_model::{Machine, Now};
use bytes::Bytes;

use super::*;
use crate::chain::Bounds;
use crate::participant::{Event, Participant};
use crate::voice::SpeechError;

const AT: SystemTime = SystemTime::UNIX_EPOCH;

#[expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]
fn now() -> Now {
    Now { instant: Instant::now(), wall: AT }
}

fn welcomed(may: &str) -> (Participant, Now) {
    let (mut me, now) = (Participant::new(Bounds::default(), 1 << 20, 1), now());
    let payload = format!(r#"{{"you":{{"id":"me","capabilities":{may}}},"participants":[]}}"#);
    hears(&mut me, now, "system:gateway", "system/welcome", "[]", &payload);
    assert_eq!(me.poll_output(), Some(Event::Welcomed));
    (me, now)
}

fn hears(me: &mut Participant, now: Now, from: &str, kind: &str, to: &str, payload: &str) {
    let text = format!(r#"{{"protocol":"mcpx/v0.1","id":"m","from":"{from}","to":{to},"kind":"{kind}","payload":{payload}}}"#);
    me.handle_message(now, &Bytes::from(text));
}

#[test]
fn a_pause_lasts_until_resumed_or_over() {
    let (mut me, mut now) = welcomed("[]");
    for to in ["[]", r#"["other"]"#] {
        hears(&mut me, now, "ann", "participant/pause", to, "{}");
        assert_eq!((me.paused(), me.poll_timeout()), (None, None), "{to}");
    }
    hears(&mut me, now, "ann", "participant/pause", r#"["me"]"#, r#"{"reason":"rate_limit","timeout_seconds":60}"#);
    let pause = me.paused().unwrap().clone();
    assert_eq!(
        (pause.to_string().as_str(), pause.until),
        (r#"paused by "ann" ("rate_limit")"#, Some(now.instant + Duration::from_secs(60)))
    );
    assert_eq!(std::iter::from_fn(|| me.poll_output()).last(), Some(Event::Paused(pause.clone())));
    assert_eq!(me.poll_timeout().unwrap().0, pause.until.unwrap());
    now.instant = pause.until.unwrap();
    me.handle_timeout(now);
    assert_eq!(me.poll_output(), Some(Event::Resumed { by: None }));
    assert_eq!((me.paused(), me.poll_timeout()), (None, None));
    hears(&mut me, now, "ann", "participant/pause", r#"["me"]"#, "{}");
    hears(&mut me, now, "bob", "participant/resume", r#"["other"]"#, "{}");
    assert!(me.paused().is_some() && me.poll_timeout().is_none());
    hears(&mut me, now, "bob", "participant/resume", r#"["x","me"]"#, "{}");
    assert!(me.paused().is_none());
    assert_eq!(std::iter::from_fn(|| me.poll_output()).last(), Some(Event::Resumed { by: Some("bob".into()) }));
    hears(&mut me, now, "bob", "participant/resume", r#"["me"]"#, "{}");
    assert_eq!(me.poll_output(), None, "there was none");
}

#[test]
fn bad_durations_and_long_reasons_of_pauses_are_bounded() {
    let (mut me, now) = welcomed("[]");
    for (seconds, lasts) in
        [("0", None), ("-1", None), (r#""60""#, None), ("null", None), ("0.5", Some(Duration::from_millis(500))), ("1e300", Some(LONGEST))]
    {
        hears(&mut me, now, "ann", "participant/pause", r#"["me"]"#, &format!(r#"{{"timeout_seconds":{seconds}}}"#));
        assert_eq!(me.paused().unwrap().until, lasts.map(|lasts| now.instant + lasts), "{seconds}");
    }
    hears(&mut me, now, "ann", "participant/pause", r#"["me"]"#, &format!(r#"{{"reason":"{}"}}"#, "é".repeat(REASON)));
    assert_eq!(me.paused().unwrap().reason.as_ref().unwrap().len(), REASON);
}

#[test]
fn a_pause_needs_addressees_and_the_capability() {
    let (mut me, _) = welcomed(r#"["participant/pause"]"#);
    assert_eq!(me.pause(now(), &[], None, None), Err(SpeechError::Everybody));
    assert!(matches!(me.resume(now(), &["bot"]), Err(SpeechError::Lacking { kind }) if kind == "participant/resume"));
    let spoken = me.pause(now(), &["bot"], Some(60), Some("too much")).unwrap();
    let envelope = Envelope::decode(&spoken.bytes, 1 << 20).unwrap();
    assert_eq!((envelope.kind().as_str(), envelope.payload), ("participant/pause", &br#"{"reason":"too much","timeout_seconds":60}"#[..]));
    let pause = Pause::from_envelope(&envelope, now().instant);
    assert_eq!((pause.by.as_str(), pause.reason.as_deref(), pause.until.is_some()), ("me", Some("too much"), true));
    for (seconds, reason, payload) in [(Some(5), None, r#"{"timeout_seconds":5}"#), (None, None, "{}")] {
        let spoken = me.pause(now(), &["bot"], seconds, reason).unwrap();
        assert_eq!(Envelope::decode(&spoken.bytes, 1 << 20).unwrap().payload, payload.as_bytes());
    }
}
