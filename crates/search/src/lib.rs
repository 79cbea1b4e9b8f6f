//! Finds tools by their purpose, for trees too large to be shown whole.
//!
//! The weight of each word in a tool's name, description and parameters is BM25, by the `bm25` crate, with its English
//! stems and stop words. Three things are added: identifiers are split into words; the words of a query also
//! stand for others of the same meaning (a table, see `synonyms`), at a lower weight; and the postings lie flat, because the
//! crate's own scorer looks at every word of every match, too slow for a hundred thousand tools.
//!
//! Meaning is found as far as words carry it: there is no language model here, and meanings outside the table are not found.
//! Does not know permissions: the caller indexes permitted tools only, or filters the hits.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use bm25::{Embedder, EmbedderBuilder, TokenEmbedder, Tokenizer};

mod parameters;
mod synonyms;
pub mod tools;
mod words;

pub use parameters::parameter_text;
use words::Words;

/// Weight of a match in each field.
const NAME_WEIGHT: f32 = 2.5;
const TEXT_WEIGHT: f32 = 1.0;
const PARAMETER_WEIGHT: f32 = 0.3;
/// Weight of an indexed word that only resembles a word of the query.
const RESEMBLANCE_WEIGHT: f32 = 0.5;
/// Weight of matching many words of the query rather than one of them often.
const COVERAGE: f32 = 0.8;
/// Bytes read of each field: later words say little about a tool's purpose.
const FIELD_LIMIT: usize = 2000;
/// Bytes read of a query.
const QUERY_LIMIT: usize = 500;
/// Number of tools from which the mean length of fields is taken.
const SAMPLE: usize = 1000;

/// A tool's description for the index.
#[derive(Clone, Copy, Default, Debug)]
pub struct Doc<'a> {
    /// The dotted name, mounts included: their names are words too.
    pub dotted: &'a str,
    /// The title, or nothing.
    pub title: &'a str,
    /// The description, or nothing.
    pub description: &'a str,
    /// Names and descriptions of parameters, as [`parameter_text`] gives them.
    pub parameters: &'a str,
}

/// A tool matching the query.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hit {
    /// Number of the document, in the order of the index.
    pub index: usize,
    /// Goodness of the match; only comparable within one search.
    pub score: f32,
}

/// Occurrences of words in all tools. Never changes: a new catalog gets a new index.
pub struct Index {
    documents: usize,
    vocabulary: BTreeMap<Box<str>, Postings>,
}

/// Documents with a word, and the word's weight in each.
type Postings = Box<[(u32, f32)]>;

impl Index {
    /// Reads all documents. Takes a few seconds for a hundred thousand of them: call it where blocking is allowed.
    pub fn build<'a>(documents: impl IntoIterator<Item = Doc<'a>>) -> Self {
        let documents: Vec<Doc<'a>> = documents.into_iter().collect();
        let words = Words::new();
        let fields = [
            Field::new(NAME_WEIGHT, &documents, &words, |doc| doc.dotted.into()),
            Field::new(TEXT_WEIGHT, &documents, &words, |doc| format!("{}\n{}", doc.title, doc.description)),
            Field::new(PARAMETER_WEIGHT, &documents, &words, |doc| doc.parameters.into()),
        ];
        let mut postings: HashMap<u32, Vec<(u32, f32)>> = HashMap::new();
        let mut weights = BTreeMap::new();
        for (number, document) in documents.iter().enumerate() {
            for field in &fields {
                field.add(document, &mut weights);
            }
            for (word, weight) in std::mem::take(&mut weights) {
                postings.entry(word).or_default().push((number as u32, weight));
            }
        }
        let found = |word: Box<str>| postings.remove(&u32::embed(&word)).map(|places| (word, places.into_boxed_slice()));
        Self { documents: documents.len(), vocabulary: words.known().into_iter().filter_map(found).collect() }
    }

    /// Counts the documents.
    pub fn len(&self) -> usize {
        self.documents
    }

    /// Tells if there are no documents.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// Finds documents that match `query` and pass `keep`, at most `limit`, the best first; equally good ones in
    /// the order of the index.
    pub fn search(&self, query: &str, limit: usize, keep: impl Fn(usize) -> bool) -> Vec<Hit> {
        let words = Words::new();
        let asked = words.tokenize(clip(query, QUERY_LIMIT));
        let mut tally = Tally::new(self.documents);
        for word in &asked {
            for (places, weight) in self.readings(word, &words) {
                tally.add(places, weight);
            }
            tally.next_word();
        }
        top(tally.hits(asked.len()).filter(|hit| keep(hit.index)).collect(), limit)
    }

    /// Lists possible readings of a query's word: itself, words of the same meaning, or words that look alike.
    fn readings(&self, word: &str, words: &Words) -> Vec<(&Postings, f32)> {
        let itself = self.vocabulary.get(word);
        let rarity = itself.map(|places| self.rarity(places));
        let mut readings: Vec<_> = itself.into_iter().map(|places| (places, self.rarity(places))).collect();
        // A rare synonym must not outweigh the word that was asked for.
        let bounded = |places| rarity.map_or(self.rarity(places), |asked| asked.min(self.rarity(places)));
        let same = synonyms::matching(word, words).iter().filter_map(|(other, weight)| Some((self.vocabulary.get(other)?, weight)));
        readings.extend(same.map(|(places, weight)| (places, bounded(places) * weight)));
        if readings.is_empty() {
            let alike = self.vocabulary.iter().filter(|(known, _)| words::look_alike(word, known));
            readings.extend(alike.map(|(_, places)| (places, self.rarity(places) * RESEMBLANCE_WEIGHT)));
        }
        readings
    }

    /// The inverse document frequency.
    fn rarity(&self, places: &Postings) -> f32 {
        let (all, holding) = (self.documents as f32, places.len() as f32);
        (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln()
    }
}

