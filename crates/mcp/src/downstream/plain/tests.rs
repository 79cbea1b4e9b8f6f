//! Time limits of a connection. Requests are tested at the doors (`tests/doors`), not here.

use runtime::tcp::Tcp;
use tokio::net::{TcpListener, TcpStream};

use crate::downstream::plain::*;

const SHORT: Duration = Duration::from_millis(400);
const LONG: Duration = Duration::from_secs(600);
const HEAD: &[u8] = b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n";

async fn pair(arrival: Duration, idle: Duration) -> (TcpStream, Line<Tcp>, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    client.set_nodelay(true).unwrap();
    let stop = CancellationToken::new();
    let line = Line::new(Tcp::new(listener.accept().await.unwrap().0), &stop, Patience { arrival, idle, later: idle });
    (client, line, stop)
}

#[tokio::test]
async fn a_head_that_stops_coming_is_given_up() {
    let (mut client, mut line, _stop) = pair(SHORT, LONG).await;
    client.write_all(&HEAD[..20]).await.unwrap();
    assert!(matches!(line.head().await, Ok(None)));
}

#[tokio::test]
async fn a_head_in_pieces_has_its_own_time() {
    let (mut client, mut line, _stop) = pair(SHORT, LONG).await;
    for _ in 0..2 {
        let (head, ()) = tokio::join!(line.head(), async {
            tokio::time::sleep(SHORT * 2).await;
            client.write_all(&HEAD[..20]).await.unwrap();
            tokio::time::sleep(SHORT / 3).await;
            client.write_all(&HEAD[20..]).await.unwrap();
        });
        assert!(matches!(head, Ok(Some(_))));
        line.rest();
    }
}

#[tokio::test]
async fn l8_a_trickling_body_is_given_up() {
    let (mut client, mut line, _stop) = pair(SHORT, LONG).await;
    client.write_all(HEAD).await.unwrap();
    assert!(matches!(line.head().await, Ok(Some(_))));
    let (body, ()) = tokio::join!(line.body(6), async {
        for piece in [&b"a "[..], b"body"] {
            tokio::time::sleep(SHORT / 4).await;
            client.write_all(piece).await.unwrap();
        }
    });
    assert_eq!(body.as_deref(), Some(&b"a body"[..]));
    let trickling = async {
        loop {
            tokio::time::sleep(SHORT / 8).await;
            client.write_all(b"x").await.unwrap();
        }
    };
    tokio::select! {
        body = line.body(4000) => assert_eq!(body, None),
        () = trickling => {}
    }
}

#[tokio::test]
async fn idle_connections_end_on_time_or_with_the_gate() {
    let (_client, mut line, _stop) = pair(LONG, SHORT).await;
    assert!(matches!(line.head().await, Ok(None)), "idle for too long");
    let (_client, mut line, stop) = pair(LONG, LONG).await;
    stop.cancel();
    assert!(matches!(line.head().await, Ok(None)), "the gate shuts");
    let (mut client, mut line, stop) = pair(LONG, LONG).await;
    client.write_all(&HEAD[..20]).await.unwrap();
    std::future::poll_fn(|cx| line.stream.poll_readable(cx)).await.unwrap();
    stop.cancel();
    let (head, ()) = tokio::join!(line.head(), async { client.write_all(&HEAD[20..]).await.unwrap() });
    assert!(matches!(head, Ok(Some(_))), "a request that has begun is let in");
}

#[tokio::test]
async fn a_connection_that_rests_again_ends_the_same() {
    for rings_meanwhile in [false, true] {
        for stops in [false, true] {
            let (mut client, mut line, stop) = pair(SHORT / 2, SHORT).await;
            let (head, sent) = tokio::join!(line.head(), async {
                tokio::task::yield_now().await;
                client.write_all(HEAD).await
            });
            assert!(sent.is_ok() && matches!(head, Ok(Some(_))));
            if rings_meanwhile {
                tokio::time::sleep(SHORT * 3 / 2).await;
            }
            line.rest();
            if stops {
                line.patience.idle = LONG;
                stop.cancel();
            }
            assert!(matches!(line.head().await, Ok(None)), "{rings_meanwhile} {stops}");
        }
    }
}

#[tokio::test]
async fn an_idle_connection_drops_a_long_bodys_buffer() {
    let (mut client, mut line, _stop) = pair(LONG, LONG).await;
    let long = vec![b'x'; 3 << 20];
    let (body, sent) = tokio::join!(line.body(long.len()), client.write_all(&long));
    sent.unwrap();
    assert!(body.is_some_and(|body| body.len() == long.len() && body.is_unique()));
}
