//! Messages of a device: hello, reply, notification. Content is passed on as its bytes came, not understood here.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::BASE_1_1;
use crate::fault::RpcError;

/// Elements within each other; deeper ones are refused.
const DEEPEST: usize = 256;
/// Errors of a reply that are kept.
const MOST_ERRORS: usize = 100;
/// Bytes of the name of a module.
const LONGEST_MODULE: usize = 256;
/// NetconfCapabilities of a hello that are kept.
const MOST_CAPABILITIES: usize = 5_000;

/// NetconfCapabilities of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetconfCapabilities {
    pub session: Option<String>,
    pub uris: Vec<String>,
}

impl NetconfCapabilities {
    /// Does a capability begin so? Parameters behind `?` do not count.
    pub fn has(&self, uri: &str) -> bool {
        self.uris.iter().any(|known| known.split('?').next() == Some(uri))
    }

    /// Does the device take chunks?
    pub fn has_chunks(&self) -> bool {
        self.has(BASE_1_1)
    }

    /// Modules with their namespaces.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, &str)> {
        self.uris.iter().filter_map(|uri| {
            let (namespace, query) = uri.split_once('?')?;
            let module = query.split('&').find_map(|pair| pair.strip_prefix("module="))?;
            (module.len() <= LONGEST_MODULE).then_some((module, namespace))
        })
    }

    /// Namespace of a module.
    pub fn namespace(&self, module: &str) -> Option<&str> {
        self.namespaces().find(|(known, _)| *known == module).map(|(_, namespace)| namespace)
    }

    /// Modules with their revisions, as `module=` and `revision=` of the capabilities name them.
    pub fn modules(&self) -> Vec<(String, Option<String>)> {
        let parameter = |uri: &str, name: &str| {
            let (_, query) = uri.split_once('?')?;
            query.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()))
        };
        self.uris.iter().filter_map(|uri| Some((parameter(uri, "module")?, parameter(uri, "revision")))).collect()
    }
}

/// Answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RpcReply {
    pub id: Option<String>,
    /// Did `<ok/>` come? Read the datastore back all the same: servers say so and change nothing.
    pub is_ok: bool,
    pub errors: Vec<RpcError>,
    /// Content of `<rpc-reply>`, as the bytes came.
    pub content: String,
}

/// Message of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceMessage {
    Hello(NetconfCapabilities),
    Reply(RpcReply),
    /// Event time, name of the event, and the content as it came.
    Notification {
        time: Option<String>,
        event: String,
        content: String,
    },
}