/// The scores of all documents while the words of a query are gone through.
struct Tally {
    /// Score and number of matched words so far, by document.
    totals: Vec<(f32, u16)>,
    /// For each document: the best that any reading of the current word has given.
    best: Vec<f32>,
    /// Documents with a score, and documents touched by the current word.
    matched: Vec<u32>,
    touched: Vec<u32>,
}

impl Tally {
    fn new(documents: usize) -> Self {
        Self { totals: vec![(0.0, 0); documents], best: vec![0.0; documents], matched: Vec::new(), touched: Vec::new() }
    }

    fn add(&mut self, places: &Postings, weight: f32) {
        for (document, value) in places {
            let best = &mut self.best[*document as usize];
            if *best == 0.0 {
                self.touched.push(*document);
            }
            *best = best.max(value * weight);
        }
    }

    fn next_word(&mut self) {
        for document in self.touched.drain(..) {
            let (score, words) = &mut self.totals[document as usize];
            if *words == 0 {
                self.matched.push(document);
            }
            *score += std::mem::take(&mut self.best[document as usize]);
            *words += 1;
        }
    }

    fn hits(&self, asked: usize) -> impl Iterator<Item = Hit> + '_ {
        self.matched.iter().map(move |document| {
            let (score, words) = self.totals[*document as usize];
            Hit { index: *document as usize, score: score * (f32::from(words) / asked as f32).powf(COVERAGE) }
        })
    }
}

/// A field of all documents.
struct Field<'a> {
    weight: f32,
    embedder: Embedder<u32, Words>,
    text: fn(&Doc<'a>) -> String,
}

impl<'a> Field<'a> {
    fn new(weight: f32, documents: &[Doc<'a>], words: &Words, text: fn(&Doc<'a>) -> String) -> Self {
        let sample = documents.iter().step_by(documents.len() / SAMPLE + 1);
        let (count, length) =
            sample.fold((0, 0), |(count, length), doc| (count + 1, length + words.tokenize(clip(&text(doc), FIELD_LIMIT)).len()));
        let mean = length as f32 / f32::max(count as f32, 1.0);
        let embedder = EmbedderBuilder::with_avgdl(mean.max(1.0)).tokenizer(words.clone()).build();
        Self { weight, embedder, text }
    }

    /// Adds the weight of each word of the document's field.
    fn add(&self, document: &Doc<'a>, weights: &mut BTreeMap<u32, f32>) {
        let mut of_field = HashMap::new();
        for token in self.embedder.embed(clip(&(self.text)(document), FIELD_LIMIT)).0 {
            of_field.insert(token.index, token.value);
        }
        for (word, value) in of_field {
            *weights.entry(word).or_default() += self.weight * value;
        }
    }
}

fn top(mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
    let better = |a: &Hit, b: &Hit| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal).then(a.index.cmp(&b.index));
    if limit == 0 {
        return Vec::new();
    }
    if hits.len() > limit {
        hits.select_nth_unstable_by(limit - 1, better);
        hits.truncate(limit);
    }
    hits.sort_unstable_by(better);
    hits
}

fn clip(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests;
