use super::*;

/// Three words, the first of them the size.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Three {
    size: usize,
    a: usize,
    b: usize,
}

// SAFETY: it begins with its size, and all zeros are a value of it.
unsafe impl Growing for Three {}

const WORD: usize = size_of::<usize>();

fn given(words: &[usize]) -> Result<Option<Three>, Failure> {
    // SAFETY: the size that the tests set is never more than there is, but where it is refused.
    unsafe { read(words.as_ptr().cast()) }
}

#[test]
fn what_a_caller_does_not_know_is_zero() {
    let short = given(&[2 * WORD, 7]).unwrap().unwrap();
    assert_eq!((short.a, short.b), (7, 0));
    let odd = given(&[2 * WORD + 1, 7, 0x0102]).unwrap().unwrap();
    assert_eq!(odd.a, 7);
    let whole = given(&[3 * WORD, 7, 8]).unwrap().unwrap();
    assert_eq!((whole.a, whole.b), (7, 8));
    // SAFETY: NULL is none.
    assert!(unsafe { read::<Three>(std::ptr::null()) }.unwrap().is_none());
}

#[test]
fn what_the_library_does_not_know_must_be_zero() {
    assert_eq!(given(&[5 * WORD, 7, 8, 0, 0]).unwrap().unwrap().b, 8);
    assert!(given(&[5 * WORD, 7, 8, 0, 1]).is_err());
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for size in [0, 1, WORD, 2 * WORD - 1, LIMIT + 1, usize::MAX] {
        assert!(given(&[size, 7, 8]).is_err(), "{size}");
    }
}

#[test]
fn a_result_fills_what_is_there_and_no_more() {
    let full = Three { size: 99, a: 7, b: 8 };
    for (words, filled) in [(2, [7, 1, 1, 1]), (3, [7, 8, 1, 1]), (4, [7, 8, 0, 1])] {
        let mut place = [1; 5];
        place[0] = words * WORD;
        // SAFETY: the size is not more than there is.
        unsafe { fill(place.as_mut_ptr().cast(), full) }.unwrap();
        assert_eq!(place[0], words * WORD);
        assert_eq!(place[1..], filled);
    }
    // SAFETY: NULL is refused.
    assert!(unsafe { fill(std::ptr::null_mut(), full) }.is_err());
}
