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
    ("aepb-proto", 2),
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
    ("gateway", 7),
    ("banyan", 8),
];

/// The highest layer that decides.
const DECIDES: u8 = 3;

/// Runtimes and sockets, and crates that bring them in.
const DOING: &[&str] =
    &["async-std", "axum", "h2", "hyper", "mio", "quinn", "reqwest", "smol", "socket2", "tokio", "tokio-util", "tower", "ureq"];

/// Drives everything in tests, so that no layer applies; nothing but a test may need it.
const DEV_ONLY: &str = "sim";

/// Programs that measure or test the binary from outside: they know no crate of ours.
const OUTSIDE: &[&str] = &["bench", "rmcp-peer"];

fn layer(package: &Package) -> u8 {
    let found = LAYERS.iter().find(|(name, _)| *name == package.name);
    found.unwrap_or_else(|| panic!("crate `{}` has no layer: give it one in the design and in LAYERS", package.name)).1
}

fn layered(graph: &Graph) -> impl Iterator<Item = &Package> {
    graph.members().filter(|p| p.name != DEV_ONLY && !OUTSIDE.contains(&p.name.as_str()))
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
