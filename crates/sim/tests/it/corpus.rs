//! Every input kept by the fuzzers, and every input that once broke a decoder, through the same checks on every build.

use std::fs;
use std::path::{Path, PathBuf};

use sim::decoders;

#[test]
fn every_corpus_file_holds() {
    for (name, check) in decoders::ALL {
        let files = files(&corpora().join(name));
        assert!(!files.is_empty(), "fuzz/corpus/{name} holds no seeds");
        for file in files {
            let data = fs::read(&file).unwrap();
            let outcome = std::panic::catch_unwind(|| check(&data));
            assert!(outcome.is_ok(), "{} breaks the decoder: {}", file.display(), String::from_utf8_lossy(&data));
        }
    }
}

#[test]
fn every_decoder_has_a_corpus_and_every_corpus_a_decoder() {
    let names = decoders::ALL.map(|(name, _)| name.to_owned()).to_vec();
    let stems: Vec<_> = files(&corpora()).iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(stems, names);
}

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}
