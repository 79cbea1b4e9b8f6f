//! `banyan top`: one picture for scripts, and the live view in a terminal. The drawing is not tried here.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::home::Home;
use crate::serving::{Gate, home_with_server};

/// A live view on a terminal of its own.
struct LiveView {
    child: Child,
    terminal: File,
    seen: String,
}

impl LiveView {
    fn start(home: &Home, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other end");
        let name = ptsname(&master, Vec::new()).expect("its name").into_string().expect("UTF-8");
        let slave = OpenOptions::new().read(true).write(true).open(name).expect("its other end");
        let mut view = Self {
            child: home.command(&["top"]).stdin(slave.try_clone().expect("two")).stdout(slave).spawn().expect("it runs"),
            terminal: File::from(master),
            seen: String::new(),
        };
        view.resize(columns, rows);
        view
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        tcsetwinsize(&self.terminal, Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-WINCH", &pid]).status().expect("kill runs").success());
    }

    /// Waits for a whole picture that `fits`, from the first line to the rest of the screen.
    fn until(&mut self, fits: impl Fn(&str) -> bool) -> String {
        loop {
            let picture = self.seen.rsplit("\x1b[H").find(|text| text.ends_with("\x1b[J") && fits(text)).map(str::to_owned);
            if let Some(picture) = picture {
                self.seen.clear();
                return picture;
            }
            assert!(self.read(), "the view ended: {}", self.seen);
        }
    }

    fn read(&mut self) -> bool {
        let mut new = [0; 4096];
        let count = self.terminal.read(&mut new).unwrap_or(0);
        self.seen.push_str(&String::from_utf8_lossy(&new[..count]));
        count > 0
    }
}

/// Leaves no process behind, where an assertion failed too.
impl Drop for LiveView {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_picture_names_servers_and_calls_without_colour() {
    let home = home_with_server();
    home.run(&["top", "--once"]).exits(3);
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    home.run(&["call", "shell.say_hello"]).exits(0);
    home.run(&["call", "shell.fail"]).exits(5);
    let picture = home.run(&["top", "--once"]).exits(0).out;
    for part in ["2 in the last hour: 1 failed, 0 refused", "SERVER", "shell   ready", "LAST CALLS", "shell.sayHello"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    assert!(!picture.contains('\u{1b}'), "{picture}");
    let told = home.run(&["top", "--json"]).exits(0).json();
    assert_eq!((&told["whole"]["calls"], &told["servers"][0]["failed"], &told["in_flight"]), (&2.into(), &1.into(), &0.into()));
    gate.end().exits(0);
}

#[test]
fn a_live_view_follows_calls_and_its_terminal() {
    let mut home = home_with_server();
    home.env.push(("NO_COLOR", "1".into()));
    let mut gate = Gate::up(&home, &[]);
    gate.until("settled");
    let mut view = LiveView::start(&home, 80, 24);
    let picture = view.until(|text| text.contains("shell") && text.matches("\r\n").count() == 23);
    assert!(!picture.contains("LAST CALLS"), "{picture}");
    home.run(&["call", "shell.say_hello"]).exits(0);
    view.until(|text| text.contains("LAST CALLS"));
    view.resize(30, 8);
    let small = view.until(|text| text.matches("\r\n").count() == 7);
    assert!(small.split("\x1b[K").all(|line| line.trim().chars().count() <= 30), "{small}");
    gate.end().exits(0);
    view.until(|text| text.contains("not connected"));
    view.terminal.write_all(b"xq").expect("the terminal takes it");
    while !view.seen.contains("\x1b[?1049l") {
        assert!(view.read(), "the screen was not given back: {}", view.seen);
    }
    assert_eq!(view.child.wait().expect("it ends").code(), Some(0));
}
