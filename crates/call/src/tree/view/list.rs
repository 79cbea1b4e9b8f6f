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

    /// Page behind the entry of a cursor.
    pub fn page(&self, behind: Option<&ListCursor>) -> ListPage<'_> {
        self.page_of(behind, PAGE)
    }

    fn page_of(&self, behind: Option<&ListCursor>, most: usize) -> ListPage<'_> {
        let (first, from) = behind.map_or((0, 0), |cursor| self.behind(cursor));
        let parts = self.parts.get(first..).unwrap_or_default();
        let (mut skipped, mut left, mut last) = (from, most, None);
        let mut next = None;
        for part in parts {
            let (here, end) = (part.text.len().saturating_sub(skipped), skipped + left);
            if here > left {
                next = if left == 0 { last } else { Some((part, end - 1)) };
                break;
            }
            (left, last, skipped) = (left - here, Some((part, part.text.len() - 1)), 0);
        }
        ListPage { parts, from, most, next: next.and_then(|(part, place)| self.cursor(part, place)) }
    }

    fn cursor(&self, part: &ListPart, place: usize) -> Option<ListCursor> {
        Some(ListCursor { mount: part.mount.clone()?, place, name: part.text.name(self.kind, place)? })
    }

    /// Part and entry at which the page behind a cursor begins.
    fn behind(&self, cursor: &ListCursor) -> (usize, usize) {
        let at = self.parts.partition_point(|part| part.mount.as_ref().is_some_and(|mount| *mount < cursor.mount));
        let part = self.parts.get(at).filter(|part| part.mount.as_ref() == Some(&cursor.mount));
        (at, part.map_or(0, |part| part.text.behind(self.kind, cursor)))
    }
}

/// Entries of a list that are sent at once.
#[derive(Debug)]
pub struct ListPage<'a> {
    parts: &'a [ListPart],
    /// Place of the first entry in the first part.
    from: usize,
    most: usize,
    /// Cursor of the page after, if any.
    pub next: Option<ListCursor>,
}

impl ListPage<'_> {
    /// Size in bytes of what [`Self::write`] adds, or one more.
    pub fn size(&self) -> usize {
        self.pieces().map(|piece| piece.len() + 1).sum::<usize>() + 2
    }

    /// Writes the page as a raw array.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, piece) in self.pieces().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(piece);
        }
        out.push(b']');
    }

    /// Entries of each server, joined.
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let (mut from, mut left) = (self.from, self.most);
        let pieces = self.parts.iter().map_while(move |part| {
            let to = part.text.len().min(from.saturating_add(left));
            let piece = (left > 0).then(|| part.text.piece(from, to))?;
            (from, left) = (0, left - (to - from));
            Some(piece)
        });
        pieces.filter(|piece| !piece.is_empty())
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
        let page = list.page_of(behind, most);
        page.write(&mut out);
        assert!(out.len() <= page.size());
        let entries: Vec<BTreeMap<String, String>> = serde_json::from_slice(&out).unwrap();
        let entries = entries.into_iter().map(|entry| (entry["title"].clone(), entry["name"].clone())).collect();
        (entries, page.next.map(|next| ListCursor::decode(Kind::Tools, &next.encode(Kind::Tools)).unwrap()))
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
        let list = EntryList::of_gate(Kind::Tools, Text::join(&[]));
        list.page(None).write(&mut out);
        assert_eq!(list.page(None).next, None);
        assert_eq!(out, b"[]");
    }

    #[test]
    fn ax_03_a_list_of_whole_pages_ends_with_the_last() {
        for (size, pages) in [(PAGE, 1), (PAGE + 1, 2), (2 * PAGE, 2)] {
            let entries: Vec<Bytes> = (0..size).map(|number| format!(r#"{{"name":"{number}"}}"#).into()).collect();
            let list =
                EntryList::of_parts(Kind::Tools, [ListPart { mount: Some(Segment::nearest("a")), text: Arc::new(Text::join(&entries)) }]);
            let (mut cursor, mut seen) = (list.page(None).next, 1);
            while let Some(behind) = cursor {
                (cursor, seen) = (list.page(Some(&behind)).next, seen + 1);
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
