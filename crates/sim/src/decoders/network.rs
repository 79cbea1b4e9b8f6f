//! Checks for the texts of network equipment and of those who ask for them. Knows no session: bytes come in any pieces.

use std::sync::{Arc, LazyLock};

use mcp_proto::json::{self, Duplicates};
use net_proto::bird;
use net_proto::controller::{ControllerConversation, ControllerMessage, ControllerShapes};
use net_proto::dialect::{CommandClass, Dialect, Terminal, TerminalEvent};
use net_proto::inventory::{Inventory, InventoryFile};
use net_proto::log::{Arrival, FileLines, LogFramer, LogMessage};
use net_proto::machine;
use net_proto::netconf::{DeviceMessage, EditOperation, EventPlace, Framer, NetconfCapabilities, NetconfEvent, NodePath, XmlTree, read};
use net_proto::prompt::{CallAnswer, OVER, PromptDevice, PromptState};
use net_proto::redact::{MARK, Redactor};
use net_proto::stream::StreamReader;

/// Bytes of a reply, and of a message.
const LIMIT: usize = 4_096;

/// The first byte chooses the dialect. A command is one line without what makes several of one, and a line of configuration is no way out.
pub(super) fn command(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let Some(dialect) = dialect(*choice) else { return };
    if let Ok(command) = dialect.command(&text) {
        assert!(!command.text.contains(['\n', '\r', '\0', ';', '\u{1b}', '>', '?']), "{:?}", command.text);
        let again = dialect.command(&command.text).map(|again| again.class);
        assert_eq!(again, Ok(command.class));
    }
    if let Ok(line) = dialect.config_line(&text) {
        let ways_out = ["end", "end", "commit", "return"];
        assert_ne!(line.to_lowercase(), ways_out[usize::from(*choice) % ways_out.len()]);
    }
    assert!(dialect.fault("x", &text).is_none_or(|fault| !fault.detail.is_empty()));
}

/// A dialect file is taken or refused with a reason.
pub(super) fn dialect_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Dialect::from_toml(&text) {
        Ok(dialect) => assert!(dialect.command("show\nend").is_err()),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
}

/// An answer of `birdc` is read within itself, and a configuration comes out as it was before it named its change.
pub(super) fn bird(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert!(bird::answer(&text).len() <= text.len());
    let waits = bird::is_unconfirmed(&text) || bird::is_confirmed(&text);
    assert!(!waits || text.starts_with("BIRD "), "an answer of something that is not BIRD");
    assert!(!bird::refusal(&text, "/etc/bird.conf").contains('\n'));
    if let Ok(Some(change)) = bird::running_change(&text, true) {
        assert!(!change.is_empty() && text.contains(change));
    }
    let change = bird::running_change(&text, false).unwrap_or_else(Some).unwrap_or("none");
    assert_eq!(bird::without_change(&bird::with_change(&text, change), change), Some(&*text));
}

/// Texts of `/proc` and of scripts on a machine say no more than they hold: a share of the whole, as many interfaces and reports as lines.
pub(super) fn machine(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert!(machine::load(&text).is_none_or(|load| (0.0..=100.0).contains(&load)));
    let whole = |name: &str, value: &serde_json::Value| value[name].is_u64() || name != "total" && value[name].is_null();
    assert!(machine::memory(&text).is_none_or(|memory| ["total", "available", "free"].iter().all(|name| whole(name, &memory))));
    let (model, count) = machine::processors(&text);
    assert!(count <= text.lines().count() && model.is_none_or(|model| text.contains(model) && model.trim() == model));
    let counters = machine::counters(&text);
    assert!(counters.len() <= text.lines().count() && counters.iter().all(|(name, all)| text.contains(name) && all["in-octets"].is_u64()));
    let reports = machine::reports(&text);
    assert!(
        reports.len() <= text.lines().count()
            && reports.iter().map(|(name, report)| name.len() + report.len()).sum::<usize>() <= 2 * text.len()
    );
    assert!(reports.iter().filter_map(|(_, report)| machine::crashed_at(report)).all(|time| time < 1 << 40));
}

