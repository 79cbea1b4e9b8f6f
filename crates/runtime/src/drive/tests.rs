use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A clock that stands still while anything is ready, and jumps to the next timer or input when nothing is.
#[derive(Clone)]
struct VirtualClock {
    start: Instant,
    passed: Rc<Cell<Duration>>,
    /// Inputs and the seconds at which they arrive.
    arrivals: Rc<RefCell<VecDeque<(u64, &'static str)>>>,
}

impl VirtualClock {
    fn new(arrivals: &[(u64, &'static str)]) -> Self {
        let arrivals = Rc::new(RefCell::new(arrivals.iter().copied().collect()));
        Self { start: Instant::now(), passed: Rc::default(), arrivals }
    }

    fn seconds(&self) -> u64 {
        self.passed.get().as_secs()
    }

    /// The next input, once its time has come.
    fn arrived(&self) -> Option<&'static str> {
        let mut arrivals = self.arrivals.borrow_mut();
        arrivals.front().filter(|(at, _)| *at <= self.seconds())?;
        arrivals.pop_front().map(|(_, input)| input)
    }

    /// Jumps to the next arrival if one comes before `due`.
    fn jump(&self, due: Option<u64>) -> bool {
        let next = self.arrivals.borrow().front().map(|(at, _)| *at).filter(|at| due.is_none_or(|due| *at <= due));
        if let Some(at) = next {
            self.passed.set(Duration::from_secs(at));
        }
        next.is_some()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Now {
        Now { instant: self.start + self.passed.get(), wall: SystemTime::UNIX_EPOCH }
    }

    async fn sleep_until(&self, at: Instant) {
        let due = (at - self.start).as_secs();
        std::future::poll_fn(|cx| {
            if self.seconds() >= due {
                return Poll::Ready(());
            }
            if self.jump(Some(due)) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.passed.set(Duration::from_secs(due));
            Poll::Ready(())
        })
        .await;
    }
}

/// Answers each input at once and again ten seconds after the last; `many` is answered three times.
struct Echo {
    outputs: VecDeque<String>,
    due: Option<Instant>,
}

impl Echo {
    fn handle_word(&mut self, now: Now, word: &str) {
        self.due = Some(now.instant + SECOND * 10);
        let times = if word == "many" { 3 } else { 1 };
        self.outputs.extend(std::iter::repeat_n(word.to_owned(), times));
    }
}

impl Machine for Echo {
    type Output = String;

    fn handle_timeout(&mut self, now: Now) {
        if self.due.take_if(|due| *due <= now.instant).is_some() {
            self.outputs.push_back("quiet".to_owned());
        }
    }

    fn poll_output(&mut self) -> Option<String> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.due.map(|due| (due, "nothing was said for a while"))
    }
}

/// Writes down all that happens, with the second at which it does.
struct Log {
    machine: Echo,
    clock: VirtualClock,
    lines: Vec<String>,
}

impl Log {
    fn note(&mut self, what: &str) {
        self.lines.push(format!("{} {what}", self.clock.seconds()));
    }
}

impl Driver for Log {
    type Machine = Echo;
    type Input = &'static str;
    type End = &'static str;

    fn machine(&mut self) -> &mut Echo {
        &mut self.machine
    }

