//! Turns of phrase in definitions made to mislead: orders to a model, requests for secrets, code. Words are
//! compared as words, so that neither case nor punctuation nor filler hides one. The intention behind them is not known.

/// Meaning of a turn of phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Speaks to the model.
    Instructs,
    /// Reaches for private data, or sends it elsewhere.
    Takes,
    /// Code, or a command.
    Runs,
}

/// Phrases of words: `|` between alternatives, `*` behind the beginning of a word, and `~3` for up to three other words.
const WORDS: [(Mark, &str); 60] = [
    (
        Mark::Instructs,
        "ignore|disregard|forget|bypass|override|obey ~4 command*|communication*|content*|context|conversation*|guideline*|input|instruction*|message*|prompt*|request*|response*|rule*|data|text",
    ),
    (Mark::Instructs, "ignore|disregard|forget ~1 previous|above|everything|earlier"),
    (Mark::Instructs, "not follow|obey ~3 command*|guideline*|instruction*|rule*|message*|request*|data|text"),
    (Mark::Instructs, "never|not|don ~1 tell|mention|inform|notify|alert|execute|reveal ~2 user*|this|them|it|other"),
    (Mark::Instructs, "without ~1 telling|informing|asking|knowledge|consent"),
    (Mark::Instructs, "tell ~1 user* only"),
    (Mark::Instructs, "hide ~2 user*"),
    (
        Mark::Instructs,
        "always ~1 consult|use|run|execute|invoke|call|trigger|employ ~1 this|it ~2 immediately|first|before|prior|initially",
    ),
    (Mark::Instructs, "before ~1 executing|invoking|running|using|accessing|calling|employing|use|call ~2 any|other|tool*"),
    (Mark::Instructs, "must|should|required|need|have ~2 use|execute|run|invoke|call ~1 this|the ~1 tool|function|command|operation"),
    (Mark::Instructs, "not execute ~6 tool*"),
    (Mark::Instructs, "must|only ~4 this tool"),
    (Mark::Instructs, "will not work unless"),
    (Mark::Instructs, "sidenote|sidenotes"),
    (Mark::Instructs, "hidden|secret|internal|private parameter*|argument*|input*|instruction*|directive*|command*"),
    (Mark::Instructs, "internalonly|hiddenparam|shadowtool|bypasschecks|sandboxescape"),
    (Mark::Instructs, "shadow* ~4 trusted|tool*"),
    (Mark::Instructs, "system|developer|admin|sudo|god mode|override|prompt|instruction*"),
    (Mark::Instructs, "new instruction*|directive*|guideline*"),
    (Mark::Instructs, "grant ~1 admin*"),
    (Mark::Instructs, "elevated permission*"),
    (Mark::Instructs, "bypass ~2 security|safety|check*"),
    (Mark::Instructs, "inject ~1 tool*"),
    (Mark::Instructs, "call|use function"),
    (Mark::Instructs, "if|when ~6 trusted|admin ~6 then|detected"),
    (Mark::Instructs, "highest priority"),
    (Mark::Instructs, "all commands must"),
    (
        Mark::Instructs,
        "silently|secretly|covertly|invisibly|actually|really ~1 send*|upload*|transmit*|transfer*|sync*|store*|collect*|do*|perform*|execute*|run*|duplicate*|insert*",
    ),
    (Mark::Instructs, "duplicate*|copy|send*|upload* ~5 silently|secretly|covertly|invisibly"),
    (Mark::Instructs, "insert ~3 vulnerability|vulnerabilities|backdoor*"),
    (Mark::Takes, "entire|complete|full|whole ~1 conversation*|chat*|history|prompt|chain"),
    (Mark::Takes, "conversation|chat|message|dialogue ~1 history|log*|content"),
    (Mark::Takes, "conversation_history|chain_of_thought|system_prompt|tools_list"),
    (Mark::Takes, "send*|upload*|transmit*|export*|forward* ~2 conversation*|chat*|message*|context|history|response*"),
    (
        Mark::Takes,
        "send*|upload*|post*|transmit*|forward*|sync*|backup*|push*|export*|transfer*|stream*|share*|relay*|store* ~4 external*|remote*|third|cloud|elsewhere|partners|advertisers|http|https|wss",
    ),
    (Mark::Takes, "collect*|gather*|aggregate*|compile*|harvest* ~1 send*|upload*|transmit*|forward*|sync*|store*"),
    (
        Mark::Takes,
        "also|additionally|furthermore|moreover|besides|addition|time collect*|gather*|extract*|send*|upload*|index*|store*|cache*|log*|monitor*|track*|record*|capture*",
    ),
    (
        Mark::Takes,
        "during|while|when|upon|after processing|compression|formatting|conversion|validation|analyzing|scanning|checking ~1 extract*|collect*|send*|upload*|capture*|log*|index*|store*",
    ),
    (
        Mark::Takes,
        "caching|optimization|performance|quality|improvement|analytics|backup|sync purpose*|reason* ~1 send*|upload*|store*|collect*|transmit*",
    ),
    (Mark::Takes, "external|remote logging|analytics|telemetry|endpoint|server"),
    (Mark::Takes, "cache*|store*|dictionary|vocabulary|learning|training ~2 externally|remotely|cloud|server|sync*|upload*"),
    (
        Mark::Takes,
        "location|gps|geolocation|device|machine|usage|behavior|activity|browsing|hardware ~1 history|tracking|fingerprint*|pattern*|identifier ~3 store*|collect*|send*|share*|track*|log*|sync*|gather*|upload*|monitor*|mac|ip|hostname|username",
    ),
    (Mark::Takes, "fingerprint* ~1 device*|machine*|browser*|user*|system*"),
    (
        Mark::Takes,
        "clipboard|pasteboard|keystroke*|keylog*|typing|screen|screenshot* ~1 monitor*|watch*|track*|capture*|copy|send*|upload*|stream*|record*|log*",
    ),
    (Mark::Takes, "ocr|extract*|capture* ~3 screenshot*|photo*"),
    (
        Mark::Takes,
        "index*|cache*|log*|record*|track*|extract*|parse*|scan*|search*|find*|identif*|encode*|list|show|steal*|dump*|leak*|exfiltrat*|concatenate|include*|contain* ~3 key|keys|token*|credential*|password*|secret*|ssn|pii|personal|private|sensitive",
    ),
    (Mark::Takes, "leak|exfiltrate|dump ~6 parameter*|context|file*|key*"),
    (Mark::Takes, "api key|keys ~3 sk|ghp|akia"),
    (Mark::Takes, "environment|env variable*|vars ~1 collect*|gather*|send*|upload*|transmit*|dump*|extract*"),
    (Mark::Takes, "source|codebase|repository ~1 upload*|send*|transmit*|copy|sync*|backup ~2 external|remote"),
    (Mark::Takes, "marketing|advertising|promotional|newsletter ~1 database|list|subscription|opt"),
    (Mark::Takes, "automatically|auto opt|subscribe*|enroll*|register*|sign"),
    (Mark::Takes, "read|cat|pass|parse|dump ~3 content* ~6 key|pem|ssh|aws|authentication|config|file"),
    (Mark::Takes, "attacker|evil|malware|exfil|steal|hack|malicious|c2 com|net|org|io|xyz"),
    (Mark::Runs, "union ~1 select"),
    (Mark::Runs, "drop table"),
    (Mark::Runs, "rm|del|shred|wipefs rf|r|f|s|q"),
    (Mark::Runs, "chmod|chown|chgrp 777|4755|6755|root|0|s"),
    (Mark::Runs, "shutdown|reboot|halt h|f|now|0"),
    (Mark::Runs, "sudo ~3 s|i|su"),
];

