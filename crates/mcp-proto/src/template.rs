//! Matching of URIs with URI templates (RFC 6570), as far as a gate needs to find the owner.
//!
//! Extracts no variables and expands nothing. Where servers differ in the values of a variable, the wider
//! reading is taken: the owner has the last word on its own URIs.

/// Longer URIs than this match no template: the work grows with length times parts.
pub const MAX_URI: usize = 8 * 1024;
const MAX_TEMPLATE: usize = 8 * 1024;
const MAX_PARTS: usize = 65;

/// A template to be matched against URIs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    parts: Vec<Part>,
    literals: usize,
}

/// A text that is no URI template.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a URI template: {0}")]
pub struct BadTemplate(&'static str);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    /// These bytes.
    Literal(Box<[u8]>),
    /// At least a byte of a class.
    Run(Class),
    /// Nothing, or this byte and then any number of a class.
    Optional(u8, Class),
}

/// The bytes permitted in a variable's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Any,
    NoHash,
    NoSlash,
}

impl Class {
    fn holds(self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::NoHash => byte != b'#',
            Self::NoSlash => byte != b'/',
        }
    }
}

impl Template {
    /// Reads a template. Refused are braces without partner, expressions without a name, operators that the RFC reserves
    /// and texts above 8 KiB or 32 variables.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        if text.len() > MAX_TEMPLATE {
            return Err(BadTemplate("it is longer than 8 KiB"));
        }
        let mut template = Self { parts: Vec::new(), literals: 0 };
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            template.literal(literal)?;
            let (expression, behind) = after.split_once('}').ok_or(BadTemplate("a `{` is not closed"))?;
            template.expression(expression)?;
            rest = behind;
        }
        template.literal(rest)?;
        if template.parts.len() > MAX_PARTS { Err(BadTemplate("it has more than 32 variables")) } else { Ok(template) }
    }

    /// Counts the fixed bytes: of two matching templates, the one with more fixed bytes says more.
    pub fn literals(&self) -> usize {
        self.literals
    }

    /// Gives the fixed bytes at the beginning of each of its URIs.
    pub fn beginning(&self) -> &[u8] {
        match self.parts.first() {
            Some(Part::Literal(literal)) => literal,
            _ => &[],
        }
    }

    /// Estimates the most steps of [`matches`](Self::matches) with a URI of so many bytes. Sixteen bytes are compared in one step.
    pub fn steps(&self, length: usize) -> usize {
        (self.parts.len() + self.literals / 16) * (length + 1)
    }

    /// Tells if `uri` matches the template.
    pub fn matches(&self, uri: &str) -> bool {
        self.fits_ends(uri) && self.reaches_end(uri.as_bytes())
    }

    /// Tells if `uri` begins and ends as the template does, and is not too long.
    pub fn fits_ends(&self, uri: &str) -> bool {
        let ends = match self.parts.last() {
            Some(Part::Literal(literal)) => uri.as_bytes().ends_with(literal),
            _ => true,
        };
        uri.len() <= MAX_URI && uri.as_bytes().starts_with(self.beginning()) && ends
    }

    fn literal(&mut self, text: &str) -> Result<(), BadTemplate> {
        if text.contains('}') {
            return Err(BadTemplate("a `}` was not opened"));
        }
        if !text.is_empty() {
            self.literals += text.len();
            self.parts.push(Part::Literal(text.as_bytes().into()));
        }
        Ok(())
    }

    fn expression(&mut self, text: &str) -> Result<(), BadTemplate> {
        let (operator, list) = match text.bytes().next() {
            Some(operator @ (b'+' | b'#' | b'.' | b'/' | b';' | b'?' | b'&')) => (operator, text.get(1..).unwrap_or_default()),
            Some(b'=' | b',' | b'!' | b'@' | b'|') => return Err(BadTemplate("an operator is reserved")),
            _ => (b' ', text),
        };
        let mut explodes = false;
        let mut count = 0;
        for variable in list.split(',') {
            let name = variable.strip_suffix('*').unwrap_or(variable);
            if name.is_empty() || name.contains('{') {
                return Err(BadTemplate("an expression has no name"));
            }
            explodes |= name.len() < variable.len();
            count += 1;
        }
        match operator {
            b' ' if explodes => self.parts.push(Part::Run(Class::Any)),
            b' ' => self.parts.push(Part::Run(Class::NoSlash)),
            b'+' => self.parts.push(Part::Run(Class::Any)),
            b'#' => self.parts.push(Part::Optional(b'#', Class::Any)),
            b'?' | b'&' => self.parts.push(Part::Optional(operator, Class::NoHash)),
            _ if explodes => self.parts.push(Part::Optional(operator, Class::Any)),
            _ => self.parts.extend(std::iter::repeat_n(Part::Optional(operator, Class::NoSlash), count)),
        }
        Ok(())
    }

    /// Keeps, part by part, the set of places in the URI where the template can stand.
    fn reaches_end(&self, uri: &[u8]) -> bool {
        let mut here = vec![false; uri.len() + 1];
        if let Some(start) = here.first_mut() {
            *start = true;
        }
        for part in &self.parts {
            here = part.step(uri, &here);
            if !here.contains(&true) {
                return false;
            }
        }
        here.last() == Some(&true)
    }
}