    async fn next(&mut self) -> Result<&'static str, &'static str> {
        let clock = self.clock.clone();
        std::future::poll_fn(|cx| match clock.arrived() {
            Some("hang up") => Poll::Ready(Err("hung up")),
            Some(word) => Poll::Ready(Ok(word)),
            None => {
                // Without a timer nothing else moves the clock on.
                if self.machine.due.is_none() && clock.jump(None) {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
        })
        .await
    }

    async fn handle(&mut self, now: Now, input: &'static str) -> Result<(), &'static str> {
        self.note(&format!("< {input}"));
        self.machine.handle_word(now, input);
        if input == "stop" { Err("stopped") } else { Ok(()) }
    }

    async fn carry(&mut self, now: Now, output: String) -> Result<(), &'static str> {
        self.note(&format!("> {output}"));
        match output.as_str() {
            "again" => self.machine.handle_word(now, "and again"),
            "fatal" => return Err("it was fatal"),
            _ => {}
        }
        Ok(())
    }

    async fn rest(&mut self, _: Now) -> Result<(), &'static str> {
        assert_eq!(self.machine.outputs.len(), 0, "all outputs are carried out before the turn ends");
        self.note("rests");
        if self.lines.iter().any(|line| line.ends_with("> tired")) { Err("tired") } else { Ok(()) }
    }
}

async fn log(arrivals: &[(u64, &'static str)]) -> (Vec<String>, &'static str) {
    let clock = VirtualClock::new(arrivals);
    let mut log = Log { machine: Echo { outputs: VecDeque::new(), due: None }, clock: clock.clone(), lines: Vec::new() };
    let end = drive(&mut log, &clock).await;
    (log.lines, end)
}

#[tokio::test]
async fn outputs_are_carried_out_before_anything_is_waited_for() {
    let (lines, end) = log(&[(1, "many"), (1, "again"), (2, "hang up")]).await;
    let all = ["0 rests", "1 < many", "1 > many", "1 > many", "1 > many", "1 rests", "1 < again", "1 > again", "1 > and again", "1 rests"];
    assert_eq!((lines, end), (all.map(str::to_owned).to_vec(), "hung up"));
}

#[tokio::test]
async fn the_timer_is_set_anew_after_each_input() {
    let (lines, _) = log(&[(1, "a"), (9, "b"), (30, "hang up")]).await;
    let all = ["0 rests", "1 < a", "1 > a", "1 rests", "9 < b", "9 > b", "9 rests", "19 > quiet", "19 rests"];
    assert_eq!(lines, all);
}

#[tokio::test]
async fn a_waiting_input_comes_before_a_timer_due_then() {
    let (lines, _) = log(&[(1, "a"), (11, "b"), (12, "hang up")]).await;
    assert_eq!(lines, ["0 rests", "1 < a", "1 > a", "1 rests", "11 < b", "11 > b", "11 rests"]);
}

/// Inputs without end, each of which takes a second.
struct Flood {
    machine: Echo,
    clock: VirtualClock,
    taken: u64,
}

impl Driver for Flood {
    type Machine = Echo;
    type Input = ();
    type End = (u64, u64);

    fn machine(&mut self) -> &mut Echo {
        &mut self.machine
    }

    async fn next(&mut self) -> Result<(), (u64, u64)> {
        if self.taken == 100 { Err((self.taken, self.clock.seconds())) } else { Ok(()) }
    }

    async fn handle(&mut self, _: Now, (): ()) -> Result<(), (u64, u64)> {
        self.taken += 1;
        self.clock.passed.set(self.clock.passed.get() + SECOND);
        Ok(())
    }

    async fn carry(&mut self, _: Now, _: String) -> Result<(), (u64, u64)> {
        Err((self.taken, self.clock.seconds()))
    }
}

#[tokio::test]
async fn a_flood_of_inputs_holds_up_no_timer() {
    let clock = VirtualClock::new(&[]);
    let machine = Echo { outputs: VecDeque::new(), due: Some(clock.start + SECOND * 3) };
    let mut flood = Flood { machine, clock: clock.clone(), taken: 0 };
    let (taken, seconds) = drive(&mut flood, &clock).await;
    assert!(taken <= 4 && seconds <= 4, "{taken} inputs and {seconds} seconds passed before a timer of 3 seconds");
}

#[tokio::test]
async fn each_step_of_a_turn_may_end_the_loop() {
    for (word, reason, last) in [("stop", "stopped", "1 < stop"), ("fatal", "it was fatal", "1 > fatal"), ("tired", "tired", "1 rests")] {
        let (lines, end) = log(&[(1, word), (1, "more")]).await;
        assert_eq!((end, lines.last().map(String::as_str)), (reason, Some(last)));
    }
}
