//! A list as sent: the entries of each server in the order of their names, and pages that begin behind any entry. Does not choose entries.

use std::sync::Arc;

use banyan_model::Segment;
use mcp_proto::catalog::Kind;
use mcp_proto::cursor::ListCursor;

use crate::tree::view::text::Text;

/// Most entries of a page; many clients read only the first page.
const PAGE: usize = 20_000;

/// Entries of a server, or of the gate itself.
#[derive(Debug)]
pub struct ListPart {
    /// `None` for the gate itself, whose entries come last.
    pub mount: Option<Segment>,
    pub text: Arc<Text>,
}

/// A list. The order of servers is that of their segments, so that a place in the list outlives every server.
#[derive(Debug)]
pub struct EntryList {
    kind: Kind,
    parts: Vec<ListPart>,
}

impl EntryList {
    /// Makes a list of parts in any order, no two of one server.
    pub fn of_parts(kind: Kind, parts: impl IntoIterator<Item = ListPart>) -> Self {
        let mut parts: Vec<ListPart> = parts.into_iter().filter(|part| part.text.len() > 0).collect();
        parts.sort_by(|one, other| (one.mount.is_none(), &one.mount).cmp(&(other.mount.is_none(), &other.mount)));
        Self { kind, parts }
    }

    /// Makes a list of entries of the gate itself.
    pub fn of_gate(kind: Kind, text: Text) -> Self {
        Self::of_parts(kind, [ListPart { mount: None, text: Arc::new(text) }])
    }

    /// Writes the page behind the entry of a cursor as a raw array, and gives the cursor of the page after that, if any.
    pub fn write(&self, behind: Option<&ListCursor>, out: &mut Vec<u8>) -> Option<ListCursor> {
        self.write_page(behind, PAGE, out)
    }

