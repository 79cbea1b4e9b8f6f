//! Checks for what the database of an Open vSwitch sends, and for lines of its configuration. Knows no socket.

use net_proto::ovsdb::{OvsdbMessage, OvsdbStream, Settlement, SwitchConfig, SwitchRows, settle, vlans};

/// Bytes of a message.
const LIMIT: usize = 4_096;

/// The first byte is the length of the pieces. Rows of any shape have a table and lines, and nothing is to be done from there to there.
pub(super) fn messages(data: &[u8]) {
    let Some((length, bytes)) = data.split_first() else { return };
    let mut stream = OvsdbStream::new(LIMIT);
    for piece in bytes.chunks(usize::from(*length).max(1)) {
        stream.receive(piece);
        loop {
            match stream.message() {
                Ok(Some(OvsdbMessage::Answer { result: Ok(result), .. })) => {
                    let Ok(rows) = SwitchRows::from_result(result) else { continue };
                    let config = rows.config();
                    assert!(settle(&rows, &config, &config) == Settlement::default(), "something is to be done for nothing");
                    assert!(rows.interfaces().iter().all(|one| one.data["name"].is_string()));
                    assert!(
                        rows.interface_table().ends_with('\n') && vlans(&config).ends_with('\n') && rows.bridge_table().len() <= LIMIT * 2
                    );
                }
                Ok(Some(OvsdbMessage::Answer { .. } | OvsdbMessage::Echo(_) | OvsdbMessage::Other)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// Lines are refused, or come back in the one form that they have.
pub(super) fn lines(data: &[u8]) {
    let nothing = SwitchConfig::default();
    let Ok(config) = SwitchConfig::read(&String::from_utf8_lossy(data), &nothing) else { return };
    let written = config.write();
    assert_eq!(SwitchConfig::read(&written, &nothing), Ok(config));
    assert!(settle(&SwitchRows::default(), &nothing, &nothing) == Settlement::default());
}
