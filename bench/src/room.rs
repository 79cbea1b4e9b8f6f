//! Participants of one room, in one process: how long joining takes, how many messages arrive in a second, and how late. Every message has to
//! reach everybody once, in its order. Reads frames by their length alone; does not compare servers.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep_until, timeout};

use crate::processor::Used;
use crate::report::{Outcome, line};

/// The length of a message, in bytes.
const LENGTH: usize = 300;
/// Its number and its time have so many hexadecimal digits each.
const DIGITS: usize = 16;
/// So many messages may be on their way to the slowest at once, where they are sent as fast as they arrive.
const WINDOW: u64 = 64;
/// Nothing takes as long.
const WITHIN: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Where to connect
    #[arg(long)]
    address: SocketAddr,
    /// The address of the room there; `{}` stands for a participant's name
    #[arg(long, default_value = "/")]
    path: String,
    /// The bearer token of all of them
    #[arg(long)]
    token: Option<String>,
    /// How many participants
    #[arg(long)]
    count: usize,
    /// What their names begin with; a number follows
    #[arg(long, default_value = "p")]
    prefix: String,
    /// For how long messages are sent; 0: say `ready` when all have joined, and stay until standard input ends
    #[arg(long, default_value_t = 0.0)]
    seconds: f64,
    /// Messages a second; as fast as the slowest takes them where this is left out
    #[arg(long)]
    rate: Option<f64>,
    /// Processes whose processor time is counted
    #[arg(long, value_delimiter = ',')]
    watch: Vec<u32>,
}

/// What all participants know of the messages.
struct Table {
    began: Instant,
    participants: usize,
    /// What stands in a message before its number.
    head: String,
    /// For each of the messages on their way, how many have yet to get it.
    missing: RefCell<Vec<usize>>,
    /// Messages that everybody has.
    done: Cell<u64>,
    arrived: Notify,
    late: RefCell<Outcome>,
    failed: RefCell<Option<anyhow::Error>>,
}

pub(crate) async fn run(plan: Plan) -> anyhow::Result<()> {
    LocalSet::new().run_until(meet(plan)).await
}

async fn meet(plan: Plan) -> anyhow::Result<()> {
    let mut joining = Outcome::default();
    let mut seats = Vec::new();
    for number in 0..plan.count {
        let began = Instant::now();
        seats.push(timeout(WITHIN, join(&plan, number)).await??);
        joining.answered(began.elapsed(), began.elapsed(), 0);
    }
    let mut halves = seats.into_iter();
    let (first, mut sender) = halves.next().context("a room needs somebody")?;
    let table = Rc::new(Table::new(&plan));
    let mut kept = Vec::new();
    for (reader, writer) in std::iter::once((first, None)).chain(halves.map(|(reader, writer)| (reader, Some(writer)))) {
        spawn_local(listen(reader, Rc::clone(&table)));
        kept.push(writer);
    }
    // Whoever has this has all that was said of those who joined.
    table.send(&mut sender, 0).await?;
    table.until(1).await?;
    if plan.seconds == 0.0 {
        line("ready");
        tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
        return Ok(());
    }
    *table.late.borrow_mut() = Outcome::default();
    let before = Used::by(&plan.watch)?;
    let began = Instant::now();
    let messages = table.speak(&mut sender, &plan).await?;
    let took = began.elapsed();
    let (user, system) = Used::by(&plan.watch)?.each(before, messages * plan.count);
    let mut said = table.late.take().json(took);
    said["deliveries"] = ((messages * plan.count) as f64 / took.as_secs_f64()).into();
    said["messages"] = (messages as f64 / took.as_secs_f64()).into();
    said["cpu_us"] = (user + system).into();
    said["join"] = joining.json(took);
    line(&said.to_string());
    drop(kept);
    Ok(())
}

/// Comes in: after the upgrade where the server says nothing first, after the welcome where it does.
async fn join(plan: &Plan, number: usize) -> anyhow::Result<(OwnedReadHalf, OwnedWriteHalf)> {
    let mut stream = TcpStream::connect(plan.address).await?;
    stream.set_nodelay(true)?;
    let path = plan.path.replace("{}", &format!("{}{number}", plan.prefix));
    let token = plan.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{token}\r\n",
        plan.address
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.context("the upgrade was not answered")?);
    }
    ensure!(head.starts_with(b"HTTP/1.1 101 "), "the upgrade was refused: {}", String::from_utf8_lossy(&head));
    if plan.token.is_some() {
        // The welcome.
        let length = frame_length(&mut stream).await?;
        tokio::io::copy(&mut (&mut stream).take(length), &mut tokio::io::sink()).await?;
    }
    Ok(stream.into_split())
}

async fn frame_length(stream: &mut TcpStream) -> anyhow::Result<u64> {
    let _kind = stream.read_u8().await?;
    Ok(match stream.read_u8().await? {
        126 => u64::from(stream.read_u16().await?),
        127 => stream.read_u64().await?,
        short => u64::from(short),
    })
}

