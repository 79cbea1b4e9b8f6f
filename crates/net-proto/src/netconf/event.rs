//! Events that a device sends over NETCONF (RFC 5277): the streams, one event as JSON, and the place in a stream after a break, so that what is
//! sent again counts once. No clock: times are those of the device.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::DateTime;
use serde_json::{Value, json};

use super::{NetconfCapabilities, XmlTree};

/// Filter for the list of streams (RFC 5277, section 3.2.5.1).
pub const STREAMS: &str = "<netconf xmlns=\"urn:ietf:params:xml:ns:netmod:notification\"><streams/></netconf>";
/// Namespace of the event that ends what is sent again.
const MARKS: &str = "urn:ietf:params:xml:ns:netmod:notification";
/// Different events of one moment that are remembered.
const MOST_SEEN: usize = 1_000;
/// Bytes of the name of a stream, and of a time.
const LONGEST: usize = 256;
/// Milliseconds that the clock of a device may be ahead. An event from later on moves no place, for nothing would count as new behind it.
const AHEAD: i64 = 24 * 3600 * 1000;

/// A stream of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventStream {
    pub name: String,
    /// Does the device send past events again?
    pub replays: bool,
    /// Milliseconds since 1970 of the first event that the device still has.
    pub since: Option<i64>,
}

impl EventStream {
    /// The stream that every device with events has (RFC 5277, section 3.2.3).
    pub const ALL: &str = "NETCONF";

    /// The stream of this name in the data for [`STREAMS`].
    pub fn find(name: &str, data: &XmlTree) -> Self {
        let data = data.json(&NetconfCapabilities::default());
        let streams = &data["netconf"]["streams"]["stream"];
        let mut all = streams.as_array().map_or_else(|| vec![streams], |all| all.iter().collect()).into_iter();
        let Some(found) = all.find(|stream| stream["name"] == name) else { return Self { name: name.to_owned(), ..Self::default() } };
        let time = |member: &str| moment(found[member].as_str()?);
        Self {
            name: name.to_owned(),
            replays: found["replaySupport"] == "true",
            since: time("replayLogAgedTime").or_else(|| time("replayLogCreationTime")),
        }
    }
}

/// An event of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetconfEvent {
    /// Time as the device wrote it.
    pub written: Option<String>,
    /// The same in milliseconds since 1970.
    pub time: Option<i64>,
    /// Name with its module: `ietf-netconf-notifications:netconf-config-change`.
    pub name: String,
    pub data: Value,
    /// Does it only tell that all past events were sent again?
    pub ends_replay: bool,
    mark: u64,
}

impl NetconfEvent {
    /// Reads a whole `<notification>` of a device with these modules. `Err` holds the reason for people.
    pub fn read(message: &str, time: Option<&str>, device: &NetconfCapabilities) -> Result<Self, String> {
        let tree = XmlTree::event(message)?;
        let data = tree.json(device);
        let name = data.as_object().and_then(|members| members.keys().next()).cloned().ok_or("the notification holds no event")?;
        let written = time.map(str::trim).filter(|time| time.len() <= LONGEST).map(str::to_owned);
        let mut hasher = DefaultHasher::new();
        (&written, data.to_string()).hash(&mut hasher);
        let ends_replay = tree.text().starts_with(&format!("<replayComplete xmlns=\"{MARKS}\""));
        Ok(Self { time: written.as_deref().and_then(moment), written, name, data, ends_replay, mark: hasher.finish() })
    }

    /// The event as a member of a stream.
    pub fn json(&self) -> Value {
        json!({ "notification": self.name, "eventTime": self.written, "data": self.data })
    }
}

/// Place in a stream: the last moment of which events came, and those events.
#[derive(Debug, Default)]
pub struct EventPlace {
    last: Option<(i64, String)>,
    seen: BTreeMap<u64, u32>,
    /// Events of that moment that come again; `None` while nothing is sent again.
    again: Option<BTreeMap<u64, u32>>,
}

impl EventPlace {
    /// Time of the last event, as the device wrote it: what came then and later has to be sent again.
    pub fn written(&self) -> Option<&str> {
        self.last.as_ref().map(|(_, written)| written.as_str())
    }

    /// Can a stream that keeps events from `since` on send all again that came after this place?
    pub fn is_kept(&self, since: Option<i64>) -> bool {
        self.last.as_ref().zip(since).is_none_or(|((last, _), since)| since < *last)
    }

    /// Begins to expect events again from the last moment on.
    pub fn begin_replay(&mut self) {
        self.again = Some(self.seen.clone());
    }

