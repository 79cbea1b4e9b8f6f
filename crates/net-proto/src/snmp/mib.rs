//! Objects with names: the system group, and the interfaces. Their paths are those that RFC 6643 makes of the modules of SMIv2. Reads no file of a module.

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Text,
    /// Bytes that are an address of a network card.
    Hardware,
    Number,
    /// Numbers with names.
    Names(&'static [(&'static str, i64)]),
}

/// An object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MibObject {
    pub(super) module: &'static str,
    /// Nodes from below the module's container to the object.
    pub(super) nodes: &'static [&'static str],
    pub(super) oid: &'static [u32],
    pub(super) syntax: Syntax,
    pub(super) is_settable: bool,
}

impl MibObject {
    pub(super) fn name(&self) -> &'static str {
        self.nodes.last().copied().unwrap_or_default()
    }

    /// Checks for an object of every interface, not of the whole device.
    pub(super) fn is_column(&self) -> bool {
        self.nodes.contains(&LIST)
    }
}

/// Node with an entry for each interface, and its key.
pub(super) const LIST: &str = "ifEntry";
pub(super) const KEY: &str = "ifIndex";

pub(super) const ADMIN: &[(&str, i64)] = &[("up", 1), ("down", 2), ("testing", 3)];
pub(super) const OPER: &[(&str, i64)] =
    &[("up", 1), ("down", 2), ("testing", 3), ("unknown", 4), ("dormant", 5), ("notPresent", 6), ("lowerLayerDown", 7)];

const fn system(nodes: &'static [&'static str], oid: &'static [u32], syntax: Syntax, is_settable: bool) -> MibObject {
    MibObject { module: "SNMPv2-MIB", nodes, oid, syntax, is_settable }
}

const fn interface(nodes: &'static [&'static str], oid: &'static [u32], syntax: Syntax, is_settable: bool) -> MibObject {
    MibObject { module: "IF-MIB", nodes, oid, syntax, is_settable }
}

/// All objects with names, in the order of their identifiers.
pub(super) const OBJECTS: &[MibObject] = &[
    system(&["system", "sysDescr"], &[1, 3, 6, 1, 2, 1, 1, 1], Syntax::Text, false),
    system(&["system", "sysObjectID"], &[1, 3, 6, 1, 2, 1, 1, 2], Syntax::Text, false),
    system(&["system", "sysUpTime"], &[1, 3, 6, 1, 2, 1, 1, 3], Syntax::Number, false),
    system(&["system", "sysContact"], &[1, 3, 6, 1, 2, 1, 1, 4], Syntax::Text, true),
    system(&["system", "sysName"], &[1, 3, 6, 1, 2, 1, 1, 5], Syntax::Text, true),
    system(&["system", "sysLocation"], &[1, 3, 6, 1, 2, 1, 1, 6], Syntax::Text, true),
    system(&["system", "sysServices"], &[1, 3, 6, 1, 2, 1, 1, 7], Syntax::Number, false),
    interface(&["interfaces", "ifNumber"], &[1, 3, 6, 1, 2, 1, 2, 1], Syntax::Number, false),
    interface(&["ifTable", LIST, KEY], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 1], Syntax::Number, false),
    interface(&["ifTable", LIST, "ifDescr"], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2], Syntax::Text, false),
    interface(&["ifTable", LIST, "ifType"], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 3], Syntax::Number, false),
    interface(&["ifTable", LIST, "ifMtu"], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 4], Syntax::Number, false),
    interface(&["ifTable", LIST, "ifSpeed"], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 5], Syntax::Number, false),
    interface(&["ifTable", LIST, "ifPhysAddress"], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 6], Syntax::Hardware, false),
    interface(&["ifTable", LIST, "ifAdminStatus"], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 7], Syntax::Names(ADMIN), true),
    interface(&["ifTable", LIST, "ifOperStatus"], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 8], Syntax::Names(OPER), false),
    interface(&["ifTable", LIST, "ifInErrors"], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 14], Syntax::Number, false),
    interface(&["ifTable", LIST, "ifOutErrors"], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 20], Syntax::Number, false),
    interface(&["ifTable", LIST, "ifName"], &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1], Syntax::Text, false),
    interface(&["ifTable", LIST, "ifHCInOctets"], &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6], Syntax::Number, false),
    interface(&["ifTable", LIST, "ifHCOutOctets"], &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10], Syntax::Number, false),
    interface(&["ifTable", LIST, "ifHighSpeed"], &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 15], Syntax::Number, false),
    interface(&["ifTable", LIST, "ifAlias"], &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 18], Syntax::Text, true),
];

/// The object that an identifier is an instance of, and the numbers behind it.
pub(super) fn object_of(oid: &super::Oid) -> Option<(&'static MibObject, &[u32])> {
    OBJECTS.iter().find_map(|object| Some((object, oid.numbers().strip_prefix(object.oid)?)))
}