/// The first byte is the length of the pieces. Messages on the draft's own transport are bounded, and come out of their frames again.
pub(super) fn frames(data: &[u8]) {
    let Some((length, bytes)) = data.split_first() else { return };
    let mut reader = StreamReader::new(LIMIT);
    for piece in bytes.chunks(usize::from(*length).max(1)) {
        reader.receive(piece);
        while let Ok(Some(message)) = reader.message() {
            assert!(message.len() <= LIMIT);
            let Some(framing) = reader.framing() else { panic!("a message without a framing") };
            let mut again = StreamReader::new(LIMIT);
            again.receive(&framing.frame(&message));
            // A message that begins like another framing is one only after the first of its connection.
            if again.message().is_ok_and(|read| read.as_ref() == Some(&message)) {
                assert_eq!(again.framing(), Some(framing));
            }
        }
    }
}

/// The first byte chooses the shapes, and that of each line who says it: a controller, or its gate. What is sound JSON stays so on the way.
pub(super) fn controller(data: &[u8]) {
    let Some((choice, lines)) = data.split_first() else { return };
    let shapes = [ControllerShapes::Draft, ControllerShapes::ByCapability, ControllerShapes::Mcp];
    let mut conversation = ControllerConversation::new(shapes[usize::from(*choice) % shapes.len()]);
    let is_sound = |text: &[u8]| json::check(text, Duplicates::RefuseDeep).is_ok();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let (speaker, message) = (line[0], &line[1..]);
        let said = if speaker % 2 == 0 {
            match conversation.on_controller_message(message) {
                ControllerMessage::Passed(text) | ControllerMessage::Answered(text) => vec![text],
                ControllerMessage::Closed(answer) => answer.into_iter().collect(),
            }
        } else {
            conversation.on_gate_message(message.to_vec())
        };
        assert!(!is_sound(message) || said.iter().all(|text| is_sound(text)), "{}", String::from_utf8_lossy(message));
    }
}

/// The first byte is the length of the pieces. Each message of a stream is read, and its severity is one.
pub(super) fn syslog(data: &[u8]) {
    let Some((length, bytes)) = data.split_first() else { return };
    let (mut framer, mut file) = (LogFramer::default(), FileLines::default());
    for piece in bytes.chunks(usize::from(*length).max(1)) {
        let lines = file.receive(piece);
        assert!(lines.iter().all(|line| !line.is_empty() && !line.contains('\n')));
        framer.receive(piece);
        while let Some(message) = framer.message() {
            assert!(message.len() <= net_proto::log::LONGEST);
            let read = LogMessage::read(&message, Arrival { at: 1_760_844_541_123, zone: 0 });
            assert!(read.severity.is_none_or(|severity| severity < 8) && read.facility.is_none_or(|facility| facility < 24));
        }
    }
}

/// The first byte chooses the name of the file. Each device with a name has an address.
pub(super) fn inventory(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let name = ["hosts", "hosts.yaml", "devices.json", "devices.csv"][usize::from(*choice) % 4];
    let text = String::from_utf8_lossy(text);
    match Inventory::read(&[InventoryFile { name, text: &text }]) {
        Ok(inventory) => assert!(inventory.devices.iter().all(|device| !device.address.is_empty() || device.name.is_empty())),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
}

/// The first byte chooses the framing, the second the length of the pieces. Every message is read or refused.
pub(super) fn netconf(data: &[u8]) {
    let [framing, length, bytes @ ..] = data else { return };
    let mut framer = Framer::new(LIMIT);
    if framing % 2 == 1 {
        framer.begin_chunks();
    }
    for piece in bytes.chunks(usize::from(*length).max(1)) {
        framer.receive(piece);
        loop {
            let message = match framer.message() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                // The session is closed then: nothing more is read.
                Err(_) => return,
            };
            assert!(message.len() <= LIMIT);
            match read(&message) {
                Ok(DeviceMessage::Reply(reply)) => assert!(String::from_utf8_lossy(&message).contains(&reply.content)),
                Ok(DeviceMessage::Notification { time, .. }) => {
                    let text = String::from_utf8_lossy(&message);
                    let Ok(event) = NetconfEvent::read(&text, time.as_deref(), &NetconfCapabilities::default()) else { continue };
                    let mut place = EventPlace::default();
                    assert_eq!(place.admit(&event, event.time.unwrap_or_default()), !event.ends_replay);
                    place.begin_replay();
                    assert!(!place.admit(&event, event.time.unwrap_or_default()) || event.time.is_none());
                }
                Ok(DeviceMessage::Hello(_)) => {}
                Err(reason) => assert!(!reason.is_empty()),
            }
        }
    }
}

