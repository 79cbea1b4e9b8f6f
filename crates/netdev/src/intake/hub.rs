//! The one process that receives at an address for all devices: hands each message to the mailboxes of the address it came from, and brings
//! answers back. Whoever has the lock is it; when that process ends, another takes over. Knows no device but by its files.

use std::collections::{BTreeMap, HashMap};
use std::fs::OpenOptions;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use net_proto::log::LogFramer;
use runtime::listening::listener;
use runtime::whole::{self, Readers};
use rustix::fs::{FlockOperation, flock};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::AbortHandle;

use super::drops;
use super::mailbox::{DROPS, FAILURE, HEAD, LARGEST, TOKEN, framed, sender};

/// Pause before the lock or the address is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// Time for which the list of mailboxes holds.
const FRESH: Duration = Duration::from_millis(500);
/// Connections of syslog, of all and of an address, and the time for which one may be silent.
const CONNECTIONS: usize = 256;
const OF_ONE: usize = 8;
const SILENCE: Duration = Duration::from_secs(3_600);
/// Bytes read from a connection at a time, and the pause after them, in which the device's process reads.
const PIECE: usize = 4 << 10;
const BREATH: Duration = Duration::from_millis(1);
/// Mailboxes that are known.
const MAILBOXES: usize = 10_000;

/// A mailbox of a device.
#[derive(Debug)]
struct KnownMailbox {
    port: u16,
    token: [u8; TOKEN],
    /// Messages so far.
    count: u64,
}

/// Mailboxes by the file, and by the address that the messages come from.
#[derive(Debug, Default)]
struct MailboxList {
    all: HashMap<(IpAddr, String), KnownMailbox>,
    names: HashMap<IpAddr, Vec<String>>,
    read: Option<Instant>,
}

/// Way to the mailboxes.
struct Delivery {
    dir: PathBuf,
    socket: UdpSocket,
    targets: Mutex<MailboxList>,
    connections: Mutex<HashMap<IpAddr, usize>>,
}

/// Receiving tasks of this process, by directory.
static RECEIVING: Mutex<BTreeMap<PathBuf, Weak<ReceivingTask>>> = Mutex::new(BTreeMap::new());

/// Work of this process at an address, for all of its devices, until the last one is gone: a device with new settings interrupts no other.
#[derive(Debug)]
pub(super) struct ReceivingTask(AbortHandle);

impl Drop for ReceivingTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Receives for another device of this process, by the task at work or by a new one.
pub(super) fn receive(dir: &Path, address: SocketAddr, has_streams: bool) -> Arc<ReceivingTask> {
    let mut all = RECEIVING.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|_, task| task.strong_count() > 0);
    if let Some(task) = all.get(dir).and_then(Weak::upgrade) {
        return task;
    }
    let task = Arc::new(ReceivingTask(tokio::spawn(run(dir.to_owned(), address, has_streams)).abort_handle()));
    all.insert(dir.to_owned(), Arc::downgrade(&task));
    task
}

