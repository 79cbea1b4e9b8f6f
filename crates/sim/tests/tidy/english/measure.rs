//! Numbers that the rules for docs and names bound. Does not know the bounds.

/// Words that point at something instead of naming it.
const POINTING: &[&str] = &["it", "its", "one", "that", "there", "they", "this", "those", "what", "which", "who", "whoever", "whose"];

/// First words that hide the subject of a doc.
const BEGINNINGS: &[&str] =
    &["How", "It", "Its", "One", "They", "Those", "What", "Where", "Whether", "Which", "Who", "Whoever", "Whose", "Why"];

/// Function names that say nothing without their surroundings.
const EMPTY_WORDS: &[&str] = &["end", "of", "said", "take", "told"];

/// Participles that do not end in `-ed`, and those in `-ing` that are no nouns.
#[rustfmt::skip]
const PARTICIPLES: &[&str] = &[
    "Asking", "Begun", "Broken", "Built", "Calling", "Changing", "Chosen", "Coming", "Done", "Drawn", "Following", "Found", "Given",
    "Gone", "Growing", "Happening", "Heard", "Held", "Hidden", "Holding", "Incoming", "Joining", "Keeping", "Kept", "Known", "Learnt",
    "Leaving", "Left", "Listening", "Looking", "Lost", "Lowering", "Made", "Meant", "Missing", "Mounting", "Outgoing", "Paid", "Pouring",
    "Running", "Said", "Seeing", "Seen", "Sent", "Serving", "Sharing", "Showing", "Shown", "Sitting", "Sought", "Spent", "Spoken",
    "Taken", "Told", "Torn", "Unkept", "Unproven", "Unread", "Unsaid", "Unwritten", "Varying", "Waiting", "Withdrawn", "Withheld",
    "Written",
];

/// Nouns that end like a participle.
const NOUNS: &[&str] = &["Bed", "Feed", "Need", "Seed", "Speed", "Thread"];

/// Proofs that the stages of a call hand on, and the crates of their one way.
const PROOFS: &[&str] = &["Cleared", "Resolved"];
const PROVING: &[&str] = &["call", "gateway"];

/// Lower-case words of a doc. Code between backticks is one word, since a quoted name points at nothing.
fn words(doc: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in doc.split('`').enumerate() {
        if number % 2 == 1 {
            words.push("`".to_owned());
        } else {
            let found = part.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
            words.extend(found.map(str::to_lowercase));
        }
    }
    words
}

/// Words of docs, counted.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) pointing: usize,
    pub(crate) all: usize,
}

impl Share {
    pub(crate) fn add(&mut self, docs: &[String]) {
        for word in docs.iter().flat_map(|doc| words(doc)) {
            self.all += 1;
            self.pointing += usize::from(POINTING.contains(&word.as_str()));
        }
    }

    /// Tenths of a per cent, rounded up.
    pub(crate) fn per_mille(self) -> usize {
        (self.pointing * 1000).div_ceil(self.all.max(1))
    }
}

pub(crate) fn hides_subject(doc: &str) -> bool {
    let first: String = doc.chars().take_while(|c| c.is_alphabetic()).collect();
    BEGINNINGS.contains(&first.as_str())
}

pub(crate) fn is_bare_participle(name: &str, package: &str) -> bool {
    let one_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let is_proof = PROOFS.contains(&name) && PROVING.contains(&package);
    one_word && !is_proof && (PARTICIPLES.contains(&name) || (name.ends_with("ed") && !NOUNS.contains(&name)))
}

pub(crate) fn is_empty_word(name: &str) -> bool {
    EMPTY_WORDS.contains(&name)
}

/// Number of words behind the id, as in `ax_15_names_that_map_to_one_are_told_apart` or `h0_a_removed_token_is_void`.
pub(crate) fn words_after_id(name: &str) -> usize {
    let mut parts: Vec<&str> = name.split('_').filter(|part| !part.is_empty()).collect();
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match parts.as_slice() {
        [family, number, ..] if family.len() == 2 && digits(number) => parts.drain(..2),
        [id, ..] if id.len() <= 3 && id.starts_with(|c: char| c.is_ascii_alphabetic()) && digits(&id[1..]) => parts.drain(..1),
        _ => parts.drain(..0),
    };
    parts.len()
}
