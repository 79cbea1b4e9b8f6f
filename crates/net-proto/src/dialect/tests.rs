use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

/// Built once: expressions take long to build.
static DIALECTS: LazyLock<BTreeMap<&str, Arc<Dialect>>> =
    LazyLock::new(|| Dialect::NAMES.into_iter().map(|name| (name, Dialect::named(name).unwrap())).collect());

fn dialect(name: &str) -> Arc<Dialect> {
    DIALECTS[name].clone()
}

fn class(name: &str, command: &str) -> Result<CommandClass, Code> {
    dialect(name).command(command).map(|command| command.class).map_err(|fault| fault.code)
}

#[test]
fn nm_01_built_in_dialects_have_names_as_the_draft_forms() {
    for name in Dialect::NAMES {
        let dialect = dialect(name);
        assert_eq!(dialect.name(), name);
        assert!(dialect.draft_name().contains('-') && !dialect.tried().is_empty() && !dialect.start().is_empty());
    }
}

#[test]
fn nm_12_a_shortened_command_does_the_same() {
    use CommandClass::{Configure, Dangerous, Read, Unknown};
    for (name, command, expected) in [
        ("frr", "show running-config", Read),
        ("frr", "sh run", Read),
        ("frr", "sho ip ro", Read),
        ("frr", "SHOW VERSION", Read),
        ("frr", "conf t", Configure),
        ("frr", "con", Configure),
        ("frr", "co", Dangerous),
        ("frr", "wr", Configure),
        ("frr", "wr t", Read),
        ("frr", "copy evil.conf running-config", Configure),
        ("frr", "cop evil run", Configure),
        ("frr", "copy evil elsewhere", Dangerous),
        ("frr", "cl ip bgp *", Dangerous),
        ("frr", "start-shell bash", Dangerous),
        ("frr", "s", Dangerous),
        ("frr", "vanish", Unknown),
        ("frr", "terminal length 0", Read),
        ("frr", "terminal no monitor", Configure),
        ("ios", "sh ip int br", Read),
        ("ios", "reload in 5", Dangerous),
        ("ios", "rel", Dangerous),
        ("ios", "write erase", Dangerous),
        ("ios", "wr er", Dangerous),
        ("ios", "wr m", Configure),
        ("ios", "w", Dangerous),
        ("ios", "copy run start", Configure),
        ("ios", "ssh -l a 10.0.0.1", Dangerous),
        ("junos", "show interfaces terse", Read),
        ("junos", "file show /var/log/messages", Read),
        ("junos", "file delete /x", Dangerous),
        ("junos", "file d /x", Dangerous),
        ("junos", "request system reboot", Dangerous),
        ("junos", "conf", Configure),
        ("junos", "set cli screen-length 0", Read),
        ("junos", "set system host-name x", Configure),
        ("vrp", "display current-configuration", Read),
        ("vrp", "dis cu", Read),
        ("vrp", "sys", Configure),
        ("vrp", "reboot fast", Dangerous),
        ("vrp", "reset saved-configuration", Dangerous),
    ] {
        assert_eq!(class(name, command), Ok(expected), "{name}: {command}");
    }
}

#[test]
fn nm_12_several_commands_in_one_line_are_refused() {
    for name in Dialect::NAMES {
        let show = if name == "vrp" { "display version" } else { "show version" };
        for odd in ["\n", "\r", "\0", ";", " ; ", "\u{1a}", "\u{3}", "\u{1b}[A", "\u{7f}", "\t", "\u{85}", "\u{2028}"] {
            let fault = dialect(name).command(&format!("{show}{odd}configure terminal")).unwrap_err();
            assert_eq!(fault.code, Code::AccessDenied, "{name} {odd:?}");
            assert!(dialect(name).config_line(&format!("hostname x{odd}end")).is_err(), "{name} {odd:?}");
            assert!(!fault.path.unwrap_or_default().contains(['\n', '\r', '\0']));
        }
        assert!(class(name, "show ?").is_err() && class(name, "show run > flash:x").is_err());
        assert_eq!(class(name, "  "), Err(Code::InvalidParams));
        assert_eq!(class(name, &"show ".repeat(2_000)), Err(Code::AccessDenied));
    }
}

