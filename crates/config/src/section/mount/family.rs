//! Servers of other families than MCP's, such as mounted rooms: their settings, as the section of the family resolves them. Opens nothing.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Settings of a server behind another family than MCP's.
pub trait FamilySettings: fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The family, in a word for people: the key of its sections, as a rule.
    const FAMILY: &'static str;

    /// Describes the server for people, for example by its address.
    fn description(&self) -> String;

    /// Names the keys that differ from `old`, in the words of the section.
    fn differing(&self, old: &Self) -> Vec<&'static str> {
        if self == old { Vec::new() } else { vec![Self::FAMILY] }
    }
}

/// The way to a server of another family than MCP's.
#[derive(Clone, Debug)]
pub struct FamilyTransport(Arc<dyn AnySettings>);

/// [`FamilySettings`] of an unknown type.
trait AnySettings: fmt::Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn family(&self) -> &'static str;
    fn description(&self) -> String;
    fn is_same(&self, other: &dyn AnySettings) -> bool;
    fn differing(&self, old: &dyn AnySettings) -> Vec<&'static str>;
}

impl<T: FamilySettings> AnySettings for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn family(&self) -> &'static str {
        T::FAMILY
    }

    fn description(&self) -> String {
        FamilySettings::description(self)
    }

    fn is_same(&self, other: &dyn AnySettings) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn differing(&self, old: &dyn AnySettings) -> Vec<&'static str> {
        let old = old.as_any().downcast_ref::<T>();
        old.map_or_else(|| vec![T::FAMILY], |old| FamilySettings::differing(self, old))
    }
}

impl FamilyTransport {
    /// Makes the way to a server with these settings.
    pub fn new(settings: impl FamilySettings) -> Self {
        Self(Arc::new(settings))
    }

    /// The family, in a word for people.
    pub fn family(&self) -> &'static str {
        self.0.family()
    }

    /// Describes the server for people.
    pub fn description(&self) -> String {
        self.0.description()
    }

    /// The settings; `None`: those of another family.
    pub fn settings<T: FamilySettings>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// Names the keys that differ from `old`.
    pub(super) fn differing(&self, old: &Self) -> Vec<&'static str> {
        self.0.differing(&*old.0)
    }
}

impl PartialEq for FamilyTransport {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&*other.0)
    }
}
