//! Promises of [`crate::Claims`]. Validity of claims is not tried here.

use banyan_model::Segment;
use mesh_proto::authority::Authority;
use mesh_proto::id::NodeId;
use mesh_proto::parent::Claim;

use super::stores::StorePlace;
use crate::ClaimChange;

fn claim(segment: &str, id: u128) -> Claim {
    let authority = Authority::parse("dns:a.example").unwrap();
    Claim { segment: Segment::nearest(segment), authority, proven: true, subserver_id: NodeId::new(id) }
}

pub(super) async fn are_there_after_a_restart_and_each_gates_own(place: &StorePlace) {
    let (one, kept) = place().claims("one").await.unwrap();
    assert_eq!(kept, []);
    let (two, _) = place().claims("two").await.unwrap();
    one.keep(vec![ClaimChange::Made(claim("a", 1)), ClaimChange::Made(claim("b", 2))]).await.unwrap();
    two.keep(vec![ClaimChange::Made(claim("a", 4))]).await.unwrap();
    one.keep(vec![ClaimChange::Made(claim("a", 3)), ClaimChange::Released(Segment::nearest("b"))]).await.unwrap();
    assert!(one.works());
    drop((one, two));
    assert_eq!(place().claims("one").await.unwrap().1, [claim("a", 3)]);
    assert_eq!(place().claims("two").await.unwrap().1, [claim("a", 4)]);
    assert_eq!(place().claims("three").await.unwrap().1, []);
}
