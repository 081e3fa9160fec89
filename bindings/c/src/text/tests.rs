use super::*;
use crate::string::Text;

fn given(bytes: &[u8], length: usize) -> Result<Option<String>, Failure> {
    // SAFETY: the tests say no more than there is, but where it is refused.
    let read = unsafe { read(bytes.as_ptr().cast(), length, "text") };
    read.map(|text| text.map(str::to_owned))
}

#[test]
fn a_text_ends_where_its_length_says_or_with_nul() {
    assert_eq!(given(b"abcd", 3).unwrap().as_deref(), Some("abc"));
    assert_eq!(given(b"ab\0d", 4).unwrap().as_deref(), Some("ab\0d"));
    assert_eq!(given(b"ab\0d", NTS).unwrap().as_deref(), Some("ab"));
    assert_eq!(given(b"\0", NTS).unwrap().as_deref(), Some(""));
    assert_eq!(given(b"", 0).unwrap().as_deref(), Some(""));
}

#[test]
fn what_cannot_be_a_text_is_refused() {
    assert!(given(b"\xff", 1).is_err());
    assert!(given(b"\xc3", 1).is_err());
    assert!(given(b"a", LIMIT + 1).is_err());
    assert!(given(b"a", usize::MAX - 1).is_err());
    // SAFETY: NULL is looked at first.
    unsafe {
        let null = std::ptr::null();
        assert!(read(null, 1, "text").is_err());
        assert_eq!(read(null, 0, "text").unwrap(), None);
        assert_eq!(read(null, NTS, "text").unwrap(), None);
        assert!(need(null, 0, "text").is_err());
    }
}

#[test]
fn a_text_of_ours_has_a_nul_behind_it() {
    let text = Text::new("grüß");
    let borrowed = text.borrow();
    assert_eq!(borrowed.length, 6);
    // SAFETY: it was just made.
    assert_eq!(unsafe { CStr::from_ptr(borrowed.data) }.to_str(), Ok("grüß"));
    assert_eq!(Text::new("").borrow().length, 0);
}
