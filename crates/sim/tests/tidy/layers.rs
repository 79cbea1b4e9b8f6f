//! Imports point to lower numbers only, and deciding crates never reach doing ones. Does not look at modules within a crate.

use crate::metadata::{Graph, Package};

/// Layers of every crate of the workspace, future ones included.
const LAYERS: &[(&str, u8)] = &[
    ("banyan-model", 0),
    ("json", 0),
    ("policy", 1),
    ("audit", 1),
    ("mcp-proto", 2),
    ("mesh-proto", 2),
    ("room-proto", 2),
    ("net-proto", 2),
    ("stub-proto", 2),
    ("agent-proto", 2),
    ("axcp-proto", 2),
    ("bridge", 3),
    ("search", 3),
    ("mcp-server", 4),
    ("demo", 5),
    ("runtime", 4),
    ("config", 5),
    ("store", 5),
    ("telemetry", 5),
    ("disk", 6),
    ("import", 6),
    ("equipment", 6),
    ("netdev", 7),
    ("call", 8),
    ("trust", 9),
    ("door", 10),
    ("room", 11),
    ("mcp", 11),
    ("agent", 11),
    ("stub", 11),
    ("axcp", 11),
    ("mesh", 12),
    ("gateway", 13),
    ("banyan", 14),
];

/// The highest layer that decides.
const DECIDES: u8 = 3;

/// The layer of drivers.
const DRIVES: u8 = 11;

/// The only driver on top of another: MCP-AX runs over MCP.
const STANDS_ON_MCP: &str = "mesh";

/// Runtimes and sockets, and crates that bring them in.
const DOING: &[&str] =
    &["async-std", "axum", "h2", "hyper", "mio", "quinn", "reqwest", "smol", "socket2", "tokio", "tokio-util", "tower", "ureq"];

/// Drives everything in tests, so that no layer applies; nothing but a test may need it.
const DEV_ONLY: &str = "sim";

/// A family from outside, for a test of a whole gate: stands beside the drivers, and only its test needs more.
const EXAMPLE: &str = "lamp";

/// Programs that measure or test the binary from outside: they know no crate of ours.
const OUTSIDE: &[&str] = &["bench", "rmcp-peer"];

fn layer(package: &Package) -> u8 {
    let found = LAYERS.iter().find(|(name, _)| *name == package.name);
    found.unwrap_or_else(|| panic!("crate `{}` has no layer: give it one in the design and in LAYERS", package.name)).1
}

fn layered(graph: &Graph) -> impl Iterator<Item = &Package> {
    graph.members().filter(|p| ![DEV_ONLY, EXAMPLE].contains(&p.name.as_str()) && !OUTSIDE.contains(&p.name.as_str()))
}

#[test]
fn imports_point_to_lower_layers() {
    let graph = Graph::load();
    for package in layered(&graph) {
        let needed = package.dependencies.iter().chain(&package.dev_dependencies).map(|id| graph.package(id));
        for other in needed.filter(|o| o.source.is_none()) {
            if other.name == DEV_ONLY {
                assert!(!package.dependencies.contains(&other.id), "`{}` needs `{DEV_ONLY}` outside its tests", package.name);
                continue;
            }
            let (above, below) = (layer(package), layer(other));
            assert!(below < above, "`{}` (layer {above}) must not know `{}` (layer {below})", package.name, other.name);
        }
    }
}

#[test]
fn a_family_needs_nothing_above_the_doors() {
    let graph = Graph::load();
    let example = graph.members().find(|p| p.name == EXAMPLE).expect("the example is a member");
    for needed in example.dependencies.iter().map(|id| graph.package(id)).filter(|p| p.source.is_none()) {
        assert!(layer(needed) < DRIVES, "a family must not need `{}`", needed.name);
    }
}

#[test]
fn drivers_do_not_know_each_other() {
    let graph = Graph::load();
    let drivers: Vec<&Package> = layered(&graph).filter(|p| layer(p) == DRIVES || p.name == STANDS_ON_MCP).collect();
    assert!(drivers.len() >= 3, "mcp, room and mesh drive");
    for driver in &drivers {
        for other in drivers.iter().filter(|other| driver.dependencies.contains(&other.id) || driver.dev_dependencies.contains(&other.id)) {
            let is_mcp = driver.name == STANDS_ON_MCP && other.name == "mcp";
            assert!(is_mcp, "`{}` must not know `{}`: both meet in `call`", driver.name, other.name);
        }
    }
}

/// Libraries that the one way of a call must not need: servers, TLS and databases belong to doors, transports and stores.
const NOT_IN_CALL: &[&str] = &["hyper", "hyper-util", "reqwest", "rusqlite", "rustls", "tokio-rustls"];

#[test]
fn call_needs_no_server_and_reaches_no_database() {
    let graph = Graph::load();
    let call = graph.members().find(|p| p.name == "call").expect("the one way is a crate");
    let needed: Vec<&str> = call.dependencies.iter().map(|id| graph.package(id).name.as_str()).collect();
    for name in NOT_IN_CALL {
        assert!(!needed.contains(name), "`call` must not need `{name}`");
    }
    assert!(!graph.reach(call).iter().any(|p| p.name == "rusqlite"), "`call` reaches a database");
}

#[test]
fn crates_that_decide_reach_no_runtime_and_no_socket() {
    let graph = Graph::load();
    let deciding: Vec<_> = layered(&graph).filter(|p| layer(p) <= DECIDES).collect();
    assert!(deciding.len() >= 2, "model and mcp-proto decide");
    for package in deciding {
        for reached in graph.reach(package) {
            assert!(
                !DOING.contains(&reached.name.as_str()),
                "`{}` reaches `{}`: only layers above {DECIDES} do things",
                package.name,
                reached.name
            );
        }
    }
}

#[test]
fn programs_outside_know_no_crate_of_ours() {
    let graph = Graph::load();
    for package in graph.members().filter(|p| OUTSIDE.contains(&p.name.as_str())) {
        let ours: Vec<_> = package.dependencies.iter().map(|id| graph.package(id)).filter(|p| p.source.is_none()).collect();
        assert!(ours.is_empty(), "`{}` looks from outside, and must not need `{}`", package.name, ours[0].name);
    }
}

#[test]
fn the_check_can_see_a_runtime() {
    let graph = Graph::load();
    let gateway = graph.members().find(|p| p.name == "gateway").expect("the gateway is a member");
    assert!(graph.reach(gateway).iter().any(|p| p.name == "tokio"));
}
