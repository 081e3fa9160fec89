//! Pages of which a part is written by a program, between two marks.

/// Puts text between the marks of a page, in place of what stands there.
///
/// # Errors
/// A page without the marks.
pub fn put(page: &str, [begin, end]: [&str; 2], text: &str) -> Result<String, String> {
    let (head, rest) = page.split_once(begin).ok_or(format!("the page has no '{begin}'"))?;
    let (_, tail) = rest.split_once(end).ok_or(format!("the page has no '{end}'"))?;
    Ok(format!("{head}{begin}\n\n{text}{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::put;

    #[test]
    fn only_what_stands_between_the_marks_is_written_anew() {
        assert_eq!(put("a <x> old <y> b", ["<x>", "<y>"], "new "), Ok("a <x>\n\nnew <y> b".into()));
        assert!(put("a <x> old", ["<x>", "<y>"], "").unwrap_err().contains("'<y>'"));
    }
}
