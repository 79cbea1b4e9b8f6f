//! Resources to which a client subscribes, with their owners and the client's own names: two servers may have one URI, and then one of them
//! is shown under another name. Notifies nobody.

use std::collections::BTreeMap;

use banyan_model::Segment;

/// Subscriptions of a client: the client's name of a resource, by mount and server's name.
#[derive(Debug, Default)]
pub struct Subscriptions(BTreeMap<Segment, BTreeMap<String, String>>);

impl Subscriptions {
    /// Adds a subscription; `false` if present. The last name counts for notifications.
    pub fn add(&mut self, mount: &Segment, uri: &str, shown: &str) -> bool {
        self.0.entry(mount.clone()).or_default().insert(uri.to_owned(), shown.to_owned()).is_none()
    }

    /// Removes a subscription; `false` without one.
    pub fn remove(&mut self, mount: &Segment, uri: &str) -> bool {
        self.0.get_mut(mount).is_some_and(|of_mount| of_mount.remove(uri).is_some())
    }

    /// Owner of the subscription made under this name, and the owner's own name.
    pub fn meant(&self, shown: &str) -> Option<(Segment, String)> {
        self.all().find(|(_, _, name)| *name == shown).map(|(mount, uri, _)| (mount.clone(), uri.to_owned()))
    }

    /// Client's name of a changed resource of `mount`, if subscribed. Servers may name a part of the resource.
    pub fn shown_name(&self, mount: &Segment, uri: &str) -> Option<String> {
        let of_mount = self.0.get(mount)?;
        let wholes = uri.rmatch_indices('/').map(|(at, _)| uri.split_at(at));
        std::iter::once((uri, "")).chain(wholes).find_map(|(whole, part)| Some(format!("{}{part}", of_mount.get(whole)?)))
    }

    /// Resources of a mount with a subscription, by server's name.
    pub fn of_mount(&self, mount: &Segment) -> Vec<String> {
        self.0.get(mount).into_iter().flat_map(|of_mount| of_mount.keys().cloned()).collect()
    }

    /// Subscriptions: mount, server's name, and client's name.
    pub fn all(&self) -> impl Iterator<Item = (&Segment, &str, &str)> {
        self.0.iter().flat_map(|(mount, of_mount)| of_mount.iter().map(move |(uri, shown)| (mount, uri.as_str(), shown.as_str())))
    }

    /// Number of subscriptions.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_uris_of_two_servers_have_different_names() {
        let [one, two] = ["one", "two"].map(|name| Segment::new(name).unwrap());
        let mut subscriptions = Subscriptions::default();
        assert!(subscriptions.add(&one, "test://a", "test://a") && subscriptions.add(&two, "test://a", "two+test://a"));
        assert!(!subscriptions.add(&two, "test://a", "two+test://a"));
        let told = |subscriptions: &Subscriptions, mount, uri| subscriptions.shown_name(mount, uri);
        assert_eq!(told(&subscriptions, &two, "test://a").as_deref(), Some("two+test://a"));
        assert_eq!(told(&subscriptions, &two, "test://a/b/c").as_deref(), Some("two+test://a/b/c"));
        assert_eq!(told(&subscriptions, &one, "test://a").as_deref(), Some("test://a"));
        assert_eq!(told(&subscriptions, &one, "test://ab"), None);
        assert_eq!(subscriptions.meant("two+test://a"), Some((two.clone(), "test://a".into())));
        assert!(subscriptions.remove(&two, "test://a") && !subscriptions.remove(&two, "test://a"));
        assert_eq!(told(&subscriptions, &two, "test://a"), None);
        assert_eq!((subscriptions.of_mount(&one), subscriptions.len()), (vec!["test://a".to_owned()], 1));
    }
}
