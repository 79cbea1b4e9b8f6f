//! The least that a room can be: a WebSocket server on tokio-tungstenite that sends every text it gets to everybody. It knows no names, checks
//! nothing, keeps no bounds, and lets nobody in or out; whoever connects is there.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// So many messages are taken from a queue before they are flushed.
const BATCH: usize = 64;

type Everybody = Rc<RefCell<Vec<UnboundedSender<Utf8Bytes>>>>;

pub(crate) async fn serve(listen: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    let everybody = Everybody::default();
    LocalSet::new()
        .run_until(async {
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                spawn_local(serve_one(stream, Rc::clone(&everybody)));
            }
        })
        .await
}

/// Until it closes, or breaks.
async fn serve_one(stream: TcpStream, everybody: Everybody) {
    let Ok(socket) = tokio_tungstenite::accept_async(stream).await else { return };
    let (mut sink, mut texts) = socket.split();
    let (queue, mut queued) = unbounded_channel();
    everybody.borrow_mut().push(queue);
    let writer = spawn_local(async move {
        let mut waiting = Vec::new();
        while take(&mut queued, &mut waiting).await {
            for text in waiting.drain(..) {
                if sink.feed(Message::Text(text)).await.is_err() {
                    return;
                }
            }
            if sink.flush().await.is_err() {
                return;
            }
        }
    });
    while let Some(Ok(message)) = texts.next().await {
        if let Message::Text(text) = message {
            everybody.borrow_mut().retain(|queue| queue.send(text.clone()).is_ok());
        }
    }
    writer.abort();
}

async fn take(queued: &mut UnboundedReceiver<Utf8Bytes>, waiting: &mut Vec<Utf8Bytes>) -> bool {
    queued.recv_many(waiting, BATCH).await > 0
}
