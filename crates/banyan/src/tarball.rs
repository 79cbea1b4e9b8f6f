//! Files in a tar archive (POSIX ustar): written one after another, and read back with every length and name checked. Knows no file's meaning.

use std::io::{self, Read, Write};

/// Size of the blocks of an archive.
const BLOCK: usize = 512;
/// Longest name that a header takes without a prefix, and longest prefix.
const NAME: usize = 100;
const PREFIX: usize = 155;
/// Largest file that is read back.
pub(crate) const LARGEST: u64 = 8 << 30;

/// Writes an archive.
pub(crate) struct TarWriter<W> {
    out: W,
    /// Time of all files, in seconds since 1970.
    time: u64,
}

/// The head of a file in an archive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TarEntry {
    pub(crate) name: String,
    pub(crate) size: u64,
    /// The owner may run the file.
    pub(crate) is_program: bool,
}

impl<W: Write> TarWriter<W> {
    pub(crate) const fn new(out: W, time: u64) -> Self {
        Self { out, time }
    }

    /// Adds a file, of whose bytes `content` has at least as many as the head says: more may have been appended meanwhile.
    pub(crate) fn add(&mut self, entry: &TarEntry, content: impl Read) -> io::Result<()> {
        let (name, size) = (&entry.name, entry.size);
        self.out.write_all(&header(entry, self.time)?)?;
        let copied = io::copy(&mut content.take(size), &mut self.out)?;
        if copied < size {
            return Err(io::Error::other(format!("{name} became shorter while it was read")));
        }
        self.out.write_all(&padding(size))
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reads the files of an archive, each by `each`, which gets the head and exactly the bytes of the file.
pub(crate) fn read<R: Read>(mut archive: R, mut each: impl FnMut(&TarEntry, &mut dyn Read) -> io::Result<()>) -> io::Result<()> {
    loop {
        let mut block = [0; BLOCK];
        archive.read_exact(&mut block)?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let entry = parsed(&block)?;
        let mut content = archive.by_ref().take(entry.size);
        each(&entry, &mut content)?;
        let left = io::copy(&mut content, &mut io::sink())?;
        if content.limit() > 0 {
            return Err(broken(&format!("the archive ends within {} ({left} bytes of it are there)", entry.name)));
        }
        let rest = u64::try_from(padding(entry.size).len()).unwrap_or_default();
        io::copy(&mut archive.by_ref().take(rest), &mut io::sink())?;
    }
}

fn padding(size: u64) -> Vec<u8> {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    vec![0; (BLOCK - over) % BLOCK]
}

/// Checks if an archive takes a file, and gives it back.
pub(crate) fn takes(name: &str, size: u64) -> bool {
    size <= LARGEST && split(name).is_some() && is_plain(name)
}

/// Checks that a name leads nowhere but below the archive's own directory.
fn is_plain(name: &str) -> bool {
    name.split('/').all(|part| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0']))
}

fn header(entry: &TarEntry, time: u64) -> io::Result<[u8; BLOCK]> {
    let TarEntry { name, size, is_program } = entry;
    let (prefix, name) = split(name).ok_or_else(|| io::Error::other(format!("the name {name} is too long for an archive")))?;
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, if *is_program { b"0000700\0" } else { b"0000600\0" });
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").get(..12).unwrap_or_default().as_bytes());
    put(136, format!("{time:011o}\0").get(..12).unwrap_or_default().as_bytes());
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum = sum(&block);
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// Splits a name at a slash, so that both parts fit.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= NAME {
        return Some(("", name));
    }
    let fits = |(at, _): &(usize, &str)| *at <= PREFIX && name.len() - at - 1 <= NAME;
    let (at, _) = name.match_indices('/').find(fits)?;
    Some((name.get(..at)?, name.get(at + 1..)?))
}

/// Adds up a header, in which the sum itself counts as blanks.
fn sum(block: &[u8; BLOCK]) -> u32 {
    block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { u32::from(b' ') } else { u32::from(*byte) }).sum()
}

fn parsed(block: &[u8; BLOCK]) -> io::Result<TarEntry> {
    let text = |from: usize, length: usize| {
        let bytes = block.get(from..from + length).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
        std::str::from_utf8(bytes.get(..end).unwrap_or_default()).map_err(|_| broken("a name is no text"))
    };
    let number = |from: usize, length: usize| {
        let digits = text(from, length)?.trim();
        u64::from_str_radix(digits, 8).map_err(|_| broken("a header holds no number where one belongs"))
    };
    if text(257, 6)? != "ustar" || number(148, 8)? != u64::from(sum(block)) {
        return Err(broken("a header is damaged, or the file is no backup"));
    }
    let (prefix, name) = (text(345, PREFIX)?, text(0, NAME)?);
    let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
    if block[156] != b'0' || !is_plain(&name) {
        return Err(broken(&format!("{name} is no plain file below the archive's own directory")));
    }
    let size = number(124, 12)?;
    if size > LARGEST {
        return Err(broken(&format!("{name} is too large")));
    }
    Ok(TarEntry { name, size, is_program: number(100, 8)? & 0o100 != 0 })
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = TarWriter::new(Vec::new(), 1_700_000_000);
        files.iter().for_each(|(name, content)| {
            let head = TarEntry { name: (*name).to_owned(), size: content.len() as u64, is_program: name.ends_with(".sh") };
            writer.add(&head, *content).unwrap();
        });
        writer.finish().unwrap()
    }

    fn files(archive: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut found = Vec::new();
        read(archive, |entry, content| {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            assert_eq!(entry.is_program, entry.name.ends_with(".sh"));
            found.push((entry.name.clone(), bytes));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn files_come_back_and_other_programs_read_them_too() {
        let long = format!("{}/{}", "d".repeat(90), "f".repeat(90));
        let whole = archive(&[("a.toml", b"x = 1\n"), ("state/empty.sh", b""), (&long, &[7; 1000])]);
        let found = files(&whole).unwrap();
        assert_eq!(found[0], ("a.toml".to_owned(), b"x = 1\n".to_vec()));
        assert_eq!((found[1].1.len(), found[2].0.as_str(), found[2].1.len()), (0, long.as_str(), 1000));
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.tar"), &whole).unwrap();
        let listed = std::process::Command::new("tar").arg("-tf").arg(dir.path().join("b.tar")).output().unwrap();
        assert_eq!(String::from_utf8(listed.stdout).unwrap(), format!("a.toml\nstate/empty.sh\n{long}\n"));
    }

    #[test]
    fn names_that_lead_elsewhere_and_damage_are_refused() {
        for name in ["../a", "/etc/passwd", "a/../../b", "a//b", "./a"] {
            assert!(files(&archive(&[(name, b"x")])).is_err(), "{name}");
        }
        let good = archive(&[("a", &[1; 600])]);
        assert!(files(&good[..700]).is_err(), "cut off");
        let mut damaged = good;
        damaged[0] ^= 1;
        assert!(files(&damaged).is_err());
        let mut link = archive(&[("a", b"")]);
        link[156] = b'2';
        assert!(files(&link).is_err(), "a symbolic link, with a sum that does not fit either");
        assert!(files(b"").is_err());
    }
}