/// Receives for all devices whenever no other process does. Never ends.
async fn run(dir: PathBuf, address: SocketAddr, has_streams: bool) {
    loop {
        let failed = match held(&dir) {
            Ok(Some(_lock)) => match serve(&dir, address, has_streams).await {
                Ok(()) => None,
                Err(error) => Some(format!("can't listen on {address}: {error}")),
            },
            Ok(None) => None,
            Err(error) => Some(format!("{} can't be used: {error}", dir.display())),
        };
        if let Some(failure) = failed {
            drop(whole::replace_for_now(&dir.join(FAILURE), failure.as_bytes(), Readers::Owner));
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// The lock of the receiving process, unless another holds it.
fn held(dir: &Path) -> std::io::Result<Option<std::fs::File>> {
    whole::make_dirs(dir, 0o700)?;
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(dir.join("lock"))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn serve(dir: &Path, address: SocketAddr, has_streams: bool) -> std::io::Result<()> {
    let outside = UdpSocket::bind(address).await?;
    let listener = if has_streams { Some(listener(address).await?) } else { None };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    drops::make_room(&outside);
    drop(std::fs::remove_file(dir.join(FAILURE)));
    drop(std::fs::remove_file(dir.join(DROPS)));
    let delivery = Arc::new(Delivery { dir: dir.to_owned(), socket, targets: Mutex::default(), connections: Mutex::default() });
    tokio::select! {
        ended = forward(&outside, &delivery) => ended,
        ended = bring_back(&outside, &delivery) => ended,
        () = accept(listener, &delivery) => Ok(()),
        () = count_drops(&outside, dir) => Ok(()),
    }
}

/// Writes how many datagrams the system dropped here, so that each device can tell. Never ends.
async fn count_drops(outside: &UdpSocket, dir: &Path) {
    let mut known = 0;
    loop {
        let dropped = drops::dropped(outside).unwrap_or(known);
        if dropped != known && whole::replace_for_now(&dir.join(DROPS), dropped.to_string().as_bytes(), Readers::Owner).is_ok() {
            known = dropped;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Hands datagrams on.
async fn forward(outside: &UdpSocket, delivery: &Delivery) -> std::io::Result<()> {
    let mut buffer = vec![0; LARGEST];
    loop {
        let (length, from) = outside.recv_from(&mut buffer).await?;
        delivery.deliver(from, &buffer[..length]).await;
    }
}

/// Sends the answers of devices' processes to where the messages came from, and nowhere else.
async fn bring_back(outside: &UdpSocket, delivery: &Delivery) -> std::io::Result<()> {
    let mut buffer = vec![0; HEAD + LARGEST];
    loop {
        let (length, from) = delivery.socket.recv_from(&mut buffer).await?;
        let Some((head, message)) = buffer[..length].split_at_checked(HEAD) else { continue };
        let Some(to) = sender(&head[TOKEN + 8..]) else { continue };
        if delivery.is_mailbox_of(to.ip(), from.port(), &head[..TOKEN]) {
            drop(outside.send_to(message, to).await);
        }
    }
}

/// Takes connections of syslog over TCP.
async fn accept(listener: Option<TcpListener>, delivery: &Arc<Delivery>) {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Such as too many open files, which is over by and by; datagrams go on meanwhile.
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        if let Some(counted) = CountedStream::new(delivery, from.ip().to_canonical()) {
            tokio::spawn(read(stream, from, counted));
        }
    }
}

async fn read(mut stream: TcpStream, from: SocketAddr, counted: CountedStream) {
    let (mut framer, mut buffer) = (LogFramer::default(), vec![0; PIECE]);
    while let Ok(Ok(length @ 1..)) = tokio::time::timeout(SILENCE, stream.read(&mut buffer)).await {
        framer.receive(&buffer[..length]);
        while let Some(message) = framer.message() {
            counted.delivery.deliver(from, &message).await;
        }
        if length == PIECE {
            tokio::time::sleep(BREATH).await;
        }
    }
}

/// A connection that counts until dropped.
struct CountedStream {
    delivery: Arc<Delivery>,
    from: IpAddr,
}

impl CountedStream {
    fn new(delivery: &Arc<Delivery>, from: IpAddr) -> Option<Self> {
        let mut counts = delivery.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let own = counts.get(&from).copied().unwrap_or_default();
        // Whoever is no device has nothing to say.
        if own >= OF_ONE || counts.values().sum::<usize>() >= CONNECTIONS || !delivery.knows(from) {
            return None;
        }
        counts.insert(from, own + 1);
        Some(Self { delivery: Arc::clone(delivery), from })
    }
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        let mut counts = self.delivery.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let left = counts.get(&self.from).copied().unwrap_or_default().saturating_sub(1);
        counts.insert(self.from, left);
        counts.retain(|_, count| *count > 0);
    }
}

impl Delivery {
    /// Hands a message to each mailbox of its sender. What finds no room on the way is missed by its number.
    async fn deliver(&self, from: SocketAddr, message: &[u8]) {
        let message = &message[..message.len().min(LARGEST)];
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let framed: Vec<(u16, Vec<u8>)> = self.with(from.ip(), |target| {
            let number = target.count;
            target.count = target.count.saturating_add(1);
            (target.port, framed(&target.token, number, from, message))
        });
        for (port, bytes) in framed {
            drop(self.socket.send_to(&bytes, (Ipv4Addr::LOCALHOST, port)).await);
        }
    }

    fn knows(&self, from: IpAddr) -> bool {
        !self.with(from, |_| ()).is_empty()
    }

    fn is_mailbox_of(&self, to: IpAddr, port: u16, token: &[u8]) -> bool {
        self.with(to.to_canonical(), |target| target.port == port && target.token == token).contains(&true)
    }

    /// Does something with each mailbox of an address.
    fn with<T>(&self, from: IpAddr, mut work: impl FnMut(&mut KnownMailbox) -> T) -> Vec<T> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if targets.read.is_none_or(|read| read.elapsed() > FRESH) {
            targets.refresh(&self.dir);
        }
        let MailboxList { all, names, .. } = &mut *targets;
        let names = names.get(&from).map(Vec::as_slice).unwrap_or_default();
        names.iter().filter_map(|name| all.get_mut(&(from, name.clone())).map(&mut work)).collect()
    }
}

impl MailboxList {
    /// Reads the list of mailboxes again; those that stay go on counting.
    fn refresh(&mut self, dir: &Path) {
        self.read = Some(Instant::now());
        let mut all = HashMap::new();
        self.names.clear();
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten().take(MAILBOXES) {
            let file = entry.file_name();
            let Some((source, name)) = file.to_str().and_then(|file| file.split_once('@')) else { continue };
            let process = name.rsplit_once('.').map(|(_, process)| process).unwrap_or_default();
            if !Path::new("/proc").join(process).exists() && Path::new("/proc/self").exists() {
                // Left behind by a process that was killed.
                drop(std::fs::remove_file(entry.path()));
                continue;
            }
            let Some((source, (port, token))) =
                source.parse().ok().zip(std::fs::read_to_string(entry.path()).ok().and_then(|text| read_mailbox(&text)))
            else {
                continue;
            };
            let key: (IpAddr, String) = (source, name.to_owned());
            let count = self.all.get(&key).filter(|known| known.token == token).map_or(0, |known| known.count);
            self.names.entry(source).or_default().push(name.to_owned());
            all.insert(key, KnownMailbox { port, token, count });
        }
        self.all = all;
    }
}

/// Port and token of a mailbox.
fn read_mailbox(text: &str) -> Option<(u16, [u8; TOKEN])> {
    let (port, hex) = text.trim_end().split_once(' ')?;
    let mut token = [0; TOKEN];
    if hex.len() != 2 * TOKEN || !hex.is_ascii() {
        return None;
    }
    for (at, byte) in token.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()?;
    }
    Some((port.parse().ok()?, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_of_an_address_and_of_all_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        for at in 0..40 {
            let mailbox = format!("7 {}", "00".repeat(TOKEN));
            std::fs::write(dir.path().join(format!("10.0.0.{at}@r{at}.{}", std::process::id())), mailbox).unwrap();
        }
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (targets, connections) = (Mutex::default(), Mutex::default());
        let delivery = Arc::new(Delivery { dir: dir.path().to_owned(), socket, targets, connections });
        let take = |at: u8| -> Vec<CountedStream> {
            (0..100).filter_map(|_| CountedStream::new(&delivery, IpAddr::from([10, 0, 0, at]))).collect()
        };
        assert!(take(200).is_empty(), "nobody's address");
        let one = take(0);
        assert_eq!(one.len(), OF_ONE);
        let others: Vec<_> = (1..40).flat_map(take).collect();
        assert_eq!(one.len() + others.len(), CONNECTIONS);
        drop((one, others));
        assert!(delivery.connections.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn devices_of_a_process_share_one_receiving_task() {
        let (dir, address) = (tempfile::tempdir().unwrap(), SocketAddr::from(([127, 0, 0, 1], 0)));
        let (one, other) = (receive(dir.path(), address, false), receive(dir.path(), address, false));
        assert!(Arc::ptr_eq(&one, &other));
        drop(one);
        tokio::task::yield_now().await;
        assert!(!other.0.is_finished());
        let handle = other.0.clone();
        drop(other);
        let next = receive(dir.path(), address, false);
        while !handle.is_finished() {
            tokio::task::yield_now().await;
        }
        assert!(!next.0.is_finished());
    }
}