/// Takes what comes, until the other end closes.
async fn listen(mut reader: OwnedReadHalf, table: Rc<Table>) {
    let (mut buffer, mut filled, mut next) = (vec![0; 32 << 10], 0, 0);
    loop {
        let heard = match reader.read(&mut buffer[filled..]).await {
            Ok(count @ 1..) => {
                filled += count;
                table.hear(&buffer[..filled], &mut next)
            }
            Ok(_) => Err(anyhow::anyhow!("a participant was closed after {next} messages")),
            Err(why) => Err(why.into()),
        };
        match heard {
            Ok(read) => {
                buffer.copy_within(read..filled, 0);
                filled -= read;
                // A welcome of a thousand names is long.
                if filled == buffer.len() {
                    buffer.resize(filled * 2, 0);
                }
            }
            Err(why) => {
                table.failed.borrow_mut().get_or_insert(why);
                table.arrived.notify_one();
                return;
            }
        }
    }
}

impl Table {
    fn new(plan: &Plan) -> Self {
        Self {
            began: Instant::now(),
            participants: plan.count,
            head: format!(r#"{{"protocol":"mcpx/v0.1","from":"{}0","kind":"chat","id":""#, plan.prefix),
            missing: RefCell::default(),
            done: Cell::new(0),
            arrived: Notify::new(),
            late: RefCell::default(),
            failed: RefCell::default(),
        }
    }

    /// Counts the whole frames in `bytes`; how much of it they take.
    fn hear(&self, bytes: &[u8], next: &mut u64) -> anyhow::Result<usize> {
        let mut read = 0;
        while let Some((head, length)) = frame(&bytes[read..]) {
            let Some(payload) = bytes.get(read + head..read + head + length) else { break };
            if length == LENGTH && payload.starts_with(self.head.as_bytes()) {
                let number = digits(payload, self.head.len())?;
                ensure!(number == *next, "message {number} came where {next} was due");
                *next += 1;
                let sent = digits(payload, self.head.len() + DIGITS)?;
                let late = self.began.elapsed().saturating_sub(Duration::from_nanos(sent));
                self.late.borrow_mut().answered(late, late, length);
                self.arrive(number);
            }
            read += head + length;
        }
        Ok(read)
    }

    fn arrive(&self, number: u64) {
        let mut missing = self.missing.borrow_mut();
        let left = &mut missing[(number - self.done.get()) as usize];
        *left -= 1;
        if *left == 0 {
            let done = missing.iter().take_while(|left| **left == 0).count();
            missing.drain(..done);
            self.done.set(self.done.get() + done as u64);
            self.arrived.notify_one();
        }
    }

    /// Waits until everybody has so many messages.
    async fn until(&self, messages: u64) -> anyhow::Result<()> {
        while self.done.get() < messages {
            if let Some(why) = self.failed.take() {
                return Err(why);
            }
            if timeout(WITHIN, self.arrived.notified()).await.is_err() {
                bail!("message {} did not reach everybody", self.done.get());
            }
        }
        Ok(())
    }

    /// Sends until the time is over and everybody has everything; says how many.
    async fn speak(&self, sender: &mut OwnedWriteHalf, plan: &Plan) -> anyhow::Result<usize> {
        let began = Instant::now();
        let end = began + Duration::from_secs_f64(plan.seconds);
        let mut sent: u64 = 0;
        while Instant::now() < end {
            match plan.rate {
                Some(rate) => sleep_until(began + Duration::from_secs_f64(sent as f64 / rate)).await,
                None => self.until((sent + 2).saturating_sub(WINDOW)).await?,
            }
            sent += 1;
            self.send(sender, sent).await?;
        }
        self.until(sent + 1).await?;
        Ok(sent as usize)
    }

    async fn send(&self, sender: &mut OwnedWriteHalf, number: u64) -> anyhow::Result<()> {
        self.missing.borrow_mut().push(self.participants);
        let now = self.began.elapsed().as_nanos() as u64;
        let text = format!(r#"{}{number:016x}{now:016x}","payload":{{"text":""#, self.head);
        let filling = "x".repeat(LENGTH - text.len() - r#""}}"#.len());
        // A text of 126 to 65,535 bytes, masked with nothing.
        let mut framed = vec![0x81, 0x80 | 126];
        framed.extend_from_slice(&(LENGTH as u16).to_be_bytes());
        framed.extend_from_slice(&[0; 4]);
        framed.extend_from_slice(format!(r#"{text}{filling}"}}}}"#).as_bytes());
        Ok(sender.write_all(&framed).await?)
    }
}

/// The length of a server frame's head and of what it holds, where both are there.
fn frame(bytes: &[u8]) -> Option<(usize, usize)> {
    match *bytes.get(1)? {
        126 => Some((4, u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?).into())),
        127 => Some((10, usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?)),
        short => Some((2, short.into())),
    }
}

fn digits(payload: &[u8], at: usize) -> anyhow::Result<u64> {
    Ok(u64::from_str_radix(std::str::from_utf8(&payload[at..at + DIGITS])?, 16)?)
}
