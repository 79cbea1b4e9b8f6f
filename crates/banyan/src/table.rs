//! Columns of text, aligned. Knows nothing of their content.

/// Alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Lays out `rows` with two spaces between columns. Widths count characters, colours left out; trailing spaces are cut.
/// Missing cells are empty.
pub(crate) fn lines(columns: &[Align], rows: &[Vec<String>]) -> Vec<String> {
    let cell = |row: &'_ Vec<String>, c: usize| row.get(c).cloned().unwrap_or_default();
    let widths: Vec<usize> = (0..columns.len()).map(|c| rows.iter().map(|r| width(&cell(r, c))).max().unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = columns.iter().zip(&widths).enumerate().map(|(c, (align, widest))| {
            let text = cell(row, c);
            let pad = " ".repeat(widest - width(&text));
            if *align == Align::Left { text + &pad } else { pad + &text }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Counts the characters of `text` that take a place on the screen.
fn width(text: &str) -> usize {
    let mut escaped = false;
    let visible = text.chars().filter(|c| {
        let hidden = escaped || *c == '\x1b';
        escaped = hidden && *c != 'm';
        !hidden
    });
    visible.count()
}

/// Cuts a line to `most` characters that take a place on the screen; colours end there.
pub(crate) fn cut(line: &str, most: usize) -> String {
    if width(line) <= most {
        return line.to_owned();
    }
    let (mut kept, mut escaped, mut count) = (String::new(), false, 0);
    for c in line.chars() {
        let is_hidden = escaped || c == '\x1b';
        escaped = is_hidden && c != 'm';
        // Escapes behind the end stay: the last of them ends a colour.
        if is_hidden || count < most {
            kept.push(c);
        }
        count += usize::from(!is_hidden);
    }
    kept
}

/// A count of at most four characters or so: `950`, `1.2k`, `34k`, `1.2M`.
pub(crate) fn short(count: usize) -> String {
    let (unit, letter) = if count >= 1_000_000 { (1_000_000, 'M') } else { (1_000, 'k') };
    if count < 1_000 {
        return count.to_string();
    }
    let tenths = count * 10 / unit;
    if tenths < 100 { format!("{}.{}{letter}", tenths / 10, tenths % 10) } else { format!("{}{letter}", tenths / 10) }
}

/// Writes `1 server`, `2 servers`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The first line of `text`, cut to `width` characters.
pub(crate) fn first_line(text: &str, width: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Writes a length of time with one unit or two: `8s`, `3m 20s`, `5h 2m`, `3d 4h`.
pub(crate) fn duration(seconds: u64) -> String {
    let pair = |big: u64, b: char, small: u64, s: char| if small == 0 { format!("{big}{b}") } else { format!("{big}{b} {small}{s}") };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => pair(seconds / 60, 'm', seconds % 60, 's'),
        3600..86400 => pair(seconds / 3600, 'h', seconds % 3600 / 60, 'm'),
        _ => pair(seconds / 86400, 'd', seconds % 86400 / 3600, 'h'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "1", "x"], ["long", "100", ""]].map(|r| r.map(str::to_owned).to_vec());
        assert_eq!(lines(&[Align::Left, Align::Right, Align::Left], &rows), ["a       1  x", "long  100"]);
        assert_eq!(width("\x1b[31mbad\x1b[0m!"), 4);
        assert_eq!([cut("\x1b[31mbad\x1b[0m!", 2), cut("bad!", 4)], ["\x1b[31mba\x1b[0m", "bad!"]);
    }

    #[test]
    fn counts_and_times_are_short() {
        assert_eq!([0, 999, 1_000, 1_249, 34_567, 1_250_000].map(short), ["0", "999", "1.0k", "1.2k", "34k", "1.2M"]);
        assert_eq!([8, 200, 3600, 18_120, 273_600].map(duration), ["8s", "3m 20s", "1h", "5h 2m", "3d 4h"]);
        assert_eq!((counted(1, "tool"), counted(0, "tool")), ("1 tool".into(), "0 tools".into()));
        assert_eq!(first_line("abc def\nghi", 5), "abc …");
    }
}