impl Part {
    fn step(&self, uri: &[u8], here: &[bool]) -> Vec<bool> {
        match self {
            Self::Literal(literal) => {
                let mut there = vec![false; here.len()];
                for (slot, at) in there.iter_mut().skip(literal.len()).zip(0..) {
                    let reached = here.get(at) == Some(&true);
                    *slot = reached && uri.get(at..at + literal.len()) == Some(literal);
                }
                there
            }
            Self::Run(class) => spread(uri, here, *class, |byte| class.holds(byte)),
            Self::Optional(opening, class) => {
                let mut there = spread(uri, here, *class, |byte| byte == *opening);
                there.iter_mut().zip(here).for_each(|(there, here)| *there |= here);
                there
            }
        }
    }
}

/// Gives the places reached by one optional first byte and any number of bytes of the class.
fn spread(uri: &[u8], here: &[bool], class: Class, first: impl Fn(u8) -> bool) -> Vec<bool> {
    let mut inside = false;
    let mut there = Vec::with_capacity(here.len());
    there.push(false);
    for (byte, reached) in uri.iter().zip(here) {
        inside = (*reached && first(*byte)) || (inside && class.holds(*byte));
        there.push(inside);
    }
    there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_match_what_servers_make_of_them() {
        let cases = [
            ("file:///{path}", "file:///a.txt", true),
            ("file:///{path}", "file:///a/b", false),
            ("file:///{path}", "file:///", false),
            ("file:///{+path}", "file:///a/b", true),
            ("file:///{path*}", "file:///a/b", true),
            ("repo://{owner}/{name}/tree{/path*}", "repo://o/n/tree", true),
            ("repo://{owner}/{name}/tree{/path*}", "repo://o/n/tree/a/b", true),
            ("repo://{owner}/{name}/tree{/path*}", "repo://o/n/treehouse", false),
            ("x://a{/b,c}", "x://a/1/2", true),
            ("x://a{/b,c}", "x://a/1/2/3", false),
            ("db://q{?limit,offset}", "db://q?limit=1&offset=2", true),
            ("db://q{?limit,offset}", "db://q", true),
            ("db://q{?limit,offset}", "db://quick", false),
            ("db://q?a=1{&b}", "db://q?a=1&b=2", true),
            ("doc://d{#part}", "doc://d#one/two", true),
            ("doc://d{.ext}", "doc://d.md", true),
            ("test://template/{id}/data", "test://template/123/data", true),
            ("test://template/{id}/data", "test://template/123/dat", false),
            ("größe://{x}", "größe://ä", true),
            ("exact://x", "exact://x", true),
            ("{+any}", "whatever", true),
            ("", "", true),
            ("", "x", false),
        ];
        for (template, uri, matches) in cases {
            assert_eq!(Template::parse(template).unwrap().matches(uri), matches, "{template} {uri}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for text in ["{", "a}", "{}", "{a", "{a{b}}", "{,}", "{+}", "{=a}", "{a,}", &"{a}".repeat(99), &"a".repeat(20_000)] {
            assert!(Template::parse(text).is_err(), "{text:.30}");
        }
    }

    #[test]
    fn an_adjacent_pair_of_variables_takes_no_more_steps_than_one() {
        let template = Template::parse(&("x:".to_owned() + &"{+a}".repeat(32) + "!")).unwrap();
        assert!(!template.matches(&("x:".to_owned() + &"a!".repeat(4000) + "?")));
        assert!(template.matches(&("x:".to_owned() + &"a!".repeat(4000))));
        assert!(!template.matches(&("x:".to_owned() + &"a!".repeat(5000))));
    }
}