#[test]
fn nm_12_filters_that_write_are_refused_however_short() {
    for (name, command) in [
        ("frr", "show run | include bgp"),
        ("ios", "sh run | i a|b"),
        ("junos", "show route | match x | no-more"),
        ("vrp", "dis cu | inc bgp"),
    ] {
        assert_eq!(class(name, command), Ok(CommandClass::Read), "{name}: {command}");
    }
    for (name, command) in [
        ("ios", "show run | redirect flash:x"),
        ("ios", "show run |red flash:x"),
        ("ios", "show run | include x | tee flash:x"),
        ("junos", "show configuration | save x"),
        ("junos", "show configuration | match x | sa y"),
        ("vrp", "display current-configuration | append x"),
    ] {
        assert_eq!(class(name, command), Err(Code::AccessDenied), "{name}: {command}");
    }
    assert_eq!(class("frr", "show run | nonsense"), Err(Code::ConfigIncompatible));
}

#[test]
fn nm_12_no_line_of_configuration_leads_out() {
    for (name, line) in [
        ("frr", "do show run"),
        ("frr", "end"),
        ("frr", "do  clear ip bgp *"),
        ("ios", "do-exec reload"),
        ("ios", "comm"),
        ("ios", "END"),
        ("junos", "run request system reboot"),
        ("junos", "commit and-quit"),
        ("junos", "rollback 1"),
        ("ios", "alias configure zz do reload"),
        ("ios", "prompt %h(config)%p"),
        ("ios", "delete bootflash:x no-prompt"),
        ("vrp", "diagnose"),
        ("vrp", "display current-configuration > flash:/x"),
        ("junos", "l override /var/tmp/x"),
        ("junos", "show | save /config/rescue.conf"),
        ("junos", "top run request system reboot"),
        ("junos", "up 2 load override x"),
        ("vrp", "return"),
        ("vrp", "ret"),
        ("vrp", "commit"),
    ] {
        let refused = dialect(name).config_line(line).map_err(|fault| fault.code);
        assert!(refused == Err(Code::AccessDenied) || line == "do-exec reload", "{name}: {line}: {refused:?}");
    }
    for (name, line) in [
        ("frr", " description to the end of the world"),
        ("frr", "exit"),
        ("frr", "! do nothing"),
        ("frr", "no router bgp 65001"),
        ("ios", "enable secret x"),
        ("ios", "router ospf 1"),
        ("junos", "set interfaces ge-0/0/0 description \"run\""),
        ("junos", "top"),
        ("junos", "up 2"),
        ("vrp", "undo interface LoopBack 1"),
    ] {
        assert_eq!(dialect(name).config_line(line), Ok(line.trim()), "{name}: {line}");
    }
}

#[test]
fn nm_08_errors_of_each_dialect_have_their_code() {
    for (name, reply, code, retry) in [
        ("frr", "% Unknown command: foo", Code::ConfigIncompatible, false),
        ("frr", "% Unknown action", Code::ConfigIncompatible, false),
        ("frr", "could not lock candidate DS", Code::AccessDenied, true),
        ("frr", "Exiting: failed to connect to any daemons.", Code::Unreachable, true),
        ("frr", "% Malformed address", Code::YangSyntaxError, false),
        ("ios", "                ^\n% Invalid input detected at '^' marker.\n", Code::ConfigIncompatible, false),
        ("ios", "Command authorization failed.\n", Code::AccessDenied, false),
        ("ios", "% Insufficient resources: TCAM is full", Code::HardwareFailure, false),
        ("junos", "error: configuration database locked by:\n  root terminal p0", Code::AccessDenied, true),
        ("junos", "         ^\nunknown command.", Code::ConfigIncompatible, false),
        ("junos", "error: configuration check-out failed", Code::YangSyntaxError, false),
        ("vrp", "        ^\nError: Unrecognized command found at '^' position.", Code::ConfigIncompatible, false),
        ("vrp", "Error: Wrong parameter found at '^' position.", Code::YangSyntaxError, false),
        ("vrp", "Error: The system is busy.", Code::AccessDenied, true),
    ] {
        let fault = dialect(name).fault("x", reply).unwrap_or_else(|| panic!("{name}: {reply}"));
        assert_eq!((fault.code, fault.may_retry), (code, retry), "{name}: {reply}");
        assert_eq!(fault.path.as_deref(), Some("x"));
    }
}

