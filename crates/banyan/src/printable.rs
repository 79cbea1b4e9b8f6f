//! Text from outside made safe for a terminal. Changes nothing that `--json` prints.
//!
//! Names, descriptions and command lines come from files and servers that somebody else wrote. A control sequence in them
//! could hide what is being agreed to, and letters that run from right to left could turn it around.

/// For one line: every control character and every invisible one is written as its code.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if dangerous(c) { escaped(c) } else { c.to_string() }).collect()
}

/// For texts of several lines: line ends and tabs stay.
pub(crate) fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if dangerous(c) && c != '\n' && c != '\t' { escaped(c) } else { c.to_string() }).collect()
}

fn escaped(c: char) -> String {
    c.escape_default().to_string()
}

/// Control characters, those that turn the direction of text, invisible ones, and the tags that only a machine reads.
fn dangerous(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_move_the_cursor_or_hide() {
        assert_eq!(printable("a\x1b[2Kb\nc"), "a\\u{1b}[2Kb\\nc");
        assert_eq!(printable("rm \u{202e}fles"), "rm \\u{202e}fles");
        assert_eq!(printable("Übung ✓"), "Übung ✓");
        assert_eq!(printable_lines("a\n\tb\r"), "a\n\tb\\r");
    }
}
