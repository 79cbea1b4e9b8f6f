//! Text from outside made safe for a terminal. Changes nothing printed by `--json`.
//!
//! Names, descriptions and command lines come from files and servers written by others. A control sequence in them
//! could hide part of an agreement, and letters that run from right to left could turn it around.

use mcp_proto::hidden;

/// Makes one safe line: every control character and every invisible character is written as its code.
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

/// Whatever shows nothing by itself: here, as in a name or in what is agreed to, a selector or a joiner has nothing to do either.
fn dangerous(c: char) -> bool {
    hidden::is_unseen(c)
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

    #[test]
    fn l10_what_is_hidden_in_definitions_is_written_out_where_people_agree() {
        for c in "\u{61c}\u{34f}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{180b}\u{180f}\u{fe00}\u{fe0f}\u{e0080}\u{e0fff}\u{200c}\u{200d}".chars()
        {
            assert_eq!(printable(&format!("a{c}b")), format!("a{}b", c.escape_default()));
        }
        for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| hidden::is_hidden(*c)) {
            assert!(printable(&c.to_string()).starts_with('\\'), "{c:?}");
        }
    }
}