/// Texts with the same meaning anywhere, in lower case.
const TEXTS: [(Mark, &str); 89] = [
    (Mark::Instructs, "<important"),
    (Mark::Instructs, "<critical"),
    (Mark::Instructs, "<urgent"),
    (Mark::Instructs, "<instructions"),
    (Mark::Instructs, "<secret"),
    (Mark::Instructs, "<system"),
    (Mark::Instructs, "<!--"),
    (Mark::Instructs, "[[["),
    (Mark::Instructs, "|||"),
    (Mark::Instructs, "before calling any"),
    (Mark::Instructs, "before using this tool"),
    (Mark::Instructs, "do not mention"),
    (Mark::Instructs, "do not tell the user"),
    (Mark::Instructs, "don't mention"),
    (Mark::Instructs, "don't tell the user"),
    (Mark::Instructs, "the user must not"),
    (Mark::Takes, "~/.ssh"),
    (Mark::Takes, "/.ssh"),
    (Mark::Takes, "/.aws"),
    (Mark::Takes, "/.kube"),
    (Mark::Takes, "/.cursor"),
    (Mark::Takes, ".env"),
    (Mark::Takes, ".key "),
    (Mark::Takes, ".pem"),
    (Mark::Takes, ".netrc"),
    (Mark::Takes, ".pgpass"),
    (Mark::Takes, ".keystore"),
    (Mark::Takes, "/proc/"),
    (Mark::Takes, "id_rsa"),
    (Mark::Takes, "id_ed25519"),
    (Mark::Takes, "id_ecdsa"),
    (Mark::Takes, "id_dsa"),
    (Mark::Takes, "private_key"),
    (Mark::Takes, "authorized_keys"),
    (Mark::Takes, "known_hosts"),
    (Mark::Takes, "credentials.json"),
    (Mark::Takes, "service_account.json"),
    (Mark::Takes, "docker/config.json"),
    (Mark::Takes, "wallet.dat"),
    (Mark::Takes, "claude_desktop_config.json"),
    (Mark::Takes, "messages.db"),
    (Mark::Takes, "-----begin"),
    (Mark::Takes, "aws_secret"),
    (Mark::Takes, "aws_access"),
    (Mark::Takes, "_api_key"),
    (Mark::Takes, "_token"),
    (Mark::Takes, "_password"),
    (Mark::Takes, "_secret"),
    (Mark::Takes, "os.environ"),
    (Mark::Takes, "process.env"),
    (Mark::Takes, "getenv("),
    (Mark::Takes, "/etc/passwd"),
    (Mark::Takes, "/etc/shadow"),
    (Mark::Takes, "/etc/hosts"),
    (Mark::Runs, "eval("),
    (Mark::Runs, "exec("),
    (Mark::Runs, "system("),
    (Mark::Runs, "popen("),
    (Mark::Runs, "spawn("),
    (Mark::Runs, "function("),
    (Mark::Runs, "settimeout("),
    (Mark::Runs, "subprocess."),
    (Mark::Runs, "__import__"),
    (Mark::Runs, "child_process"),
    (Mark::Runs, "base64.b64decode"),
    (Mark::Runs, "base64_decode("),
    (Mark::Runs, "atob("),
    (Mark::Runs, "buffer.from("),
    (Mark::Runs, "frombase64string"),
    (Mark::Runs, "<script"),
    (Mark::Runs, "javascript:"),
    (Mark::Runs, "data:text/html"),
    (Mark::Runs, "wscript.shell"),
    (Mark::Runs, "\\x1b["),
    (Mark::Runs, "\\u001b["),
    (Mark::Runs, "\\033["),
    (Mark::Runs, "' or '1'='1"),
    (Mark::Runs, "or 1=1"),
    (Mark::Runs, "information_schema"),
    (Mark::Runs, "pg_sleep("),
    (Mark::Runs, "xp_cmdshell"),
    (Mark::Runs, "/dev/tcp"),
    (Mark::Runs, "bash -i"),
    (Mark::Runs, "nc -e"),
    (Mark::Runs, "curl http"),
    (Mark::Runs, "wget http"),
    (Mark::Runs, "powershell"),
    (Mark::Runs, "sudo -"),
    (Mark::Runs, "dd if="),
];

