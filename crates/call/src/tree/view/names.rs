//! Shown names of a kind, and their owners. Made in groups of branches whose names cannot collide with those of other groups; a group with
//! unchanged lists comes from the view before, so that a change of a server costs what that server lists.

use std::sync::{Arc, OnceLock};

use banyan_model::Segment;
use bytes::Bytes;
use config::resolved::{Config, Profile};
use mcp_proto::catalog::Kind;
use mcp_proto::projection::{self, Apart, Projection, Reason, Style};

use crate::tree::catalog::{Catalog, Offer, allowed};
use crate::tree::snapshot::{Branch, Tree};
use crate::tree::view::is_gated;
use crate::tree::view::list::ListPart;
use crate::tree::view::text::Text;
use crate::words::view_key::ViewKey;

/// List of a branch, and its place in the tree.
#[derive(Clone, Copy)]
pub struct Listing<'a> {
    place: usize,
    mount: &'a Segment,
    catalog: &'a Arc<Catalog>,
    state: State,
}

/// State of a server besides its list. Shown with the annotations only.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct State {
    is_lost: bool,
    /// Counts changes of what is known of the tools.
    edition: u64,
}

/// A server as a list shows it.
pub struct ShownServer<'a> {
    mount: &'a Segment,
    is_lost: bool,
}

impl<'a> Listing<'a> {
    /// Lists the branch at `place`.
    pub fn of_branch(place: usize, branch: &'a Branch) -> Self {
        let state = State { is_lost: branch.is_lost, edition: branch.edition };
        Self { place, mount: &branch.mount.config.name, catalog: &branch.catalog, state }
    }

    /// Part of the state that decides about shown names.
    pub fn shown(&self) -> ShownServer<'a> {
        ShownServer { mount: self.mount, is_lost: self.state.is_lost }
    }
}

/// Settings for names.
pub struct How<'a> {
    config: &'a Config,
    key: &'a ViewKey,
    /// Omissions and renamings; prompts have none.
    profile: Option<&'a Profile>,
    kind: Kind,
    pub of: fn(&Catalog) -> &Vec<Offer>,
}

impl<'a> How<'a> {
    /// Settings of the view of `key`.
    pub fn new(tree: &'a Tree, key: &'a ViewKey, kind: Kind) -> Self {
        let (profile, of): (_, fn(&Catalog) -> &Vec<Offer>) = match kind {
            Kind::Prompts => (None, |catalog| &catalog.prompts),
            Kind::Resources | Kind::Templates | Kind::Tools => (tree.profile(&key.profile).map(|p| &**p), |catalog| &catalog.tools),
        };
        Self { config: &tree.config, key, profile, kind, of }
    }

    /// Definition of an offer for a list, under the shown name.
    pub fn written(&self, server: &ShownServer<'_>, offer: &Offer, shown: &str) -> Bytes {
        let raw = offer.entry.shown_as(self.kind, shown);
        match offer.noted.as_ref().filter(|_| self.key.annotated) {
            Some(noted) => noted.written(&raw, server.is_lost, is_gated(self.config, server.mount, noted)),
            None => raw,
        }
    }

    /// Checks for a tool in the list of the client: any for a gate, tools for models for anybody else.
    pub fn lists(&self, offer: &Offer) -> bool {
        self.key.is_for_gate() || offer.noted.as_ref().is_none_or(|noted| !noted.is_for_operators)
    }

    /// Part of a server's state that is shown.
    fn shown_state(&self, state: State) -> State {
        if self.key.annotated { state } else { State::default() }
    }
}

/// Names of a view.
pub struct Names {
    /// Groups by rising heads, none of which begins another.
    groups: Vec<PlacedGroup>,
    /// Every branch, in the order of the tree.
    order: Vec<At>,
    listed: usize,
}

/// A group, and the places of its branches in the tree of this view.
struct PlacedGroup {
    group: Arc<Group>,
    branches: Vec<usize>,
}

/// Place of a branch's names.
#[derive(Clone, Copy, Default)]
struct At {
    group: usize,
    member: usize,
}

