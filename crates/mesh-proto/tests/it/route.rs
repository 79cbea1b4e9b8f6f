//! Properties of any route: the walk goes segment by segment to the tool, and reading agrees with any other reader of JSON.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing fails loudly")]

use banyan_model::{QualifiedName, Segment};
use mesh_proto::route_cursor::{Hop, write_route};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The characters of a list of segments, and some foreign ones.
const PIECES: [&str; 12] = ["[", "]", "\"", ",", " ", "\n", "a", "b-", "_0", "A", "\\", "1"];

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    vec("[a-z0-9_-]{1,9}", 1..12).prop_map(|texts| texts.iter().map(|text| Segment::new(text).unwrap()).collect())
}

/// Mostly a list, with white space wherever permitted, and sometimes other text.
fn text() -> impl Strategy<Value = String> {
    let space = || select(vec!["", "", "", " ", "\t\n"]);
    let element = (space(), prop_oneof![8 => "\"[a-z0-9_-]{1,5}\"", 1 => "\"[A-Z.]{0,2}\"", 1 => "[a1]{0,2}"], space());
    let list = vec(element.prop_map(|(before, element, after)| format!("{before}{element}{after}")), 0..6).prop_map(|all| all.join(","));
    let list = (space(), list, space()).prop_map(|(before, list, after)| format!("{before}[{list}]{after}"));
    prop_oneof![4 => list, 1 => vec(select(PIECES.to_vec()), 0..12).prop_map(|pieces| pieces.concat())]
}

/// The segments of a route as read by another reader of JSON; nothing, for other text.
fn meant(text: &str) -> Option<Vec<String>> {
    let all: Vec<String> = serde_json::from_str(text).ok()?;
    let legal = !all.is_empty() && all.iter().all(|segment| Segment::new(segment).is_ok());
    (legal && all.join(".").len() <= QualifiedName::MAX).then_some(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn ax_30_a_cursor_walks_every_segment_to_the_tool(segments in segments()) {
        let route = write_route(&segments);
        let mut cursor = Some("0".to_owned());
        for (at, segment) in segments.iter().enumerate() {
            let hop = Hop::read(route.as_bytes(), cursor.unwrap().as_bytes()).unwrap();
            prop_assert_eq!((hop.segment(), Some(hop.tool())), (segment.as_str(), segments.last().map(Segment::as_str)));
            prop_assert_eq!(hop.rest().collect::<Vec<_>>(), segments[at + 1..].iter().map(Segment::as_str).collect::<Vec<_>>());
            prop_assert_eq!((hop.remaining(), hop.is_last()), (segments.len() - at - 1, at + 1 == segments.len()));
            cursor = hop.next_cursor();
        }
        prop_assert_eq!(cursor, None);
        prop_assert!(Hop::read(route.as_bytes(), segments.len().to_string().as_bytes()).is_err());
    }

    #[test]
    fn ax_30_a_route_is_read_like_others_or_refused(text in text(), cursor in 0..6usize) {
        let read = Hop::read(text.as_bytes(), cursor.to_string().as_bytes());
        match meant(&text).filter(|all| cursor < all.len()) {
            None => prop_assert!(read.is_err(), "{}", text),
            Some(all) => {
                let hop = read.unwrap();
                let whole: Vec<&str> = std::iter::once(hop.segment()).chain(hop.rest()).collect();
                prop_assert_eq!(&whole[..], &all[cursor..], "{}", text);
            }
        }
    }
}