/// Reads a message. `Err` holds the reason for people: the device does not speak NETCONF.
pub fn read(message: &[u8]) -> Result<DeviceMessage, String> {
    let text = std::str::from_utf8(message).map_err(|_| "the message is no UTF-8".to_owned())?;
    let mut walk =
        ReplyWalk { path: Vec::new(), reply: RpcReply::default(), hello: NetconfCapabilities::default(), time: None, event: None };
    let mut reader = Reader::from_str(text);
    let (mut root, mut begins, mut ends) = (String::new(), 0, text.len());
    loop {
        let before = usize::try_from(reader.buffer_position()).unwrap_or(text.len());
        let event = reader.read_event().map_err(|error| format!("the XML is broken: {error}"))?;
        match event {
            Event::Start(start) => {
                let name = walk.open(&start)?;
                if walk.path.len() == 1 {
                    root = name;
                    begins = usize::try_from(reader.buffer_position()).unwrap_or(text.len());
                }
            }
            Event::Empty(start) => {
                let name = walk.open(&start)?;
                if walk.path.len() == 1 {
                    root = name;
                    (begins, ends) = (text.len(), text.len());
                }
                walk.path.pop();
            }
            Event::End(_) => {
                walk.path.pop();
                if walk.path.is_empty() {
                    ends = before;
                }
            }
            Event::Text(found) => walk.text(&found.xml10_content()),
            Event::CData(found) => walk.text(&found),
            Event::GeneralRef(found) => walk.reference(&found),
            Event::DocType(_) => return Err("a document type is not taken".to_owned()),
            Event::Eof if walk.path.is_empty() => break,
            Event::Eof => return Err("the XML breaks off".to_owned()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    let content = text.get(begins..ends).unwrap_or_default().to_owned();
    match root.as_str() {
        "hello" => Ok(DeviceMessage::Hello(walk.hello)),
        "rpc-reply" => Ok(DeviceMessage::Reply(RpcReply { content, ..walk.reply })),
        "notification" => Ok(DeviceMessage::Notification { time: walk.time, event: walk.event.unwrap_or_default(), content }),
        other => Err(format!("`{other}` is no message of NETCONF")),
    }
}

/// Place in a message and the findings so far.
struct ReplyWalk {
    path: Vec<String>,
    reply: RpcReply,
    hello: NetconfCapabilities,
    time: Option<String>,
    event: Option<String>,
}

impl ReplyWalk {
    fn open(&mut self, start: &BytesStart<'_>) -> Result<String, String> {
        if self.path.len() >= DEEPEST {
            return Err(format!("the XML is deeper than {DEEPEST} elements"));
        }
        let name = start.local_name().as_ref().to_owned();
        self.path.push(name.clone());
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["rpc-reply"] => {
                let id = start.attributes().flatten().find(|a| a.key.as_ref() == "message-id");
                self.reply.id = id.map(|id| id.value.into_owned());
            }
            ["rpc-reply", "ok"] => self.reply.is_ok = true,
            ["rpc-reply", "rpc-error"] if self.reply.errors.len() < MOST_ERRORS => self.reply.errors.push(RpcError::default()),
            ["hello", "capabilities", "capability"] if self.hello.uris.len() < MOST_CAPABILITIES => self.hello.uris.push(String::new()),
            ["notification", event] if *event != "eventTime" => self.event = self.event.take().or(Some((*event).to_owned())),
            _ => {}
        }
        Ok(name)
    }

    fn reference(&mut self, name: &str) {
        let known = [("lt", "<"), ("gt", ">"), ("amp", "&"), ("quot", "\""), ("apos", "'")];
        if let Some((_, text)) = known.iter().find(|(known, _)| *known == name) {
            self.text(text);
        }
    }

    /// Text may come in pieces, with references in between.
    fn text(&mut self, text: &str) {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let append = |field: &mut Option<String>| field.get_or_insert_default().push_str(text);
        match path.as_slice() {
            ["hello", "session-id"] => append(&mut self.hello.session),
            ["hello", "capabilities", "capability"] => {
                if let Some(uri) = self.hello.uris.last_mut() {
                    uri.push_str(text.trim());
                }
            }
            ["notification", "eventTime"] => append(&mut self.time),
            ["rpc-reply", "rpc-error", rest @ ..] => {
                let Some(error) = self.reply.errors.last_mut() else { return };
                match rest {
                    ["error-type"] => error.error_type.push_str(text.trim()),
                    ["error-tag"] => error.tag.push_str(text.trim()),
                    ["error-severity"] => error.severity.push_str(text.trim()),
                    ["error-app-tag"] => append(&mut error.app_tag),
                    ["error-path"] => append(&mut error.path),
                    ["error-message"] => append(&mut error.message),
                    ["error-info", "session-id"] => append(&mut error.session_id),
                    ["error-info", "bad-element" | "bad-attribute" | "bad-namespace"] => append(&mut error.bad),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nm_01_a_hello_tells_capabilities_and_modules() {
        let hello = "<nc:hello xmlns:nc=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><nc:capabilities>\
            <nc:capability>urn:ietf:params:netconf:base:1.1</nc:capability>\
            <nc:capability>urn:x?module=ietf-interfaces&amp;revision=2018-02-20</nc:capability>\
            </nc:capabilities><nc:session-id>4</nc:session-id></nc:hello>";
        let Ok(DeviceMessage::Hello(found)) = read(hello.as_bytes()) else { panic!("no hello") };
        assert!(found.has_chunks() && !found.has("urn:y"));
        assert_eq!(found.session.as_deref(), Some("4"));
        assert_eq!(found.modules(), [("ietf-interfaces".to_owned(), Some("2018-02-20".to_owned()))]);
    }

    #[test]
    fn nm_08_an_error_is_read_with_all_its_members() {
        let reply = "<rpc-reply message-id=\"3\" xmlns=\"u\"><rpc-error><error-type>protocol</error-type><error-tag>lock-denied</error-tag>\
            <error-severity>error</error-severity><error-app-tag>a</error-app-tag><error-path>/a:b[c='d']</error-path>\
            <error-message xml:lang=\"en\">a &lt; b</error-message><error-info><session-id>9</session-id></error-info></rpc-error></rpc-reply>";
        let Ok(DeviceMessage::Reply(reply)) = read(reply.as_bytes()) else { panic!("no reply") };
        assert_eq!((reply.id.as_deref(), reply.is_ok, reply.errors.len()), (Some("3"), false, 1));
        let error = &reply.errors[0];
        assert_eq!((error.tag.as_str(), error.severity.as_str(), error.session_id.as_deref()), ("lock-denied", "error", Some("9")));
        assert_eq!((error.message.as_deref(), error.path.as_deref()), (Some("a < b"), Some("/a:b[c='d']")));
    }

    #[test]
    fn nm_10_notifications_keep_their_content_as_it_came() {
        let text = "<notification xmlns=\"n\"><eventTime>2026-11-24T10:00:00Z</eventTime><netconf-config-change a=\"1\"><x/></netconf-config-change></notification>";
        let Ok(DeviceMessage::Notification { time, event, content }) = read(text.as_bytes()) else { panic!("no notification") };
        assert_eq!((time.as_deref(), event.as_str()), (Some("2026-11-24T10:00:00Z"), "netconf-config-change"));
        assert!(content.ends_with("<netconf-config-change a=\"1\"><x/></netconf-config-change>"), "{content}");
        let ok = read(b"<rpc-reply message-id='1'><data><a>1</a></data></rpc-reply>");
        assert!(matches!(ok, Ok(DeviceMessage::Reply(RpcReply { is_ok: false, content, .. })) if content == "<data><a>1</a></data>"));
    }

    #[test]
    fn nm_08_garbage_is_refused_with_a_reason() {
        let deep = "<a>".repeat(300);
        for bad in
            ["", "hello", "<rpc-reply>", "<rpc-reply></hello>", "<!DOCTYPE a><hello/>", "<html/>", &deep, "<rpc-reply><data></rpc-reply>"]
        {
            assert!(read(bad.as_bytes()).is_err_and(|reason| !reason.is_empty()), "{bad}");
        }
        assert!(read(&[0xff, 0xfe]).is_err());
    }

    proptest! {
        #[test]
        fn nm_08_any_text_is_read_or_refused(text in "(<|>|/|a|rpc-reply|ok|hello| |&|;|\"|=|<!\\[CDATA\\[|\\]\\]>|<\\?|-|x){0,40}") {
            match read(text.as_bytes()) {
                Ok(DeviceMessage::Reply(reply)) => prop_assert!(text.contains(&reply.content)),
                Ok(DeviceMessage::Hello(_) | DeviceMessage::Notification { .. }) => {}
                Err(reason) => prop_assert!(!reason.is_empty()),
            }
        }
    }
}