    /// Takes an event at a moment, in milliseconds since 1970; false for one that came before.
    pub fn admit(&mut self, event: &NetconfEvent, now: i64) -> bool {
        if event.ends_replay {
            self.again = None;
            return false;
        }
        let Some(time) = event.time.filter(|time| *time <= now.saturating_add(AHEAD)) else { return true };
        let last = self.last.as_ref().map(|(last, _)| *last);
        if let Some(again) = &mut self.again {
            if last.is_some_and(|last| time < last) {
                return false;
            }
            if last == Some(time)
                && let Entry::Occupied(mut count) = again.entry(event.mark)
            {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
                return false;
            }
        }
        if last.is_none_or(|last| time > last) {
            self.seen.clear();
            self.last = event.written.clone().map(|written| (time, written));
        }
        if last.is_none_or(|last| time >= last) && (self.seen.len() < MOST_SEEN || self.seen.contains_key(&event.mark)) {
            let count = self.seen.entry(event.mark).or_default();
            *count = count.saturating_add(1);
        }
        true
    }
}

/// Milliseconds since 1970 of a time of RFC 3339.
fn moment(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minute of the events.
    const NOW: i64 = 1_795_600_800_000;

    #[test]
    fn nm_10_an_event_of_a_far_future_moves_no_place() {
        let device = NetconfCapabilities { session: None, uris: vec!["urn:n?module=ietf-n".to_owned()] };
        let message = "<notification xmlns=\"urn:w\"><eventTime>9999-12-31T23:59:59Z</eventTime><a xmlns='urn:n'/></notification>";
        let far = NetconfEvent::read(message, Some("9999-12-31T23:59:59Z"), &device).unwrap();
        let mut place = EventPlace::default();
        assert!(place.admit(&event(1, "<a xmlns='urn:n'/>"), NOW) && place.admit(&far, NOW));
        assert_eq!(place.written(), Some("2026-11-25T10:00:01Z"));
        place.begin_replay();
        assert!(place.admit(&event(2, "<a xmlns='urn:n'/>"), NOW));
    }

    fn event(second: u32, body: &str) -> NetconfEvent {
        let time = format!("2026-11-25T10:00:{second:02}Z");
        let device = NetconfCapabilities { session: None, uris: vec!["urn:n?module=ietf-n".to_owned()] };
        let message = format!("<notification xmlns=\"urn:w\"><eventTime>{time}</eventTime>{body}</notification>");
        NetconfEvent::read(&message, Some(&time), &device).unwrap()
    }

    #[test]
    fn nm_10_an_event_is_json_with_the_names_of_modules() {
        let event = event(7, "<change xmlns=\"urn:n\"><by><user>ada</user></by></change>");
        assert_eq!((event.name.as_str(), event.time, event.ends_replay), ("ietf-n:change", Some(1_795_600_807_000), false));
        assert_eq!(event.json()["data"], json!({ "ietf-n:change": { "by": { "user": "ada" } } }));
        assert!(NetconfEvent::read("<notification/>", None, &NetconfCapabilities::default()).is_err());
    }

    #[test]
    fn nm_10_events_that_are_sent_again_count_once() {
        let (one, two, other) = (event(1, "<a xmlns='urn:n'/>"), event(2, "<a xmlns='urn:n'/>"), event(2, "<b xmlns='urn:n'/>"));
        let mut place = EventPlace::default();
        assert!([&one, &two, &two].into_iter().all(|event| place.admit(event, NOW)));
        assert_eq!(place.written(), Some("2026-11-25T10:00:02Z"));
        place.begin_replay();
        let again = [&one, &two, &two, &two, &other].map(|event| place.admit(event, NOW));
        assert_eq!(again, [false, false, false, true, true]);
        let end = event(9, "<replayComplete xmlns=\"urn:ietf:params:xml:ns:netmod:notification\"/>");
        assert!(end.ends_replay && !place.admit(&end, NOW) && place.admit(&two, NOW));
    }

    #[test]
    fn nm_10_a_device_that_forgot_events_is_known() {
        let streams = "<netconf xmlns=\"urn:ietf:params:xml:ns:netmod:notification\"><streams><stream><name>NETCONF</name>\
            <replaySupport>true</replaySupport><replayLogCreationTime>2026-11-25T10:00:05+00:00</replayLogCreationTime></stream>\
            <stream><name>other</name><replaySupport>false</replaySupport></stream></streams></netconf>";
        let data = XmlTree::parse(streams).unwrap();
        let all = EventStream::find(EventStream::ALL, &data);
        assert!(all.replays && !EventStream::find("other", &data).replays && !EventStream::find("none", &data).replays);
        let mut place = EventPlace::default();
        assert!(place.is_kept(all.since));
        place.admit(&event(4, "<a xmlns='urn:n'/>"), NOW);
        assert!(!place.is_kept(all.since));
        place.admit(&event(5, "<a xmlns='urn:n'/>"), NOW);
        assert!(!place.is_kept(all.since));
        place.admit(&event(6, "<a xmlns='urn:n'/>"), NOW);
        assert!(place.is_kept(all.since));
    }
}
