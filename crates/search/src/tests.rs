//! The quality of the search, over the lists of real servers and invented ones. Nothing here needs the network.

use super::*;

const REFERENCE: &str = include_str!("testdata/reference.txt");
const INVENTED: &str = include_str!("testdata/invented.txt");
const QUERIES: &str = include_str!("testdata/queries.txt");
const HELD_OUT: &str = include_str!("testdata/held_out.txt");

#[test]
fn tools_are_found_by_queries_in_other_words_than_their_own() {
    let (recall, report) = recall_at_5(QUERIES);
    assert!(recall >= 0.95, "{report}");
}

#[test]
fn tools_are_found_by_queries_that_nobody_has_tuned_for() {
    let (recall, report) = recall_at_5(HELD_OUT);
    assert!(recall >= 0.77, "{report}");
}

#[test]
fn the_name_of_a_tool_finds_it_first() {
    let tools = fixture();
    let index = Index::build(tools.iter().copied());
    for (number, tool) in tools.iter().enumerate() {
        let hits = index.search(tool.dotted, 3, |_| true);
        assert!(hits.iter().any(|hit| hit.index == number), "{}", tool.dotted);
    }
}

#[test]
fn the_index_keeps_its_order_where_scores_are_equal_and_its_limit_everywhere() {
    let docs = ["read one", "read two", "read six", "write"].map(|dotted| Doc { dotted, ..Doc::default() });
    let index = Index::build(docs);
    let found = |query, limit| index.search(query, limit, |_| true).iter().map(|hit| hit.index).collect::<Vec<_>>();
    assert_eq!(found("read", 10), [0, 1, 2]);
    assert_eq!(found("read", 2), [0, 1]);
    assert_eq!(index.search("read", 2, |index| index != 0).iter().map(|hit| hit.index).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(found("read", 0), [0; 0]);
    assert_eq!(found("the of and", 5), [0; 0]);
    assert_eq!(found("", 5), [0; 0]);
    assert!(Index::build([]).search("read", 5, |_| true).is_empty());
}

#[test]
fn of_a_query_or_a_description_without_end_its_beginning_alone_counts() {
    let long = "write much text ".repeat(1_000_000);
    let docs = [Doc { dotted: "a.b", description: &long, ..Doc::default() }, Doc { dotted: "c.d", ..Doc::default() }];
    let cut = [Doc { description: clip(&long, FIELD_LIMIT), ..docs[0] }, docs[1]];
    let found = |docs: [Doc<'_>; 2], query: &str| -> Vec<(usize, f32)> {
        Index::build(docs).search(query, 5, |_| true).iter().map(|hit| (hit.index, hit.score)).collect()
    };
    let hits = found(docs, &long);
    assert_eq!(hits.len(), 1);
    assert_eq!(hits, found(cut, clip(&long, QUERY_LIMIT)), "nothing behind the limits counts");
}

#[test]
fn of_ten_thousand_tools_as_many_are_given_as_were_asked_for() {
    let fixture = fixture();
    let names: Vec<String> =
        (0..10_000).map(|number| format!("site{}.{}_{number}", number % 97, fixture[number % fixture.len()].dotted)).collect();
    let tools = names.iter().enumerate().map(|(number, name)| Doc { dotted: name, ..fixture[number % fixture.len()] });
    let index = Index::build(tools);
    for query in ["list all open tickets of the project", "get create update delete show find list", "site12 create issue"] {
        assert_eq!(index.search(query, 20, |_| true).len(), 20);
    }
}

fn fixture() -> Vec<Doc<'static>> {
    let lines = REFERENCE.lines().chain(INVENTED.lines()).filter(|line| !line.starts_with('#'));
    let doc = |line: &'static str| {
        let mut fields = line.split('|');
        let mut next = || fields.next().unwrap();
        Doc { dotted: next(), title: next(), description: next(), parameters: next() }
    };
    lines.map(doc).collect()
}

/// Gives the share of queries with a right tool among the first five, and a text about the others.
fn recall_at_5(list: &'static str) -> (f64, String) {
    let tools = fixture();
    let index = Index::build(tools.iter().copied());
    let mut missed = Vec::new();
    let (mut first, mut all) = (0, 0);
    for (query, expected) in queries(list) {
        let hits = index.search(query, 5, |_| true);
        let names: Vec<_> = hits.iter().map(|hit| tools[hit.index].dotted).collect();
        all += 1;
        first += usize::from(names.first().is_some_and(|name| expected.contains(name)));
        if !names.iter().any(|name| expected.contains(name)) {
            missed.push(format!("{query}: {names:?}"));
        }
    }
    let recall = 1.0 - missed.len() as f64 / all as f64;
    let report = format!("recall@5 {recall:.3} of {all} queries, {first} found first; not found:\n{}", missed.join("\n"));
    println!("{report}");
    (recall, report)
}

fn queries(list: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (query, tools) = line.split_once('|').unwrap();
        (query, tools.split(' ').collect())
    })
}
