//! The one way of every call: from a name that a caller was shown to an answer of whoever offers it. Folders stand on each other: the words of
//! a call, the tree in which names are found, judging what may happen, and the way itself. Doors, transports and stores are not known here.

pub mod judge;
pub mod tree;
pub mod way;
pub mod words;