/// Finds the first turn of phrase of each mark in a text, in lower case.
pub(super) fn marks(text: &str) -> Vec<(Mark, String)> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let texts = TEXTS.iter().filter(|(_, wanted)| text.contains(wanted)).map(|(mark, wanted)| (*mark, (*wanted).to_owned()));
    let phrases = WORDS.iter().filter_map(|(mark, pattern)| Some((*mark, found(pattern, &words)?)));
    let mut marks: Vec<(Mark, String)> = Vec::new();
    for (mark, said) in texts.chain(phrases) {
        if !marks.iter().any(|(known, _)| *known == mark) {
            marks.push((mark, said));
        }
    }
    marks
}

/// Gives the words found by a pattern.
fn found(pattern: &str, words: &[&str]) -> Option<String> {
    let slots: Vec<&str> = pattern.split(' ').collect();
    (0..words.len()).find_map(|from| Some(words[from..from + reach(&slots, &words[from..])?].join(" ")))
}

/// Counts the words taken up by the slots, from the first on.
fn reach(slots: &[&str], words: &[&str]) -> Option<usize> {
    let Some((slot, rest)) = slots.split_first() else { return Some(0) };
    if let Some(most) = slot.strip_prefix('~') {
        let most: usize = most.parse().ok()?;
        return (0..=most.min(words.len())).find_map(|skipped| Some(skipped + reach(rest, &words[skipped..])?));
    }
    let (word, behind) = words.split_first()?;
    let is_it = |one: &str| one.strip_suffix('*').map_or(one == *word, |beginning| word.starts_with(beginning));
    if slot.split('|').any(is_it) { Some(1 + reach(rest, behind)?) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_order_with_gaps_of_their_length_and_no_others() {
        let all = |pattern: &str, text: &str| found(pattern, &text.split(' ').collect::<Vec<_>>());
        assert_eq!(all("a|b ~2 c*", "x b y z cd e").as_deref(), Some("b y z cd"));
        assert_eq!(all("a|b ~2 c*", "x b y z w cd"), None);
        assert_eq!(all("a b", "a c b"), None);
        assert_eq!(all("a b", "a a b").as_deref(), Some("a b"));
        assert_eq!(all("a ~3 b", "a").as_deref(), None);
    }

    #[test]
    fn every_pattern_can_be_found() {
        for (mark, pattern) in WORDS {
            let said: Vec<&str> = pattern.split(' ').filter(|slot| !slot.starts_with('~')).collect();
            let said: Vec<&str> = said.iter().filter_map(|slot| slot.split('|').next()?.split('*').next()).collect();
            assert!(marks(&said.join(", ")).iter().any(|(found, _)| *found == mark), "{pattern}");
        }
    }
}
