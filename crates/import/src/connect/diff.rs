//! Two texts as a list of removed and added lines, with three lines around them. For people; no program applies it.

use std::fmt::Write as _;
use std::path::Path;

const AROUND: usize = 3;
/// Above this many pairs of lines to compare, everything between the first and the last difference goes and comes.
const MAX_PAIRS: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    New,
    Old,
}

/// Lists the differences; empty for equal texts. `None` is a missing file.
pub(super) fn unified(path: &Path, old: Option<&str>, new: Option<&str>) -> String {
    let lines = compared(old.unwrap_or_default(), new.unwrap_or_default());
    if lines.iter().all(|(side, _)| *side == Side::Both) && old.is_some() == new.is_some() {
        return String::new();
    }
    let mut out = String::new();
    let name = |there: bool| if there { path.display().to_string() } else { "(no file)".to_owned() };
    // Writing to a String does not fail.
    write!(out, "--- {}\n+++ {}\n", name(old.is_some()), name(new.is_some())).ok();
    let mut end = 0;
    for hunk in hunks(&lines) {
        let before = &lines[..hunk.start];
        let first = |other: Side| before.iter().filter(|(side, _)| *side != other).count() + 1;
        let count = |other: Side| lines[hunk.clone()].iter().filter(|(side, _)| *side != other).count();
        writeln!(out, "@@ -{},{} +{},{} @@", first(Side::New), count(Side::New), first(Side::Old), count(Side::Old)).ok();
        for (side, line) in &lines[hunk.clone()] {
            let mark = match side {
                Side::Both => ' ',
                Side::New => '+',
                Side::Old => '-',
            };
            writeln!(out, "{mark}{}", line.trim_end_matches('\r')).ok();
        }
        end = end.max(hunk.end);
    }
    out
}

/// Gives ranges of lines with differences and their surroundings.
fn hunks(lines: &[(Side, &str)]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (i, _) in lines.iter().enumerate().filter(|(_, (side, _))| *side != Side::Both) {
        let (start, end) = (i.saturating_sub(AROUND), (i + AROUND + 1).min(lines.len()));
        match hunks.last_mut().filter(|last| last.end >= start) {
            Some(last) => last.end = end,
            None => hunks.push(start..end),
        }
    }
    hunks
}

fn compared<'t>(old: &'t str, new: &'t str) -> Vec<(Side, &'t str)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(room).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);

    let both = |lines: &[&'t str]| lines.iter().map(|line| (Side::Both, *line)).collect::<Vec<_>>();
    let mut lines = both(&old[..head]);
    if a.len().saturating_mul(b.len()) > MAX_PAIRS {
        lines.extend(a.iter().map(|line| (Side::Old, *line)));
        lines.extend(b.iter().map(|line| (Side::New, *line)));
    } else {
        middle(a, b, &mut lines);
    }
    lines.extend(both(&old[old.len() - tail..]));
    lines
}

/// Compares by the longest common list of lines in order.
fn middle<'t>(a: &[&'t str], b: &[&'t str], lines: &mut Vec<(Side, &'t str)>) {
    let width = b.len() + 1;
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            lines.push((Side::Both, a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
            lines.push((Side::Old, a[i]));
            i += 1;
        } else {
            lines.push((Side::New, b[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn differences_are_shown_with_what_is_around_them() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n";
        let expected = "--- f\n+++ f\n@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+10\n";
        assert_eq!(unified(Path::new("f"), Some(old), Some(new)), expected);
        assert_eq!(unified(Path::new("f"), Some(old), Some(old)), "");
        assert_eq!(unified(Path::new("f"), None, Some("a\n")), "--- (no file)\n+++ f\n@@ -1,0 +1,1 @@\n+a\n");
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_out_of_the_comparison(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let lines = compared(&old, &new);
            let side = |other: Side| lines.iter().filter(|(side, _)| *side != other).map(|(_, line)| *line).collect::<Vec<_>>();
            prop_assert_eq!(side(Side::New), old.lines().collect::<Vec<_>>());
            prop_assert_eq!(side(Side::Old), new.lines().collect::<Vec<_>>());
        }
    }
}
