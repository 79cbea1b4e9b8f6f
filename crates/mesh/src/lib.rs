//! The gates above and below this one, and servers that register themselves. Who may register is not decided here but in `mesh-proto`.

pub mod child;
pub mod link;
pub mod mesh;
pub mod registry;
