//! Promises of a [`crate::Bus`]. Promptness is not promised.

use super::stores::StorePlace;

pub(super) async fn news_come_to_whoever_listens(place: &StorePlace) {
    let stores = place();
    let looks = stores.looks();
    // Told before anybody waits, and several times: heard once.
    looks.tell();
    looks.tell();
    looks.heard().await;
}