#[test]
fn nm_08_errors_within_a_log_are_no_error() {
    let mut log = "Nov 24 10:00:00 up\nNov 24 10:00:01 up\n".to_owned();
    log.push_str(&"% Unknown command: foo\n".repeat(9));
    assert_eq!(dialect("frr").fault("show logging", &log), None);
    assert_eq!(dialect("frr").fault("show interface", "Interface eth0 is up\n"), None);
}

#[test]
fn a_wrong_dialect_of_a_user_says_the_mistake() {
    let source = Dialect::source("ios").unwrap();
    let own = source.replace("name = \"ios\"", "name = \"mine\"");
    assert_eq!(Dialect::from_toml(&own).map(|dialect| dialect.name().to_owned()), Ok("mine".to_owned()));
    let error = |text: &str| Dialect::from_toml(text).map(|_| ()).unwrap_err();
    assert!(matches!(error("name = 1"), DialectError::Syntax(_)));
    assert!(matches!(error(&source.replace("exec = '^", "exec = '^(")), DialectError::Expression { .. }));
    assert!(matches!(error(&source.replace("HardwareFailure", "Broken")), DialectError::UnknownCode { .. }));
    assert!(matches!(error(&" ".repeat(LONGEST_FILE + 1)), DialectError::TooLarge));
}

/// Feeds a transcript in pieces of `size`, and answers pagers.
fn run(name: &str, command: &str, transcript: &str, size: usize) -> (Vec<TerminalEvent>, Terminal) {
    let mut terminal = Terminal::new(dialect(name), 10_000);
    assert_eq!(terminal.command(command), format!("{command}\n"));
    let said = transcript.as_bytes().chunks(size).flat_map(|piece| terminal.receive(piece)).collect();
    (said, terminal)
}

#[test]
fn nm_02_a_reply_stands_between_echo_and_prompt() {
    for size in [1, 2, 7, 1_000] {
        for (name, command, transcript, expected) in [
            ("frr", "show version", "show version\r\nFRRouting 8.4\r\nline\r\nr1# ", "FRRouting 8.4\nline\n"),
            ("ios", "sh clock", "sh clock\r\n*10:00\r\nR1#", "*10:00\n"),
            (
                "ios",
                "show x",
                "show x\r\na\r\n --More-- \x08\x08\x08\x08\x08\x08\x08\x08\x08\x08          \x08\x08\x08\x08\x08\x08\x08\x08\x08\x08b\r\nR1#",
                "a\nb\n",
            ),
            ("junos", "show x", "show x \r\na\r\n---(more 50%)---\r                \rb\r\n\r\nada@r1> ", "a\nb\n\n"),
            (
                "vrp",
                "dis x",
                "dis x\r\na\r\n  ---- More ----\x1b[42D                                          \x1b[42Db\r\n<HUAWEI>",
                "a\nb\n",
            ),
        ] {
            let (said, _) = run(name, command, transcript, size);
            let replies: Vec<&TerminalReply> =
                said.iter().filter_map(|said| if let TerminalEvent::Reply(reply) = said { Some(reply) } else { None }).collect();
            assert_eq!(replies.iter().map(|reply| reply.text.as_str()).collect::<Vec<_>>(), [expected], "{name} by {size}");
            assert_eq!(replies[0].mode, TerminalMode::Exec);
            // The prompt ends the whole, whatever looks like a pager in between.
            assert!(matches!(said.last(), Some(TerminalEvent::Reply(_))));
        }
    }
}

