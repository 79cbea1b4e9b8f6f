use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const MOST: usize = 1 << 20;
const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// Reads bytes, cut into pieces of one length.
fn read(end: End, bytes: &[u8], piece: usize) -> Result<Vec<WebSocketEvent>, WebSocketError> {
    let mut reader = Reader::new(end, MOST);
    let mut all = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        reader.handle_bytes(piece);
        while let Some(received) = reader.poll()? {
            all.push(received);
        }
    }
    Ok(all)
}

fn server(bytes: &[u8]) -> Result<Vec<WebSocketEvent>, WebSocketError> {
    read(End::Server, bytes, usize::MAX)
}

fn text(text: &str) -> WebSocketEvent {
    WebSocketEvent::Text(Bytes::copy_from_slice(text.as_bytes()))
}

/// A masked frame with this first byte.
fn raw(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut whole = frame(Opcode::Text, payload, Some(KEY));
    whole[0] = first;
    whole
}

#[test]
fn the_examples_of_the_rfc_are_read_and_written() {
    let hello = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(read(End::Client, &hello, 1), Ok(vec![text("Hello")]));
    assert_eq!(server(&masked), Ok(vec![text("Hello")]));
    assert_eq!(frame(Opcode::Text, b"Hello", None), hello);
    assert_eq!(frame(Opcode::Text, b"Hello", Some(KEY)), masked);
    assert_eq!(head(Opcode::Text, 5), hello[..2]);
    let parts = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
    assert_eq!(read(End::Client, &parts, 2), Ok(vec![text("Hello")]));
    let ping = [0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    assert_eq!(read(End::Client, &ping, 3), Ok(vec![WebSocketEvent::Ping("Hello".into())]));
    assert_eq!(head(Opcode::Binary, 256), [0x82, 0x7e, 0x01, 0x00]);
    assert_eq!(head(Opcode::Binary, 65_536), [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn control_frames_come_between_the_parts_of_a_message() {
    let bytes = [raw(0x01, "hä".as_bytes()), raw(0x89, b"?"), raw(0x00, b""), raw(0x8a, b""), raw(0x80, b"llo")].concat();
    let wanted = vec![WebSocketEvent::Ping("?".into()), WebSocketEvent::Pong(Bytes::new()), text("hällo")];
    for piece in 1..bytes.len() {
        assert_eq!(read(End::Server, &bytes, piece), Ok(wanted.clone()), "{piece}");
    }
    // A character may be cut between two frames, not at the end of a message.
    let cut = [raw(0x01, &[0xc3]), raw(0x80, &[0xa4])].concat();
    assert_eq!(server(&cut), Ok(vec![text("ä")]));
    assert_eq!(server(&raw(0x81, &[0xc3])), Err(WebSocketError::Text));
}

#[test]
fn what_breaks_the_protocol_closes_with_its_code() {
    let long_ping = raw(0x89, &[b'x'; 126]);
    let mut wide = raw(0x81, &[b'x'; 200]);
    wide.splice(1..4, [0xff, 0, 0, 0, 0, 0, 0, 0, 200]);
    let cases: [(Vec<u8>, u16); 17] = [
        (frame(Opcode::Text, b"x", None), 1002),
        (raw(0xc1, b"x"), 1002),
        (raw(0x91, b"x"), 1002),
        (raw(0x83, b"x"), 1002),
        (raw(0x8b, b"x"), 1002),
        (raw(0x80, b"x"), 1002),
        ([raw(0x01, b"x"), raw(0x81, b"y")].concat(), 1002),
        (raw(0x09, b"x"), 1002),
        (long_ping, 1002),
        (wide, 1002),
        (vec![0x81, 0xfe, 0, 125, 0, 0, 0, 0], 1002),
        (vec![0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], 1002),
        (raw(0x88, b"x"), 1002),
        (raw(0x82, b"x"), 1003),
        (raw(0x81, b"\xff"), 1007),
        (raw(0x88, b"\x03\xe8\xff"), 1007),
        (vec![0x81, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 1, 1, 2, 3, 4], 1009),
    ];
    for (bytes, code) in cases {
        assert_eq!(server(&bytes).map_err(WebSocketError::code), Err(code), "{bytes:x?}");
    }
    let parts = [raw(0x01, &vec![b'x'; MOST]), raw(0x80, b"y")].concat();
    assert_eq!(server(&parts), Err(WebSocketError::TooLarge { most: MOST }));
}

#[test]
fn a_close_says_why_and_nothing_comes_behind_it() {
    let behind = [close(4009, "again", Some(KEY)), frame(Opcode::Text, b"x", Some(KEY))].concat();
    assert_eq!(server(&behind), Ok(vec![WebSocketEvent::Close(Some(4009), "again".into())]));
    assert_eq!(server(&raw(0x88, b"")), Ok(vec![WebSocketEvent::Close(None, String::new())]));
    for (code, fine) in [(1000, true), (1003, true), (1011, true), (3000, true), (4999, true)]
        .into_iter()
        .chain([0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map(|code| (code, false)))
    {
        assert_eq!(server(&close(code, "", Some(KEY))).is_ok(), fine, "{code}");
    }
    let long = close(1000, &"ä".repeat(100), None);
    assert_eq!(long.len(), 2 + 2 + 122, "the reason is cut between two characters");
    assert!(read(End::Client, &long, 9).is_ok());
}

#[test]
fn reading_stops_at_an_error_and_memory_stays_small() {
    let mut reader = Reader::new(End::Server, 1_000);
    reader.handle_bytes(&raw(0x82, b"x"));
    assert!(reader.poll().is_err());
    reader.handle_bytes(&[0; 10_000]);
    assert_eq!((reader.poll(), reader.held() < 100), (Ok(None), true));
    // The length alone refuses a message: nobody waits for its bytes.
    let mut reader = Reader::new(End::Server, 1_000);
    reader
        .handle_bytes(&head(Opcode::Text, 1_001).iter().enumerate().map(|(at, b)| if at == 1 { b | 0x80 } else { *b }).collect::<Vec<_>>());
    reader.handle_bytes(&KEY);
    assert_eq!(reader.poll(), Err(WebSocketError::TooLarge { most: 1_000 }));
}

proptest! {
    #[test]
    fn frames_survive_any_cut_between_the_ends(texts in vec(".{0,300}", 1..5), key in any::<[u8; 4]>(), piece in 1..700_usize) {
        let wanted: Vec<WebSocketEvent> = texts.iter().map(|t| text(t)).collect();
        let masked: Vec<u8> = texts.iter().flat_map(|t| frame(Opcode::Text, t.as_bytes(), Some(key))).collect();
        prop_assert_eq!(read(End::Server, &masked, piece), Ok(wanted.clone()));
        let plain: Vec<u8> = texts.iter().flat_map(|t| [head(Opcode::Text, t.len()), t.clone().into_bytes()].concat()).collect();
        prop_assert_eq!(read(End::Client, &plain, piece), Ok(wanted));
    }

    #[test]
    fn pieces_lead_to_what_the_whole_leads_to(bytes in vec(any::<u8>(), 0..60), piece in 1..20_usize) {
        prop_assert_eq!(read(End::Server, &bytes, piece), server(&bytes));
    }
}
