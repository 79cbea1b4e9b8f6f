//! Checks for the forms and proofs of the record. Nothing about its files.

use audit::arguments::{ArgumentDetail, ArgumentForms};
use audit::canonical::{canonical, digest};
use audit::checkpoint::Checkpoint;
use audit::ect::claims::EctClaims;
use audit::ect::compact::{CarriedEct, carried};
use audit::ect::graph::EctGraph;
use audit::ect::work::WitnessedWork;
use audit::entry::Entry;
use audit::key::{Signer, Verifier};
use audit::note::{self, Note};
use audit::proof::{Standing, verify_consistency, verify_inclusion};
use audit::shape::{MAX_SHAPE, shape};
use audit::tile::Tile;
use audit::{bundle, hash};

/// A line that can be read has one spelling, and survives writing and reading.
pub(super) fn entry(data: &[u8]) {
    let Ok(entry) = Entry::decode(data) else { return };
    let mut again = Vec::new();
    if entry.encode(&mut again).is_ok() {
        assert_eq!(canonical(&again).as_deref(), Ok(data));
        assert!(Entry::decode(data).is_ok_and(|same| (same.seq, same.time, same.previous) == (entry.seq, entry.time, entry.previous)));
    }
}

/// The value of `Execution-Context`, or claims in JSON. Claims that are read are written and read again as the same, and a graph holds its
/// own ancestors only.
pub(super) fn ect(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let tokens = carried([text.as_ref()]).unwrap_or_default();
    let read = tokens.iter().filter_map(|token| match CarriedEct::read(token).ok()? {
        CarriedEct::Plain(claims) => Some(claims),
        CarriedEct::Signed(token) => token.claims().ok(),
    });
    let all: Vec<EctClaims> = read.chain(EctClaims::parse(data)).collect();
    all.iter().for_each(ect_again);
    let Ok(graph) = EctGraph::gather(64, all) else { return };
    for token in graph.tokens() {
        assert!(graph.ancestors(&token.id).is_ok_and(|ancestors| ancestors.iter().all(|one| one.id != token.id)));
    }
}

fn ect_again(claims: &EctClaims) {
    let (audience, parents): (Vec<&str>, Vec<&str>) =
        (claims.audience.iter().map(String::as_str).collect(), claims.parents.iter().map(String::as_str).collect());
    let work = WitnessedWork {
        issuer: claims.issuer.as_deref().unwrap_or("x"),
        audience: &audience,
        issued: claims.issued,
        expires: claims.expires,
        id: &claims.id,
        workflow: claims.workflow.as_deref(),
        action: &claims.action,
        parents: &parents,
        input: claims.input.as_deref(),
        output: claims.output.as_deref(),
        extension: claims.extension.as_deref().and_then(|raw| std::str::from_utf8(raw).ok()),
    };
    // Only escapes of text are written otherwise than read, and may make it longer than is taken.
    if let Ok(text) = work.claims(claims.draft) {
        let issuer = Some(claims.issuer.clone().unwrap_or_else(|| "x".into()));
        assert_eq!(EctClaims::parse(&text).as_ref(), Ok(&EctClaims { issuer, ..claims.clone() }));
    }
}

/// Canonical text is its own form, and keeps the meaning of its source; a shape is canonical and short. Text that is no JSON has a hash
/// too.
pub(super) fn form(data: &[u8]) {
    let formed = ArgumentForms::of(data, ArgumentDetail { shape: true, value: true });
    let recorded = formed.recorded();
    assert_eq!(recorded.shape.is_some(), canonical(data).is_ok());
    assert!(recorded.value.is_none_or(|value| canonical(data).as_deref() == Ok(value.0.as_bytes())));
    let Ok(form) = canonical(data) else { return };
    assert_eq!(canonical(&form).as_ref(), Ok(&form));
    assert_eq!(digest(data), digest(&form));
    if let (Ok(before), Ok(after)) = (serde_json::from_slice::<serde_json::Value>(data), serde_json::from_slice::<serde_json::Value>(&form))
    {
        assert_eq!(before.as_object().map(serde_json::Map::len), after.as_object().map(serde_json::Map::len));
    }
    let shape = shape(data).unwrap_or_default();
    assert!(shape.len() <= MAX_SHAPE + 32 && canonical(shape.as_bytes()).as_deref() == Ok(shape.as_bytes()));
}

/// A note is text and signatures; only the key of a signer opens it.
pub(super) fn checkpoint(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(key) = Verifier::parse(&text) {
        assert_eq!(Verifier::parse(&key.to_string()), Ok(key));
    }
    let Ok(read) = Note::parse(&text) else { return };
    let Ok(signer) = Signer::new("fuzz", &[7; 32]) else { return };
    let Ok(key) = signer.verifier() else { return };
    assert!(note::open(&text, &key).is_err());
    assert!(note::sign(&read.text, &signer).is_ok_and(|signed| note::open(&signed, &key) == Ok(&read.text)));
    if let Ok(checkpoint) = Checkpoint::parse(&text) {
        assert!(checkpoint.sign(&signer).is_ok_and(|signed| Checkpoint::parse(&signed) == Ok(checkpoint)));
    }
}

/// A proof survives writing and reading, and proves nothing about an absent entry.
pub(super) fn proof(data: &[u8]) {
    let Ok(proof) = Standing::parse(&String::from_utf8_lossy(data)) else { return };
    assert_eq!(Standing::parse(&proof.encode()), Ok(proof.clone()));
    let (leaf, root) = (hash::leaf(data), hash::empty_root());
    for size in [0, 1, proof.index, proof.index.saturating_add(1), u64::MAX] {
        assert!(verify_inclusion(leaf, proof.index, size, &proof.hashes, root).is_err());
        assert!(verify_consistency((proof.index, leaf), (size, root), &proof.hashes).is_err() || (proof.index, leaf) == (size, root));
    }
}

/// The path of a tile, a line end, and a bundle of entries: each is written as it was read.
pub(super) fn tile(data: &[u8]) {
    let mut parts = data.splitn(2, |b| *b == b'\n');
    let (path, content) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if let Ok(tile) = Tile::parse(&String::from_utf8_lossy(path)) {
        assert_eq!(tile.to_string().as_bytes(), path);
        assert_eq!(tile.hashes(content).is_ok(), content.len() == usize::from(tile.width) * 32);
    }
    if let Ok(entries) = bundle::decode(content) {
        assert_eq!(bundle::encode(entries).as_deref(), Some(content));
    }
}
