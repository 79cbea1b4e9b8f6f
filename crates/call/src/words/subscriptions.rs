//! Which resources one client subscribes to, whose they are, and what the client calls them: two servers may have one URI, and then one of them is
//! shown under another. Telling anybody is not done here.

use std::collections::BTreeMap;

use banyan_model::Segment;

/// The subscriptions of one client: by mount and by what its server calls the resource, what the client calls it.
#[derive(Debug, Default)]
pub struct Subscriptions(BTreeMap<Segment, BTreeMap<String, String>>);

impl Subscriptions {
    /// Adds one; `false` when it is there already. It is told of by the name that was used last.
    pub fn add(&mut self, mount: &Segment, uri: &str, shown: &str) -> bool {
        self.0.entry(mount.clone()).or_default().insert(uri.to_owned(), shown.to_owned()).is_none()
    }

    /// Ends one; `false` when there was none.
    pub fn remove(&mut self, mount: &Segment, uri: &str) -> bool {
        self.0.get_mut(mount).is_some_and(|of_mount| of_mount.remove(uri).is_some())
    }

    /// Whose the resource is that the client subscribed to by this name, and what its server calls it.
    pub fn meant(&self, shown: &str) -> Option<(Segment, String)> {
        self.all().find(|(_, _, name)| *name == shown).map(|(mount, uri, _)| (mount.clone(), uri.to_owned()))
    }

    /// What the client calls a resource of `mount` that changed, where it wants to be told. Servers may name a part of what was subscribed to.
    pub fn told(&self, mount: &Segment, uri: &str) -> Option<String> {
        let of_mount = self.0.get(mount)?;
        let wholes = uri.rmatch_indices('/').map(|(at, _)| uri.split_at(at));
        std::iter::once((uri, "")).chain(wholes).find_map(|(whole, part)| Some(format!("{}{part}", of_mount.get(whole)?)))
    }

    /// What is subscribed to of one mount, as its server calls it.
    pub fn of(&self, mount: &Segment) -> Vec<String> {
        self.0.get(mount).into_iter().flat_map(|of_mount| of_mount.keys().cloned()).collect()
    }

    /// Each: whose, what it is called there, and what the client calls it.
    pub fn all(&self) -> impl Iterator<Item = (&Segment, &str, &str)> {
        self.0.iter().flat_map(|(mount, of_mount)| of_mount.iter().map(move |(uri, shown)| (mount, uri.as_str(), shown.as_str())))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_servers_with_one_uri_each_is_told_of_by_its_own_name() {
        let [one, two] = ["one", "two"].map(|name| Segment::new(name).unwrap());
        let mut subscriptions = Subscriptions::default();
        assert!(subscriptions.add(&one, "test://a", "test://a") && subscriptions.add(&two, "test://a", "two+test://a"));
        assert!(!subscriptions.add(&two, "test://a", "two+test://a"));
        let told = |subscriptions: &Subscriptions, mount, uri| subscriptions.told(mount, uri);
        assert_eq!(told(&subscriptions, &two, "test://a").as_deref(), Some("two+test://a"));
        assert_eq!(told(&subscriptions, &two, "test://a/b/c").as_deref(), Some("two+test://a/b/c"));
        assert_eq!(told(&subscriptions, &one, "test://a").as_deref(), Some("test://a"));
        assert_eq!(told(&subscriptions, &one, "test://ab"), None);
        assert_eq!(subscriptions.meant("two+test://a"), Some((two.clone(), "test://a".into())));
        assert!(subscriptions.remove(&two, "test://a") && !subscriptions.remove(&two, "test://a"));
        assert_eq!(told(&subscriptions, &two, "test://a"), None);
        assert_eq!((subscriptions.of(&one), subscriptions.len()), (vec!["test://a".to_owned()], 1));
    }
}
