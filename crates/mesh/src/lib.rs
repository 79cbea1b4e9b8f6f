//! The gates above and below this one, and servers that register themselves. Decides on no registration: `mesh-proto` does.

pub mod child;
pub mod link;
pub mod mesh;
pub mod registry;
