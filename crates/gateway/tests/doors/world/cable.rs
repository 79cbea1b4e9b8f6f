//! A TCP connection that can be cut, or silenced unnoticed. Keeps the carried bytes, and does not read them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// A relay between the dialling and the listening side.
pub(crate) struct Cable {
    pub(crate) addr: SocketAddr,
    now: Arc<Mutex<State>>,
    carried: Carried,
}

type Carried = Arc<Mutex<Vec<u8>>>;

#[derive(Clone, Default)]
struct State {
    cut: CancellationToken,
    silent: CancellationToken,
}

impl Cable {
    /// Lays a whole cable to `target`.
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let now: Arc<Mutex<State>> = Arc::default();
        let carried = Carried::default();
        let (state, kept) = (Arc::clone(&now), Arc::clone(&carried));
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(target).await else { continue };
                let state = state.lock().unwrap().clone();
                let ((a, b), (c, d)) = (near.into_split(), far.into_split());
                tokio::spawn(carry(a, d, state.clone(), Arc::clone(&kept)));
                tokio::spawn(carry(c, b, state, Arc::clone(&kept)));
            }
        });
        Self { addr, now, carried }
    }

    /// Cuts every connection. Later connections are whole.
    pub(crate) fn cut(&self) {
        let state = std::mem::take(&mut *self.now.lock().unwrap());
        state.cut.cancel();
    }

    /// Gives every carried byte, in either direction.
    pub(crate) fn carried(&self) -> String {
        String::from_utf8_lossy(&self.carried.lock().unwrap()).into_owned()
    }

    /// Stops delivery on all present connections.
    pub(crate) fn silence(&self) {
        self.now.lock().unwrap().silent.cancel();
    }
}

async fn carry(mut from: tokio::net::tcp::OwnedReadHalf, mut to: tokio::net::tcp::OwnedWriteHalf, state: State, carried: Carried) {
    let mut room = vec![0; 64 << 10];
    loop {
        let read = tokio::select! {
            read = from.read(&mut room) => read.unwrap_or(0),
            () = state.cut.cancelled() => return,
            () = state.silent.cancelled() => return state.cut.cancelled().await,
        };
        carried.lock().unwrap().extend_from_slice(&room[..read]);
        if read == 0 || to.write_all(&room[..read]).await.is_err() {
            return;
        }
    }
}
