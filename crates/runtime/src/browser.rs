//! Opens an address in the person's browser, where there is one. Does not wait for it.

use std::process::{Command, Stdio};

/// Opens `url` in a browser, and tells if a browser was started.
pub fn open(url: &str) -> bool {
    let named = std::env::var("BROWSER").ok().filter(|command| !command.trim().is_empty());
    match named {
        Some(command) => start(&words(&command, url)),
        None if has_display() => start(&system_opener(url)),
        None => false,
    }
}

/// Splits `$BROWSER` as programs understand it: alternatives between colons, of which the first is taken, and `%s` for the address.
fn words(command: &str, url: &str) -> Vec<String> {
    let first = command.split(':').next().unwrap_or_default();
    let mut words: Vec<String> = first.split_whitespace().map(|word| word.replace("%s", url)).collect();
    if !first.contains("%s") {
        words.push(url.into());
    }
    words
}

fn has_display() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(any(target_os = "macos", windows)) || set("DISPLAY") || set("WAYLAND_DISPLAY")
}

fn system_opener(url: &str) -> Vec<String> {
    let opener: &[&str] = if cfg!(target_os = "macos") {
        &["open"]
    } else if cfg!(windows) {
        &["rundll32", "url.dll,FileProtocolHandler"]
    } else {
        &["xdg-open"]
    };
    opener.iter().map(|word| (*word).to_owned()).chain([url.to_owned()]).collect()
}

fn start(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // Somebody has to wait for it, or it stays as a zombie.
            std::thread::spawn(move || child.wait());
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_variable_may_hold_alternatives_arguments_and_a_place_for_the_address() {
        assert_eq!(words("firefox", "http://u"), ["firefox", "http://u"]);
        assert_eq!(words("firefox --new-tab %s:lynx", "http://u"), ["firefox", "--new-tab", "http://u"]);
        assert_eq!(words("curl -s", "http://u"), ["curl", "-s", "http://u"]);
    }
}