impl Names {
    /// Names the lists of these branches; `before` is a view of the same key and configuration.
    pub fn build(branches: &[Listing<'_>], how: &How<'_>, before: Option<&Self>) -> Self {
        let mut order = vec![At::default(); branches.len()];
        let mut groups = Vec::new();
        for Apart { head, members } in parted(branches, how) {
            for (member, at) in members.iter().enumerate() {
                if let Some(place) = order.get_mut(*at) {
                    *place = At { group: groups.len(), member };
                }
            }
            let own: Vec<Listing<'_>> = members.iter().filter_map(|at| branches.get(*at).copied()).collect();
            let known = before.and_then(|before| before.group(&head)).filter(|group| group.is_of(&own, how));
            let group = known.map_or_else(|| Arc::new(Group::build(head, &own, how)), Arc::clone);
            groups.push(PlacedGroup { group, branches: own.iter().map(|branch| branch.place).collect() });
        }
        let listed = groups.iter().map(|placed| placed.group.listed).sum();
        Self { groups, order, listed }
    }

    /// Finds a shown name: its branch, and its place in the branch's catalog.
    pub fn find(&self, name: &str) -> Option<(usize, usize)> {
        let behind = self.groups.partition_point(|placed| *placed.group.head <= *name);
        let PlacedGroup { group, branches } = self.groups.get(behind.checked_sub(1)?)?;
        let (member, place) = *group.owners.get(group.projection.find(name)?)?;
        Some((*branches.get(member)?, place))
    }

    /// Shown names with branch and place, in the order of the tree.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, (usize, usize))> {
        self.explained().map(|(shown, owner, _)| (shown, owner))
    }

    /// Shown names with branch, place and the reason for their form.
    pub fn explained(&self) -> impl Iterator<Item = (&Arc<str>, (usize, usize), Reason)> {
        self.order.iter().filter_map(|at| Some((self.groups.get(at.group)?, at.member))).flat_map(|(placed, member)| {
            let PlacedGroup { group, branches } = placed;
            let (first, last) = group.members.get(member).map_or((0, 0), |member| (member.first, member.last));
            (first..last).filter_map(move |index| {
                let (_, place) = *group.owners.get(index)?;
                Some((group.projection.shown(index)?, (*branches.get(member)?, place), group.projection.reason(index)?))
            })
        })
    }

    /// Number of listed names.
    pub(crate) fn listed(&self) -> usize {
        self.listed
    }

    /// Checks for a tool that wants parameters mirrored in headers.
    pub fn mirrors(&self) -> bool {
        self.groups.iter().any(|placed| placed.group.mirrors)
    }

    /// Lists of the branches, in the order of the tree.
    pub fn parts(&self, how: &How<'_>) -> impl Iterator<Item = ListPart> {
        self.order.iter().filter_map(move |at| self.groups.get(at.group)?.group.part(at.member, how))
    }

    fn group(&self, head: &str) -> Option<&Arc<Group>> {
        let at = self.groups.binary_search_by(|placed| (*placed.group.head).cmp(head)).ok()?;
        self.groups.get(at).map(|placed| &placed.group)
    }
}

