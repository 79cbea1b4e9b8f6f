//! The one way of every call: from a name shown to a caller to its owner's answer. Folders build on each other: the words of a call, the
//! tree of names, the judging, and the way itself. Doors, transports and stores are not known here.

pub mod judge;
pub mod tree;
pub mod way;
pub mod words;