    fn write_page(&self, behind: Option<&ListCursor>, most: usize, out: &mut Vec<u8>) -> Option<ListCursor> {
        let (first, mut from) = behind.map_or((0, 0), |cursor| self.behind(cursor));
        let (mut left, mut pieces, mut last) = (most, Vec::new(), None);
        let mut parts = self.parts.iter().skip(first);
        let is_cut = loop {
            let Some(part) = parts.next() else { break false };
            let to = part.text.len().min(from.saturating_add(left));
            if to > from {
                pieces.push(part.text.piece(from, to));
                last = Some((part, to - 1));
                left -= to - from;
            }
            if to < part.text.len() {
                break true;
            }
            from = 0;
        };
        out.reserve(pieces.iter().map(|piece| piece.len() + 1).sum::<usize>() + 2);
        out.push(b'[');
        for (at, piece) in pieces.into_iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(piece);
        }
        out.push(b']');
        let (part, place) = last.filter(|_| is_cut)?;
        Some(ListCursor { mount: part.mount.clone()?, place, name: part.text.name(self.kind, place)? })
    }

    /// Part and entry at which the page behind a cursor begins.
    fn behind(&self, cursor: &ListCursor) -> (usize, usize) {
        let at = self.parts.partition_point(|part| part.mount.as_ref().is_some_and(|mount| *mount < cursor.mount));
        let part = self.parts.get(at).filter(|part| part.mount.as_ref() == Some(&cursor.mount));
        (at, part.map_or(0, |part| part.text.behind(self.kind, cursor)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    /// Servers with the names that each lists, in the order of the server.
    type World = BTreeMap<String, Vec<u8>>;

    fn list(world: &World) -> EntryList {
        let part = |(mount, names): (&String, &Vec<u8>)| {
            let entries: Vec<Bytes> = names.iter().map(|name| format!(r#"{{"name":"{name}","title":"{mount}"}}"#).into()).collect();
            ListPart { mount: Some(Segment::nearest(mount)), text: Arc::new(Text::join(&entries)) }
        };
        let own = ListPart { mount: None, text: Arc::new(Text::join(&[Bytes::from_static(br#"{"name":"own","title":""}"#)])) };
        EntryList::of_parts(Kind::Tools, std::iter::once(own).chain(world.iter().rev().map(part)))
    }

    /// A page, and the cursor of the next as a client sends it.
    fn page(list: &EntryList, behind: Option<&ListCursor>, most: usize) -> (Vec<(String, String)>, Option<ListCursor>) {
        let mut out = Vec::new();
        let next = list.write_page(behind, most, &mut out);
        let entries: Vec<BTreeMap<String, String>> = serde_json::from_slice(&out).unwrap();
        let entries = entries.into_iter().map(|entry| (entry["title"].clone(), entry["name"].clone())).collect();
        (entries, next.map(|next| ListCursor::decode(Kind::Tools, &next.encode(Kind::Tools)).unwrap()))
    }

    fn rest(list: &EntryList, mut behind: Option<ListCursor>, most: usize) -> Vec<(String, String)> {
        let mut all = Vec::new();
        loop {
            let (entries, next) = page(list, behind.as_ref(), most);
            assert!(entries.len() <= most);
            all.extend(entries);
            let Some(next) = next else { return all };
            behind = Some(next);
        }
    }

    fn world() -> impl Strategy<Value = World> {
        let names = proptest::collection::btree_set(0..20_u8, 0..6).prop_map(|names| names.into_iter().collect::<Vec<_>>());
        proptest::collection::btree_map("[ab]{1,2}", names.prop_shuffle(), 0..5)
    }

    fn expected(world: &World) -> Vec<(String, String)> {
        let of_server =
            |(mount, names): (&String, &Vec<u8>)| names.iter().map(|name| (mount.clone(), name.to_string())).collect::<Vec<_>>();
        world.iter().flat_map(of_server).chain([(String::new(), "own".to_owned())]).collect()
    }

    #[test]
    fn a_list_of_nothing_has_one_empty_page() {
        let mut out = Vec::new();
        assert_eq!(EntryList::of_gate(Kind::Tools, Text::join(&[])).write(None, &mut out), None);
        assert_eq!(out, b"[]");
    }

    #[test]
    fn ax_03_a_list_of_whole_pages_ends_with_the_last() {
        for (size, pages) in [(PAGE, 1), (PAGE + 1, 2), (2 * PAGE, 2)] {
            let entries: Vec<Bytes> = (0..size).map(|number| format!(r#"{{"name":"{number}"}}"#).into()).collect();
            let list =
                EntryList::of_parts(Kind::Tools, [ListPart { mount: Some(Segment::nearest("a")), text: Arc::new(Text::join(&entries)) }]);
            let (mut cursor, mut seen) = (list.write(None, &mut Vec::new()), 1);
            while let Some(behind) = cursor {
                (cursor, seen) = (list.write(Some(&behind), &mut Vec::new()), seen + 1);
            }
            assert_eq!(seen, pages, "{size}");
        }
    }

    proptest! {
        #[test]
        fn ax_03_pages_hold_every_entry_once(world in world(), most in 1..8_usize) {
            prop_assert_eq!(rest(&list(&world), None, most), expected(&world));
        }

        #[test]
        fn ax_03_a_cursor_goes_on_behind_its_name(before in world(), other in world(), gone in "[ab]{1,2}", most in 1..8_usize) {
            let (read, next) = page(&list(&before), None, most);
            let Some(next) = next else { return Ok(()) };
            // Servers come, one goes, others list more before and behind what they listed.
            let mut after = before.clone();
            for (mount, names) in other {
                let listed = after.entry(mount).or_default();
                let fresh: Vec<u8> = names.into_iter().filter(|name| !listed.contains(name)).collect();
                let (front, back) = fresh.split_at(fresh.len() / 2);
                *listed = [front, listed.as_slice(), back].concat();
            }
            after.remove(&gone);
            let going_on = rest(&list(&after), Some(next.clone()), most);
            let all = expected(&after);
            let at = (next.mount.to_string(), next.name);
            let place = all.iter().position(|entry| *entry == at).map(|at| at + 1);
            let begin = place.unwrap_or_else(|| all.iter().take_while(|(mount, _)| !mount.is_empty() && *mount < at.0).count());
            prop_assert_eq!(&going_on, &all[begin..]);
            // Whatever was there all the time is read once.
            for entry in expected(&before).iter().filter(|entry| all.contains(entry)) {
                let times = read.iter().chain(&going_on).filter(|one| *one == entry).count();
                prop_assert_eq!(times, 1, "{:?}", entry);
            }
        }

        #[test]
        fn ax_03_a_name_that_went_hides_no_other(before in world(), most in 1..8_usize) {
            let (read, next) = page(&list(&before), None, most);
            let Some(next) = next else { return Ok(()) };
            let mut after = before;
            after.entry(next.mount.to_string()).and_modify(|names| names.retain(|name| name.to_string() != next.name));
            let going_on = rest(&list(&after), Some(next), most);
            for entry in expected(&after) {
                prop_assert!(read.contains(&entry) || going_on.contains(&entry), "{:?}", entry);
            }
        }
    }
}