/// Splits branches into groups for naming. Where the configuration renames tools, any name may collide with any.
fn parted(branches: &[Listing<'_>], how: &How<'_>) -> Vec<Apart> {
    let is_renamed = how.key.style != Style::Qualified && how.profile.is_some_and(|profile| !profile.rename.is_empty());
    if how.key.mount.is_some() || is_renamed {
        return vec![Apart { head: String::new(), members: (0..branches.len()).collect() }];
    }
    let mounts: Vec<&Segment> = branches.iter().map(|branch| branch.mount).collect();
    projection::apart(how.key.style, &mounts)
}

/// Branches whose names may collide, and their names.
struct Group {
    head: String,
    members: Vec<Member>,
    projection: Projection,
    /// For each entry of the projection: the member, and the place in its catalog.
    owners: Vec<(usize, usize)>,
    /// Number of listed entries.
    listed: usize,
    mirrors: bool,
}

/// State of a branch when it was named.
struct Member {
    mount: Segment,
    catalog: Arc<Catalog>,
    state: State,
    /// First of its entries in the projection, and the end of them.
    first: usize,
    last: usize,
    text: OnceLock<Arc<Text>>,
}

impl Group {
    fn build(head: String, branches: &[Listing<'_>], how: &How<'_>) -> Self {
        let (mut entries, mut owners) = (Vec::new(), Vec::new());
        let (mut members, mut mirrors, mut listed) = (Vec::with_capacity(branches.len()), false, 0);
        for (at, branch) in branches.iter().enumerate() {
            let first = entries.len();
            let offers = (how.of)(branch.catalog);
            mirrors |= offers.iter().any(|offer| !offer.headers.is_empty());
            for (place, offer) in offers.iter().enumerate() {
                if let Some(entry) = named(branch.mount, offer, how) {
                    listed += usize::from(how.lists(offer));
                    entries.push(entry);
                    owners.push((at, place));
                }
            }
            let (mount, catalog, state) = (branch.mount.clone(), Arc::clone(branch.catalog), how.shown_state(branch.state));
            members.push(Member { mount, catalog, state, first, last: entries.len(), text: OnceLock::new() });
        }
        Self { head, members, projection: Projection::build(how.key.style, entries), owners, listed, mirrors }
    }

    /// Checks that the group was made of these branches as they are now.
    fn is_of(&self, branches: &[Listing<'_>], how: &How<'_>) -> bool {
        let same = |(member, branch): (&Member, &Listing<'_>)| {
            Arc::ptr_eq(&member.catalog, branch.catalog) && member.state == how.shown_state(branch.state) && member.mount == *branch.mount
        };
        self.members.len() == branches.len() && self.members.iter().zip(branches).all(same)
    }

    /// List of a member under shown names, made on first use.
    fn part(&self, member: usize, how: &How<'_>) -> Option<ListPart> {
        let member = self.members.get(member)?;
        let server = ShownServer { mount: &member.mount, is_lost: member.state.is_lost };
        let written = |index: usize| {
            let offer = (how.of)(&member.catalog).get(self.owners.get(index)?.1).filter(|offer| how.lists(offer))?;
            Some(how.written(&server, offer, self.projection.shown(index)?))
        };
        let joined = || Arc::new(Text::join(&(member.first..member.last).filter_map(written).collect::<Vec<_>>()));
        Some(ListPart { mount: Some(member.mount.clone()), text: Arc::clone(member.text.get_or_init(joined)) })
    }
}

/// Entry to be named for an offer, unless the profile leaves it out.
fn named(mount: &Segment, offer: &Offer, how: &How<'_>) -> Option<projection::Entry> {
    let dotted = how.profile.map(|_| format!("{mount}.{}", offer.local)).unwrap_or_default();
    if how.profile.is_some_and(|p| !allowed(&dotted, &p.include, &p.exclude)) {
        return None;
    }
    let renaming = how.profile.filter(|_| how.key.style != Style::Qualified);
    Some(projection::Entry {
        mount: how.key.mount.is_none().then(|| mount.clone()),
        original: Arc::clone(&offer.name),
        local: Arc::clone(&offer.local),
        rename: renaming.and_then(|p| p.rename.get(&dotted)).map(|name| Arc::from(name.as_str())),
    })
}

#[cfg(test)]
mod tests {
    use banyan_model::Route;
    use mcp_proto::catalog::Entry;
    use mesh_proto::annotation::Transport;
    use proptest::prelude::*;

    use super::*;
    use crate::tree::annotation::ToolFacts;
    use crate::tree::role::Role;
    use crate::tree::view::list::EntryList;

    /// Mounts, each with its list and state.
    type World = Vec<(Segment, Arc<Catalog>, State)>;

    fn catalog(tools: &[String]) -> Arc<Catalog> {
        let offer = |name: &String| {
            let mut entry = Entry { key: name.clone(), raw: format!(r#"{{"name":"{name}"}}"#).into() };
            let noted = ToolFacts::of_entry(&mut entry, &Transport::default(), &[], Role::Server, None);
            let local = Arc::new(Route(vec![Segment::nearest(name)]));
            Offer { entry, name: name.as_str().into(), local, headers: Vec::new(), noted: Some(Arc::new(noted)) }
        };
        Arc::new(Catalog { tools: tools.iter().map(offer).collect(), ..Catalog::default() })
    }

    fn listings(world: &World) -> Vec<Listing<'_>> {
        world.iter().enumerate().map(|(place, (mount, catalog, state))| Listing { place, mount, catalog, state: *state }).collect()
    }

    fn build(world: &World, key: &ViewKey, before: Option<&Names>) -> (Names, String) {
        let config = Config::default();
        let how = How { config: &config, key, profile: None, kind: Kind::Tools, of: |catalog| &catalog.tools };
        let names = Names::build(&listings(world), &how, before);
        let mut out = Vec::new();
        EntryList::of_parts(Kind::Tools, names.parts(&how)).page(None).write(&mut out);
        (names, String::from_utf8_lossy(&out).into_owned())
    }

    fn key(style: Style, annotated: bool) -> ViewKey {
        ViewKey { mount: None, profile: "".into(), style, annotated, speaks_mesh: false, is_seated: false }
    }

    #[test]
    fn ax_03_a_change_of_one_server_makes_nothing_else_anew() {
        let mounts =
            ["a", "b", "b__c", "d"].map(|mount| (Segment::nearest(mount), catalog(&["x".into(), "c__x".into()]), State::default()));
        let mut world: World = mounts.into();
        let (before, _) = build(&world, &key(Style::Safe, false), None);
        world[2].1 = catalog(&["y".into()]);
        // A client without annotations sees no change.
        world[3].2.is_lost = true;
        let (after, page) = build(&world, &key(Style::Safe, false), Some(&before));
        let kept = |head: &str| before.group(head).zip(after.group(head)).map(|(then, now)| Arc::ptr_eq(then, now));
        // Names of `b` and of `b__c` may be the same.
        assert_eq!([kept("a__"), kept("b__"), kept("d__")], [Some(true), Some(false), Some(true)]);
        assert!(page.contains(r#"{"name":"b__c__y"}"#), "{page}");
    }

    proptest! {
        #[test]
        fn ax_03_changed_names_equal_names_made_anew(
            steps in proptest::collection::vec((0..4_usize, proptest::collection::vec("[ab]_{0,2}[aB]?", 0..4), any::<bool>()), 1..8),
            style in prop::sample::select(vec![Style::Dotted, Style::Qualified, Style::Safe]),
            annotated in any::<bool>(),
        ) {
            let key = key(style, annotated);
            let mut world: World = ["a", "a_", "a__b", "b"].map(|mount| (Segment::nearest(mount), Arc::default(), State::default())).into();
            let (mut before, _) = build(&world, &key, None);
            for (mount, tools, is_lost) in steps {
                world[mount].2.is_lost = is_lost;
                if !is_lost {
                    world[mount].1 = catalog(&tools);
                }
                let (names, page) = build(&world, &key, Some(&before));
                let (fresh, wanted) = build(&world, &key, None);
                prop_assert_eq!(&page, &wanted);
                prop_assert_eq!(names.explained().collect::<Vec<_>>(), fresh.explained().collect::<Vec<_>>());
                prop_assert_eq!(names.listed(), names.iter().count());
                for (shown, (branch, place)) in names.iter() {
                    let found = names.find(shown);
                    let same = |(b, p): (usize, usize)| b == branch && world[b].1.tools[p].name == world[b].1.tools[place].name;
                    prop_assert!(found.is_some_and(same), "{} is {:?}", shown, found);
                }
                prop_assert_eq!(names.find("a__nothing"), None);
                before = names;
            }
        }
    }
}
