//! What two threads do, in every order.

/// All orders of two threads' steps, each thread's own in its order.
pub fn orders<T: Copy>(one: &[T], other: &[T]) -> Vec<Vec<T>> {
    let after = |first: T, rest: Vec<Vec<T>>| {
        rest.into_iter().map(move |order| [vec![first], order].concat())
    };
    match (one, other) {
        ([], rest) | (rest, []) => vec![rest.to_vec()],
        ([a, ones @ ..], [b, others @ ..]) => {
            let first = after(*a, orders(ones, other));
            first.chain(after(*b, orders(one, others))).collect()
        }
    }
}