#[test]
fn nm_02_modes_questions_and_foreign_prompts_differ() {
    let (said, mut terminal) = run("ios", "conf t", "conf t\r\nEnter configuration commands.\r\nR1(config)#", 1_000);
    assert!(matches!(&said[..], [TerminalEvent::Reply(TerminalReply { mode: TerminalMode::Configure, .. })]), "{said:?}");
    terminal.command("more flash:notes");
    assert_eq!(terminal.receive(b"more flash:notes\r\nOther#"), []);
    assert_eq!(terminal.receive(b" is no prompt\r\nR1#").len(), 1);
    terminal.command("hostname R2");
    assert_eq!(terminal.receive(b"hostname R2\r\nR2(config)#").len(), 0);
    assert_eq!(terminal.quiet().map(|reply| reply.prompt).as_deref(), Some("R2(config)#"));
    terminal.command("reload");
    assert_eq!(
        terminal.receive(b"reload\r\nProceed with reload? [confirm]"),
        [TerminalEvent::Question("Proceed with reload? [confirm]".into())]
    );
}

#[test]
fn nm_02_a_prompt_before_the_echo_ends_no_reply() {
    let (_, mut terminal) = run("frr", "configure terminal", "configure terminal\r\nr1(config)# ", 1_000);
    terminal.command("ip route 10.0.0.0/8 blackhole");
    assert_eq!(terminal.receive(b"\rr1(config)# "), [], "drawn again before the command was read");
    assert_eq!(terminal.receive(b"ip route 10.0.0.0/8 blackhole\r\n").len(), 0);
    assert_eq!(terminal.receive(b"r1(config)# ").len(), 1);
    terminal.command("exit");
    assert_eq!(terminal.receive(b"r1# "), []);
    assert_eq!(terminal.quiet().map(|reply| reply.mode), Some(TerminalMode::Exec), "a device without an echo");
}

#[test]
fn nm_02_an_endless_reply_is_bounded_and_counted() {
    let mut terminal = Terminal::new(dialect("frr"), 1_000);
    terminal.command("show tech");
    for _ in 0..10_000 {
        assert_eq!(terminal.receive(b"0123456789\r\n"), []);
    }
    assert_eq!(terminal.receive(&[b'x'; 100_000]), []);
    let said = terminal.receive(b"\r\nr1# ");
    let [TerminalEvent::Reply(reply)] = &said[..] else { panic!("{said:?}") };
    assert!(reply.text.len() <= 1_000 && reply.text.ends_with("9\n"));
    assert_eq!(reply.omitted + reply.text.len() as u64, 110_000 + 100_000 + 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nm_12_no_shortening_of_a_dangerous_command_is_harmless(which in 0..4_usize, at in 0..1_000_usize, keep in 1..20_usize) {
        let dialect = dialect(Dialect::NAMES[which]);
        let list = &dialect.file.commands.dangerous;
        let command = &list[at % list.len()];
        let shortened: Vec<&str> = command.split(' ').map(|word| &word[..word.len().min(keep)]).collect();
        let class = dialect.command(&shortened.join(" ")).map(|command| command.class);
        let given = shortened.join(" ");
        let is_other = dialect.file.commands.read.iter().chain(&dialect.file.commands.configure).any(|other| other.starts_with(&given));
        prop_assert!(class == Ok(CommandClass::Dangerous) || (class != Ok(CommandClass::Read) && is_other), "{}: {:?}", given, class);
    }

    #[test]
    fn nm_02_any_bytes_keep_the_bound(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut terminal = Terminal::new(dialect("vrp"), 100);
        terminal.command("x");
        for byte in &bytes {
            for said in terminal.receive(&[*byte]) {
                if let TerminalEvent::Reply(reply) = said {
                    prop_assert!(reply.text.len() <= 100);
                }
            }
        }
    }
}
