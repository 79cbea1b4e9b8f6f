//! The resolved forms of sections that other crates hand in, kept by their types. Resolves nothing.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The resolved form of a handed-in section.
trait Value: fmt::Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;

    fn is_same(&self, other: &dyn Value) -> bool;
}

impl<T: fmt::Debug + PartialEq + Send + Sync + 'static> Value for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_same(&self, other: &dyn Value) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }
}

/// The resolved forms of handed-in sections, one of each type.
#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<TypeId, Arc<dyn Value>>);

impl Values {
    /// Finds the value of type `T`.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>()).and_then(|value| value.as_any().downcast_ref())
    }

    /// Puts `value` in the place of any other of its type.
    pub fn set<T: fmt::Debug + PartialEq + Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|((id, value), (other_id, other))| id == other_id && value.is_same(&**other))
    }
}
