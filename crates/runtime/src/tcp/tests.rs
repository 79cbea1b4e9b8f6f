//! A posted text leaves whole, in order and once, whatever happens to its connection, its peer or its runtime meanwhile. Nothing here is
//! sent as TLS.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::alarm;
use crate::together::Carried;

/// Makes this thread a worker with many calls.
struct Crowd(#[expect(dead_code, reason = "kept for what they count")] Vec<Carried>);

impl Crowd {
    fn new() -> Self {
        alarm::sole(true);
        Self((0..30).map(|_| Carried::count()).collect())
    }
}

async fn pair() -> (Tcp, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    ours.writable().await.unwrap();
    (Tcp::new(ours), listener.accept().await.unwrap().0)
}

async fn post(tcp: &Tcp, text: &[u8]) -> bool {
    let mut text = Some(text.to_vec());
    std::future::poll_fn(|cx| Poll::Ready(tcp.post(text.take().unwrap(), cx).is_ok())).await
}

/// Reads all bytes at hand.
fn here(peer: &TcpStream) -> Vec<u8> {
    let mut read = vec![0; 1 << 10];
    // Asked of the kernel: the reactor may not have looked yet.
    let read_now = rustix::io::retry_on_intr(|| rustix::io::read(peer, &mut read));
    read.truncate(read_now.unwrap_or(0));
    read
}

#[tokio::test]
async fn what_many_post_leaves_when_all_that_is_ready_has_been_worked_through() {
    let _crowd = Crowd::new();
    let (first, peer_of_first) = pair().await;
    let (second, peer_of_second) = pair().await;
    assert!(post(&first, b"a").await);
    assert!(!post(&first, b"b").await, "one at a time");
    let other = async {
        assert!(post(&second, b"c").await);
        assert_eq!((here(&peer_of_first), here(&peer_of_second)), (vec![], vec![]));
    };
    other.await;
    tokio::task::yield_now().await;
    assert_eq!((here(&peer_of_first), here(&peer_of_second)), (b"a".to_vec(), b"c".to_vec()));
    assert!(first.is_sent() && second.is_sent());
    assert!(post(&first, b"d").await, "and again");
}

#[tokio::test]
async fn nothing_is_left_to_others_among_few_or_where_no_worker_is() {
    let (tcp, _peer) = pair().await;
    assert!(!post(&tcp, b"a").await);
    let crowd = Crowd::new();
    alarm::sole(false);
    assert!(!post(&tcp, b"a").await);
    alarm::sole(true);
    assert!(post(&tcp, b"a").await);
    tokio::task::yield_now().await;
    drop(crowd);
    assert!(!post(&tcp, b"a").await);
}

#[tokio::test]
async fn what_is_written_after_what_was_posted_stands_behind_it() {
    let _crowd = Crowd::new();
    let (mut tcp, mut peer) = pair().await;
    assert!(post(&tcp, b"first ").await);
    tcp.write_all(b"second").await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut all = String::new();
    peer.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, "first second");
}

#[tokio::test]
async fn what_does_not_leave_at_once_wakes_its_task_and_goes_on_when_the_peer_reads() {
    let _crowd = Crowd::new();
    let (tcp, mut peer) = pair().await;
    let long: Vec<u8> = (0..16 << 20).map(|i: u32| i.to_be_bytes()[2]).collect();
    let sent = long.clone();
    let sending = tokio::spawn(async move {
        let mut text = Some(sent);
        std::future::poll_fn(|cx| {
            if let Some(text) = text.take() {
                tcp.post(text, cx).unwrap();
                return Poll::Pending;
            }
            assert!(tcp.is_stuck());
            tcp.poll_sent(cx)
        })
        .await
        .unwrap();
        assert!(!tcp.is_stuck());
    });
    let mut read = Vec::new();
    peer.read_to_end(&mut read).await.unwrap();
    assert!(read == long, "{} of {} bytes, or others", read.len(), long.len());
    sending.await.unwrap();
}

#[tokio::test]
async fn what_is_taken_back_does_not_leave_and_what_is_dropped_does() {
    let _crowd = Crowd::new();
    let (tcp, mut peer) = pair().await;
    assert!(post(&tcp, b"no").await);
    assert_eq!(tcp.take_back(), (b"no".to_vec(), 0));
    assert!(post(&tcp, b"yes").await);
    drop(tcp);
    let mut all = String::new();
    peer.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, "yes");
}

#[tokio::test]
async fn a_peer_that_is_gone_is_told_to_who_posted() {
    let _crowd = Crowd::new();
    let (tcp, peer) = pair().await;
    // What has not been read makes the kernel reset the connection.
    tcp.stream().try_write(b"unread").unwrap();
    peer.readable().await.unwrap();
    drop(peer);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(post(&tcp, b"lost").await);
    tokio::task::yield_now().await;
    assert!(tcp.is_stuck());
    assert!(std::future::poll_fn(|cx| tcp.poll_sent(cx)).await.is_err());
    assert_eq!(tcp.take_back(), (b"lost".to_vec(), 0));
}

#[test]
fn a_runtime_that_ends_sends_what_is_posted() {
    let _crowd = Crowd::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (tcp, peer) = runtime.block_on(async {
        let (tcp, peer) = pair().await;
        assert!(post(&tcp, b"last words").await);
        (tcp, peer)
    });
    assert_eq!(here(&peer), b"");
    drop(runtime);
    assert_eq!(here(&peer), b"last words");
    drop(tcp);
}
