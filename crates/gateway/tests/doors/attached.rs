//! Clients of `banyan stdio` at a gate that ends where nobody uses it. Which gate a client finds is not tried here.

use gateway::admin::client::{AdminClient, AdminError};
use gateway::admin::presence::Presence;

use crate::world::{Era, World, bounded, eventually, fixture};

#[tokio::test]
async fn ux1_an_unused_gate_ends_and_takes_no_clients() {
    bounded(async {
        let (world, dir) = (World::start(&fixture("fx", Era::Initialize)).await, tempfile::tempdir().unwrap());
        let (_published, _commands) = world.gateway.publish(dir.path(), world.addr, "a test".into()).unwrap();
        let admin = AdminClient::new(Presence::all(dir.path()).unwrap().swap_remove(0));
        let client = admin.attach().await.unwrap();
        assert!(!world.gateway.leave(), "a client is there");
        drop(client);
        eventually(async || world.gateway.leave().then_some(())).await;
        assert!(matches!(admin.attach().await, Err(AdminError::Unreachable { .. })), "it looks for the next gate");
    })
    .await;
}