/// The first byte chooses the dialect; lines are arguments of a prompt, a handle, and answers. Whatever is answered, a step asks for commands
/// that only read, and a person agrees to each commit.
pub(super) fn prompt(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let (Some(dialect), text) = (dialect(*choice), String::from_utf8_lossy(text)) else { return };
    let mut lines = text.lines();
    let given = lines.next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok()).unwrap_or_default();
    let device = PromptDevice { dialect: &dialect, confirmed: Some(60), running: Some(&text) };
    let name = given["prompt"].as_str().unwrap_or("network.troubleshoot.ping-fail");
    let begun = given.as_object().and_then(|given| PromptState::begin(name, given).ok());
    let handed = lines.next().and_then(|line| PromptState::from_handle(line).ok());
    let mut steps: Vec<_> = [begun, handed].into_iter().flatten().filter_map(|state| state.first(device).ok()).collect();
    for line in lines.take(8) {
        for step in &mut steps {
            for call in &step.calls {
                let command = call.arguments["cmd"].as_str();
                let is_read =
                    command.is_none_or(|command| dialect.command(command).is_ok_and(|command| command.class == CommandClass::Read));
                assert!(is_read, "{command:?}");
                assert!(call.tool != "network.commit" || call.needs_approval);
            }
            assert_eq!(step.next.is_none(), step.markdown.contains(OVER));
            let Some(next) = step.next.take() else { continue };
            let answer = CallAnswer::read(&serde_json::from_str(line).unwrap_or_else(|_| line.into()));
            let Ok(again) = PromptState::from_handle(&next.to_handle()) else { panic!("a handle of ours is not taken") };
            match again.follow(&answer, device) {
                Ok(following) => *step = following,
                Err(_) => return,
            }
        }
        steps.retain(|step| step.next.is_some());
    }
}

/// Data of a device comes back from its normal form, and differs from itself in nothing.
pub(super) fn data(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(tree) = XmlTree::parse(&text) else { return };
    let again = XmlTree::parse(&tree.text()).unwrap_or_default();
    assert_eq!(again.text(), tree.text());
    assert!(tree.differences(&again).is_empty() && tree.json(&NetconfCapabilities::default()).is_object());
}

/// A path on the first line, a value on the others: an edit is data of the device, or refused with a reason.
pub(super) fn edit(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (path, value) = text.split_once('\n').unwrap_or((&text, "null"));
    let device = NetconfCapabilities { session: None, uris: vec!["urn:if?module=if".to_owned(), "urn:ip?module=ip".to_owned()] };
    let built = NodePath::read(path, &device).and_then(|path| match serde_json::from_str(value) {
        Ok(value) => path.config(EditOperation::Replace, Some(&value), &device),
        Err(_) => path.config(EditOperation::Delete, None, &device),
    });
    match built {
        Ok(config) => assert!(XmlTree::parse(&config).is_ok(), "{config}"),
        Err(fault) => assert!(!fault.detail.is_empty()),
    }
}

/// Secrets are hidden from any text, those that are known wherever they stand, and a second look brings none back.
pub(super) fn redact(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let hidden = Redactor::default().text(&text);
    assert_eq!(hidden.contains(MARK), Redactor::default().text(&hidden).contains(MARK));
    let known = Redactor::default().knowing(&["Xq7canary9"]);
    assert!(!known.text(&text).contains("Xq7canary9"));
    assert!(known.path(&text).len() <= text.len() * 12 + MARK.len());
}

/// The first byte chooses the dialect, the second the length of the pieces. No reply is longer than its bound.
pub(super) fn terminal(data: &[u8]) {
    let [choice, length, bytes @ ..] = data else { return };
    let Some(dialect) = dialect(*choice) else { return };
    let mut terminal = Terminal::new(dialect, LIMIT);
    terminal.command("show version");
    for piece in bytes.chunks(usize::from(*length).max(1)) {
        for event in terminal.receive(piece) {
            if let TerminalEvent::Reply(reply) = event {
                assert!(reply.text.len() <= LIMIT && !reply.prompt.is_empty());
            }
        }
    }
    assert!(terminal.quiet().is_none_or(|reply| reply.text.len() <= LIMIT));
}

/// Expressions take long to build.
static DIALECTS: LazyLock<Vec<Arc<Dialect>>> = LazyLock::new(|| Dialect::NAMES.into_iter().filter_map(Dialect::named).collect());

fn dialect(choice: u8) -> Option<Arc<Dialect>> {
    DIALECTS.get(usize::from(choice) % DIALECTS.len().max(1)).cloned()
}
